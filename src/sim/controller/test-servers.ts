// What the tests of the controller share: servers without an API, each an engine of production with its cluster service, on
// a simulated world. Handshakes are the world's; beacons travel over its links and are lost where those are cut.

import type { Lacks } from "../../core/archive/index.ts";
import { assert } from "../../core/kit/assert.ts";
import { incarnationOf, nodeIdOf, peerKey, type PeerKey } from "../../core/kit/ids.ts";
import { configurationOf, ELECTION_DEFAULTS, type ElectionConfig } from "../../core/raft/index.ts";
import { ClusterMachine, innerProposals } from "../../controller/cluster/cluster-machine.ts";
import { raftLeading } from "../../controller/leadership/leading.ts";
import { ClusterService } from "../../controller/cluster/cluster.ts";
import { Engine } from "../../engine/engine.ts";
import { ListMachine } from "../../engine/test-engine.ts";
import { bytesOf, digest } from "../../engine/test-storage.ts";
import type { ClusterView, DiskView } from "../../ports/cluster.ts";
import type { LogFields, Logger } from "../../ports/logger.ts";
import type { PeerLink, Peers } from "../../ports/peers/peers.ts";
import type { Wire } from "../../ports/peers/wire.ts";
import { World, type Boot } from "../kernel/index.ts";

const FOUNDER = "a1";
const BEACON_DELAY_MS = 1;
const ANSWER_WITHIN_MS = 60_000;

export interface TestServersOptions {
  readonly seed: string;
  readonly names: readonly string[];
  /** Founded with these, all at once; the others start with empty disks. */
  readonly founders: readonly string[];
  readonly expect?: readonly string[] | undefined;
  readonly election?: Partial<ElectionConfig> | undefined;
  /** What a disk says that it lacks of the history, as the leader hears it. */
  readonly lacks?: ((peer: PeerKey) => Lacks | null) | undefined;
  /** The same of receipts of other sites' events. */
  readonly lacksReceipts?: ((peer: PeerKey) => Lacks | null) | undefined;
}

export interface LogLine extends LogFields {
  readonly level: "info" | "warn" | "error";
  readonly message: string;
}

export interface TestServer {
  readonly engine: Engine;
  readonly machine: ClusterMachine;
  readonly inner: ListMachine;
  readonly cluster: ClusterService;
}

class TestPeers implements Peers {
  readonly links = new Map<string, { peer: PeerKey; isConnected: boolean }>();
  listener: ((from: PeerKey, beacon: Uint8Array) => void) | null = null;
  /** A node refuses this one's handshake, because its disk was removed. */
  removedBy: (by: string) => void = () => undefined;
  readonly #names: readonly string[];
  readonly #send: (to: string, beacon: Uint8Array) => void;

  constructor(names: readonly string[], send: (to: string, beacon: Uint8Array) => void) {
    this.#names = names;
    this.#send = send;
  }

  list(): readonly PeerLink[] {
    return this.#names.map((nodeId) => {
      const link = this.links.get(nodeId);
      const isConnected = link?.isConnected ?? false;
      const trouble = isConnected ? null : "nobody listens";
      const apiUrl = link === undefined ? null : `http://${nodeId}`;
      return { nodeId, peer: link?.peer ?? null, address: `${nodeId}:7000`, apiUrl, isConnected, trouble };
    });
  }

  broadcast(beacon: Uint8Array): void {
    for (const [nodeId, { isConnected }] of this.links) if (isConnected) this.#send(nodeId, beacon);
  }

  onBeacon(listener: (from: PeerKey, beacon: Uint8Array) => void): void {
    this.listener = listener;
  }

  watch(wire: Wire): Wire {
    return {
      start: (handlers) => {
        this.removedBy = (by) => handlers.removedBy?.(by);
        wire.start({
          ...handlers,
          peerSeen: (peer) => {
            this.links.set(nodeIdOf(peer), { peer, isConnected: true });
            handlers.peerSeen(peer);
          },
          peerGone: (peer) => {
            this.links.set(nodeIdOf(peer), { peer, isConnected: false });
            handlers.peerGone(peer);
          },
        });
      },
      send: (to, bytes) => wire.send(to, bytes),
      stop: () => wire.stop(),
    };
  }
}

export class TestServers {
  readonly world: World;
  readonly lines = new Map<string, LogLine[]>();
  readonly disks = new Map<string, DiskView["state"]>();
  readonly #options: TestServersOptions;
  readonly #servers = new Map<string, TestServer>();
  readonly #peers = new Map<string, TestPeers>();
  readonly #founded = new Set<string>();

  constructor(options: TestServersOptions) {
    this.#options = options;
    const { seed, names } = options;
    this.world = new World({ seed, nodes: names, start: (boot) => this.#start(boot) });
    for (const name of names) this.lines.set(name, []);
  }

  of(name: string): TestServer {
    const server = this.#servers.get(name);
    if (server === undefined) throw new Error(`${name} does not run`);
    return server;
  }

  runs(name: string): boolean {
    return this.#servers.has(name);
  }

  view(name: string): ClusterView {
    return this.of(name).cluster.view();
  }

  /** The members as one word each, as this node sees them. */
  members(name: string): string[] {
    return this.view(name).members.map(({ nodeId, kind }) => `${nodeId} ${kind}`);
  }

  leader(): string | undefined {
    return [...this.#servers.keys()].find((name) => this.view(name).role === "LEADER");
  }

  /** What was logged with this `event`. */
  logged(name: string, event: string): LogLine[] {
    return this.lines.get(name)!.filter((line) => line["event"] === event);
  }

  async until(isSo: () => boolean, withinMs = ANSWER_WITHIN_MS): Promise<void> {
    const end = await this.world.run(isSo, { untilMs: this.world.nowMs + withinMs });
    if (end !== "predicate") throw new Error(`it did not happen within ${withinMs} ms: ${end} ${this.#findings()}`);
  }

  /** As an API would, in that process; resolves or rejects as it does. */
  async ask<T>(name: string, asked: (server: TestServer) => Promise<T>): Promise<T> {
    let settled: (() => T) | null = null;
    this.world.call(name, () => {
      asked(this.of(name)).then(
        (value) => (settled = () => value),
        (error: unknown) =>
          (settled = () => {
            throw error;
          }),
      );
    });
    await this.until(() => settled !== null);
    return settled!();
  }

  /** Through the inner machine's own door. */
  write(name: string, ...texts: string[]): Promise<unknown> {
    return this.ask(name, ({ engine }) => innerProposals(() => engine).propose(texts.map(bytesOf)));
  }

  /** A beacon that `from` never sent. */
  whisper(to: string, from: PeerKey, beacon: Uint8Array): void {
    this.world.call(to, () => this.#peers.get(to)?.listener?.(from, beacon));
  }

  /** `by` refuses its handshake as that of a removed disk. */
  refuseAsRemoved(name: string, by: string): void {
    this.#peers.get(name)?.removedBy(by);
  }

  crash(name: string): void {
    this.world.crash(name);
    this.#servers.delete(name);
  }

  #findings(): string {
    return this.world.findings.map(({ node, error }) => `${node}: ${String(error)}`).join("; ");
  }

  #start(boot: Boot): void {
    const { node } = boot;
    const { founders, names, election, lacks } = this.#options;
    const inner = new ListMachine();
    const machine = new ClusterMachine([inner], digest);
    const others = names.filter((name) => name !== node);
    const peers = new TestPeers(others, (to, beacon) => this.#carry(node, to, beacon));
    const isFounder = founders.includes(node) && !this.#founded.has(node);
    const configuration = configurationOf(founders.map((name) => peerKey(name, FOUNDER)));
    const started = Engine.start({
      clusterId: "c",
      nodeId: node,
      disk: boot.disk,
      clock: boot.clock,
      digest,
      random: boot.random,
      connect: (self) => peers.watch(boot.wire(self)),
      stateMachine: machine,
      newIncarnation: () => `b${boot.life}`,
      bootstrap: isFounder ? { incarnation: FOUNDER, configuration } : null,
      election,
      swapsNeedClearance: lacks !== undefined,
      onFatal: (error) => boot.fatal(error),
    });
    boot.when(started, (engine) => this.#started(boot, { engine, machine, inner, peers }));
  }

  #started(boot: Boot, made: Omit<TestServer, "cluster"> & { readonly peers: TestPeers }): void {
    const { node } = boot;
    const { engine, machine, inner, peers } = made;
    const { expect, election, lacks, lacksReceipts } = this.#options;
    this.#founded.add(node);
    this.#peers.set(node, peers);
    const cluster = new ClusterService({
      clusterId: "c",
      version: "0.0.0",
      consensus: engine,
      ...raftLeading({ consensus: engine, clock: boot.clock, logger: this.#logger(node) }),
      peers,
      clock: boot.clock,
      random: boot.random.fork("cluster"),
      logger: this.#logger(node),
      machine,
      own: { address: `${node}:7000`, url: `http://${node}` },
      electionTimeoutMaxMs: { ...ELECTION_DEFAULTS, ...election }.electionTimeoutMaxMs,
      disk: { state: () => this.disks.get(node) ?? "ok", freeBytes: () => 1_000_000 },
      snapshots: { newest: () => null, save: () => Promise.reject(new Error("none")), read: async () => null },
      stalls: () => engine.counts.stalls,
      lacks: lacks === undefined ? undefined : async (peer) => lacks(peer),
      lacksReceipts: lacksReceipts === undefined ? undefined : async (peer) => lacksReceipts(peer),
      // Only a founder is told whom to expect.
      expect: incarnationOf(engine.peer) === FOUNDER ? expect : undefined,
    });
    this.#servers.set(node, { engine, machine, inner, cluster });
    cluster.start();
  }

  #carry(from: string, to: string, beacon: Uint8Array): void {
    const { scheduler, network } = this.world;
    if (!network.link(from, to).open) return;
    const { peer } = this.of(from).engine;
    scheduler.schedule(this.world.nowMs + BEACON_DELAY_MS, scheduler.owner("beacons"), () => {
      this.world.call(to, () => this.#peers.get(to)?.listener?.(peer, beacon));
    });
  }

  #logger(node: string): Logger {
    const log =
      (level: LogLine["level"]) =>
      (fields: LogFields, message: string): void => {
        // A server's sink puts `node`, who logs, on every line: a second key of that name hides one of them.
        assert(!("node" in fields), "a line of the log names its subject another way", () => message);
        this.lines.get(node)!.push({ ...fields, level, message });
      };
    return { info: log("info"), warn: log("warn"), error: log("error") };
  }
}
