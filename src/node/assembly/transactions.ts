// What decides transactions on a node, over its coordinator: in which term it may act, and who leads otherwise.

import type { Coordinator } from "../../controller/coordinators/index.ts";
import { Decider } from "../../controller/transactions/decider/index.ts";
import type { TransactionsService } from "../../controller/transactions/transactions.ts";
import type { Random } from "../../core/kit/random.ts";
import { txnDigestInput } from "../../core/txn/index.ts";
import type { TcFence } from "../../core/txn/model.ts";
import type { Clock } from "../../ports/clock.ts";
import type { Digest } from "../../ports/digest.ts";
import type { Logger } from "../../ports/logger.ts";
import type { CoordinatorTerm, IslandCalls, TxnForward } from "../../ports/transactions.ts";
import type { Coordination } from "./coordinators.ts";

interface Coordinating {
  readonly coordinator: Coordinator;
  readonly endpoint: string;
}

export interface DeciderParts {
  readonly coordination: Pick<Coordination<Coordinating>, "service" | "elector">;
  readonly transactions: Pick<TransactionsService, "attach" | "backendHash" | "get">;
  readonly calls: IslandCalls;
  readonly forward: TxnForward;
  readonly clock: Clock;
  readonly random: Random;
  readonly digest: Pick<Digest, "sha256Hex">;
  readonly logger: Logger;
}

/** From then on this island reaches the others, and knows in which term their coordinators are. */
export function assembleDecider(parts: DeciderParts): Decider {
  const { coordination, transactions, calls, forward, clock, random, digest, logger } = parts;
  const { coordinator } = coordination.service;
  transactions.attach({ calls, observed: () => observedBy(coordinator) });
  return new Decider({
    term: coordinatorTerm(coordination),
    calls,
    forward,
    own: transactions,
    clock,
    random,
    logger,
    digestOf: (body, home) => digest.sha256Hex(txnDigestInput(body, home)),
  });
}

/** A leader is observed when its first roster is stored here: it says which recovery the term is of. */
function observedBy({ observed, ledger: { clusterId, roster } }: Coordinator): TcFence | null {
  if (observed === null || clusterId === null || roster === null) return null;
  return { clusterId, term: observed.term, recoveredBy: roster.recoveredBy };
}

function coordinatorTerm({ service, elector }: DeciderParts["coordination"]): CoordinatorTerm {
  const { coordinator, endpoint } = service;
  return {
    fence: (): TcFence | null => {
      const { leads, leadership, ledger } = coordinator;
      if (leads === null || leadership === null || ledger.clusterId === null || !elector.gate.isLeader) return null;
      return { clusterId: ledger.clusterId, term: leads, recoveredBy: leadership.roster.recoveredBy };
    },
    // A call that comes back here would be refused as one that was forwarded.
    leaderEndpoint: () => {
      const leader = coordinator.observed?.endpoint ?? null;
      return leader === endpoint ? null : leader;
    },
    isLed: () => coordinator.observed !== null,
  };
}
