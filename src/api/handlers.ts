// What a route's handler is: a function from a checked call to an answer, without the web framework. Handlers stand in
// probe-, cluster-, scope- and admin-handlers.ts.

import type { RouteId, ROUTES, ValueOf } from "../contract/index.ts";
import type { Clock } from "../ports/clock.ts";
import type { Cluster } from "../ports/cluster.ts";
import type { Scopes } from "../ports/scopes.ts";
import type { Audit } from "./audit.ts";
import type { LongPolls } from "./long-polls.ts";
import type { ApiLimits, ApiOptions } from "./options.ts";

export interface Call<Id extends RouteId> {
  readonly params: ValueOf<(typeof ROUTES)[Id]["params"]>;
  readonly query: ValueOf<(typeof ROUTES)[Id]["query"]>;
  readonly body: ValueOf<(typeof ROUTES)[Id]["body"]>;
  /** Aborts when the exchange is over: the client has gone, or has its answer. */
  readonly gone: AbortSignal;
}

export interface Answer {
  readonly status?: number | undefined;
  /** An object becomes JSON. */
  readonly body: object | string | Uint8Array;
  readonly contentType?: string | undefined;
  readonly headers?: Readonly<Record<string, string>> | undefined;
}

export type Handler<Id extends RouteId> = (call: Call<Id>) => Answer | Promise<Answer>;
export type Handlers = { readonly [Id in RouteId]: Handler<Id> };

/** What handlers work with. */
export interface Service {
  readonly cluster: Cluster;
  readonly scopes: Scopes;
  readonly nodeId: string;
  readonly clock: Clock;
  readonly metrics: ApiOptions["metrics"];
  readonly limits: ApiLimits;
  readonly polls: LongPolls;
  readonly audit: Audit;
  isStopping(): boolean;
}
