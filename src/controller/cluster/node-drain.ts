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
// - Requests may come while an earlier one still waits. An undo is carried out at once, and ends what was asked for before it;
//   one that fails takes back its own word only, not another's.

import { TenureError } from "../../core/kit/errors.ts";
import { sleep } from "../../loops/time.ts";
import type { Clock } from "../../ports/clock.ts";
import type { TransferView } from "../../ports/cluster.ts";
import type { Lead } from "../../ports/consensus.ts";
import type { Leadership } from "../../ports/leadership.ts";
import { HANDED_OVER_MS_MAX, TRANSFER_POLL_MS } from "./limits.ts";

export type Reluctance = "clock" | "disk" | "drained" | "stopping";

export class Willingness {
  readonly #consensus: Pick<Lead, "setWilling">;
  readonly #against = new Set<Reluctance>();

  constructor(consensus: Pick<Lead, "setWilling">) {
    this.#consensus = consensus;
  }

  has(reason: Reluctance): boolean {
    return this.#against.has(reason);
  }

  set(reason: Reluctance, holds: boolean): void {
    if (holds === this.#against.has(reason)) return;
    if (holds) this.#against.add(reason);
    else this.#against.delete(reason);
    this.#consensus.setWilling(this.#against.size === 0);
  }
}

/** One request to take a node out. */
export interface DrainRequest {
  /** From here on the node is out, until the request fails. Does nothing where it was undone. */
  takeOut(): void;
  isUndone(): boolean;
}

/** Whether an operator has taken a node out: each request has a word of its own, and the node is out while one stands. */
export class Drains {
  readonly #changed: (isDrained: boolean) => void;
  readonly #wanted: (isWanted: boolean) => void;
  /** Of requests that are not carried out yet. */
  readonly #words = new Set<DrainRequest>();
  #underWay = 0;
  #isWanted = false;
  #isSettled = false;
  #undone = 0;
  #told = false;

  /** `wanted`: out, or asked to be: whoever starts something on this node that would be stopped again waits meanwhile. */
  constructor(changed: (isDrained: boolean) => void, wanted: (isWanted: boolean) => void = () => undefined) {
    this.#changed = changed;
    this.#wanted = wanted;
  }

  get isDrained(): boolean {
    return this.#isSettled || this.#words.size > 0;
  }

  /** Out, as far as requests go that may fail yet. */
  get isTentative(): boolean {
    return !this.#isSettled && this.#words.size > 0;
  }

  undo(): void {
    this.#undone++;
    this.#isSettled = false;
    this.#words.clear();
    this.#tell();
  }

  /** Rejects as `carryOut` does, and where it was undone meanwhile; then its word is taken back. */
  async drain(carryOut: (request: DrainRequest) => Promise<void>): Promise<void> {
    const undone = this.#undone;
    const isUndone = (): boolean => this.#undone !== undone;
    const request: DrainRequest = {
      isUndone,
      takeOut: () => {
        if (!isUndone()) this.#words.add(request);
        this.#tell();
      },
    };
    this.#underWay++;
    this.#tell();
    try {
      await carryOut(request);
      if (isUndone()) throw overtaken();
      this.#isSettled = true;
    } finally {
      this.#underWay--;
      this.#words.delete(request);
      this.#tell();
    }
  }

  #tell(): void {
    const isWanted = this.isDrained || this.#underWay > 0;
    if (isWanted !== this.#isWanted) this.#wanted((this.#isWanted = isWanted));
    if (this.#told === this.isDrained) return;
    this.#told = this.isDrained;
    this.#changed(this.#told);
  }
}

function overtaken(): TenureError {
  return new TenureError(
    "ERR_LEADER_TRANSFER_FAILED",
    "the drain was undone by a later request while it was carried out, and is off; who leads may have changed all the same. Ask again if the node is to be taken out.",
  );
}

export interface NodeDrainOptions {
  readonly consensus: Pick<Lead, "status">;
  readonly leadership: Pick<Leadership, "epoch">;
  readonly drains: Drains;
  readonly clock: Clock;
  /** To the best other voter. */
  readonly transfer: () => Promise<TransferView>;
}

/** Resolves when this node does not lead, or with `force` also where nobody else can. Rejects, and changes nothing. */
export function drainNode(options: NodeDrainOptions, force: boolean): Promise<void> {
  return options.drains.drain((request) => handOver(options, force, request));
}

async function handOver(options: NodeDrainOptions, force: boolean, request: DrainRequest): Promise<void> {
  const { consensus, leadership, drains, transfer } = options;
  const { role, leader, transfer: underWay } = consensus.status();
  if (drains.isDrained && role !== "leader") return;
  if (leadership.epoch() !== null && underWay === null) {
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
  request.takeOut();
  await handedOver(options, request, force ? TRANSFER_POLL_MS : HANDED_OVER_MS_MAX);
  if (consensus.status().role !== "leader" || force || request.isUndone()) return;
  throw new TenureError(
    "ERR_LEADER_TRANSFER_FAILED",
    `nobody else took over within ${HANDED_OVER_MS_MAX} ms, and this node leads on. Look at the other nodes, or use force.`,
  );
}

/** Until another is known to lead. */
async function handedOver(
  { consensus, clock }: NodeDrainOptions,
  request: DrainRequest,
  limitMs: number,
): Promise<void> {
  const untilMs = clock.monotonicMs() + limitMs;
  while (!request.isUndone()) {
    const { role, leader } = consensus.status();
    if ((role !== "leader" && leader !== null) || clock.monotonicMs() >= untilMs) return;
    await sleep(clock, TRANSFER_POLL_MS);
  }
}

function withAdvice(error: unknown): unknown {
  if (!TenureError.is(error) || error.code === "OUTCOME_UNKNOWN") return error;
  const text = `${error.message}. Nothing was changed; with force this node is drained all the same, and leads on until another can`;
  return new TenureError(error.code, text, { cause: error });
}
