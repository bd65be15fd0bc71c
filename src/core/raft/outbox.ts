// What may leave when. A step puts into it; a Ready takes out of it.
//
//   send ──▶ messages ─────────────────────────────▶ leave at once
//        └─▶ afterSync ──(with the next write)──▶ persist request ──(durable)──▶ leave
//
// The contract: no message leaves before what it depends on is durable. A vote, a request for votes (which
// names our new term and log) and every answer about our log depend on the disk: they wait in `afterSync`
// for the write that is handed out with them and all before it. The rest promises nothing that a crash
// could take back, and leaves at once: the leader replicates while its own disk writes.
//
// Invariants: requests are numbered from 1 without a gap, and become durable in that order. While nothing is
// pending, the durable term and vote are those that were last handed out.

import { assert, assertNever } from "../kit/assert.ts";
import type { PeerKey } from "../kit/ids.ts";
import type { RaftLog } from "./log.ts";
import type { HardState, Message, PersistRequest, RaftEvent, ReadState, SnapshotMeta } from "./types.ts";

interface PendingWrite {
  readonly sequence: number;
  readonly issuedMs: number;
  readonly term: number;
  readonly vote: PeerKey | null;
}

export class Outbox {
  #messages: Message[] = [];
  #afterSync: Message[] = [];
  #events: RaftEvent[] = [];
  #readStates: ReadState[] = [];
  #restore: SnapshotMeta | null = null;
  #sequence = 0;
  #writes: PendingWrite[] = [];
  #durableTerm: number;
  #durableVote: PeerKey | null;
  #handedHardState: HardState;

  /** `hardState`: what is on disk. */
  constructor(hardState: HardState) {
    this.#durableTerm = hardState.term;
    this.#durableVote = hardState.vote;
    this.#handedHardState = hardState;
  }

  send(message: Message): void {
    switch (message.type) {
      case "MsgVote":
      case "MsgVoteResp":
      case "MsgAppResp":
        this.#afterSync.push(message);
        return;
      case "MsgApp":
      case "MsgHeartbeat":
      case "MsgHeartbeatResp":
      case "MsgSnap":
      case "MsgPreVote":
      case "MsgPreVoteResp":
      case "MsgTimeoutNow":
      case "MsgTransferRefused":
      case "MsgReadIndex":
      case "MsgReadIndexResp":
      case "MsgAskMembers":
      case "MsgMembers":
        this.#messages.push(message);
        return;
      default:
        assertNever(message, "Outbox.send");
    }
  }

  emit(event: RaftEvent): void {
    this.#events.push(event);
  }

  answerRead(read: ReadState): void {
    this.#readStates.push(read);
  }

  /** The log was replaced by this snapshot: the next write begins with it. */
  restore(snapshot: SnapshotMeta): void {
    this.#restore = snapshot;
  }

  takePersist(log: RaftLog, term: number, vote: PeerKey | null, nowMs: number): PersistRequest | null {
    const entries = log.takeUnstable();
    const snapshot = this.#restore;
    const before = this.#handedHardState;
    const promised = before.term !== term || before.vote !== vote;
    // The commit index alone is not worth a write: it only says where a restart may begin to apply.
    const hasData = entries.length > 0 || snapshot !== null || promised;
    const afterSync = this.#afterSync;
    this.#afterSync = [];
    this.#restore = null;
    if (!hasData && this.#writes.length === 0) {
      // Everything we ever handed out is durable, and so is what these messages depend on.
      assert(this.isDurable(term, vote), "no message leaves before what it depends on is durable");
      for (const message of afterSync) this.#messages.push(message);
      return null;
    }
    if (!hasData && afterSync.length === 0) return null;
    // It never covers the entries of its own write. They are after it in the log on disk: if a crash tore
    // them off, it would vouch for what they were to replace (docs/decisions/0006-commit-on-disk.md).
    const commit = Math.min(log.commit, (entries[0]?.index ?? Infinity) - 1);
    const hardState: HardState = { term, vote, commit };
    const sequence = ++this.#sequence;
    this.#writes.push({ sequence, issuedMs: nowMs, term, vote });
    if (snapshot !== null) log.writeIssued(sequence, snapshot.index);
    if (entries.length > 0) log.writeIssued(sequence, log.lastIndex);
    if (hasData) this.#handedHardState = hardState;
    return { sequence, snapshot, hardState: hasData ? hardState : null, entries, mustSync: hasData, afterSync };
  }

  /** After takePersist, which knows what need not wait. */
  takeMessages(): readonly Message[] {
    const taken = this.#messages;
    this.#messages = [];
    return taken;
  }

  takeReadStates(): readonly ReadState[] {
    const taken = this.#readStates;
    this.#readStates = [];
    return taken;
  }

  takeEvents(): readonly RaftEvent[] {
    const taken = this.#events;
    this.#events = [];
    return taken;
  }

  /** Every request up to `sequence` is durable. */
  persisted(sequence: number): void {
    assert(sequence <= this.#sequence, "only what was handed out becomes durable");
    // In one go: taken off one by one, the queue of a disk that hung cost half a second.
    const done = this.#writes.splice(0, sequence - (this.#writes[0]?.sequence ?? Infinity) + 1).at(-1);
    if (done === undefined) return;
    this.#durableTerm = done.term;
    this.#durableVote = done.vote;
  }

  isDurable(term: number, vote: PeerKey | null): boolean {
    return this.#durableTerm === term && this.#durableVote === vote;
  }

  /** Since when the oldest write has been under way; Infinity when none is. */
  get writingSinceMs(): number {
    return this.#writes.length === 0 ? Infinity : this.#writes[0]!.issuedMs;
  }
}
