// A world: nodes with their process and disk, the network between them, and one scheduler. One seed decides all.
// How a node is started is the caller's `start`, called for each new life with the ports of that life; it knows
// nothing of what runs there.
// Invariants: everything is named, and every random stream and every rank comes from seed and name, so the order
// in which nodes are listed changes nothing; an error that a process could not expect is a finding, and ends it.

import { assert } from "../../core/kit/assert.ts";
import { TenureError } from "../../core/kit/errors.ts";
import type { PeerKey } from "../../core/kit/ids.ts";
import { type Random, seededRandom } from "../../core/kit/random.ts";
import type { Clock } from "../../ports/clock.ts";
import type { Disk } from "../../ports/disk.ts";
import type { Wire } from "../../ports/peers/wire.ts";
import { type DiskModel, FAST_DISK, SimDisk } from "./disk.ts";
import { DiskError } from "./disk-faults.ts";
import type { Tear } from "./disk-inode.ts";
import type { LinkModel } from "./link.ts";
import { SimNetwork } from "./network.ts";
import { SimProcess } from "./process.ts";
import { type RunEnd, type RunLimits, Scheduler, type TraceSink } from "./scheduler.ts";

/** What one life of a node gets to work with. */
export interface Boot {
  readonly node: string;
  readonly life: number;
  readonly clock: Clock;
  readonly disk: Disk;
  readonly random: Random;
  /** The wire, once the process knows from its disk which peer it is. */
  wire(self: PeerKey): Wire;
  /** Whether it is still this life. */
  readonly isAlive: () => boolean;
  /** Goes on with what was promised, in this life alone. */
  when<T>(promise: Promise<T>, go: (value: T) => void): void;
  /** For errors that reach the process through a promise: it can't go on. */
  fatal(error: unknown): void;
}

export interface WorldOptions {
  readonly seed: number | string;
  readonly nodes: readonly string[];
  readonly start: (boot: Boot) => void;
  readonly link?: Partial<LinkModel> | undefined;
  readonly disk?: Partial<DiskModel> | undefined;
  /** A process that ended itself (fsync failed, disk full) is started again after this time; by default never. */
  readonly restartAfterExitMs?: number | undefined;
  /** "exit": the world made the process end. Default: DiskError and TenureError are exits, all else findings. */
  readonly classify?: ((error: unknown) => "exit" | "finding") | undefined;
  readonly trace?: TraceSink | undefined;
}

/** Something that must not happen did. */
export interface Finding {
  readonly atMs: number;
  readonly node: string;
  readonly error: unknown;
}

export interface CrashOptions {
  /** What becomes of unsynced writes; default `random`, for each file by itself. */
  readonly tear?: Tear | "random" | undefined;
  /** The machine lost power: its peers get no reset. */
  readonly silent?: boolean | undefined;
}

export interface SimNode {
  readonly name: string;
  readonly process: SimProcess;
  readonly disk: SimDisk;
}

export class World {
  readonly scheduler: Scheduler;
  readonly network: SimNetwork;
  readonly random: Random;
  readonly findings: Finding[] = [];
  /** Processes that ended themselves because the world failed them. */
  readonly exits: Finding[] = [];
  readonly #options: WorldOptions;
  readonly #nodes = new Map<string, SimNode>();

  constructor(options: WorldOptions) {
    this.#options = options;
    this.random = seededRandom(options.seed);
    this.scheduler = new Scheduler(this.random.fork("scheduler"), options.trace);
    this.network = new SimNetwork(this.scheduler, this.random.fork("network"), options.link);
    for (const name of options.nodes) this.addNode(name);
  }

  get nowMs(): number {
    return this.scheduler.nowMs;
  }

  get nodes(): SimNode[] {
    return [...this.#nodes.keys()].toSorted().map((name) => this.node(name));
  }

  node(name: string): SimNode {
    const node = this.#nodes.get(name);
    assert(node !== undefined, "a node is known to the world", () => name);
    return node;
  }

  /** Also in the middle of a run: a machine that joins. It is not started. */
  addNode(name: string): SimNode {
    assert(!this.#nodes.has(name), "a node is added once", () => name);
    const random = this.random.fork(`node/${name}`);
    const node: SimNode = {
      name,
      process: new SimProcess(name, this.scheduler, random.fork("process"), {
        fatal: (process, error) => this.#fatal(process.name, error),
      }),
      disk: new SimDisk(name, this.scheduler, random.fork("disk"), { ...FAST_DISK, ...this.#options.disk }),
    };
    this.#nodes.set(name, node);
    this.network.addNode(name);
    return node;
  }

  /** As an event of each node, so that the order of the list does not matter. */
  startAll(): void {
    for (const { process, name } of this.#nodes.values()) {
      this.scheduler.schedule(this.nowMs, process.owner, () => this.start(name));
    }
  }

  /** False when it runs already. */
  start(name: string): boolean {
    const { process, disk } = this.node(name);
    if (process.state !== "crashed") return false;
    const life = process.start();
    const fatal = (error: unknown): void => life.fatal(error);
    const boot: Boot = {
      node: name,
      life: life.number,
      clock: life.clock,
      disk: disk.open(life),
      random: this.random.fork(`node/${name}`).fork(`life/${life.number}`),
      wire: (self) => this.network.wire(life, self),
      isAlive: () => life.alive,
      when: (promise, go) => void promise.then((value) => life.alive && go(value), fatal),
      fatal,
    };
    life.guard(() => this.#options.start(boot));
    return true;
  }

  startAfter(name: string, afterMs: number): void {
    this.scheduler.schedule(this.nowMs + afterMs, this.node(name).process.owner, () => this.start(name));
  }

  /** Undefined when it was dead already; otherwise how much it had not synced. */
  crash(name: string, options: CrashOptions = {}): { unsyncedFiles: number; unsyncedNames: number } | undefined {
    const { process, disk } = this.node(name);
    if (!process.crash()) return undefined;
    this.network.ended(name, options.silent ?? false);
    return disk.crash(options.tear ?? "random");
  }

  pause(name: string): boolean {
    return this.node(name).process.pause();
  }

  resume(name: string): boolean {
    if (!this.node(name).process.resume()) return false;
    this.network.resumed(name);
    return true;
  }

  /**
   * Calls into a process from outside, as a client does: after resume when it is paused, never once it is dead.
   * False when it is dead now.
   */
  call(name: string, fn: () => void): boolean {
    const { life } = this.node(name).process;
    life?.schedule(this.nowMs, fn);
    return life !== undefined;
  }

  /** The faults are over: links heal, clocks and disks are normal, everybody runs. What was lost stays lost. */
  calm(): void {
    this.network.heal();
    for (const link of this.network.links()) this.network.calm(link);
    for (const { name, process, disk } of this.nodes) {
      disk.faults.mend();
      process.setClockRate(1);
      this.resume(name);
      if (process.state === "crashed") this.startAfter(name, 0);
    }
  }

  /** As `Scheduler.run`; a finding ends it with "halted". */
  run(until: number | (() => boolean), limits?: RunLimits): Promise<RunEnd> {
    return this.scheduler.run(until, limits);
  }

  /** As `run`, for so long from now. */
  runFor(forMs: number): Promise<RunEnd> {
    return this.scheduler.run(this.nowMs + forMs);
  }

  hash(): string {
    return this.scheduler.hash();
  }

  counts(): {
    steps: number;
    findings: number;
    exits: number;
    network: Record<string, number>;
    disk: Record<string, number>;
  } {
    const disk: Record<string, number> = {};
    for (const node of this.nodes) {
      for (const [kind, count] of Object.entries(node.disk.counts)) disk[kind] = (disk[kind] ?? 0) + count;
    }
    const { findings, exits, scheduler } = this;
    return {
      steps: scheduler.steps,
      findings: findings.length,
      exits: exits.length,
      network: { ...this.network.counts },
      disk,
    };
  }

  /** For oracles outside of any process. */
  report(node: string, error: unknown): void {
    this.findings.push({ atMs: this.nowMs, node, error });
    this.scheduler.narrate(node, () => `FINDING: ${String(error)}`);
    this.scheduler.halt();
  }

  /** The first that was reported, in words; null: none was. */
  finding(): string | null {
    const first = this.findings[0];
    if (first === undefined) return null;
    const text = first.error instanceof Error ? (first.error.stack ?? first.error.message) : String(first.error);
    return `${first.node} at ${first.atMs.toFixed(3)} ms: ${text}`;
  }

  #fatal(name: string, error: unknown): void {
    const kind = (this.#options.classify ?? classify)(error);
    if (kind === "finding") {
      this.report(name, error);
    } else {
      this.exits.push({ atMs: this.nowMs, node: name, error });
      this.scheduler.narrate(name, () => `ends itself: ${String(error)}`);
      if (this.#options.restartAfterExitMs !== undefined) this.startAfter(name, this.#options.restartAfterExitMs);
    }
    // The kernel under it lives on, yet what it had not synced may be what the failed sync lost.
    this.crash(name);
  }
}

function classify(error: unknown): "exit" | "finding" {
  return error instanceof DiskError || TenureError.is(error) ? "exit" : "finding";
}
