// What `tenure scope` asks of Tenure's own servers.

import type { ScopeAdmin, ScopeRecord, TransitionRecord } from "../../ports/scope-admin.ts";
import { TenureError } from "../../core/kit/errors.ts";
import { askedEpochOf, scopeRecordsOf, transitionsOf } from "./answers.ts";
import type { LeaderClient } from "./leader-client.ts";
import { FRESH, scopePath } from "./scopes-client.ts";

/** Every scope with its metadata: SCOPES_MAX of them, each as large as it may be, would be three times as much. */
const LIST_BYTES_MAX = 16 * 1024 * 1024;

export class ServersAdmin implements ScopeAdmin {
  readonly #client: LeaderClient;
  readonly #life = new AbortController();

  constructor(client: LeaderClient) {
    this.#client = client;
  }

  async list(): Promise<ScopeRecord[]> {
    const path = `/v1/scopes?${FRESH}`;
    const limits = { signal: this.#life.signal, bytesMax: LIST_BYTES_MAX };
    const { value } = await this.#client.ask({ method: "GET", path, body: null, ...limits, read: scopeRecordsOf });
    return value.toSorted((a, b) => (a.scope < b.scope ? -1 : 1));
  }

  async history(scope: string): Promise<TransitionRecord[]> {
    const path = `${scopePath(scope)}/history?${FRESH}`;
    try {
      const { signal } = this.#life;
      const { value } = await this.#client.ask({ method: "GET", path, body: null, signal, read: transitionsOf });
      return value;
    } catch (error) {
      if (TenureError.is(error) && error.code === "NOT_FOUND") return [];
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
