// What `tenure scope` asks of Tenure's own servers.

import { SCOPE_PAGES_MAX, SCOPES_PER_PAGE_MAX } from "../../core/kit/limits.ts";
import type { ScopeAdmin, ScopeRecord, TransitionRecord } from "../../ports/backends/scope-admin.ts";
import { TenureError } from "../../core/kit/errors.ts";
import { SCOPES_PAGE_BYTES_MAX } from "../limits.ts";
import { askedEpochOf, type Fields, scopePageOf, scopeRecordOf, transitionsOf } from "./answers.ts";
import type { LeaderClient } from "./leader-client.ts";
import { FRESH, scopePath } from "./scopes-client.ts";

type Page = ReturnType<typeof scopePageOf>;

export class ServersAdmin implements ScopeAdmin {
  readonly #client: LeaderClient;
  readonly #life = new AbortController();

  constructor(client: LeaderClient) {
    this.#client = client;
  }

  /** Page by page, each as it is when it is asked for: who leads may change between two of them. */
  async list(): Promise<ScopeRecord[]> {
    const records: ScopeRecord[] = [];
    let after: string | null = null;
    for (let page = 0; page < SCOPE_PAGES_MAX; page++) {
      const found: Page = await this.#page(after);
      records.push(...found.records);
      if (found.next === null) return records.toSorted((a, b) => (a.scope < b.scope ? -1 : 1));
      if (after !== null && found.next <= after) break;
      after = found.next;
    }
    throw new TenureError(
      "BACKEND_UNSUPPORTED",
      "the server lists scopes without an end. Is it a server of Tenure, and not of another version?",
    );
  }

  async #page(after: string | null): Promise<Page> {
    const from = after === null ? "" : `&after=${encodeURIComponent(after)}`;
    const path = `/v1/scopes?${FRESH}&limit=${SCOPES_PER_PAGE_MAX}${from}`;
    const limits = { signal: this.#life.signal, bytesMax: SCOPES_PAGE_BYTES_MAX };
    return (await this.#client.ask({ method: "GET", path, body: null, ...limits, read: scopePageOf })).value;
  }

  find(scope: string): Promise<ScopeRecord | null> {
    return this.#ifKnown(`${scopePath(scope)}?${FRESH}`, scopeRecordOf);
  }

  async history(scope: string): Promise<TransitionRecord[]> {
    return (await this.#ifKnown(`${scopePath(scope)}/history?${FRESH}`, transitionsOf)) ?? [];
  }

  /** Null for a scope that nobody ever led. */
  async #ifKnown<T>(path: string, read: (body: Fields) => T): Promise<T | null> {
    try {
      const { signal } = this.#life;
      return (await this.#client.ask({ method: "GET", path, body: null, signal, read })).value;
    } catch (error) {
      if (TenureError.is(error) && error.code === "NOT_FOUND") return null;
      throw error;
    }
  }

  /** Sent once: a second time it might take the scope from whoever came next. */
  async askResign(scope: string, force: boolean): Promise<{ readonly epoch: number } | null> {
    const path = `${scopePath(scope, "/v1/admin/scopes")}/resign`;
    const how = { signal: this.#life.signal, once: true, read: askedEpochOf };
    return (await this.#client.ask({ method: "POST", path, body: { force }, ...how })).value;
  }

  async close(): Promise<void> {
    this.#life.abort();
    this.#client.close();
  }
}
