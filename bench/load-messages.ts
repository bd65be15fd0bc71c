// What a benchmark and its client process say to each other over IPC. Times are milliseconds of the machine's monotonic
// clock, which all processes share; `…WallMs` are of the wall clock, whole, to be compared with the event logs of nodes.

export type Side = "tenure" | "etcd";

export type Ask =
  /** Connect; `leader`: whom to ask first. Closes what was open on that side. */
  | {
      readonly ask: "open";
      readonly side: Side;
      readonly ports: Readonly<Record<string, number>>;
      readonly leader: string;
      /** How long a request may stay unanswered before the client goes elsewhere; null: for ever. */
      readonly patienceMs: number | null;
      /** Tenure: how often a write may be refused before it counts as refused; null: until its time is over. */
      readonly refusalsMax: number | null;
    }
  /** So many clients, each with one write under way, for so long; what comes before `warmMs` is not counted. */
  | {
      readonly ask: "window";
      readonly side: Side;
      readonly clients: number;
      readonly warmMs: number;
      readonly ms: number;
    }
  /** Writers go on until "halt". */
  | { readonly ask: "begin"; readonly side: Side; readonly writers: number }
  | { readonly ask: "halt" }
  /** From now on the first acknowledgement by another node than `victim` is awaited: see "awaited". */
  | { readonly ask: "watch"; readonly victim: string }
  | { readonly ask: "awaited" }
  /** From now on the times of acknowledgements are kept, until "acks" asks for them. */
  | { readonly ask: "record" }
  | { readonly ask: "acks" };

export interface WindowResult {
  readonly perSecond: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
  readonly failed: number;
}

export interface Awaited {
  readonly node: string;
  readonly ackedMs: number;
  /** When this client knew that this node leads; Tenure only. */
  readonly foundWallMs: number | null;
}

export interface Acks {
  readonly atMs: readonly number[];
  /** Writes that were refused although the client had tried twice. */
  readonly refused: number;
}

export interface Told {
  readonly ask: Ask["ask"];
  readonly window?: WindowResult | undefined;
  readonly awaited?: Awaited | undefined;
  readonly acks?: Acks | undefined;
}

export function monotonicMs(): number {
  return Number(process.hrtime.bigint()) / 1e6;
}
