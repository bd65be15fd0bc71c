// Engines of production on the nodes of a simulated world, and the oracle that watches them.

import type { Random } from "../../core/kit/random.ts";
import { incarnationOf, nodeIdOf, peerKey, type PeerKey } from "../../core/kit/ids.ts";
import { VOUCH_MS } from "../../core/kit/limits.ts";
import {
  configurationOf,
  decodeMessage,
  isLearner,
  isMember,
  isVoter,
  members,
  type Message,
  type MessageType,
  type MsgVoteResp,
  type RaftEvent,
  type Configuration,
} from "../../core/raft/index.ts";
import { Engine } from "../../engine/engine.ts";
import { ENVELOPE_HEADER_BYTES, sealEnvelope } from "../../engine/envelope.ts";
import { snapshotHead } from "../../core/wal/snapshot-file.ts";
import { strike, World, type Boot } from "../kernel/index.ts";
import type { Clients } from "./clients.ts";
import { DiskWitness, PROMISE_BYTES_MAX } from "./disk-witness.ts";
import type { Knobs } from "./knobs.ts";
import { HashMachine } from "./machine.ts";
import { Memory } from "./memory.ts";
import { Oracle } from "./oracle.ts";
import { reached, type ProbeCounts } from "./probes.ts";
import type { RunOptions } from "./run.ts";

const CLUSTER_ID = "sim";

export interface ClusterOptions extends Pick<RunOptions, "digest" | "narrate" | "trace" | "reversed"> {
  readonly seed: number | string;
  readonly knobs: Knobs;
}

interface Member {
  readonly engine: Engine;
  readonly machine: HashMachine;
}

export class Cluster {
  readonly world: World;
  readonly oracle: Oracle;
  readonly memory: Memory;
  readonly probes: ProbeCounts = {};
  readonly knobs: Knobs;
  readonly names: readonly string[];
  /** Single requests of clients, for faults that need one at the right place and time. */
  traffic: Clients | null = null;
  readonly #options: ClusterOptions;
  readonly #random: Random;
  readonly #members = new Map<string, Member>();
  readonly #founded = new Set<string>();
  readonly #founders: readonly PeerKey[];
  readonly #candidatesByTerm = new Map<number, Set<string>>();
  readonly #armed = new Map<string, { readonly type: MessageType; readonly act: (message: Message) => void }>();
  readonly #ledTerm = new Map<string, number>();
  /** By node, whom its operator calls members; and when members last named a peer as one of them. */
  readonly #trusted = new Map<string, Set<string>>();
  readonly #namedAtMs = new Map<PeerKey, number>();
  /** Disks that are lost and were removed, and speak all the same: nobody may take them back after that index. */
  readonly revenants = new Map<PeerKey, number>();
  /** A member has flooded a node with terms. */
  hadFlood = false;
  readonly #witness: DiskWitness;
  #faultsOver = false;

  constructor(options: ClusterOptions) {
    this.#options = options;
    this.knobs = options.knobs;
    const { voters, learners, spares } = this.knobs;
    this.names = Array.from({ length: voters + learners + spares }, (_, at) => `n${at + 1}`);
    this.#founders = this.names.slice(0, voters + learners).map((name) => peerKey(name, "a1"));
    this.world = new World({
      seed: options.seed,
      nodes: options.reversed === true ? this.names.toReversed() : this.names,
      link: this.knobs.link,
      disk: this.knobs.disk,
      restartAfterExitMs: 50,
      start: (boot) => this.#start(boot),
      trace: options.narrate,
    });
    this.#random = this.world.random.fork("cluster");
    this.#witness = new DiskWitness(this.world, options.digest);
    this.memory = new Memory((nodeId) => this.#witness.losing(nodeId));
    this.oracle = new Oracle(this.probes, this.#witness, (node, error) => this.world.report(node, error));
    this.world.network.hooks.onSend = (from, to, bytes) => this.#watchMessages(from, to, bytes);
    for (const [at, name] of this.names.entries())
      this.world.node(name).process.setClockRate(this.knobs.clockRates[at] ?? 1);
  }

  member(name: string): Member | undefined {
    return this.#members.get(name);
  }

  /** The established leader of the highest term among the living, if any. */
  leader(): Member | undefined {
    let best: Member | undefined;
    for (const member of this.#members.values()) {
      const status = member.engine.status();
      if (status.role === "leader" && status.term > (best?.engine.status().term ?? -1)) best = member;
    }
    return best;
  }

  get running(): readonly [string, Member][] {
    return [...this.#members].sort(([a], [b]) => (a < b ? -1 : 1));
  }

  /** After every event: the nodes as the oracle must find them. */
  check(): void {
    for (const name of this.#members.keys()) {
      if (this.world.node(name).process.state === "crashed") this.#ended(name);
    }
    this.oracle.check(this.knobs.election.enableLease);
    for (const { engine } of this.#members.values()) this.#watchTransfer(engine);
  }

  #watchTransfer(engine: Engine): void {
    const status = engine.status();
    if (status.transfer === null || status.role !== "leader") return;
    const sending = members(status.configuration).some((peer) => engine.raft.progressOf(peer)?.state === "snapshot");
    if (sending) reached(this.probes, "snapshot-during-transfer");
  }

  calm(): void {
    this.#faultsOver = true;
    this.world.calm();
  }

  get faultsOver(): boolean {
    return this.#faultsOver;
  }

  #start(boot: Boot): void {
    const { node } = boot;
    if (
      this.world
        .node(node)
        .disk.files()
        .some((file) => file.reservedBytes > 0)
    )
      reached(this.probes, "started-with-reserved-zeros");
    const machine = new HashMachine((index, _term, data, hash) => this.oracle.applied(node, index, data, hash));
    const founder = this.#founders.find((peer) => nodeIdOf(peer) === node);
    const { voters } = this.knobs;
    const started = Engine.start({
      clusterId: CLUSTER_ID,
      nodeId: node,
      disk: boot.disk,
      clock: boot.clock,
      digest: this.#options.digest,
      random: boot.random,
      connect: (self) => boot.wire(self),
      stateMachine: machine,
      newIncarnation: () => this.#newIncarnation(node, boot.life),
      bootstrap:
        founder === undefined || this.#founded.has(node)
          ? null
          : {
              incarnation: incarnationOf(founder),
              configuration: configurationOf(this.#founders.slice(0, voters), this.#founders.slice(voters)),
            },
      election: { ...this.knobs.election, nodePriority: this.knobs.priorities[this.names.indexOf(node)] ?? 0 },
      limits: this.knobs.limits,
      snapshots: this.knobs.snapshots,
      segmentBytesMax: this.knobs.segmentBytesMax,
      reserveBytes: this.knobs.reserveBytes,
      sponsors: this.names,
      trusted: [...(this.#trusted.get(node) ?? [])],
      trace: this.#options.trace,
      onEvent: (event) => this.#event(node, event),
      onFatal: (error) => this.#fatal(boot, error),
    });
    boot.when(started, (engine) => this.#started(boot, engine, machine));
  }

  #started(boot: Boot, engine: Engine, machine: HashMachine): void {
    this.#founded.add(boot.node);
    this.memory.stamped(engine.peer);
    this.#witness.started(engine.peer);
    this.#members.set(boot.node, { engine, machine });
    this.oracle.watch(boot.node, engine, () => boot.clock.monotonicMs());
    if (engine.recovery === "torn-tail-cut") reached(this.probes, "torn-tail-cut");
    if (engine.recovery === "damaged-set-aside") reached(this.probes, "damage-set-aside");
    this.world.scheduler.trace("started", engine.peer, engine.status().lastIndex);
    this.world.scheduler.narrate(
      boot.node,
      () => `is ${engine.peer} (${engine.recovery}), log up to ${engine.status().lastIndex}`,
    );
  }

  #fatal(boot: Boot, error: unknown): void {
    if (error instanceof Error && "code" in error && error.code === "FSYNC_FAILED")
      reached(this.probes, "fsync-error-ended-process");
    boot.fatal(error);
  }

  #newIncarnation(node: string, life: number): string {
    return (this.#random.fork(`incarnation/${node}/${life}`).below(2 ** 30) + 16).toString(16);
  }

  #ended(name: string): void {
    const member = this.#members.get(name)!;
    const status = member.engine.status();
    if (status.role === "leader" && status.configuration.votersOutgoing.length > 0)
      reached(this.probes, "joint-interrupted-by-crash");
    this.#collect(member.engine);
    this.#members.delete(name);
    this.oracle.unwatch(name);
  }

  /** A message as its sender would send it. */
  sealed(message: Message): Uint8Array {
    const { digest } = this.#options;
    const state = message.type === "MsgSnap" ? snapshotHead(message.snapshot, { bytes: 0, crc: 0 }, digest) : null;
    return sealEnvelope(message, CLUSTER_ID, state, digest);
  }

  /** A request for votes as `from` would send it. */
  forgedVote(from: PeerKey, to: PeerKey, term: number): Uint8Array {
    const fields = { index: 2 ** 40, logTerm: term, transfer: true, priority: 0 } as const;
    return this.sealed({ type: "MsgVote", from, to, term, ...fields });
  }

  /** Counts that live in the engines. */
  collect(): void {
    for (const [, { engine }] of this.running) this.#collect(engine);
  }

  #collect(engine: Engine): void {
    if (engine.counts.refusedFrames > 0) reached(this.probes, "garbage-refused");
    if (engine.counts.snapshotsRestored > 0) reached(this.probes, "snapshot-restored");
    if (engine.counts.stalls > 0) reached(this.probes, "loop-stalled");
    if (engine.raft.refusals["not-for-us"] > 0) reached(this.probes, "wrong-disk-refused");
  }

  #event(node: string, event: RaftEvent): void {
    this.world.scheduler.narrate(node, () => JSON.stringify(event));
    const engine = this.#members.get(node)?.engine;
    if (engine === undefined) return;
    switch (event.kind) {
      case "established":
        this.oracle.established(node, engine.status());
        return;
      case "role":
        this.#roleChanged(node, engine, event.role, event.term);
        return;
      case "election":
        this.#election(node, event.record);
        return;
      case "transfer":
        reached(this.probes, event.result.success ? "transfer-done" : "transfer-failed");
        if (event.result.message.includes("refused by the others")) reached(this.probes, "forced-transfer-refused");
        return;
      case "configuration":
        this.#checkRevenants(node, event.configuration, event.index);
        this.#configurationChanged(node, engine, event.configuration);
        return;
      case "stranger-leads":
        this.#trust(node, event.peer);
        return;
      default:
        return;
    }
  }

  /** A leader that steps down without a higher term has lost its quorum, its disk or its place. */
  #roleChanged(node: string, engine: Engine, role: string, term: number): void {
    const led = this.#ledTerm.get(node);
    this.#ledTerm.set(node, role === "leader" ? term : 0);
    if (led !== term || role === "leader" || !isVoter(engine.status().configuration, engine.peer)) return;
    reached(this.probes, this.world.node(node).disk.faults.hung ? "disk-stall-step-down" : "quorum-lost-step-down");
  }

  #election(node: string, record: Extract<RaftEvent, { kind: "election" }>["record"]): void {
    if (record.stage === "vote") {
      const candidates = this.#candidatesByTerm.get(record.term) ?? new Set();
      candidates.add(node);
      for (const candidate of record.candidates) candidates.add(nodeIdOf(candidate));
      this.#candidatesByTerm.set(record.term, candidates);
      if (candidates.size > 1 && record.result !== "won") reached(this.probes, "split-vote");
    }
    if (record.reason === "leader-gone" && record.result === "won" && record.stage === "vote")
      reached(this.probes, "fast-detection-won");
  }

  /** What the runbook says: the operator looks who the members are, lists them at the node, and restarts it. */
  #trust(node: string, peer: PeerKey): void {
    const { configuration } = this.oracle;
    if (configuration === null || !isMember(configuration, peer)) return;
    this.#trusted.set(node, new Set(members(configuration).map(nodeIdOf)));
    const { scheduler, nowMs } = this.world;
    scheduler.schedule(nowMs, scheduler.owner("faults"), () => {
      strike(this.world, { kind: "crash", node, restartAfterMs: 20, silent: false }, () => undefined);
    });
  }

  #named(peers: readonly PeerKey[]): void {
    reached(this.probes, "member-vouched-for");
    for (const peer of peers) this.#namedAtMs.set(peer, this.world.nowMs);
  }

  /** Nobody can have vouched for it recently, as far as anybody knows. */
  isUnnamed(peer: PeerKey): boolean {
    return this.world.nowMs - (this.#namedAtMs.get(peer) ?? -Infinity) > 2 * VOUCH_MS;
  }

  #checkRevenants(node: string, configuration: Configuration, index: number): void {
    const taken = members(configuration).find((peer) => index > (this.revenants.get(peer) ?? Infinity));
    if (taken !== undefined) this.world.report(node, new Error(`the removed disk ${taken} is a member again`));
  }

  #configurationChanged(node: string, engine: Engine, configuration: Configuration): void {
    if (configuration.votersOutgoing.length > 0) return;
    reached(this.probes, "membership-changed");
    if (
      configuration.voters.some((peer) => incarnationOf(peer) !== "a1" && nodeIdOf(peer) <= `n${this.knobs.voters}`)
    ) {
      reached(this.probes, "lost-disk-replaced");
    }
    const founders = this.#founders.slice(this.knobs.voters);
    if (founders.some((peer) => isVoter(configuration, peer) && !isLearner(configuration, peer)))
      reached(this.probes, "learner-promoted");
    // Its role has changed by now, but the event that says so comes after this one.
    const led = (this.#ledTerm.get(node) ?? 0) > 0;
    if (led && !isVoter(configuration, engine.peer)) reached(this.probes, "removed-leader-stepped-down");
  }

  /** Calls `act` when `node` is about to send its next message of this type: a cut made there still stops it. */
  onNextSend(node: string, type: MessageType, act: (message: Message) => void): void {
    this.#armed.set(node, { type, act });
  }

  #watchMessages(from: PeerKey, to: PeerKey, bytes: Uint8Array): void {
    const armed = this.#armed.size > 0 ? this.#armed.get(nodeIdOf(from)) : undefined;
    if (armed === undefined && bytes.length > PROMISE_BYTES_MAX) return;
    const decoded = decodeMessage(bytes.subarray(ENVELOPE_HEADER_BYTES), CLUSTER_ID);
    if (!decoded.ok) return;
    const { message } = decoded;
    if (armed?.type === message.type) {
      this.#armed.delete(nodeIdOf(from));
      armed.act(message);
    }
    if (message.type === "MsgMembers") this.#named(message.members);
    this.#witness.says(message);
    if (message.type === "MsgVoteResp") this.#watchVote(from, to, message);
    // Whoever asks for votes has given itself its own.
    else if (message.type === "MsgVote") this.oracle.voteTold(from, from, message.term);
  }

  #watchVote(from: PeerKey, to: PeerKey, message: MsgVoteResp): void {
    if (!message.reject) return this.oracle.voteTold(from, to, message.term);
    const status = this.#members.get(nodeIdOf(from))?.engine.status();
    const hasVoted = status !== undefined && status.term === message.term && status.vote !== null && status.vote !== to;
    if (hasVoted) reached(this.probes, "double-vote-refused");
  }
}
