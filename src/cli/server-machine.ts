// What the servers' committed log is folded into: cluster commands and the hash chain, around the log of scopes.

import { ClusterMachine, innerConsensus } from "../controller/cluster-machine.ts";
import { assert } from "../core/kit/assert.ts";
import { ScopesFold } from "../core/scopes/index.ts";
import { systemDigest } from "../drivers/system/digest.ts";
import { RaftLog } from "../logs/index.ts";
import type { Consensus } from "../ports/consensus.ts";

export interface ServerMachine {
  readonly machine: ClusterMachine;
  readonly log: RaftLog;
  readonly fold: ScopesFold;
  /** The engine, once there is one: what the log proposes goes there, tagged for the machine. */
  readonly attach: (consensus: Consensus) => void;
}

export function serverMachine(): ServerMachine {
  let inner: Consensus | null = null;
  const fold = new ScopesFold();
  const log = new RaftLog({
    fold,
    consensus: () => {
      assert(inner !== null, "the log is used after its engine was attached");
      return inner;
    },
  });
  return {
    machine: new ClusterMachine(log, systemDigest),
    log,
    fold,
    attach: (consensus) => {
      inner = innerConsensus(consensus);
    },
  };
}
