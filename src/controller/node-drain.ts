// A node that an operator takes out (`tenure cluster drain`), and whether a node wants to lead at all.
//
//   willing ──drain──▶ leads? handed over ──▶ drained: votes, replicates and serves, and does not want to lead
//      ▲                                          │
//      └────────────── undone, or started anew ───┘
//
// - A node wants to lead while nothing speaks against it: reasons come and go by themselves, each counts.
// - Leadership is handed over before the node is unwilling, as any other planned transfer is: where that comes to nothing, and
//   nobody insists, nothing has changed.
// - One that is drained leads all the same where nobody else can, and lets go as soon as somebody is there (core/raft).

import { TenureError } from "../core/kit/errors.ts";
import type { Clock } from "../ports/clock.ts";
import type { TransferView } from "../ports/cluster.ts";
import type { Consensus } from "../ports/consensus.ts";

const HANDED_OVER_MS_MAX = 3_000;
const LOOK_MS = 5;

export type Reluctance = "disk" | "drained" | "stopping";

export class Willingness {
  readonly #consensus: Pick<Consensus, "setWilling">;
  readonly #against = new Set<Reluctance>();

  constructor(consensus: Pick<Consensus, "setWilling">) {
    this.#consensus = consensus;
  }

  has(reason: Reluctance): boolean {
    return this.#against.has(reason);
  }

  set(reason: Reluctance, holds: boolean): void {
    if (holds) this.#against.add(reason);
    else this.#against.delete(reason);
    this.#consensus.setWilling(this.#against.size === 0);
  }
}

export interface NodeDrainOptions {
  readonly consensus: Pick<Consensus, "status">;
  readonly willingness: Willingness;
  readonly clock: Clock;
  /** To the best other voter. */
  readonly transfer: () => Promise<TransferView>;
}

/** Resolves when this node does not lead, or with `force` also where nobody else can. Rejects, and changes nothing. */
export async function drainNode(options: NodeDrainOptions, force: boolean): Promise<void> {
  const { consensus, willingness, transfer } = options;
  if (willingness.has("drained") && consensus.status().role !== "leader") return;
  const { role, established, leader, transfer: underWay } = consensus.status();
  if (role === "leader" && established && underWay === null) {
    try {
      await transfer();
    } catch (error) {
      if (!force || !TenureError.is(error)) throw withAdvice(error);
    }
  } else if (leader === null && !force) {
    throw new TenureError(
      "ERR_NO_LEADER",
      "nobody leads: whoever is taken out now may be the one that is needed. Wait, or use force.",
    );
  }
  willingness.set("drained", true);
  await handedOver(options, force ? LOOK_MS : HANDED_OVER_MS_MAX);
  if (consensus.status().role !== "leader" || force) return;
  willingness.set("drained", false);
  throw new TenureError(
    "ERR_LEADER_TRANSFER_FAILED",
    `nobody else took over within ${HANDED_OVER_MS_MAX} ms, and this node leads on. Look at the other nodes, or use force.`,
  );
}

/** Until another is known to lead. */
async function handedOver({ consensus, clock }: NodeDrainOptions, limitMs: number): Promise<void> {
  const untilMs = clock.monotonicMs() + limitMs;
  for (;;) {
    const { role, leader } = consensus.status();
    if ((role !== "leader" && leader !== null) || clock.monotonicMs() >= untilMs) return;
    await new Promise<void>((resume) => void clock.setTimer(clock.monotonicMs() + LOOK_MS, resume));
  }
}

function withAdvice(error: unknown): unknown {
  if (!TenureError.is(error) || error.code === "OUTCOME_UNKNOWN") return error;
  const text = `${error.message}. Nothing was changed; with force this node is drained all the same, and leads on until another can`;
  return new TenureError(error.code, text, { cause: error });
}
