// One scope, in the words of the servers' API: acquire, renew, resign, read, wait for a change.

import { TenureError } from "../../core/kit/errors.ts";
import type { Instant } from "../../core/trust/window.ts";
import {
  type Acquired,
  acquiredOf,
  type Fields,
  NEVER_LED,
  type Renewed,
  renewedOf,
  type ScopeState,
  scopeStateOf,
} from "./answers.ts";
import type { AcquireRequest } from "../../ports/scopes.ts";
import type { LeaderClient } from "./leader-client.ts";

export interface Candidacy extends Omit<AcquireRequest, "scope"> {
  /** As `Question.sent`. */
  readonly sent: () => void;
}

type Sent<T> = T & { readonly sentAt: Instant };

/** Reads see everything that was acknowledged before they were asked, whichever node answers. */
export const FRESH = "consistency=linearizable";

/** CONFIG_INVALID for a name that no path can carry. */
export function scopePath(scope: string, prefix = "/v1/scopes"): string {
  // As a part of a path these mean other paths, however they are written.
  if (scope === "." || scope === "..") throw unnameable(scope);
  try {
    return `${prefix}/${encodeURIComponent(scope)}`;
  } catch {
    throw unnameable(scope);
  }
}

export class ScopesClient {
  readonly #client: LeaderClient;
  readonly #path: string;

  constructor(client: LeaderClient, scope: string) {
    this.#client = client;
    this.#path = scopePath(scope);
  }

  /** Held back by the server until the scope is ours, at most `waitMs`. */
  async acquire(candidacy: Candidacy, signal: AbortSignal): Promise<Sent<Acquired>> {
    const { session, identity, metadata, ttlMs, waitMs, sent } = candidacy;
    const body = { session, identity, metadata, ttl_ms: ttlMs, wait_ms: waitMs };
    const path = `${this.#path}/acquire`;
    const question = { method: "POST", path, body, signal, waitMs, sent, read: acquiredOf } as const;
    const { value, sentAt } = await this.#client.ask(question);
    return { ...value, sentAt };
  }

  /** Null: the hold is over, for sure. */
  async renew(session: string, epoch: number, signal: AbortSignal): Promise<Sent<Renewed> | null> {
    const path = `${this.#path}/renew`;
    const read = (fields: Fields): Renewed => {
      const renewed = renewedOf(fields);
      if (renewed.epoch !== epoch) throw otherEpoch(epoch, renewed.epoch);
      return renewed;
    };
    try {
      const { value, sentAt } = await this.#client.ask({
        method: "POST",
        path,
        body: { session, epoch },
        signal,
        read,
      });
      return { ...value, sentAt };
    } catch (error) {
      if (TenureError.is(error) && error.code === "STALE_EPOCH") return null;
      throw error;
    }
  }

  /** When it resolves, this session does not hold this epoch. */
  async resign(session: string, epoch: number, signal: AbortSignal): Promise<void> {
    const question = { method: "POST", path: `${this.#path}/resign`, body: { session, epoch }, signal } as const;
    try {
      await this.#client.ask({ ...question, read: () => undefined });
    } catch (error) {
      if (!(TenureError.is(error) && error.code === "STALE_EPOCH")) throw error;
    }
  }

  async read(signal: AbortSignal): Promise<ScopeState> {
    return this.#state(`${this.#path}?${FRESH}`, 0, signal);
  }

  /** Held back by the server until the state is another than this, at most `waitMs`. */
  async changed(known: ScopeState, waitMs: number, signal: AbortSignal): Promise<ScopeState> {
    const query = `${FRESH}&wait_ms=${waitMs}&epoch=${known.epoch}&held=${known.leader !== null}`;
    return this.#state(`${this.#path}?${query}`, waitMs, signal);
  }

  async #state(path: string, waitMs: number, signal: AbortSignal): Promise<ScopeState> {
    try {
      const question = { method: "GET", path, body: null, signal, waitMs, read: scopeStateOf } as const;
      return (await this.#client.ask(question)).value;
    } catch (error) {
      if (TenureError.is(error) && error.code === "NOT_FOUND") return NEVER_LED;
      throw error;
    }
  }
}

function unnameable(scope: string): TenureError {
  return new TenureError(
    "CONFIG_INVALID",
    `the scope ${JSON.stringify(scope)} can't be part of a URL; take another name.`,
  );
}

function otherEpoch(ours: number, theirs: number): TenureError {
  return new TenureError(
    "BACKEND_UNSUPPORTED",
    `the server renewed epoch ${theirs} where epoch ${ours} was asked for. Is it a server of Tenure?`,
  );
}
