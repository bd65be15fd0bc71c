// Test support: a few Raft nodes on virtual time, a network that drops, holds and reorders what it is told to,
// and disks that finish at once or when the test says so. Nothing here is imported by production.
//
// It plays the engine's part by the letter of the contract in types.ts, and asserts at every step, against the
// durable state that it keeps itself:
// - no message leaves before what it depends on is durable;
// - a write is applied in the order snapshot, hard state, entries; the term is durable before its entries;
// - one leader in a term, one committed entry at an index, and what is applied is durable on that node.

import { assert } from "../kit/assert.ts";
import type { PeerKey } from "../kit/ids.ts";
import { seededRandom } from "../kit/random.ts";
import { electionConfig, type ElectionConfig } from "./config.ts";
import { configurationOf } from "./membership/membership.ts";
import type { RaftLimits, RaftOptions, RaftStatus } from "./options.ts";
import { Raft } from "./raft.ts";
import { bytes, entriesOf, preVoteResp, textOf, voteResp, type MessageOf } from "./test-messages.ts";
import type { ConfChangeOperation, Entry, HardState, Input, Message, MessageType } from "./types.ts";
import type { PersistRequest, RaftEvent, Ready, ReadState, SnapshotMeta, StepResult } from "./types.ts";

const STEPS_MAX = 200_000;

export interface ClusterOptions {
  readonly voters: readonly PeerKey[];
  readonly learners?: readonly PeerKey[];
  /** Who runs; the others are voters that nobody has started. Default: all. */
  readonly running?: readonly PeerKey[];
  readonly election?: Partial<ElectionConfig> | ((peer: PeerKey) => Partial<ElectionConfig>);
  readonly limits?: Partial<RaftLimits>;
  readonly admits?: Pick<RaftOptions, "trusted" | "sponsors" | "swapsNeedClearance">;
  readonly seed?: number;
  /** Terms of the entries after the founding snapshot (index 1, term 1), by peer; the first is index 2. */
  readonly logs?: Readonly<Record<string, readonly number[]>>;
  readonly commit?: number;
  readonly term?: number;
}

export interface Durable {
  hardState: HardState;
  snapshot: SnapshotMeta | null;
  entries: Entry[];
}

export class TestNode {
  readonly durable: Durable;
  raft: Raft;
  alive = true;
  diskHeld = false;
  applyHeld = false;
  writes: PersistRequest[] = [];
  applied: Entry[] = [];
  toApply: Entry[] = [];
  events: RaftEvent[] = [];
  reads: ReadState[] = [];
  sent: Message[] = [];
  deadlineMs = Infinity;
  lastSequence = 0;

  constructor(durable: Durable, raft: Raft) {
    this.durable = durable;
    this.raft = raft;
  }

  eventsOf<K extends RaftEvent["kind"]>(kind: K): Extract<RaftEvent, { kind: K }>[] {
    return this.events.filter((event): event is Extract<RaftEvent, { kind: K }> => event.kind === kind);
  }

  sentOf<T extends MessageType>(type: T): MessageOf<T>[] {
    return this.sent.filter((message) => message.type === type) as MessageOf<T>[];
  }
}

/** Messages that the network keeps back until the test lets them go. */
export interface Held {
  readonly messages: Message[];
  /** Stops holding, and delivers what was held in the order that `order` gives it. */
  release(order?: (messages: Message[]) => Message[]): void;
}

export class TestCluster {
  nowMs = 0;
  readonly nodes = new Map<PeerKey, TestNode>();
  readonly options: ClusterOptions;
  #queue: Message[] = [];
  readonly #filters = new Set<(message: Message) => boolean>();
  readonly #leaders = new Map<number, PeerKey>();
  readonly #committed = new Map<number, Entry>();

  constructor(options: ClusterOptions) {
    this.options = options;
    const everybody = [...options.voters, ...(options.learners ?? [])];
    const configuration = configurationOf(options.voters, options.learners);
    for (const peer of options.running ?? everybody) {
      const entries = entriesOf(options.logs?.[peer] ?? []);
      const term = options.term ?? entries.at(-1)?.term ?? 1;
      this.start(peer, {
        hardState: { term, vote: null, commit: options.commit ?? 1 },
        snapshot: { index: 1, term: 1, configuration },
        entries,
      });
    }
  }

  // ---- nodes ---------------------------------------------------------------------------------------

  /** A node with these bytes on its disk; without any, one that has not joined. */
  start(peer: PeerKey, durable: Durable = emptyDisk()): TestNode {
    const node = new TestNode(durable, this.#newRaft(peer, durable));
    this.nodes.set(peer, node);
    this.#pump(peer, node);
    return node;
  }

  node(peer: PeerKey): TestNode {
    const node = this.nodes.get(peer);
    assert(node !== undefined, "the node was started", () => peer);
    return node;
  }

  status(peer: PeerKey): RaftStatus {
    return this.node(peer).raft.status();
  }

  /** Process and unfinished writes are gone; what was durable stays. */
  crash(peer: PeerKey): void {
    const node = this.node(peer);
    node.alive = false;
    node.writes = [];
    node.toApply = [];
    node.deadlineMs = Infinity;
  }

  restart(peer: PeerKey): TestNode {
    const old = this.node(peer);
    this.crash(peer);
    const { hardState, snapshot, entries } = old.durable;
    return this.start(peer, { hardState, snapshot, entries: [...entries] });
  }

  leader(): PeerKey | null {
    const leading = [...this.nodes].filter(([, node]) => node.alive && node.raft.status().role === "leader");
    leading.sort(([, a], [, b]) => b.raft.status().term - a.raft.status().term);
    return leading[0]?.[0] ?? null;
  }

  // ---- input ---------------------------------------------------------------------------------------

  /** One step of one node; what it sends waits in the network. */
  step(peer: PeerKey, input: Input): StepResult {
    const node = this.node(peer);
    assert(node.alive, "only a living node is stepped", () => peer);
    const result = node.raft.step(this.nowMs, input);
    this.#pump(peer, node);
    return result;
  }

  receive(message: Message): StepResult {
    return this.step(message.to, { kind: "message", message });
  }

  /** A step, and all that follows from it without time passing. */
  act(peer: PeerKey, input: Input): StepResult {
    const result = this.step(peer, input);
    this.settle();
    return result;
  }

  propose(peer: PeerKey, ...texts: string[]): StepResult {
    return this.act(peer, { kind: "propose", data: texts.map(bytes) });
  }

  change(peer: PeerKey, ...operations: ConfChangeOperation[]): StepResult {
    return this.act(peer, { kind: "conf-change", change: { operations } });
  }

  elect(peer: PeerKey): void {
    this.act(peer, { kind: "campaign" });
    const { role } = this.status(peer);
    assert(role === "leader", "the node that was told to campaign leads", () => `${peer} is a ${role}`);
  }

  /** The same where the others do not run: their grants are written by hand. Forgets what was sent so far. */
  electWith(peer: PeerKey, ...granting: readonly PeerKey[]): TestNode {
    this.step(peer, { kind: "campaign" });
    const term = this.status(peer).term + 1;
    for (const voter of granting) this.receive(preVoteResp([voter, peer, term]));
    for (const voter of granting) this.receive(voteResp([voter, peer, term]));
    assert(this.status(peer).role === "leader", "the node that was voted for leads");
    const node = this.node(peer);
    node.sent = [];
    return node;
  }

  // ---- time and network ----------------------------------------------------------------------------

  /** Delivers until nothing is under way. */
  settle(): void {
    for (let steps = 0; this.#queue.length > 0; steps++) {
      assert(steps < STEPS_MAX, "the network comes to rest");
      const message = this.#queue.shift()!;
      if (this.nodes.get(message.to)?.alive === true) this.receive(message);
    }
  }

  advance(durationMs: number): void {
    const endMs = this.nowMs + durationMs;
    let stuck = 0;
    this.settle();
    for (;;) {
      const dueMs = Math.min(...[...this.nodes.values()].map((node) => node.deadlineMs));
      if (dueMs > endMs) break;
      stuck = dueMs > this.nowMs ? 0 : stuck + 1;
      assert(stuck < 100, "a deadline that was acted upon moves", () => `still ${dueMs} at ${this.nowMs}`);
      this.nowMs = Math.max(this.nowMs, dueMs);
      for (const [peer, node] of this.nodes) if (node.deadlineMs <= this.nowMs) this.step(peer, { kind: "time" });
      this.settle();
    }
    this.nowMs = endMs;
  }

  /** Messages that match are lost from now on, until the returned function is called. */
  drop(matches: (message: Message) => boolean): () => void {
    this.#filters.add(matches);
    return () => this.#filters.delete(matches);
  }

  hold(matches: (message: Message) => boolean): Held {
    const messages: Message[] = [];
    const stop = this.drop((message) => matches(message) && messages.push(message) > 0);
    const release = (order: (messages: Message[]) => Message[] = (kept) => kept): void => {
      stop();
      this.#queue.push(...order(messages.splice(0)));
      this.settle();
    };
    return { messages, release };
  }

  isolate(...cut: readonly PeerKey[]): () => void {
    return this.drop(({ from, to }) => cut.includes(from) !== cut.includes(to));
  }

  // ---- disk ----------------------------------------------------------------------------------------

  holdDisk(peer: PeerKey): void {
    this.node(peer).diskHeld = true;
  }

  /** The oldest `count` writes become durable; the disk stays held unless all did. */
  releaseDisk(peer: PeerKey, count = Infinity): void {
    const node = this.node(peer);
    if (count === Infinity) node.diskHeld = false;
    const done = node.writes.splice(0, count);
    for (const write of done) this.#makeDurable(peer, node, write);
    const last = done.at(-1);
    if (last !== undefined) this.step(peer, { kind: "persisted", sequence: last.sequence });
  }

  releaseApply(peer: PeerKey): void {
    const node = this.node(peer);
    node.applyHeld = false;
    this.#pump(peer, node);
  }

  /** A snapshot of the applied state at `index` is durable and the log below it goes. */
  compact(peer: PeerKey, index: number, keepEntries = 0): void {
    const { durable, raft } = this.node(peer);
    durable.snapshot = raft.snapshotMetaAt(index);
    durable.entries = durable.entries.filter((entry) => entry.index > index);
    this.step(peer, { kind: "compact", index, keepEntries });
  }

  // ---- the engine's part ---------------------------------------------------------------------------

  #newRaft(peer: PeerKey, durable: Durable): Raft {
    const { election, limits, seed, admits } = this.options;
    return new Raft({
      peer,
      election: electionConfig(typeof election === "function" ? election(peer) : election),
      random: seededRandom(seed ?? 1).fork(`${peer} ${this.nowMs}`),
      nowMs: this.nowMs,
      ...durable,
      ...admits,
      // Compaction holds nothing back unless a test says so: many are about what was compacted.
      limits: { compactionHoldEntriesMax: 0, ...limits },
    });
  }

  #pump(peer: PeerKey, node: TestNode): void {
    for (let again = true, turns = 0; again; turns++) {
      assert(turns < STEPS_MAX, "a node comes to rest");
      again = false;
      const ready = node.raft.takeReady();
      this.#takeReady(node, ready);
      if (!node.diskHeld && node.writes.length > 0) {
        const writes = node.writes.splice(0);
        for (const write of writes) this.#makeDurable(peer, node, write);
        node.raft.step(this.nowMs, { kind: "persisted", sequence: writes.at(-1)!.sequence });
        again = true;
      }
      if (!node.applyHeld && node.toApply.length > 0) {
        const entries = node.toApply.splice(0);
        node.applied.push(...entries);
        node.raft.step(this.nowMs, { kind: "applied", index: entries.at(-1)!.index });
        again = true;
      }
    }
  }

  #takeReady(node: TestNode, ready: Ready): void {
    const { role, term, peer } = node.raft.status();
    if (role === "leader") {
      const known = this.#leaders.get(term) ?? peer;
      assert(known === peer, "one leader in a term", () => `${known} and ${peer} in term ${term}`);
      this.#leaders.set(term, peer);
    }
    for (const message of ready.messages) this.#send(node, message);
    if (ready.persist !== null) {
      assert(ready.persist.sequence > node.lastSequence, "writes are numbered in order");
      node.lastSequence = ready.persist.sequence;
      node.writes.push(ready.persist);
    }
    for (const entry of ready.committed) this.#checkCommitted(node, entry);
    node.toApply.push(...ready.committed);
    node.events.push(...ready.events);
    node.reads.push(...ready.readStates);
    node.deadlineMs = ready.deadlineMs;
  }

  #checkCommitted(node: TestNode, entry: Entry): void {
    const known = this.#committed.get(entry.index) ?? entry;
    const same = known.term === entry.term && known.type === entry.type && textOf(known) === textOf(entry);
    assert(same, "one committed entry at an index", () => `${entry.index}: terms ${known.term}, ${entry.term}`);
    this.#committed.set(entry.index, entry);
    assert(durableTermAt(node.durable, entry.index) === entry.term, "what is applied is durable here");
  }

  #makeDurable(peer: PeerKey, node: TestNode, write: PersistRequest): void {
    const { durable } = node;
    if (write.snapshot !== null) {
      durable.snapshot = write.snapshot;
      durable.entries = [];
    }
    if (write.hardState !== null) {
      assert(write.hardState.term >= durable.hardState.term, "the durable term never falls");
      durable.hardState = write.hardState;
    }
    for (const entry of write.entries) {
      assert(entry.term <= durable.hardState.term, "the term is durable before any entry of that term");
      durable.entries = durable.entries.filter((kept) => kept.index < entry.index);
      const last = durable.entries.at(-1)?.index ?? durable.snapshot?.index ?? 0;
      assert(entry.index === last + 1, "the durable log has no gap", () => `${peer}: ${entry.index} after ${last}`);
      durable.entries.push(entry);
    }
    for (const message of write.afterSync) this.#send(node, message);
  }

  #send(node: TestNode, message: Message): void {
    const missing = missingFor(node.durable, message);
    assert(missing === null, "no message leaves before what it depends on is durable", () => {
      return `${message.type} of ${message.from} at term ${message.term}: ${missing} is not`;
    });
    node.sent.push(message);
    for (const filter of this.#filters) if (filter(message)) return;
    this.#queue.push(message);
  }
}

/** What of this message's promise is not on the sender's disk; null when all is. */
function missingFor(durable: Durable, message: Message): string | null {
  const { term, vote } = durable.hardState;
  switch (message.type) {
    case "MsgVote":
      if (term < message.term) return "its term";
      return term === message.term && vote !== message.from ? "its vote for itself" : null;
    case "MsgVoteResp":
      if (term < message.term) return "its term";
      return !message.reject && term === message.term && vote !== message.to ? "its vote" : null;
    case "MsgAppResp":
      if (term < message.term) return "its term";
      if (message.reject || message.index === 0) return null;
      return durableTermAt(durable, message.index) === undefined ? `entry ${message.index}` : null;
    case "MsgApp":
    case "MsgHeartbeat":
    case "MsgSnap":
    case "MsgTimeoutNow":
      return term < message.term ? "the leader's term" : null;
    default:
      return null;
  }
}

function durableTermAt({ snapshot, entries }: Durable, index: number): number | undefined {
  if (snapshot !== null && index <= snapshot.index) return snapshot.term;
  return entries.find((entry) => entry.index === index)?.term;
}

function emptyDisk(): Durable {
  return { hardState: { term: 0, vote: null, commit: 0 }, snapshot: null, entries: [] };
}
