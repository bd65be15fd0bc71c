// Servers that work while they do not lead: the supervisor of production on each of them, with simulated processes. Supervisor
// and controller are one process here, which dies as one; the worker is another on the same machine, and sees a moment later
// that its supervisor is gone.
//
// What must never be (specification §2.3): on one node an open gate and a living worker.

import type { Random } from "../../core/kit/random.ts";
import { RaftLeadership } from "../../controller/raft-leadership.ts";
import { ClearedConsensus } from "../../controller/cleared-consensus.ts";
import type { Child, ChildEvents, Children } from "../../ports/children.ts";
import type { Clearance } from "../../ports/clearance.ts";
import type { Clock } from "../../ports/clock.ts";
import type { Consensus } from "../../ports/consensus.ts";
import { readCleared, Supervisor } from "../../supervisor/index.ts";
import type { Boot, World } from "../kernel/index.ts";
import { type JobsProbeCounts, reached } from "./probes.ts";

const NO_LOGGER = { debug() {}, info() {}, warn() {}, error() {} };
const PLAN = { moonlights: true, hangMs: 10_000, startMs: 60_000, stopMs: 10_000 };
const HOLD_MS = 1_000;
const CHANNEL_MS: readonly [number, number] = [0.1, 5];
/** Mostly quick; sometimes so slow that somebody else has to lead. */
const KILL_MS: readonly (readonly [number, number])[] = [
  [1, 30],
  [1, 30],
  [20, 120],
  [140, 400],
];
/** How often a worker looks whether its supervisor lives. */
const ORPHAN_LOOK_MS = 60;

export function workerOf(node: string): string {
  return `${node}-worker`;
}

export class Moonlight {
  readonly #world: World;
  readonly #probes: JobsProbeCounts;
  /** By node: in whose life its worker was started; absent where none is wanted. */
  readonly #wanted = new Map<string, number>();
  readonly #open = new Map<string, { readonly life: number; readonly leadership: RaftLeadership }>();

  constructor(world: World, probes: JobsProbeCounts) {
    this.#world = world;
    this.#probes = probes;
  }

  isWorker(name: string): boolean {
    return name.endsWith("-worker");
  }

  /** A worker's process begins; false: nobody wants it (the world starts whoever is dead when the faults are over). */
  started({ node: name, clock }: Boot): boolean {
    const node = name.slice(0, -"-worker".length);
    const life = this.#wanted.get(node);
    if (life === undefined) {
      this.#world.crash(name);
      return false;
    }
    const look = (): void => {
      if (this.#isOpen(node)) this.#world.report(node, new Error("a worker lives on a node whose gate is open"));
      else if (this.#lives(node, life)) clock.setTimer(clock.monotonicMs() + ORPHAN_LOOK_MS, look);
      else this.#kill(node);
    };
    look();
    return true;
  }

  /** The consensus that a server's services see, behind the gate. */
  over(consensus: Consensus, { node, life, clock, random }: Boot): Consensus {
    const part = random.fork("supervisor");
    const controller: { told: ((message: unknown) => void) | null; heard: (message: object) => void } = {
      told: null,
      heard: () => undefined,
    };
    const later = laterOn(clock, part);
    const children: Children = {
      start: (which, events) =>
        which === "controller" ? this.#controller(controller, events, later) : this.#worker(node, life),
      endAgents: async () => {
        const [least, most] = part.pick(KILL_MS);
        const name = workerOf(node);
        const wasThere = this.#isAlive(name);
        this.#wanted.delete(node);
        await new Promise<void>((resume) => later(() => resume(), part.between(least, most)));
        this.#kill(node);
        if (wasThere) reached(this.#probes, "worker-killed");
        return { survivors: 0, goneAtNs: 0n };
      },
    };
    const supervisor = new Supervisor({ plan: PLAN, children, clock, logger: NO_LOGGER, nowNs: () => 0n });
    supervisor.start();
    const gate = new ClearedConsensus({
      consensus,
      clearance: this.#clearance(node, controller, later),
      clock,
      logger: { ...NO_LOGGER, error: () => reached(this.#probes, "not-cleared-in-time") },
    });
    later(() => controller.told?.({ kind: "up" }));
    this.#open.set(node, { life, leadership: new RaftLeadership(gate) });
    return gate;
  }

  #controller(
    channel: { told: ((message: unknown) => void) | null; heard: (message: object) => void },
    events: ChildEvents,
    later: (fire: () => void) => void,
  ): Child {
    channel.told = (message) => events.told(message);
    return { pid: 1, startedAtNs: 0n, send: (message) => later(() => channel.heard(message)), signal: () => undefined };
  }

  #worker(node: string, life: number): Child {
    const name = workerOf(node);
    if (!this.#world.nodes.some((one) => one.name === name)) this.#world.addNode(name);
    this.#wanted.set(node, life);
    if (!this.#world.start(name)) this.#world.report(node, new Error("a second worker begins beside the first"));
    else reached(this.#probes, "worker-started");
    return { pid: 2, startedAtNs: 0n, send: () => undefined, signal: () => undefined };
  }

  #clearance(
    node: string,
    channel: { told: ((message: unknown) => void) | null; heard: (message: object) => void },
    later: (fire: () => void) => void,
  ): Clearance {
    let asked: { readonly epoch: number; readonly resolve: (isCleared: boolean) => void } | null = null;
    channel.heard = (message) => {
      const cleared = readCleared(message);
      if (cleared === null || cleared.epoch !== asked?.epoch) return;
      asked.resolve(true);
      asked = null;
    };
    return {
      clear: (epoch) => {
        const { promise, resolve } = Promise.withResolvers<boolean>();
        asked = { epoch, resolve };
        later(() => channel.told?.({ kind: "clear", epoch }));
        return promise;
      },
      empty: () => Promise.resolve(false),
      opened: () => {
        if (this.#isAlive(workerOf(node))) this.#world.report(node, new Error("a gate opens beside a living worker"));
      },
      release: (isLate = false) => later(() => channel.told?.({ kind: "released", holdMs: isLate ? HOLD_MS : 0 })),
    };
  }

  #isOpen(node: string): boolean {
    const open = this.#open.get(node);
    return open !== undefined && this.#lives(node, open.life) && open.leadership.epoch() !== null;
  }

  #lives(node: string, life: number): boolean {
    return this.#world.node(node).process.life?.number === life;
  }

  #isAlive(name: string): boolean {
    return this.#world.nodes.some((one) => one.name === name && one.process.life !== undefined);
  }

  #kill(node: string): void {
    const name = workerOf(node);
    if (this.#isAlive(name)) this.#world.crash(name);
  }
}

/** Over a channel: after a moment, and in order. */
function laterOn(clock: Clock, random: Random): (fire: () => void, afterMs?: number) => void {
  let lastMs = 0;
  return (fire, afterMs) => {
    const nowMs = clock.monotonicMs();
    const atMs = nowMs + (afterMs ?? random.between(...CHANNEL_MS));
    if (afterMs === undefined) lastMs = Math.max(lastMs, atMs);
    clock.setTimer(afterMs === undefined ? lastMs : atMs, fire);
  };
}
