// The client of the demonstration: writes at a steady pace at whoever leads, as an SDK that hears from every
// reachable node who leads. A write is in one of these states:
//
//   waiting ──sent──▶ in flight ──committed──▶ acknowledged
//      ▲                 │ ╲──the epoch ended, the process died, no answer in time──▶ unknown
//      └────refused──────┘
//
// Invariants: refused means that nothing was written, so it is sent again; unknown is never sent again and never
// called a failure; what was acknowledged can be looked up by its own key in every node's state.

import { nodeIdOf } from "../../core/kit/ids.ts";
import type { Owner } from "../kernel/index.ts";
import type { Cluster } from "../raft/cluster.ts";
import { writeCommand } from "../raft/machine.ts";

const WRITE_EVERY_MS = 20;
/** How often it looks who leads and sends what waits: the resolution of what it measures. */
const TURN_MS = 0.5;
const GIVE_UP_MS = 1_000;
const WAITING_MAX = 64;

interface View {
  readonly node: string;
  readonly epoch: number;
}

interface InFlight extends View {
  readonly sentAtMs: number;
}

export class Writer {
  readonly acknowledged: number[] = [];
  readonly unknown: number[] = [];
  /** The epoch that the last acknowledged write was committed in, 0 before the first. */
  acknowledgedEpoch = 0;
  readonly #cluster: Cluster;
  readonly #run: string;
  readonly #owner: Owner;
  #waiting: number[] = [];
  readonly #inFlight = new Map<number, InFlight>();
  #nextId = 1;
  #nextWriteAtMs = 0;
  #seenEpoch = 0;
  #stopped = false;

  constructor(cluster: Cluster, run: string) {
    this.#cluster = cluster;
    this.#run = run;
    this.#owner = cluster.world.scheduler.owner("client");
  }

  start(): void {
    this.#turn();
  }

  /** Makes no new writes; what is under way still gets its answer. */
  stop(): void {
    this.#stopped = true;
  }

  get idle(): boolean {
    return this.#waiting.length === 0 && this.#inFlight.size === 0;
  }

  /** One write more, beside the steady ones: so that an outage is measured from its first instant. */
  write(): void {
    if (!this.#stopped && this.#waiting.length < WAITING_MAX) this.#waiting.push(this.#nextId++);
  }

  /** With the run's name in it, so that two runs do not end in the same state. */
  keyOf(id: number): string {
    return `${this.#run}/w${id}`;
  }

  #turn(): void {
    const { scheduler } = this.#cluster.world;
    const nowMs = scheduler.nowMs;
    const view = this.#view();
    this.#abandon(nowMs, view);
    if (nowMs >= this.#nextWriteAtMs) {
      this.#nextWriteAtMs = nowMs + WRITE_EVERY_MS;
      this.write();
    }
    if (view !== null) this.#sendWaiting(view, nowMs);
    if (!this.#stopped || !this.idle) scheduler.schedule(nowMs + TURN_MS, this.#owner, () => this.#turn());
  }

  /** The newest epoch with a leader that a node which answers knows of. */
  #view(): View | null {
    let best: View | null = null;
    for (const [name, { engine }] of this.#cluster.running) {
      const { leader, term } = engine.status();
      if (leader === null || this.#cluster.world.node(name).process.state !== "running") continue;
      if (best === null || term > best.epoch) best = { node: nodeIdOf(leader), epoch: term };
    }
    return best;
  }

  #abandon(nowMs: number, view: View | null): void {
    const newEpoch = view !== null && view.epoch > this.#seenEpoch;
    if (newEpoch) this.#seenEpoch = view.epoch;
    for (const [id, sent] of this.#inFlight) {
      const ended = sent.epoch < this.#seenEpoch;
      const died = this.#cluster.world.node(sent.node).process.state === "crashed";
      if (ended || died || nowMs - sent.sentAtMs >= GIVE_UP_MS) this.#settle(id, "unknown");
    }
    if (newEpoch) this.write();
  }

  #sendWaiting(view: View, nowMs: number): void {
    const { world } = this.#cluster;
    if (world.node(view.node).process.state === "crashed") return;
    const waiting = this.#waiting;
    this.#waiting = [];
    for (const id of waiting) {
      this.#inFlight.set(id, { ...view, sentAtMs: nowMs });
      world.call(view.node, () => void this.#propose(id, view.node));
    }
  }

  async #propose(id: number, node: string): Promise<void> {
    const { oracle } = this.#cluster;
    const engine = this.#cluster.member(node)?.engine;
    if (engine === undefined) return this.#settle(id, "refused");
    const floor = oracle.floor();
    const data = writeCommand(this.keyOf(id), id, 0);
    const result = await engine.propose([data]);
    // Too late for a client that has given up: to it the outcome stays unknown.
    if (!this.#inFlight.has(id)) return;
    if (result.outcome !== "committed") return this.#settle(id, result.outcome);
    oracle.writeAnswered(node, floor, result.index, data);
    this.acknowledgedEpoch = Math.max(this.acknowledgedEpoch, result.term);
    this.#settle(id, "acknowledged");
  }

  #settle(id: number, answer: "acknowledged" | "refused" | "unknown"): void {
    this.#inFlight.delete(id);
    if (answer === "refused") this.#waiting.push(id);
    else this[answer].push(id);
  }
}
