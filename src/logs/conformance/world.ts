// What the suite needs of whoever runs it: three nodes with a handle of one log each, a way to make one of them the leader
// of a new epoch, and the faults that this place can play. Nothing here knows a test framework.

import type { Log } from "../../ports/log.ts";

export type LogFault = "cut" | "crash";

export interface LogWorld {
  readonly nodes: readonly [string, string, string];
  /** The log as this node has it in its present life. */
  log(node: string): Log;
  /**
   * Makes this node the leader of a new epoch, above all before, and returns the epoch. Whoever led is deposed; unless it
   * is cut off it hears of it. Needs a majority of the nodes.
   */
  lead(node: string): Promise<number>;
  /** Moves time, real or virtual. */
  advance(ms: number): Promise<void>;
  /** How many records are kept for readers at least. */
  readonly keptRecordsMin: number;
  /** So many records later the first ones are not kept any more, on a node that has seen all of them. */
  readonly forgottenAfterRecords: number;
  /** A batch that is refused for its size. */
  readonly tooLargeBytes: number;
  /** What it sends, and what is sent to it, vanishes without a word. */
  readonly cut?: ((node: string) => Promise<void>) | undefined;
  readonly heal?: ((node: string) => Promise<void>) | undefined;
  /** Its process dies; what it had durably written is there after `restart`. */
  readonly crash?: ((node: string) => Promise<void>) | undefined;
  readonly restart?: ((node: string) => Promise<void>) | undefined;
  dispose(): Promise<void>;
}

export type MakeLogWorld = () => LogWorld | Promise<LogWorld>;

export function plays(world: LogWorld, fault: LogFault): boolean {
  switch (fault) {
    case "cut":
      return world.cut !== undefined && world.heal !== undefined;
    case "crash":
      return world.crash !== undefined && world.restart !== undefined;
    default:
      return fault satisfies never;
  }
}
