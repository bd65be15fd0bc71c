// The production loop around the Raft core: step, then do what the Ready says, in the order it demands.
// Only port implementations differ between production and the simulator.
//
//   inputs (wire, timer, callers) ─▶ raft.step ─┐
//        ┌──────────────────────────────────────┘ one turn later, so that a burst becomes one Ready
//        ▼
//   takeReady ─▶ send `messages` ─▶ queue `persist` ─▶ restore, apply `committed` ─▶ events ─▶ arm the timer
//                                       │
//             writer, one at a time: everything queued while the last sync ran is one write and one sync
//             (group commit) ─▶ send `afterSync` ─▶ step `persisted`
//
// States: running ─▶ stopped | failed. After `failed` nothing leaves any more: a disk that failed to sync
// may have lost what we are about to promise (trap 23), and a violated invariant means that we no longer
// know what is true. The owner of the process ends it.

import type { PeerKey } from "../core/kit/ids.ts";
import { APPLY_BYTES_MAX, LOOP_STALL_MS, PENDING_PROPOSALS_MAX } from "../core/kit/limits.ts";
import {
  electionConfig,
  Raft,
  type ConfChange,
  type ElectionConfig,
  type Entry,
  type Input,
  type Message,
  type PersistRequest,
  type RaftEvent,
  type RaftStatus,
  type SnapshotMeta,
  type StepResult,
  type TransferResult,
} from "../core/raft/index.ts";
import type { Clock } from "../ports/clock.ts";
import type { FollowerView, Lead, Members, ProposeOutcome, Proposals } from "../ports/consensus.ts";
import type { EngineStats } from "../ports/server-stats.ts";
import type { Wire } from "../ports/peers/wire.ts";
import { Alarm } from "./alarm.ts";
import { newCounts, type EngineOptions } from "./engine-options.ts";
import { sealEnvelope } from "./envelope.ts";
import { Intake } from "./intake.ts";
import { SnapshotSender } from "./snapshot-sender.ts";
import { Snapshots } from "./snapshots.ts";
import { Slices } from "./storage-slices.ts";
import { Storage, type Opened } from "./storage.ts";
import { EngineMeter } from "./meter.ts";
import { OwnSnapshots } from "./own-snapshots.ts";
import { Turns } from "./turns.ts";
import { Waiters } from "./waiters.ts";

export class Engine implements Proposals, Lead, Members {
  readonly peer: PeerKey;
  readonly recovery: Opened["recovery"];
  readonly clearDisks: Members["clearDisks"] = (cleared) => void this.#input({ kind: "clear-disks", cleared });
  readonly counts = newCounts();
  readonly #options: EngineOptions;
  readonly #clock: Clock;
  readonly #storage: Storage;
  readonly #raft: Raft;
  readonly #wire: Wire;
  readonly #snapshots: Snapshots;
  readonly #snapshotSender: SnapshotSender;
  readonly #own: OwnSnapshots;
  readonly #waiters: Waiters;
  readonly #listeners = new Set<(event: RaftEvent) => void>();
  readonly #intake: Intake;
  readonly #alarm: Alarm;
  readonly #turns: Turns;
  readonly #meter = new EngineMeter();

  #state: "running" | "stopped" | "failed" = "running";
  #writeQueue: PersistRequest[] = [];
  #writing = false;

  static async start(options: EngineOptions): Promise<Engine> {
    const election = electionConfig(options.election);
    const opened = await Storage.open(options);
    try {
      return new Engine(options, election, opened);
    } catch (error) {
      await opened.storage.close();
      throw error;
    }
  }

  private constructor(options: EngineOptions, election: ElectionConfig, opened: Opened) {
    this.#options = options;
    this.#clock = options.clock;
    this.#alarm = new Alarm(options.clock, (lateMs) => this.#timePassed(lateMs));
    this.#turns = new Turns(options.clock, () => this.#turn());
    const snapshots = (this.#snapshots = new Snapshots(options.snapshots ?? {}, options.digest, options.stateMachine));
    const isRunning = (): boolean => this.#state === "running";
    const failed = this.#fail.bind(this);
    const slices = new Slices(options.clock, isRunning, failed);
    const storage = (this.#storage = opened.storage);
    const around = { ...options, storage, snapshots, slices, isRunning, failed, counts: this.counts };
    this.#intake = new Intake({ ...around, heard: (message) => this.#input({ kind: "message", message }) });
    this.peer = opened.peer;
    this.recovery = opened.recovery;
    this.#waiters = new Waiters(opened.peer, options.random.fork("read-contexts"));
    if (opened.snapshot !== null) {
      options.stateMachine.restore(opened.snapshot.data);
      this.#snapshots.keep(opened.snapshot.meta, opened.snapshot.data);
    }
    this.#raft = new Raft({
      ...options,
      peer: opened.peer,
      election,
      nowMs: this.#clock.monotonicMs(),
      hardState: opened.hardState,
      snapshot: opened.snapshot === null ? null : opened.snapshot.meta,
      entries: opened.entries,
    });
    this.#own = new OwnSnapshots({
      ...around,
      capture: () => {
        const meta = this.#raft.snapshotMetaAt(this.#raft.status().applied);
        return { meta, data: options.stateMachine.snapshot() };
      },
      keepable: (index, entries) => this.#raft.keepable(index, entries),
      saved: (index, keepEntries) => {
        this.counts.snapshotsSaved++;
        this.#input({ kind: "compact", index, keepEntries });
      },
    });
    this.#wire = options.connect(opened.peer);
    this.#snapshotSender = new SnapshotSender({
      ...around,
      wire: this.#wire,
      isGone: (peer) => this.#input({ kind: "snapshot-failed", peer }),
    });
    this.#wire.start({
      message: (from, bytes) => this.#message(from, bytes),
      peerSeen: (peer) => this.#input({ kind: "peer-seen", peer }),
      peerGone: (peer) => this.#input({ kind: "peer-gone", peer }),
      isRemoved: (peer) => this.#raft.wasRemoved(peer),
      removedBy: (by) => this.#input({ kind: "removed", by }),
    });
    this.#turn();
  }

  // ---- what callers may ask (ports/consensus.ts) ---------------------------------------------------

  propose(data: readonly Uint8Array[]): Promise<ProposeOutcome> {
    return this.#submit({ kind: "propose", data });
  }

  changeMembership(change: ConfChange): Promise<ProposeOutcome> {
    return this.#submit({ kind: "conf-change", change });
  }

  replace(nodeId: string): StepResult {
    return this.#input({ kind: "replace", nodeId });
  }

  async readIndex(timeoutMs: number): Promise<number | null> {
    const read = this.#waiters.read();
    if (read === null) return null;
    const giveUp = (): void => this.#waiters.giveUpRead(read.context);
    const asked = this.#input({ kind: "read-index", context: read.context });
    if (!asked.ok) giveUp();
    const timer = this.#clock.setTimer(this.#clock.monotonicMs() + timeoutMs, giveUp);
    const index = await read.answer;
    timer.cancel();
    return index;
  }

  transfer(target: PeerKey | null, force = false): Promise<TransferResult> {
    const started = this.#input({ kind: "transfer", target, force });
    if (started.ok) return this.#waiters.transfer();
    const { message } = started;
    const [oldLeaderId, newLeaderId] = [this.peer, this.status().leader];
    return Promise.resolve({ success: false, isUnknown: false, message, oldLeaderId, newLeaderId });
  }

  setWilling(willing: boolean): void {
    this.#input({ kind: "willing", willing });
  }

  stepDown(): void {
    this.#input({ kind: "step-down" });
  }

  reelect(): StepResult {
    return this.#input({ kind: "reelect" });
  }

  readonly followerOf = (peer: PeerKey): FollowerView | null => this.#raft.progressOf(peer) ?? null;
  readonly membersKnownTo = (peer: PeerKey): readonly PeerKey[] => this.#raft.membersKnownTo(peer);

  subscribe(listener: (event: RaftEvent) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  stats(): EngineStats {
    return { ...this.#meter.snapshot(), ...this.counts, strainMs: this.status().strainMs };
  }

  campaign(): StepResult {
    return this.#input({ kind: "campaign" });
  }

  /** Of the applied state, now; resolves when it is durable. */
  saveSnapshot(): Promise<void> {
    return this.#own.saveNow(this.status().applied);
  }

  get snapshot(): Snapshots["newest"] {
    return this.#snapshots.newest;
  }

  /** The newest durable snapshot, as a file; null where there is none. */
  newestSnapshot(): ReturnType<Storage["readSnapshotFile"]> {
    return this.#storage.readSnapshotFile();
  }

  status(): RaftStatus {
    return this.#raft.status();
  }

  get raft(): Pick<Raft, "status" | "termAt" | "entryAt" | "progressOf" | "refusals"> {
    return this.#raft;
  }

  /**
   * From this call on nothing is sent, and who waits is notified that the outcome is unknown. Resolves when the last
   * write is over and the directory is free for another engine. Safe to call twice.
   */
  stop(): Promise<void> {
    if (this.#state === "running") this.#end("stopped");
    return this.#storage.close();
  }

  // ---- inputs --------------------------------------------------------------------------------------

  #message(from: PeerKey, bytes: Uint8Array): void {
    if (this.#state !== "running") return;
    this.#intake.take(from, bytes, this.#writeQueue.length, this.#clock.monotonicMs());
  }

  #input(input: Input): StepResult {
    if (this.#state !== "running") return { ok: false, code: "NOT_LEADER", message: "this node is stopping" };
    try {
      return this.#step(input);
    } catch (error) {
      this.#fail(error);
      return { ok: false, code: "NOT_LEADER", message: "this node has failed" };
    }
  }

  #step(input: Input): StepResult {
    const result = this.#raft.step(this.#clock.monotonicMs(), input);
    this.#turns.soon();
    return result;
  }

  #submit(input: Input): Promise<ProposeOutcome> {
    if (!this.#waiters.hasRoomForProposal) {
      const message = `${PENDING_PROPOSALS_MAX} proposals wait to be committed; retry in a moment`;
      return Promise.resolve(this.#meter.refused({ outcome: "refused", code: "UNCOMMITTED_LIMIT", message }));
    }
    const result = this.#input(input);
    if (result.ok) return this.#measured(this.#waiters.proposal(result.index, result.term));
    return Promise.resolve(this.#meter.refused({ outcome: "refused", code: result.code, message: result.message }));
  }

  async #measured(proposal: Promise<ProposeOutcome>): Promise<ProposeOutcome> {
    const startedMs = this.#clock.monotonicMs();
    const outcome = await proposal;
    this.#meter.settled(outcome.outcome, this.#clock.monotonicMs() - startedMs);
    return outcome;
  }

  // ---- the turn ------------------------------------------------------------------------------------

  #turn(): void {
    try {
      let appliedBytes = 0;
      while (this.#state === "running" && appliedBytes < APPLY_BYTES_MAX) {
        const bytes = this.#handleReady();
        if (bytes === null) return;
        appliedBytes += bytes;
      }
      if (this.#state === "running") this.#turns.later();
    } catch (error) {
      this.#fail(error);
    }
  }

  /** What was applied, in bytes: then there may be more. Null: there was nothing to apply. */
  #handleReady(): number | null {
    const ready = this.#raft.takeReady();
    for (const message of ready.messages) this.#send(message);
    if (ready.persist !== null) {
      if (ready.persist.snapshot !== null) this.#restore(ready.persist.snapshot, ready.persist.sequence);
      this.#writeQueue.push(ready.persist);
      this.#writeSoon();
    }
    this.#snapshots.clearOffers();
    this.#apply(ready.committed);
    for (const event of ready.events) this.#event(event);
    for (const read of ready.readStates) this.#waiters.readAnswered(read, this.#raft.status().applied);
    if (this.#state === "running") this.#alarm.arm(ready.deadlineMs);
    return ready.committed.length === 0 ? null : ready.committed.reduce((sum, { data }) => sum + data.length, 0);
  }

  /** Who is notified of an event, or applies an entry, may stop us in the middle of a Ready. */
  #send(message: Message): void {
    if (this.#state !== "running") return;
    if (message.type === "MsgSnap") return this.#snapshotSender.send(message);
    const { clusterId, digest } = this.#options;
    this.#wire.send(message.to, sealEnvelope(message, clusterId, null, digest));
  }

  #apply(entries: readonly Entry[]): void {
    const last = entries.at(-1);
    if (last === undefined) return;
    const { stateMachine } = this.#options;
    const results = entries.map((one) => (isForMachine(one) ? stateMachine.apply(one) : undefined));
    this.#raft.step(this.#clock.monotonicMs(), { kind: "applied", index: last.index });
    for (const [at, { index, term }] of entries.entries()) this.#waiters.applied(index, term, results[at]);
    this.#waiters.reached(last.index);
    if (this.#snapshots.isDueAfter(entries)) this.#own.save();
  }

  #event(event: RaftEvent): void {
    if (event.kind === "role" && event.role !== "leader") this.#waiters.leadershipLost();
    if (event.kind === "transfer") this.#waiters.transferEnded(event.result);
    this.#options.onEvent?.(event);
    for (const listener of this.#listeners) listener(event);
  }

  #timePassed(lateMs: number): void {
    if (lateMs >= LOOP_STALL_MS) this.counts.stalls++;
    this.#input({ kind: "time" });
  }

  // ---- the writer ----------------------------------------------------------------------------------

  #writeSoon(): void {
    if (!this.#writing) this.#write().catch((error: unknown) => this.#fail(error));
  }

  async #write(): Promise<void> {
    this.#writing = true;
    while (this.#state === "running" && this.#writeQueue.length > 0) await this.#writeGroup(this.#takeGroup());
    // In the same turn as the last look at the queue: what comes between the two would wait for ever.
    this.#writing = false;
  }

  /** Everything that waits, but at most one snapshot, which comes first: it replaces all before it. */
  #takeGroup(): readonly PersistRequest[] {
    const end = this.#writeQueue.findIndex((request, at) => at > 0 && request.snapshot !== null);
    return this.#writeQueue.splice(0, end < 0 ? this.#writeQueue.length : end);
  }

  async #writeGroup(group: readonly PersistRequest[]): Promise<void> {
    const { sequence } = group[0]!;
    const snapshotData = this.#snapshots.takeAccepted(sequence);
    const startedMs = this.#clock.monotonicMs();
    await this.#storage.persist(group, snapshotData);
    if (this.#state !== "running") return;
    this.counts.persisted += group.length;
    if (group.some((request) => request.mustSync)) {
      this.counts.syncs++;
      this.#meter.synced(this.#clock.monotonicMs() - startedMs);
    }
    for (const request of group) for (const message of request.afterSync) this.#send(message);
    this.#input({ kind: "persisted", sequence: group.at(-1)!.sequence });
  }

  // ---- snapshots -----------------------------------------------------------------------------------

  #restore(meta: SnapshotMeta, sequence: number): void {
    this.#options.stateMachine.restore(this.#snapshots.accept(meta, sequence));
    this.counts.snapshotsRestored++;
    this.#waiters.reached(meta.index);
  }

  // ---- the end -------------------------------------------------------------------------------------

  /** What fails after `stop` was promised to nobody. */
  #fail(error: unknown): void {
    if (this.#state !== "running") return;
    this.#end("failed");
    this.#options.onFatal(error);
  }

  #end(state: "stopped" | "failed"): void {
    this.#state = state;
    this.#alarm.cancel();
    this.#turns.cancel();
    this.#wire.stop();
    this.#waiters.close();
  }
}

function isForMachine({ type, data }: Entry): boolean {
  return type === "EntryNormal" && data.length > 0;
}
