// What only a leader has and does: it replicates its log (§5.3), counts copies (§5.4.2), proves by rounds of
// heartbeats that it still leads, and confirms reads with them (§8). It is made when a term is won and dropped,
// whole, when leadership ends, so nothing of it can outlive its term. It changes no term, role or commit index:
// it says what the copies allow, and the step (raft.ts) decides.
//
//   made ──open──▶ its no-op is appended ──committed──▶ reads, membership ──applied──▶ established (design D9)
//
// Invariants:
// - it appends only after its own log, and entries of its own term (§5.3, figure 3);
// - the progress of every member is known, and of everybody who leaves until that is committed;
// - an entry counts here only after our own sync, also when we are alone (trap 25).

import { assert } from "../../kit/assert.ts";
import type { PeerKey } from "../../kit/ids.ts";
import {
  APPEND_ENTRIES_MAX,
  ENTRY_BYTES_MAX,
  ENTRY_OVERHEAD_BYTES,
  PROPOSALS_PER_STEP_MAX,
  SNAPSHOT_RETRY_MS,
  UNHEALTHY_AFTER_HEARTBEATS,
} from "../../kit/limits.ts";
import { CommitWatch } from "./commit-watch.ts";
import { beatIntervalMs, leaseMs } from "../config.ts";
import { Progress } from "./progress.ts";
import { committedIndex, isMember, isVoter, members } from "../membership/quorum.ts";
import { Reads } from "./reads.ts";
import { Rounds } from "./rounds.ts";
import type { ServerState } from "../state.ts";
import { ACCEPTED, refused } from "../step-result.ts";
import type { ClearedDisks, Entry, MsgAppResp, MsgHeartbeatResp, StepResult } from "../types.ts";

const NO_DATA = new Uint8Array(0);

export class Leader {
  readonly state: Readonly<ServerState>;
  /** The no-op with which the term opens: nothing of it counts before this is committed (§5.4.2, §8). */
  readonly openingIndex: number;
  readonly sinceMs: number;
  readonly commits: CommitWatch;
  /** The new disk that an operator wants for a node id, whether or not the old one still answers (design D5). */
  readonly replaceRequested = new Map<string, PeerKey>();
  clearedDisks: ClearedDisks | null = null;
  /** In the order of members(): what is sent in a loop never depends on who joined first. */
  #progress = new Map<PeerKey, Progress>();
  readonly #rounds: Rounds;
  readonly #reads = new Reads();
  #established = false;
  /** TimeoutNow was sent: another may be elected without waiting for our followers (trap 18). */
  #leaseVoid = false;
  #beatDueMs: number;
  /** When followers that have it all are notified of the commit index, if no append tells them before; Infinity: they know. */
  #noticeDueMs = Infinity;

  /** `askedMs`: when the votes were asked for that won the term. */
  constructor(state: Readonly<ServerState>, askedMs: number) {
    this.state = state;
    this.openingIndex = state.log.lastIndex + 1;
    this.sinceMs = state.nowMs;
    this.commits = new CommitWatch(state);
    this.#rounds = new Rounds(askedMs, state.strain);
    this.#beatDueMs = state.nowMs + beatIntervalMs(state.config);
    this.trackMembers();
  }

  open(): void {
    this.append([{ type: "EntryNormal", data: NO_DATA }]);
    this.#startRound();
  }

  /** Whoever waits for a read gets no answer from us any more. */
  close(): void {
    for (const read of this.#reads.drop()) this.state.answerRead(read.from, read.context, 0);
  }

  get progress(): ReadonlyMap<PeerKey, Progress> {
    return this.#progress;
  }

  // ---- the log (§5.3) ------------------------------------------------------------------------------

  propose(data: readonly Uint8Array[]): StepResult {
    if (data.length === 0 || data.length > PROPOSALS_PER_STEP_MAX) {
      return refused("ENTRY_TOO_LARGE", `a proposal has 1 to ${PROPOSALS_PER_STEP_MAX} entries, not ${data.length}`);
    }
    let bytes = 0;
    for (const one of data) {
      bytes += one.length + ENTRY_OVERHEAD_BYTES;
      if (one.length > ENTRY_BYTES_MAX) {
        return refused("ENTRY_TOO_LARGE", `an entry of ${one.length} bytes is above the limit of ${ENTRY_BYTES_MAX}`);
      }
    }
    const uncommitted = this.state.log.uncommittedBytes;
    if (uncommitted > 0 && uncommitted + bytes > this.state.limits.uncommittedBytesMax) {
      const why = `${uncommitted} bytes wait to be committed; retry when followers have caught up`;
      return refused("UNCOMMITTED_LIMIT", why);
    }
    return this.append(data.map((one) => ({ type: "EntryNormal", data: one })));
  }

  /** The leader's own append; what it returns names the last entry. Followers get it with the next Ready. */
  append(entries: readonly Pick<Entry, "type" | "data">[]): StepResult {
    const { log, term, trace } = this.state;
    let index = log.lastIndex;
    log.append(entries.map((entry) => ({ ...entry, term, index: ++index })));
    if (this.state.followLog()) this.trackMembers();
    for (const { type } of entries) if (type === "EntryNormal") trace?.("Replicate", null, null);
    return { ok: true, index, term };
  }

  /** Everything that followers lack and may be sent now. Called before a Ready is taken. */
  sendWhatIsDue(): void {
    const { peer: self, log, limits, nowMs } = this.state;
    // Where too many rounds are unanswered, reads wait for the next answer, or the next beat.
    if (this.#reads.needsRound && this.#rounds.hasRoom) this.#startRound();
    const isNoticeDue = nowMs >= this.#noticeDueMs || limits.commitNoticeMs === 0;
    let isNoticeOwed = false;
    for (const [peer, progress] of this.#progress) {
      if (peer === self) continue;
      while (progress.next <= log.lastIndex && this.#sendAppend(peer, progress)) continue;
      if (progress.state !== "replicate" || progress.isPaused()) continue;
      if (progress.sentCommit >= Math.min(log.commit, progress.match)) continue;
      if (isNoticeDue) this.#sendAppend(peer, progress);
      else isNoticeOwed = true;
    }
    if (!isNoticeOwed) this.#noticeDueMs = Infinity;
    else if (this.#noticeDueMs === Infinity) this.#noticeDueMs = nowMs + limits.commitNoticeMs;
  }

  /** Returns whether something was sent that moved the peer forward. */
  #sendAppend(peer: PeerKey, progress: Progress): boolean {
    if (progress.isPaused()) return false;
    const { log, limits } = this.state;
    const prevIndex = progress.next - 1;
    const prevTerm = log.termAt(prevIndex);
    if (prevTerm === undefined) return this.#sendSnapshot(peer, progress);
    const full = progress.state === "replicate" && progress.inflights.isFull;
    const entries =
      full || progress.next > log.lastIndex ? [] : log.slice(progress.next, limits.appendBytesMax, APPEND_ENTRIES_MAX);
    this.state.send({
      ...this.state.head("MsgApp", peer),
      index: prevIndex,
      logTerm: prevTerm,
      entries,
      commit: log.commit,
      round: this.#rounds.latest,
    });
    const bytes = entries.reduce((sum, entry) => sum + entry.data.length, 0);
    progress.sentEntries(entries.length, bytes, prevIndex + entries.length);
    progress.sentCommit = log.commit;
    return progress.state === "replicate" && entries.length > 0;
  }

  /** The follower lacks entries that are compacted (§7). */
  #sendSnapshot(peer: PeerKey, progress: Progress): boolean {
    const { snapshot, nowMs } = this.state;
    assert(snapshot !== null, "what was compacted is in a snapshot");
    if (progress.unhealthy) return false;
    progress.becomeSnapshot(snapshot.index);
    progress.snapshotSentMs = nowMs;
    this.state.send({ ...this.state.head("MsgSnap", peer), snapshot, round: this.#rounds.latest });
    return false;
  }

  // ---- the followers' answers (§5.3) ---------------------------------------------------------------

  /** Returns whether the follower holds more than was known: then more may be committed. */
  handleAppResp(message: MsgAppResp): boolean {
    const { log } = this.state;
    const progress = this.#progress.get(message.from)!;
    this.#heardFrom(message.from, progress, message.round);
    if (message.reject) {
      let next = message.rejectHint;
      if (message.logTerm > 0) next = log.findConflictByTerm(message.rejectHint, message.logTerm);
      if (progress.maybeDecrementNext(message.index, next)) this.#sendAppend(message.from, progress);
      return false;
    }
    if (!progress.ackTo(message.index)) {
      // No news of the log; but the answer to a probe shows that the follower is there.
      if (progress.state === "probe" && progress.match === message.index) progress.becomeReplicate();
      return false;
    }
    const hasSnapshot = progress.match + 1 >= log.firstIndex || progress.match >= progress.pendingSnapshot;
    if (progress.state === "probe") progress.becomeReplicate();
    else if (progress.state === "snapshot" && hasSnapshot) {
      // Where our log starts above its snapshot by now, the next append sends a newer one.
      progress.becomeProbe();
      progress.becomeReplicate();
    }
    return true;
  }

  handleHeartbeatResp(message: MsgHeartbeatResp): void {
    const progress = this.#progress.get(message.from)!;
    progress.priority = message.priority;
    progress.willing = message.willing;
    progress.diskStalled = message.stalled;
    this.#heardFrom(message.from, progress, message.round);
    progress.resume();
    // An append may have been lost: an empty one finds out where the follower stands.
    if (progress.match < this.state.log.lastIndex || progress.state === "probe")
      this.#sendAppend(message.from, progress);
  }

  #heardFrom(peer: PeerKey, progress: Progress, round: number): void {
    progress.lastContactMs = this.state.nowMs;
    if (progress.unhealthy && !progress.diskStalled) {
      progress.unhealthy = false;
      this.state.outbox.emit({ kind: "follower-recovered", peer });
    }
    if (round <= progress.ackedRound || round > this.#rounds.latest) return;
    progress.ackedRound = round;
    this.#confirmRounds();
  }

  unreachable(peer: PeerKey): void {
    const progress = this.#progress.get(peer);
    if (progress?.state === "replicate") progress.becomeProbe();
  }

  snapshotFailed(peer: PeerKey): void {
    const progress = this.#progress.get(peer);
    if (progress?.state === "snapshot") progress.snapshotFailed();
  }

  // ---- commitment (§5.4.2) -------------------------------------------------------------------------

  /** Returns whether our own disk holds more than was known. */
  ownWriteDone(): boolean {
    return this.#progress.get(this.state.peer)?.ackTo(this.state.log.stable) === true;
  }

  /** The highest index of which a majority holds a copy. */
  copiedIndex(): number {
    return committedIndex(this.state.configuration, this.#matchOf);
  }

  readonly #matchOf = (peer: PeerKey): number => this.#progress.get(peer)?.match ?? 0;

  get committedInTerm(): boolean {
    return this.state.log.commit >= this.openingIndex;
  }

  /** The first entry of the term is committed: reads that waited for that now need a round. */
  termCommitted(): void {
    this.#reads.termCommitted(this.state.log.commit);
  }

  get established(): boolean {
    return this.#established;
  }

  applied(): void {
    const { log, term, outbox } = this.state;
    if (this.#established || log.applied < this.openingIndex) return;
    this.#established = true;
    outbox.emit({ kind: "established", term, index: this.openingIndex });
  }

  // ---- rounds of heartbeats: contact, lease, reads -------------------------------------------------

  get noticeDueMs(): number {
    return this.#noticeDueMs;
  }
  get beatDueMs(): number {
    return this.#beatDueMs;
  }

  /** However late it is: missed beats are merged (trap 29). */
  beat(): void {
    this.#beatDueMs = this.state.nowMs + beatIntervalMs(this.state.config);
    for (const [peer, progress] of this.#progress) if (peer !== this.state.peer) this.#watch(peer, progress);
    this.#startRound();
  }

  #watch(peer: PeerKey, progress: Progress): void {
    const { nowMs, log, config, outbox } = this.state;
    const silentMs = progress.diskStalled ? Infinity : nowMs - progress.lastContactMs;
    if (!progress.unhealthy && silentMs > UNHEALTHY_AFTER_HEARTBEATS * config.heartbeatIntervalMs) {
      progress.unhealthy = true;
      outbox.emit({ kind: "follower-unresponsive", peer });
    }
    const caughtUp = !progress.unhealthy && progress.match >= progress.commitAtBeat;
    progress.commitAtBeat = log.commit;
    if (!caughtUp) progress.caughtUpSinceMs = Infinity;
    else progress.caughtUpSinceMs = Math.min(progress.caughtUpSinceMs, nowMs);
    if (progress.state === "snapshot" && nowMs - progress.snapshotSentMs >= SNAPSHOT_RETRY_MS)
      progress.snapshotFailed();
  }

  #startRound(): void {
    const { peer: self, nowMs, log } = this.state;
    const round = this.#rounds.start(nowMs);
    this.#reads.roundStarted(round);
    for (const [peer, progress] of this.#progress) {
      if (peer === self) continue;
      const commit = Math.min(progress.match, log.commit);
      const announced = this.committedInTerm ? log.commit : 0;
      const echo = progress.ackedRound;
      this.state.send({ ...this.state.head("MsgHeartbeat", peer), commit, announced, echo, round });
    }
    this.#confirmRounds();
  }

  #confirmRounds(): void {
    const round = committedIndex(this.state.configuration, this.#roundOf);
    if (!this.#rounds.confirm(round, this.state.nowMs)) return;
    for (const read of this.#reads.confirmed(round)) this.state.answerRead(read.from, read.context, read.index);
  }

  readonly #roundOf = (peer: PeerKey): number =>
    peer === this.state.peer ? this.#rounds.latest : (this.#progress.get(peer)?.ackedRound ?? 0);

  /** A majority is known to have been in contact no longer ago than this. */
  get quorumContactMs(): number {
    return this.#rounds.confirmedSentMs;
  }

  get quorumLostAtMs(): number {
    return this.state.quorumLostAtMs(this.#rounds.confirmedSentMs);
  }

  get leaseUntilMs(): number {
    if (!this.state.config.enableLease || this.#leaseVoid || this.#rounds.confirmed === 0) return 0;
    return this.#rounds.confirmedSentMs + leaseMs(this.state.config);
  }

  registerRead(from: PeerKey | null, context: number): StepResult {
    const { nowMs, log } = this.state;
    if (this.#reads.isFull)
      return refused("READS_LIMIT", "too many reads wait for their confirmation; retry in a moment");
    if (!this.committedInTerm) this.#reads.addBeforeTerm({ context, from });
    else if (nowMs < this.leaseUntilMs) this.state.answerRead(from, context, log.commit);
    else this.#reads.add({ context, from }, log.commit);
    return ACCEPTED;
  }

  // ---- who is replicated to (§6) -------------------------------------------------------------------

  trackMembers(): void {
    const { state } = this;
    const before = this.#progress;
    this.#progress = new Map();
    const { inflightMessagesMax: messagesMax, inflightBytesMax: bytesMax } = state.limits;
    // Who leaves is served until the change is committed; it is not counted any more.
    const leaving = members(state.committedConfiguration);
    for (const peer of [...new Set([...members(state.configuration), ...leaving])].sort()) {
      const one =
        before.get(peer) ??
        new Progress({ next: this.openingIndex, nowMs: state.nowMs, inflightLimits: { messagesMax, bytesMax } });
      if (peer === state.peer) one.ackTo(state.log.stable);
      this.#progress.set(peer, one);
    }
  }

  /** Whoever leaves hears of it before nobody speaks to it any more; when it is we who leave, everybody does. */
  configurationCommitted(): void {
    const { peer: self, configuration } = this.state;
    const leads = isVoter(configuration, self);
    for (const [peer, progress] of this.#progress) {
      if (peer !== self && !(leads && isMember(configuration, peer))) this.#sendAppend(peer, progress);
    }
    this.trackMembers();
  }

  /** Below this a healthy follower that is being caught up would need another snapshot. */
  get neededFrom(): number {
    const others = [...this.#progress].filter(([peer, { unhealthy }]) => peer !== this.state.peer && !unhealthy);
    return Math.min(
      ...others.map(([, { state, match, pendingSnapshot }]) => (state === "snapshot" ? pendingSnapshot : match)),
    );
  }

  // ---- who may lead next (thesis §3.10) ------------------------------------------------------------

  /** The healthy and willing voter with the longest log; of several, the preferred one. */
  bestTarget(): PeerKey | null {
    let best: PeerKey | null = null;
    for (const peer of this.state.configuration.voters) {
      const one = this.#progress.get(peer)!;
      if (peer === this.state.peer || one.unhealthy || !one.willing) continue;
      const other = best === null ? null : this.#progress.get(best)!;
      const ahead = other === null || one.match > other.match;
      if (ahead || (one.match === other.match && one.priority > other.priority)) best = peer;
    }
    return best;
  }

  sendTimeoutNow(target: PeerKey, force: boolean, attempt = 0): void {
    this.#leaseVoid = true;
    this.state.send({ ...this.state.head("MsgTimeoutNow", target), force, attempt });
  }

  /** We are being removed: who has our whole log need not wait for its timeout. */
  appointHeir(): void {
    const heir = this.bestTarget();
    if (heir !== null && this.#progress.get(heir)!.match === this.state.log.lastIndex) this.sendTimeoutNow(heir, false);
  }
}
