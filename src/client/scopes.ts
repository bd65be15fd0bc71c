// Scopes at Tenure's servers, as requests: who holds what, and the three steps of holding one. An elector adds trust
// windows and heartbeats to them; this does not, and a grant here is worth its duration from when the request was sent.
//
// All three steps may be sent again: the same session asking for what it holds gets its grant again, renewing extends,
// and a hold that is over can be resigned as often as one likes.

import { TenureError } from "../contract/errors.ts";
import { SCOPE_PAGES_MAX } from "../contract/limits.ts";
import { ATTEMPT_MS, RENEWAL_ATTEMPT_MS } from "../contract/timeouts.ts";
import type { Caller, CallOptions, ReadOptions } from "./caller.ts";
import { readQuery } from "./caller.ts";
import type { AcquireRequest, ScopeGrant, ScopeRenewal, ScopeTransitionView, ScopeView } from "./views.ts";

export interface ScopeHold {
  readonly scope: string;
  readonly session: string;
  readonly epoch: number;
}

export interface ClientScopes {
  /** All of them, by name; asked for page by page, so they are not all of one moment. */
  list(options?: ReadOptions): Promise<readonly ScopeView[]>;
  get(scope: string, options?: ReadOptions): Promise<ScopeView>;
  /** Newest first. */
  history(scope: string, options?: ReadOptions): Promise<readonly ScopeTransitionView[]>;
  acquire(request: AcquireRequest, options?: CallOptions): Promise<ScopeGrant>;
  renew(hold: ScopeHold, options?: CallOptions): Promise<ScopeRenewal>;
  resign(hold: ScopeHold, options?: CallOptions): Promise<void>;
  /** For operators: asks the holder to step down, or takes the scope away. The epoch that it is about; null: nobody holds it. */
  askResign(scope: string, force: boolean, options?: CallOptions): Promise<number | null>;
}

export function scopesOf(caller: Caller): ClientScopes {
  const step = async <T>(scope: string, verb: string, body: object, options: CallOptions): Promise<T> => {
    const path = `${pathOf(scope)}/${verb}`;
    return await caller.bodyOf<T>(await caller.mutate({ method: "POST", path, body, isIdempotent: true }, options));
  };
  return {
    list: (options = {}) => listAll(caller, options),
    get: async (scope, options = {}) =>
      await caller.readJson<ScopeView>(`${pathOf(scope)}${readQuery(options)}`, options),
    history: async (scope, options = {}) => {
      const path = `${pathOf(scope)}/history${readQuery(options)}`;
      return (await caller.readJson<{ transitions: readonly ScopeTransitionView[] }>(path, options)).transitions;
    },
    acquire: async ({ scope, session, identity, metadata, ttlMs, waitMs }, options = {}) => {
      const body = {
        session,
        identity,
        ...(metadata === undefined ? {} : { metadata }),
        ttl_ms: ttlMs,
        wait_ms: waitMs,
      };
      return await step<ScopeGrant>(scope, "acquire", body, { attemptMs: waitMs + ATTEMPT_MS, ...options });
    },
    renew: async ({ scope, session, epoch }, options = {}) =>
      await step<ScopeRenewal>(scope, "renew", { session, epoch }, { attemptMs: RENEWAL_ATTEMPT_MS, ...options }),
    resign: async ({ scope, session, epoch }, options = {}) => {
      await step(scope, "resign", { session, epoch }, options);
    },
    askResign: async (scope, force, options = {}) => {
      const path = `/v1/admin/scopes/${encodeURIComponent(scope)}/resign`;
      const request = { method: "POST", path, body: { force }, isIdempotent: false } as const;
      return (await caller.bodyOf<{ epoch: number | null }>(await caller.mutate(request, options))).epoch;
    },
  };
}

async function listAll(caller: Caller, options: ReadOptions): Promise<readonly ScopeView[]> {
  const scopes: ScopeView[] = [];
  const timeLeft = caller.timeLeft(options);
  let after: string | null = null;
  for (let page = 0; page < SCOPE_PAGES_MAX; page++) {
    const path = `/v1/scopes${readQuery(options, after === null ? {} : { after })}`;
    const found: Page = await caller.readJson<Page>(path, { ...options, timeoutMs: timeLeft() });
    scopes.push(...found.scopes);
    if (found.next === null) return scopes;
    if (after !== null && !(found.next > after)) break;
    after = found.next;
  }
  throw new TenureError("BACKEND_UNSUPPORTED", "the server lists scopes without an end; is it a Tenure server?");
}

interface Page {
  readonly scopes: readonly ScopeView[];
  /** After this name the next page begins; null: this was the last. */
  readonly next: string | null;
}

function pathOf(scope: string): string {
  return `/v1/scopes/${encodeURIComponent(scope)}`;
}
