// Five engines of production on simulated machines, and electors on top of them: virtual time, and every fault. A scope is
// a cluster of its own; there are two, for the case with two scopes.

import { configurationOf, electionConfig } from "../../src/core/raft/index.ts";
import { StaleEpochError, TenureError } from "../../src/core/kit/errors.ts";
import { peerKey } from "../../src/core/kit/ids.ts";
import { systemDigest } from "../../src/drivers/system/digest.ts";
import { LeaderBoard, raftBackend } from "../../src/electors/raft/index.ts";
import { Engine } from "../../src/engine/engine.ts";
import type { Backend } from "../../src/entry/index.ts";
import type { ConformanceWorld } from "../../src/entry/testing.ts";
import { RaftLog } from "../../src/logs/index.ts";
import { raftLogPorts } from "./test-log-worlds.ts";
import { type Boot, World } from "../../src/sim/kernel/index.ts";

/** Two of the three that have electors may be cut off: the others keep the quorum. */
const NAMES = ["a", "b", "c", "d", "e"];
const CLUSTERS = ["x", "y"];
const LIMIT_MS = 5_000;
const INCARNATION = "f0";

interface Node {
  readonly engine: Engine;
  readonly board: LeaderBoard;
  readonly log: RaftLog;
  readonly boot: Boot;
}

class RaftWorld {
  readonly #world: World;
  readonly #nodes = new Map<string, Node>();
  readonly #founded = new Set<string>();
  /** Which cluster a scope is led by, in the order of asking. */
  readonly #scopes: string[] = [];
  #driving: Promise<unknown> = Promise.resolve();

  constructor(seed: number) {
    this.#world = new World({
      seed,
      nodes: CLUSTERS.flatMap((cluster) => NAMES.map((name) => cluster + name)),
      link: { latencyMinMs: 0.3, latencyTailMs: 0.2 },
      disk: { syncMs: [0.5, 2] },
      start: (boot) => this.#start(boot),
    });
    this.#world.startAll();
  }

  /** Runs of the world come one after the other, whoever asks. */
  advance(ms: number): Promise<void> {
    const run = this.#driving.then(() => this.#world.runFor(ms));
    this.#driving = run;
    return run.then(() => {
      const [finding] = this.#world.findings;
      if (finding !== undefined) throw finding.error;
    });
  }

  async create(name: string): Promise<Backend> {
    for (const cluster of CLUSTERS) {
      const node = cluster + name;
      if (this.#world.node(node).process.state === "crashed") this.#world.startAfter(node, 0);
      await this.#until(() => this.#nodes.has(node), `${node} to run`);
    }
    const { boot } = this.#node("x", name);
    const timing = raftBackend(this.#parts(this.#node("x", name))).timing;
    return {
      kind: "raft",
      host: name,
      clock: boot.clock,
      timing,
      seat: (claim) => raftBackend(this.#parts(this.#node(this.#clusterOf(claim.scope), name))).seat(claim),
    };
  }

  /** By whoever leads in this very term, as the log demands. */
  async write(scope: string, epoch: number, value: string): Promise<void> {
    const cluster = this.#clusterOf(scope);
    for (const name of NAMES) {
      const node = this.#nodes.get(cluster + name);
      // Who does not run writes nothing; and who is cut off gets no answer, which is no yes.
      if (node === undefined || this.#world.node(cluster + name).process.state !== "running") continue;
      const { role, term, established } = node.engine.status();
      if (role !== "leader" || term !== epoch || !established) continue;
      const outcome = await this.#settle(append(node.log, epoch, new TextEncoder().encode(value)));
      if (outcome === "committed") return;
    }
    throw new StaleEpochError(scope, epoch);
  }

  kill(name: string): void {
    for (const cluster of CLUSTERS) {
      this.#world.crash(cluster + name);
      this.#nodes.delete(cluster + name);
    }
  }

  freeze(name: string): void {
    for (const cluster of CLUSTERS) this.#world.pause(cluster + name);
  }

  thaw(name: string): void {
    for (const cluster of CLUSTERS) this.#world.resume(cluster + name);
  }

  cut(name: string): void {
    for (const cluster of CLUSTERS) {
      for (const other of NAMES.filter((one) => one !== name)) {
        this.#world.network.cutOneWay(cluster + name, cluster + other);
        this.#world.network.cutOneWay(cluster + other, cluster + name);
      }
    }
  }

  heal(): void {
    this.#world.network.heal();
  }

  #start(boot: Boot): void {
    const cluster = boot.node[0]!;
    const voters = NAMES.map((name) => peerKey(cluster + name, INCARNATION));
    const log = new RaftLog({
      fold: { apply: () => undefined, snapshot: () => new Uint8Array(0), restore: () => undefined },
      ...raftLogPorts(() => {
        const { engine } = this.#nodes.get(boot.node)!;
        return { propose: (data) => board.forInner(engine).propose(data), status: () => engine.status() };
      }),
    });
    const board = new LeaderBoard(log);
    Engine.start({
      clusterId: cluster,
      nodeId: boot.node,
      disk: boot.disk,
      clock: boot.clock,
      digest: systemDigest,
      random: boot.random,
      connect: (self) => boot.wire(self),
      stateMachine: board,
      newIncarnation: () => "ff",
      bootstrap: this.#founded.has(boot.node)
        ? null
        : { incarnation: INCARNATION, configuration: configurationOf(voters) },
      onFatal: (error) => boot.fatal(error),
    }).then(
      (engine) => {
        // A node without an elector does not lead.
        engine.setWilling(false);
        this.#founded.add(boot.node);
        this.#nodes.set(boot.node, { engine, board, log, boot });
      },
      (error: unknown) => boot.fatal(error),
    );
  }

  #parts({ engine, board, boot }: Node): Parameters<typeof raftBackend>[0] {
    return { consensus: engine, board, clock: boot.clock, host: boot.node, election: electionConfig() };
  }

  #clusterOf(scope: string): string {
    if (!this.#scopes.includes(scope)) this.#scopes.push(scope);
    const cluster = CLUSTERS[this.#scopes.indexOf(scope)];
    if (cluster === undefined) throw new Error(`more scopes than clusters: ${scope}`);
    return cluster;
  }

  #node(cluster: string, name: string): Node {
    const node = this.#nodes.get(cluster + name);
    if (node === undefined) throw new Error(`${cluster}${name} does not run`);
    return node;
  }

  async #settle<T>(promise: Promise<T>): Promise<T> {
    let isSettled = false;
    const settled = (): void => {
      isSettled = true;
    };
    promise.then(settled, settled);
    await this.#until(() => isSettled, "an append to be answered");
    return promise;
  }

  async #until(condition: () => boolean, what: string): Promise<void> {
    for (let passedMs = 0; !condition(); passedMs++) {
      if (passedMs > LIMIT_MS) throw new Error(`waited ${LIMIT_MS} ms of virtual time for ${what}`);
      await this.advance(1);
    }
  }
}

async function append(log: RaftLog, epoch: number, data: Uint8Array): Promise<string> {
  try {
    if (log.head().epoch < epoch) await log.open(epoch);
    return (await log.append(epoch, log.head().position, [data])).outcome;
  } catch (error) {
    if (TenureError.is(error) && error.retryable) return "refused";
    throw error;
  }
}

let seed = 1;

export function raftWorld(): ConformanceWorld {
  const world = new RaftWorld(seed++);
  return {
    create: (name) => world.create(name),
    resource: { write: (scope, epoch, value) => world.write(scope, epoch, value) },
    advance: (ms) => world.advance(ms),
    killFreesAtOnce: true,
    // An election timeout is 150 to 300 ms, and a vote may be split.
    takeoverMs: 1_500,
    kill: async (name) => world.kill(name),
    freeze: async (name) => world.freeze(name),
    thaw: async (name) => world.thaw(name),
    cut: async (name) => world.cut(name),
    heal: async () => world.heal(),
    dispose: () => Promise.resolve(),
  };
}
