// Servers that work while they do not lead: on each machine the supervisor of production, the controller (which is the server)
// and a worker, three simulated processes of which each is killed, frozen and started by itself.
//
//   n1-supervisor ──starts──▶ n1, n1-worker       what the world starts next to that ends at once: nobody wants it
//
// A controller and a worker see a moment later that their supervisor is gone, and end. A supervisor sees a moment later that its
// controller is gone.
//
// What must never be (specification §2.3): on one node an open gate and a living worker.

import { TenureError } from "../../core/kit/errors.ts";
import type { Random } from "../../core/kit/random.ts";
import type { Child, ChildEvents, Children } from "../../ports/processes/children.ts";
import type { Clock } from "../../ports/clock.ts";
import type { Leadership } from "../../ports/leadership.ts";
import {
  type FromController,
  SupervisedClearance,
  Supervisor,
  workerName as workerOf,
} from "../../supervisor/index.ts";
import type { Boot, World } from "../kernel/index.ts";
import { type JobsProbeCounts, reached } from "./probes.ts";

const NO_LOGGER = { debug() {}, info() {}, warn() {}, error() {} };
const PLAN = { moonlights: true, hangMs: 2_000, startMs: 60_000, stopMs: 10_000 };
const ALIVE_EVERY_MS = 500;
const CHANNEL_MS: readonly [number, number] = [0.1, 5];
/** How long processes take to see that another is gone. */
const LOOK_MS: readonly [number, number] = [1, 60];
/** A worker whose loop stands still sees it late. */
const WORKER_LOOKS_MS: readonly (readonly [number, number])[] = [LOOK_MS, LOOK_MS, [500, 3_000]];
/** Mostly quick; sometimes so slow that somebody else has to lead. */
const KILL_MS: readonly (readonly [number, number])[] = [
  [1, 30],
  [1, 30],
  [20, 120],
  [140, 400],
];
/** How long a process takes to end in order. */
const STOP_MS: readonly [number, number] = [5, 800];
/** More ends in a row than a supervisor puts up with. */
const DOOMED = 6;

export function supervisorOf(node: string): string {
  return `${node}-supervisor`;
}

function nodeOf(process: string): string {
  return process.slice(0, process.lastIndexOf("-"));
}

/** From a supervisor to one controller: none has taken it yet, one life has, or it is over. */
interface Channel {
  readonly supervisor: Boot;
  readonly events: ChildEvents;
  readonly toSupervisor: Later;
  taken: { readonly life: number; readonly heard: (message: object) => void; readonly later: Later } | null;
}

type Later = (fire: () => void) => void;

export class Moonlight {
  readonly #world: World;
  readonly #probes: JobsProbeCounts;
  /** How often a worker outlives SIGKILL for a while. */
  readonly #survives: number;
  /** By node: in which life of the supervisor its worker was started, and who hears of it; absent where none is wanted. */
  readonly #wanted = new Map<string, { readonly supervisor: Boot; readonly events: ChildEvents }>();
  /** By node: of the last controller that was asked for. */
  readonly #channels = new Map<string, Channel>();
  readonly #gates = new Map<
    string,
    { readonly life: number; readonly leadership: Leadership; readonly clearance: SupervisedClearance }
  >();

  readonly #supervisors = new Map<string, { readonly boot: Boot; readonly supervisor: Supervisor }>();
  /** By node: so many of its next controllers end soon after their start. */
  readonly #doomed = new Map<string, number>();

  constructor(world: World, probes: JobsProbeCounts, survives: number) {
    this.#world = world;
    this.#survives = survives;
    this.#probes = probes;
  }

  isWorker(name: string): boolean {
    return name.endsWith("-worker");
  }

  isSupervisor(name: string): boolean {
    return name.endsWith("-supervisor");
  }

  /** Its controller ends, and the next ones do soon after their start, until the supervisor gives up. */
  crashLoop(node: string): void {
    this.#doomed.set(node, DOOMED);
    this.#kill(node);
  }

  /** SIGTERM to its supervisor. */
  stop(node: string): void {
    const running = this.#supervisors.get(node);
    if (running !== undefined && running.boot.isAlive()) {
      this.#world.call(supervisorOf(node), () => running.supervisor.stop("SIGTERM"));
    }
  }

  /** A supervisor's process begins. */
  supervise(boot: Boot): void {
    const node = nodeOf(boot.node);
    const { clock, random } = boot;
    const children: Children = {
      start: (part, events) =>
        part === "controller" ? this.#startController(node, boot, events) : this.#startWorker(node, boot, events),
      endAgents: async () => {
        const [least, most] = random.pick(KILL_MS);
        const wasThere = this.#isAlive(workerOf(node));
        this.#wanted.delete(node);
        await new Promise<void>((resume) => after(clock, random.between(least, most), resume));
        if (wasThere && random.chance(this.#survives)) {
          reached(this.#probes, "worker-survived");
          return { survivors: 1, goneAtNs: 0n };
        }
        this.#kill(workerOf(node));
        if (wasThere) reached(this.#probes, "worker-killed");
        return { survivors: 0, goneAtNs: 0n };
      },
    };
    const supervisor = new Supervisor({ plan: PLAN, children, clock, logger: NO_LOGGER, nowNs: () => 0n });
    this.#supervisors.set(node, { boot, supervisor });
    // One of the supervisor before that hangs does not see that it is gone.
    this.#kill(node);
    supervisor.start();
    void supervisor.ended.then((code) => {
      reached(this.#probes, code === 0 ? "stopped-in-order" : "supervisor-gave-up");
      this.#doomed.delete(node);
      boot.fatal(new TenureError("BACKEND_UNAVAILABLE", "the node has ended; who runs it starts it again"));
    });
  }

  // ---- the controller --------------------------------------------------------------------------------

  #startController(node: string, supervisor: Boot, events: ChildEvents): Child {
    const { clock, random } = supervisor;
    const channel: Channel = { supervisor, events, toSupervisor: laterOn(clock, random), taken: null };
    this.#channels.set(node, channel);
    // One of the supervisor before may still be there, and has the disk: it ends soon.
    const start = (): void => {
      if (channel.taken === null && !this.#world.start(node)) after(clock, random.between(...LOOK_MS), start);
    };
    start();
    const look = (): void => {
      const { taken } = channel;
      if (taken === null || this.#lives(node, taken.life)) return after(clock, random.between(...LOOK_MS), look);
      reached(this.#probes, "controller-lost");
      events.exited({ code: null, signal: "SIGKILL" });
    };
    look();
    return {
      pid: 1,
      startedAtNs: 0n,
      send: (message) => channel.taken?.later(() => channel.taken?.heard(message)),
      signal: (signal) => {
        const { taken } = channel;
        if (taken === null || !this.#lives(node, taken.life)) return;
        // In order: it hands over, and ends; one that hangs does not.
        if (signal === "SIGTERM")
          return this.#world.node(node).process.life?.schedule(this.#soon(random), () => this.#kill(node));
        reached(this.#probes, "hung-controller-killed");
        this.#kill(node);
      },
    };
  }

  /** A controller's process begins; false: its supervisor has not asked for it. */
  begins({ node, life, clock, random }: Boot): boolean {
    const channel = this.#channels.get(node);
    if (channel === undefined || channel.taken !== null || !channel.supervisor.isAlive()) {
      this.#world.crash(node);
      return false;
    }
    const part = random.fork("channel");
    const clearance = (): SupervisedClearance | undefined => {
      const gate = this.#gates.get(node);
      return gate?.life === life ? gate.clearance : undefined;
    };
    channel.taken = { life, later: laterOn(clock, part), heard: (message) => clearance()?.heard(message) };
    const tick = (): void => {
      channel.toSupervisor(() => channel.events.told({ kind: "alive" } satisfies FromController));
      after(clock, ALIVE_EVERY_MS, tick);
    };
    tick();
    const look = (): void => {
      if (channel.supervisor.isAlive()) after(clock, part.between(...LOOK_MS), look);
      else this.#kill(node);
    };
    look();
    const doomed = this.#doomed.get(node) ?? 0;
    if (doomed > 0) {
      this.#doomed.set(node, doomed - 1);
      after(clock, part.between(...LOOK_MS), () => this.#kill(node));
    }
    return true;
  }

  /** What a server's leadership asks before its gate opens, of its supervisor. */
  clearance({ node, clock }: Boot): SupervisedClearance {
    const { toSupervisor, events } = this.#channels.get(node)!;
    const tell = (message: FromController): void => toSupervisor(() => events.told(message));
    const clearance = new SupervisedClearance({ tell, clock, logger: NO_LOGGER, nowNs: () => 0n });
    const [opened, empty] = [clearance.opened.bind(clearance), clearance.empty.bind(clearance)];
    clearance.opened = (epoch) => {
      opened(epoch);
      if (this.#isAlive(workerOf(node))) this.#world.report(node, new Error("a gate opens beside a living worker"));
    };
    clearance.empty = async () => {
      const isEmpty = await empty();
      if (isEmpty) reached(this.#probes, "successor-emptied");
      return isEmpty;
    };
    return clearance;
  }

  /** It serves. */
  up({ node, life }: Boot, leadership: Leadership, clearance: SupervisedClearance): void {
    const { toSupervisor, events } = this.#channels.get(node)!;
    toSupervisor(() => events.told({ kind: "up" } satisfies FromController));
    this.#gates.set(node, { life, leadership, clearance });
  }

  // ---- the worker ------------------------------------------------------------------------------------

  #startWorker(node: string, supervisor: Boot, events: ChildEvents): Child {
    const name = workerOf(node);
    if (!this.#world.nodes.some((one) => one.name === name)) this.#world.addNode(name);
    this.#wanted.set(node, { supervisor, events });
    if (!this.#world.start(name)) this.#world.report(node, new Error("a second worker begins beside the first"));
    else reached(this.#probes, "worker-started");
    const drain = (): void =>
      this.#world.node(name).process.life?.schedule(this.#soon(supervisor.random), () => this.#kill(name));
    return { pid: 2, startedAtNs: 0n, send: () => undefined, signal: drain };
  }

  /** A worker's process begins; false: nobody wants it. */
  started({ node: name, life, clock, random }: Boot): boolean {
    const node = nodeOf(name);
    const wanted = this.#wanted.get(node);
    if (wanted === undefined || !wanted.supervisor.isAlive()) {
      this.#world.crash(name);
      return false;
    }
    const { supervisor, events } = wanted;
    const toSupervisor = laterOn(supervisor.clock, supervisor.random);
    const tick = (): void => {
      toSupervisor(() => events.told({ kind: "alive" }));
      after(clock, ALIVE_EVERY_MS, tick);
    };
    tick();
    const part = random.fork("look");
    const [least, most] = part.pick(WORKER_LOOKS_MS);
    const look = (): void => {
      if (this.#isOpen(node)) this.#world.report(node, new Error("a worker lives on a node whose gate is open"));
      else if (supervisor.isAlive()) after(clock, part.between(least, most), look);
      else this.#kill(name);
    };
    look();
    // Whoever kills it hears of it by that; all other ends the supervisor sees by itself.
    const seen = (): void => {
      if (this.#lives(name, life)) after(supervisor.clock, supervisor.random.between(...LOOK_MS), seen);
      else if (this.#wanted.get(node) === wanted) events.exited({ code: null, signal: "SIGKILL" });
    };
    seen();
    return true;
  }

  /** Of the world's clock. */
  #soon(random: Random): number {
    return this.#world.nowMs + random.between(...STOP_MS);
  }

  // ---- who lives -------------------------------------------------------------------------------------

  #isOpen(node: string): boolean {
    const gate = this.#gates.get(node);
    return gate !== undefined && this.#lives(node, gate.life) && gate.leadership.epoch() !== null;
  }

  #lives(name: string, life: number): boolean {
    return this.#world.node(name).process.life?.number === life;
  }

  #isAlive(name: string): boolean {
    return this.#world.nodes.some((one) => one.name === name && one.process.life !== undefined);
  }

  #kill(name: string): void {
    if (this.#isAlive(name)) this.#world.crash(name);
  }
}

function after(clock: Clock, ms: number, fire: () => void): void {
  clock.setTimer(clock.monotonicMs() + ms, fire);
}

/** Over a channel: after a moment, and in order. */
function laterOn(clock: Clock, random: Random): Later {
  let lastMs = 0;
  return (fire) => {
    lastMs = Math.max(lastMs, clock.monotonicMs() + random.between(...CHANNEL_MS));
    clock.setTimer(lastMs, fire);
  };
}
