// What every server has, whatever its role: the state of figure 2 of the paper, the configurations that follow
// from its log, and the way out. The step (raft.ts) owns it and alone changes time, term, vote, role and leader;
// those who act for it (admission, patience, leader, transfer) see these read-only, and none of them has a copy.
//
// Invariants:
// - term and vote are persistent: the outbox lets nobody hear of them before they are durable;
// - the effective configuration is that of the latest entry in the log that brings one (§6).

import { assert } from "../kit/assert.ts";
import type { PeerKey } from "../kit/ids.ts";
import { DISK_HUNG_TIMEOUTS } from "../kit/limits.ts";
import type { ElectionConfig } from "./config.ts";
import { configurationBehind, Configurations } from "./membership/configurations.ts";
import { RaftLog } from "./log.ts";
import { emptyConfiguration } from "./membership/membership.ts";
import { RAFT_LIMITS, type RaftLimits, type RaftOptions, type Trace } from "./options.ts";
import { Outbox } from "./outbox.ts";
import { Strain } from "./strain.ts";
import { SEND_NAMES } from "./trace.ts";
import type { Configuration, Message, Role, SnapshotMeta } from "./types.ts";

export class ServerState {
  readonly peer: PeerKey;
  readonly config: ElectionConfig;
  readonly limits: RaftLimits;
  readonly trace: Trace | undefined;
  readonly log: RaftLog;
  readonly outbox: Outbox;
  readonly strain: Strain;
  nowMs: number;
  term: number;
  vote: PeerKey | null;
  role: Role = "follower";
  /** Whom this server follows in its term; itself when it leads. */
  leader: PeerKey | null = null;
  /** Whether this server may lead; its owner says so. */
  willing = true;
  #snapshot: SnapshotMeta | null;
  #configurations: Configurations;

  constructor(options: RaftOptions, trace: Trace | undefined) {
    const { hardState, snapshot } = options;
    this.peer = options.peer;
    this.config = options.election;
    this.limits = { ...RAFT_LIMITS, ...options.limits };
    this.trace = trace;
    this.nowMs = options.nowMs;
    this.term = hardState.term;
    this.vote = hardState.vote;
    this.outbox = new Outbox(hardState);
    this.strain = new Strain(this.config);
    this.#snapshot = snapshot;
    this.#configurations = configurationsFrom(snapshot);
    this.log = new RaftLog(snapshot, options.entries);
    assert(this.log.lastTerm <= this.term, "the term is on disk before any entry of that term");
    this.followLog();
  }

  send(message: Message): void {
    if (this.trace !== undefined) {
      const name = SEND_NAMES[message.type];
      if (name !== undefined) this.trace(name, message, null);
    }
    this.outbox.send(message);
  }

  /** What every message begins with. */
  head<T extends Message["type"]>(type: T, to: PeerKey): { type: T; from: PeerKey; to: PeerKey; term: number } {
    return { type, from: this.peer, to, term: this.term };
  }

  /** `from`: the follower that asked, or null for a read of this node. Index 0 says that there is no answer: ask again. */
  answerRead(from: PeerKey | null, context: number, index: number): void {
    if (from === null) this.outbox.answerRead({ context, index });
    else this.send({ ...this.head("MsgReadIndexResp", from), context, index });
  }

  /** Our oldest write has been under way for so long that nobody should count on us: no vote of ours leaves before it is done. */
  get diskStalled(): boolean {
    return this.nowMs >= this.outbox.writingSinceMs + this.config.electionTimeoutMaxMs + this.strainMs;
  }

  /**
   * When a leader takes its disk for hung and gives up (trap 30). Where nobody else can lead it does not: who waits would
   * only be told "unknown".
   */
  get leaderStalledAtMs(): number {
    if (!this.#mayOthersLead) return Infinity;
    return this.outbox.writingSinceMs + DISK_HUNG_TIMEOUTS * this.config.electionTimeoutMaxMs;
  }

  /** By how much it waits longer than configured: for a leader to speak, a quorum to answer, a follower's write to end. */
  get strainMs(): number {
    return this.strain.at(this.nowMs);
  }

  /** When a leader gives up that heard of a quorum then. A sole voter that was held up has lost nothing. */
  quorumLostAtMs(contactMs: number): number {
    return this.#mayOthersLead ? contactMs + this.config.electionTimeoutMaxMs + this.strainMs : Infinity;
  }

  /** There is another voter. */
  get #mayOthersLead(): boolean {
    const { voters, votersOutgoing } = this.configuration;
    return voters.length + votersOutgoing.length > 1;
  }

  /** The latest one in the log: what counts (§6). */
  get configuration(): Configuration {
    return this.#configurations.effective;
  }

  get committedConfiguration(): Configuration {
    return this.#configurations.at(this.log.commit);
  }

  /** The indexes of the entries that brought them. */
  get configurationIndex(): number {
    return this.#configurations.effectiveIndex;
  }

  get committedConfigurationIndex(): number {
    return this.#configurations.indexAt(this.log.commit);
  }

  /** Of the committed configuration, or of one that follows it in our log. */
  hasMember(peer: PeerKey): boolean {
    return this.#configurations.hasMember(peer, this.log.commit);
  }

  /** It was a member, and its removal is committed. */
  wasRemoved(peer: PeerKey): boolean {
    return this.committedConfiguration.removed?.includes(peer) === true && !this.hasMember(peer);
  }

  configurationAt(index: number): Configuration {
    return this.#configurations.at(index);
  }

  /** The same, or the oldest one that is kept. */
  configurationFrom(index: number): Configuration {
    return this.#configurations.at(Math.max(index, this.#configurations.oldestIndex));
  }

  /**
   * Brings the effective configuration to where the log is: what was appended counts, what was replaced does
   * not. Returns whether the log brought one.
   */
  followLog(): boolean {
    this.#configurations.dropReplaced((index) => this.log.termAt(index));
    const changes = this.log.confChangesAfter(this.#configurations.effectiveIndex);
    for (const entry of changes) {
      this.#configurations.append(entry.index, entry.term, configurationBehind(this.configuration, entry));
    }
    return changes.length > 0;
  }

  /** The latest one: what a follower gets that lacks compacted entries (§7). */
  get snapshot(): SnapshotMeta | null {
    return this.#snapshot;
  }

  /** What a snapshot of the applied state at `index` must say about the log. */
  snapshotMetaAt(index: number): SnapshotMeta {
    const term = this.log.termAt(index);
    assert(term !== undefined && index <= this.log.applied, "a snapshot covers applied entries");
    return { index, term, configuration: this.#configurations.at(index) };
  }

  /** How many of so many entries up to `index` may be kept below a snapshot of it: they lie in memory. */
  keepable(index: number, entries: number): number {
    return this.log.entriesWithin(index, this.limits.compactionKeptBytesMax, entries);
  }

  /** A snapshot at `index` is durable: the log below it, less `keepEntries` where there is room for them, goes. */
  compact(index: number, keepEntries: number): void {
    this.#snapshot = this.snapshotMetaAt(index);
    this.log.compact(index - this.keepable(index, Math.min(index, keepEntries)));
    this.#configurations.compact(this.log.firstIndex - 1);
  }

  /** The log is replaced by the leader's snapshot, and the configuration with it (trap 27). */
  restore(snapshot: SnapshotMeta): void {
    this.log.restore(snapshot);
    this.#snapshot = snapshot;
    this.#configurations = configurationsFrom(snapshot);
    this.outbox.restore(snapshot);
  }
}

function configurationsFrom(snapshot: SnapshotMeta | null): Configurations {
  if (snapshot === null) return new Configurations(0, 0, emptyConfiguration());
  return new Configurations(snapshot.index, snapshot.term, snapshot.configuration);
}
