// Values, in the words of the servers' API: read, write, list, follow.
//
// Invariants
// - Reads are linearizable: a new leader never goes on from an old cursor.
// - A write is sent again only where it certainly was not done (LeaderClient, `once`).
// - A value is looked for in the list: a path of its own that is not there may also be an older server's, which has no values at all.

import { TenureError } from "../../core/kit/errors.ts";
import { VALUES_PER_PAGE_MAX } from "../../core/kit/limits.ts";
import { STREAM_OPEN_MS, STREAM_SILENCE_MS } from "../../core/kit/timeouts.ts";
import type { StoredValue } from "../../ports/stored-values.ts";
import type { ValueDelete, ValueDeleted, ValueFence, ValuePut } from "../../ports/values.ts";
import { VALUE_WRITE_WAIT_MS, VALUES_ANSWER_BYTES_MAX, VALUES_PAGES_MAX } from "../limits.ts";
import { deletedOf, type Fields, type ValuesListed, valuesPageOf, writtenOf } from "./answers.ts";
import type { LeaderClient, Question } from "./leader-client.ts";
import { FRESH } from "./scopes-client.ts";
import type { ValueStore } from "./term.ts";

export class ValuesClient implements ValueStore {
  readonly #client: LeaderClient;
  readonly #signal: AbortSignal;
  readonly #underWay = new Set<Promise<unknown>>();

  /** `signal`: ends what is under way. A write then has an unknown outcome. */
  constructor(client: LeaderClient, signal: AbortSignal) {
    this.#client = client;
    this.#signal = signal;
  }

  async get(name: string): Promise<StoredValue | null> {
    // The first name that begins with it is the name itself.
    const { values } = await this.page({ prefix: name, limit: 1, after: null, signal: this.#signal });
    return values.find((one) => one.name === name) ?? null;
  }

  put({ name, value, ifVersion, fence }: ValuePut): Promise<{ readonly version: number }> {
    const body = { value, ...conditionsOf(ifVersion, fence) };
    return this.#write({ method: "PUT", path: valuePath(name), body, read: writtenOf });
  }

  delete({ name, ifVersion, fence }: ValueDelete): Promise<ValueDeleted> {
    const query = queryOf(conditionsOf(ifVersion, fence));
    return this.#write({ method: "DELETE", path: `${valuePath(name)}?${query}`, body: null, read: deletedOf });
  }

  /** Every write that is under way has its outcome. */
  async settled(): Promise<void> {
    await Promise.allSettled(this.#underWay);
  }

  async *pages(prefix: string, signal: AbortSignal): AsyncGenerator<ValuesListed, void, void> {
    let after: string | null = null;
    for (let page = 0; page < VALUES_PAGES_MAX; page++) {
      const found: ValuesListed = await this.page({ prefix, limit: VALUES_PER_PAGE_MAX, after, signal });
      yield found;
      if (found.next === null) return;
      if (after !== null && found.next <= after) break;
      after = found.next;
    }
    throw new TenureError(
      "BACKEND_UNSUPPORTED",
      "the server lists values without an end. Is it a server of Tenure, and not of another version?",
    );
  }

  /** The changes after a version, as text: it ends with the signal, which must abort. */
  follow(prefix: string, after: number, signal: AbortSignal): Promise<AsyncIterable<string>> {
    const path = `/v1/watch/values?${queryOf({ prefix, after })}`;
    const limits = { waitMs: STREAM_OPEN_MS, silenceMs: STREAM_SILENCE_MS, signal };
    return this.#ask({ method: "GET", path, body: null, ...limits, read: piecesIn });
  }

  page(wanted: {
    readonly prefix: string;
    readonly limit: number;
    readonly after: string | null;
    readonly signal: AbortSignal;
  }): Promise<ValuesListed> {
    const { prefix, limit, after, signal } = wanted;
    const path = `/v1/values?${FRESH}&${queryOf({ prefix, limit, ...(after === null ? {} : { after }) })}`;
    return this.#ask({
      method: "GET",
      path,
      body: null,
      signal,
      bytesMax: VALUES_ANSWER_BYTES_MAX,
      read: valuesPageOf,
    });
  }

  #write<T>(write: Pick<Question<T>, "method" | "path" | "body" | "read">): Promise<T> {
    const written = this.#ask({ ...write, signal: this.#signal, waitMs: VALUE_WRITE_WAIT_MS, once: true });
    this.#underWay.add(written);
    const forget = (): void => void this.#underWay.delete(written);
    written.then(forget, forget);
    return written;
  }

  async #ask<T>(question: Question<T>): Promise<T> {
    try {
      return (await this.#client.ask(question)).value;
    } catch (error) {
      if (!TenureError.is(error) || error.code !== "NOT_FOUND") throw error;
      // None of these is refused so by a server that has values.
      throw new TenureError(
        "NOT_SUPPORTED",
        "the servers keep no values: they are of a release before values. Upgrade them.",
        { cause: error },
      );
    }
  }
}

function valuePath(name: string): string {
  return `/v1/values/${encodeURIComponent(name)}`;
}

function conditionsOf(ifVersion: number | null, fence: ValueFence | null): Readonly<Record<string, string | number>> {
  return { ...(ifVersion === null ? {} : { if_version: ifVersion }), ...fence };
}

function queryOf(fields: Readonly<Record<string, string | number>>): string {
  return new URLSearchParams(Object.entries(fields).map(([name, value]) => [name, String(value)])).toString();
}

function piecesIn(_: Fields, pieces: AsyncIterable<string> | undefined): AsyncIterable<string> {
  return pieces ?? nothing();
}

async function* nothing(): AsyncGenerator<string, void, void> {}
