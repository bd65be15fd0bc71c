// Worlds for the log's conformance suite: the log in memory, after a line that takes time and loses answers, and the log
// on Raft, with engines of production on simulated machines.

import { configurationOf, type ElectionConfig, type RaftEvent } from "../../src/core/raft/index.ts";
import { ENTRY_BYTES_MAX } from "../../src/core/kit/limits.ts";
import { peerKey, type PeerKey } from "../../src/core/kit/ids.ts";
import { systemDigest } from "../../src/drivers/system/digest.ts";
import { Engine } from "../../src/engine/engine.ts";
import type { LogWorld } from "../../src/logs/conformance/index.ts";
import { MemoryLog, MemoryStore, RaftLog } from "../../src/logs/index.ts";
import type { RaftLogOptions } from "../../src/logs/raft/raft-log.ts";
import type { Clock } from "../../src/ports/clock.ts";
import type { Lead, Proposals } from "../../src/ports/consensus.ts";
import type { Fold, Log, LogAppended, LogHead, LogOpened, LogRecord } from "../../src/ports/log.ts";
import { type Boot, World } from "../../src/sim/kernel/index.ts";

const NODES = ["n1", "n2", "n3"] as const;
const KEPT = 60;

/** What the suite is given in place of a node's log: for planted mistakes. */
export type Disguise = (log: Log) => Log;

const undisguised: Disguise = (log) => log;

// ---- memory ----------------------------------------------------------------------------------------

/** A node's way to the store: requests arrive when time moves, in order; a cut line loses requests or their answers. */
class Line implements Log {
  readonly #inner: Log;
  #queue: { readonly arrive: () => void; readonly lose: () => void }[] = [];
  #isCut = false;
  #lost = 0;

  constructor(inner: Log) {
    this.#inner = inner;
  }

  head(): LogHead {
    return this.#inner.head();
  }

  open(epoch: number): Promise<LogOpened> {
    return this.#ask(() => this.#inner.open(epoch), null);
  }

  append(epoch: number, after: number, batch: readonly Uint8Array[]): Promise<LogAppended> {
    const copies = batch.map((data) => data.slice());
    return this.#ask(() => this.#inner.append(epoch, after, copies), { outcome: "unknown" });
  }

  read(from: number, max: number): Promise<readonly LogRecord[]> {
    return this.#inner.read(from, max);
  }

  subscribe(from: number, tell: (record: LogRecord) => void, compacted: () => void): () => void {
    return this.#inner.subscribe(from, tell, compacted);
  }

  cut(): void {
    this.#isCut = true;
  }

  heal(): void {
    this.#isCut = false;
  }

  /** The process died: what it sent and nobody took is gone. */
  end(): void {
    this.#queue = [];
  }

  async flow(): Promise<void> {
    const queue = this.#queue;
    this.#queue = [];
    for (const one of queue) {
      if (this.#isCut) one.lose();
      else one.arrive();
      // What the answer of one brings about comes before the next.
      for (let turn = 0; turn < 8; turn++) await Promise.resolve();
    }
  }

  #ask<T>(ask: () => Promise<T>, unknown: T | null): Promise<T> {
    return new Promise((resolve, reject) => {
      const lose = (): void => {
        // Every second one arrives, and only its answer is lost.
        if (this.#lost++ % 2 === 0) ask().catch(() => undefined);
        if (unknown === null) reject(new Error("no answer"));
        else resolve(unknown);
      };
      this.#queue.push({ arrive: () => void ask().then(resolve, reject), lose });
    });
  }
}

export function memoryLogWorld(disguise: Disguise = undisguised): LogWorld {
  const store = new MemoryStore({ recordsMax: KEPT });
  const lines = new Map<string, Line>();
  const logs = new Map<string, Log>();
  let epoch = 0;
  const start = (node: string): void => {
    const line = new Line(disguise(new MemoryLog(store)));
    lines.set(node, line);
    logs.set(node, line);
  };
  for (const node of NODES) start(node);
  const line = (node: string): Line => lines.get(node)!;
  return {
    nodes: NODES,
    log: (node) => logs.get(node)!,
    lead: () => Promise.resolve(++epoch),
    advance: async () => {
      for (const node of NODES) await line(node).flow();
      await new Promise((resolve) => setImmediate(resolve));
    },
    keptRecordsMin: 20,
    forgottenAfterRecords: KEPT,
    tooLargeBytes: ENTRY_BYTES_MAX + 1,
    cut: async (node) => line(node).cut(),
    heal: async (node) => {
      // What was sent into the cut is lost, also if nothing has looked since.
      await line(node).flow();
      line(node).heal();
    },
    crash: async (node) => line(node).end(),
    restart: async (node) => start(node),
    dispose: () => Promise.resolve(),
  };
}

// ---- Raft ------------------------------------------------------------------------------------------

const NO_FOLD: Fold = { apply: () => undefined, snapshot: () => new Uint8Array(0), restore: () => undefined };

/** What a log needs of an engine that is made after it. */
function raftLogPorts(engine: () => Proposals & Pick<Lead, "status">): Pick<RaftLogOptions, "proposals" | "lead"> {
  return { proposals: { propose: (data) => engine().propose(data) }, lead: { status: () => engine().status() } };
}

export interface ClusterNode<Extra> {
  readonly engine: Engine;
  readonly log: RaftLog;
  readonly consensus: Proposals & Pick<Lead, "status" | "readIndex" | "subscribe">;
  readonly clock: Clock;
  readonly extra: Extra;
}

export interface ClusterOptions<Extra> {
  readonly seed: string;
  readonly election?: Partial<ElectionConfig> | undefined;
  /** What is folded, and what else lives in the process; made anew for each life. */
  readonly start: (boot: Boot) => {
    readonly fold: Fold;
    readonly begin: (node: Omit<ClusterNode<Extra>, "extra">) => Extra;
  };
}

/** Three engines on simulated machines, each with its log. */
export class RaftCluster<Extra> {
  readonly world: World;
  readonly #options: ClusterOptions<Extra>;
  readonly #nodes = new Map<string, ClusterNode<Extra>>();
  readonly #founded = new Set<string>();
  readonly #peers: readonly PeerKey[] = NODES.map((name) => peerKey(name, "a1"));

  constructor(options: ClusterOptions<Extra>) {
    this.#options = options;
    this.world = new World({ seed: options.seed, nodes: NODES, start: (boot) => this.#start(boot) });
    this.world.startAll();
  }

  /** Of its present life; undefined while it is down. */
  node(name: string): ClusterNode<Extra> | undefined {
    return this.world.node(name).process.state === "crashed" ? undefined : this.#nodes.get(name);
  }

  get names(): readonly string[] {
    return NODES;
  }

  crash(name: string): void {
    this.#nodes.delete(name);
    this.world.crash(name);
  }

  readonly #cut = new Set<string>();

  isCut(name: string): boolean {
    return this.#cut.has(name);
  }

  cut(name: string): void {
    this.#cut.add(name);
    this.world.network.partition([[name], NODES.filter((other) => other !== name)]);
  }

  heal(name: string): void {
    this.#cut.delete(name);
    for (const other of NODES) if (other !== name) this.world.network.heal(name, other);
  }

  #start(boot: Boot): void {
    const listeners = new Set<(event: RaftEvent) => void>();
    let engine: Engine | null = null;
    const { fold, begin } = this.#options.start(boot);
    const log = new RaftLog({ fold, ...raftLogPorts(() => engine!), kept: { recordsMax: KEPT } });
    Engine.start({
      clusterId: "logs",
      nodeId: boot.node,
      disk: boot.disk,
      clock: boot.clock,
      digest: systemDigest,
      random: boot.random,
      connect: (self) => boot.wire(self),
      stateMachine: log,
      newIncarnation: () => "b1",
      bootstrap: this.#founded.has(boot.node)
        ? null
        : { incarnation: "a1", configuration: configurationOf(this.#peers, []) },
      election: this.#options.election,
      // A node that was cut off needs a snapshot: nothing is held back for it.
      limits: { compactionHoldEntriesMax: 0 },
      snapshots: { afterEntries: 40, keepEntries: 10 },
      onEvent: (event) => {
        for (const listener of listeners) listener(event);
      },
      onFatal: (error) => boot.fatal(error),
    }).then(
      (started) => {
        if (this.world.node(boot.node).process.life?.number !== boot.life) return;
        engine = started;
        this.#founded.add(boot.node);
        const consensus = {
          status: () => started.status(),
          propose: (data: readonly Uint8Array[]) => started.propose(data),
          readIndex: (timeoutMs: number) => started.readIndex(timeoutMs),
          subscribe: (listener: (event: RaftEvent) => void) => {
            listeners.add(listener);
            return () => void listeners.delete(listener);
          },
        };
        const node = { engine: started, log, consensus, clock: boot.clock };
        this.#nodes.set(boot.node, { ...node, extra: begin(node) });
      },
      (error: unknown) => boot.fatal(error),
    );
  }
}

export async function raftLogWorld(disguise: Disguise = undisguised): Promise<LogWorld> {
  const cluster = new RaftCluster<Log>({
    seed: "log-conformance",
    start: () => ({ fold: NO_FOLD, begin: ({ log }) => disguise(log) }),
  });
  const { world } = cluster;
  const cut = new Set<string>();
  let lastEpoch = 0;
  const finding = (): void => {
    const [first] = world.findings;
    if (first !== undefined) throw first.error;
  };
  const run = async (ms: number): Promise<void> => {
    await world.runFor(ms);
    finding();
  };
  const up = (): string[] => NODES.filter((name) => !cut.has(name) && cluster.node(name) !== undefined);
  const leads = (name: string): boolean => {
    const status = cluster.node(name)!.engine.status();
    return status.role === "leader" && status.established;
  };
  /** Through transfers only: a leader that is well can't be voted out. */
  const lead = async (target: string): Promise<number> => {
    for (let attempt = 0; attempt < 1_000; attempt++) {
      const leader = up().find(leads);
      const term = leader === undefined ? 0 : cluster.node(leader)!.engine.status().term;
      if (leader === target && term > lastEpoch) {
        lastEpoch = term;
        return term;
      }
      if (leader !== undefined) {
        const next = leader === target ? up().find((name) => name !== target)! : target;
        void cluster.node(leader)!.engine.transfer(peerKey(next, "a1"));
      }
      await run(20);
    }
    throw new Error(`${target} did not become leader`);
  };
  await run(1_000);
  return {
    nodes: NODES,
    log: (name) => cluster.node(name)!.extra,
    lead,
    advance: run,
    keptRecordsMin: 20,
    forgottenAfterRecords: KEPT,
    tooLargeBytes: ENTRY_BYTES_MAX + 1,
    cut: async (name) => {
      cut.add(name);
      cluster.cut(name);
    },
    heal: async (name) => {
      cut.delete(name);
      cluster.heal(name);
    },
    crash: async (name) => cluster.crash(name),
    restart: async (name) => {
      world.start(name);
      for (let attempt = 0; cluster.node(name) === undefined && attempt < 100; attempt++) await run(10);
    },
    dispose: () => Promise.resolve(),
  };
}
