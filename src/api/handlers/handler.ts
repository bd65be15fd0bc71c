// What a route's handler is: a function from a checked call to an answer, without the web framework. The other
// files of this folder have them, one for each subject.

import type { ApiKey, Role, RouteId, ROUTES, ValueOf } from "../../contract/index.ts";
import type { Clock } from "../../ports/clock.ts";
import type { Cluster } from "../../ports/cluster.ts";
import type { InTurn } from "../../ports/events.ts";
import type { Scopes } from "../../ports/scopes.ts";
import type { Values } from "../../ports/values.ts";
import type { Audit } from "../audit.ts";
import type { Caller } from "../traffic/callers.ts";
import type { HttpCounters } from "../http-stats.ts";
import type { Admission, LongPolls } from "../traffic/long-polls.ts";
import type { ApiLimits, ApiOptions, JobsParts } from "../options.ts";
import type { Outlet } from "../streams/stream.ts";

/** Its admission is for what goes on. */
export interface Call<Id extends RouteId> extends Admission {
  readonly params: ValueOf<(typeof ROUTES)[Id]["params"]>;
  readonly query: ValueOf<(typeof ROUTES)[Id]["query"]>;
  readonly body: ValueOf<(typeof ROUTES)[Id]["body"]>;
  /** Aborts when the exchange is over: the client has gone, or has its answer. */
  readonly gone: AbortSignal;
  readonly caller: Caller;
  readonly method: string;
  /** As it was asked for, percent-encoded, without the query. */
  readonly path: string;
  /** Undefined where it was not sent. The name is in lower case. */
  readonly header: (name: string) => string | undefined;
  /** Of a call that is no operator's as a rule: what it did, or was refused, is written down when it ends. */
  readonly audit: (operation: string, target: string) => void;
  /** As `isStillAdmitted`, of the caller alone. Throws what a new call would be answered with. */
  readonly admitAgain: () => void;
  /** Writes down a fault in a part of this call that is answered by itself. */
  readonly onFault: (error: unknown) => void;
  /**
   * Before each part of a call that has many of them: null where the slice of this turn is not over, otherwise one waits for it among the other requests
   * (traffic/turn-share.ts).
   */
  readonly enterTurn: () => Promise<void> | null;
  /** For an answer of up to a megabyte that is made by this thread: makes it when its turn comes (traffic/heavy-turns.ts). */
  readonly inTurn: InTurn;
  /** The same for the point from which a stream goes on, where that is read from the disk. */
  readonly pointInTurn: InTurn;
  /**
   * For a stream of events or of a log, before anything is read for it: a place of this node's and of the caller's share. Throws
   * OVERLOADED. What it returns gives the place back, once.
   */
  readonly takeStream: () => () => void;
}

export interface Answer {
  readonly stream?: undefined;
  readonly status?: number | undefined;
  /** An object becomes JSON. */
  readonly body: object | string | Uint8Array;
  readonly contentType?: string | undefined;
  readonly headers?: Readonly<Record<string, string>> | undefined;
}

/** Written piece by piece, by `stream`, for as long as that takes. */
export interface StreamAnswer {
  readonly contentType: string;
  readonly headers?: Readonly<Record<string, string>> | undefined;
  stream(out: Outlet): Promise<void>;
  /** Called instead of `stream` where nobody wants the body. */
  abandoned?(): void;
}

export type Handler<Id extends RouteId> = (call: Call<Id>) => Answer | StreamAnswer | Promise<Answer | StreamAnswer>;
export type Handlers = { readonly [Id in RouteId]: Handler<Id> };

/** What handlers work with. */
export interface Service {
  readonly cluster: Cluster;
  readonly scopes: Scopes;
  readonly values: Values;
  readonly meshState?: ApiOptions["meshState"];
  readonly arrivals?: ApiOptions["arrivals"];
  readonly coordinators?: ApiOptions["coordinators"];
  readonly transactions?: ApiOptions["transactions"];
  readonly txnDecider?: ApiOptions["txnDecider"];
  readonly nodeId: string;
  readonly clock: Clock;
  readonly nextTurn?: ApiOptions["nextTurn"];
  readonly metrics: ApiOptions["metrics"];
  readonly diagnostics: ApiOptions["diagnostics"];
  readonly counters: Pick<HttpCounters, "lastBackupAtMs">;
  readonly sha256: ApiOptions["sha256"];
  /** Of the configuration. */
  readonly keys: readonly ApiKey[];
  readonly limits: ApiLimits;
  readonly polls: LongPolls;
  readonly audit: Audit;
  isStopping(): boolean;
  /** It leads and gives no leases (design D17). */
  isQuiet(): boolean;
  /** What callers without a key or a certificate may do here. */
  anonymousRoles(): readonly Role[];
}

export type { JobsParts };
