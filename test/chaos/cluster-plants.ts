// Known mistakes, planted into every node of a run: the harness must report each of them, or it would not have seen the
// same mistake of ours either. None is in production code: a disk that lies is put under the engine, and source lines
// are changed as they are loaded (sim/mutants).

import type { KvClusterOptions } from "../kv/cluster.ts";
import type { ClusterFault } from "./cluster-faults.ts";

export type PlantName = "ack-before-fsync" | "skip-term-check" | "unknown-key-refused";

export interface Plant {
  readonly node: NonNullable<KvClusterOptions["node"]>;
  /** The faults that bring it to light. */
  readonly faults: readonly ClusterFault[];
  /** How long every message between nodes travels. */
  readonly linkDelayMs?: number | undefined;
}

export const PLANTS: Readonly<Record<PlantName, Plant>> = {
  /** What was said to be durable is in memory for another 100 ms; a blackout takes it away. */
  "ack-before-fsync": { node: { lieMs: 100 }, faults: ["blackout"] },
  /**
   * A vote is given without asking whether this term has had one, and the storage does not notice. Followers that time
   * out together then both win: timeouts are drawn from one millisecond, and what they say travels for longer than that.
   */
  "skip-term-check": {
    node: {
      election: { electionTimeoutMinMs: 150, electionTimeoutMaxMs: 151 },
      edits: [
        {
          file: "core/raft/raft.ts",
          find: "= vote === message.from || (vote === null && leader === null);",
          replace: "= true;",
        },
        {
          file: "engine/storage.ts",
          find: "assert(isSameVote, ",
          replace: "assert(isSameVote || true, ",
        },
      ],
    },
    faults: ["cut", "stop"],
    linkDelayMs: 15,
  },
  /** A node answers 401 to a key that it does not know, whatever it may have missed. */
  "unknown-key-refused": {
    node: {
      edits: [{ file: "api/traffic/callers.ts", find: "    await this.#doorman.rounds.next();\n", replace: "" }],
    },
    faults: ["wipe", "members", "cut-follower", "stop-follower"],
  },
};
