// What the harness and its workers say to each other: orders and reports, over Node's channel or, where a worker is
// the child of somebody else's program, as lines on its standard output.

export type WorkerKind = "postgres" | "etcd" | "servers" | "bare-lock" | "etcdctl";

export interface Timing {
  readonly serverTimeoutMs: number;
  readonly heartbeatMs: number;
  readonly marginMs: number;
}

/** In the environment of a worker, as JSON. */
export interface WorkerConfig {
  readonly kind: WorkerKind;
  readonly name: string;
  readonly scope: string;
  /** Of the server, through the worker's own proxy; of several servers with commas between them. */
  readonly url: string;
  /** Where the counter is, if it is not on the server. */
  readonly resourceUrl?: string;
  /** What the server knows the worker by, where it wants to. */
  readonly key?: string;
  /** Transactions take their clients from a pool that the service has anyway, and has in use, or from the library's. */
  readonly pool: "own" | "library";
  readonly lanes: number;
  /** Each transaction thinks twice for up to so long: between fence and write, and between write and commit. */
  readonly thinkMsMax: number;
  /** Undefined: the library's own. */
  readonly timing: Timing | undefined;
}

export const CONFIG_VARIABLE = "TENURE_CHAOS_WORKER";

export type Order =
  /** Blocks the event loop. */
  | { readonly do: "spin"; readonly ms: number }
  /** Leaves a fenced statement running on the server. */
  | { readonly do: "busy"; readonly ms: number };

export type Report =
  | { readonly is: "transition"; readonly kind: string; readonly epoch: number; readonly reason: string }
  /** An increment is about to be tried; its outcome follows, unless the worker dies. */
  | {
      readonly is: "begin";
      readonly seq: number;
      readonly lane: number;
      readonly value: number;
      readonly epoch: number;
    }
  | { readonly is: "ack"; readonly seq: number }
  /** Certainly not written. */
  | { readonly is: "refused"; readonly seq: number; readonly why: string }
  | { readonly is: "unknown"; readonly seq: number; readonly why: string }
  /** A write with an old epoch past the gate. `newest`: the epoch that was in force before it was sent. */
  | { readonly is: "stale"; readonly epoch: number; readonly newest: number; readonly outcome: StaleOutcome }
  | { readonly is: "spun" }
  | { readonly is: "trouble"; readonly message: string };

export type StaleOutcome = "refused" | "accepted" | "unknown";
