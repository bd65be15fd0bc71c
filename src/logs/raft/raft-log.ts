// The log on Raft: an epoch is a Raft term, `open` and `append` are entries, and the same fold runs on every node.
//
//   append ─▶ leader of this term, and after our last append? ─▶ propose ─▶ committed: did `apply` take it?
//                │ no: fenced, or refused                           ├─ refused: nothing was written
//                ▼                                                  └─ unknown
//
// Invariants:
// - `apply` depends on the entries alone, so positions and states are equal on all nodes. It takes an append only if its
//   epoch is the fence's and it lies directly after the head; all else changes nothing.
// - A leader's term ends with its leadership, and terms stand in the log in ascending order. So what was refused once with
//   an epoch that is over stays refused (`fenced`), also when this node leads again.
// - What `apply` can't read it ignores and counts: no node takes it. An entry of a later format is different, others have
//   taken it: `apply` throws FORMAT_UNSUPPORTED, and the engine ends this node before its state is another one.
// - An epoch is opened with the position of the leader's head. A node that has another one has missed something, or the
//   leader has: it stops (CHAIN_BROKEN), for it would ignore what others apply, or lead from where it is.
// - The fold has applied a record before subscribers are notified of it.

import { assert, assertNever } from "../../core/kit/assert.ts";
import { TenureError } from "../../core/kit/errors.ts";
import { ENTRY_BYTES_MAX } from "../../core/kit/limits.ts";
import type { Lead, ProposeOutcome, Proposals } from "../../ports/consensus.ts";
import type { Fold, Log, LogAppended, LogHead, LogOpened, LogRecord } from "../../ports/log.ts";
import type { SnapshotData, StateMachine } from "../../ports/state-machine.ts";
import { BATCH_RECORDS_MAX } from "../limits.ts";
import { type FeedBounds, RecordFeed } from "../record-feed.ts";
import { misplaced, notOpened, tooLarge } from "../refusals.ts";
import {
  appendBytes,
  decodeEntry,
  decodeSnapshot,
  encodeEntry,
  encodeSnapshot,
  laterVersion,
  type LogEntry,
  snapshotPieces,
} from "./entry-codec.ts";

export interface RaftLogOptions {
  readonly fold: Fold;
  /** Used after the engine was made, which has this log as its state machine. */
  readonly proposals: Proposals;
  readonly lead: Pick<Lead, "status">;
  readonly kept?: FeedBounds | undefined;
}

export interface RaftLogCounts {
  /** Records that were applied in this life. */
  applied: number;
  /** Entries that could be read, and were not taken: of an epoch that is over, or not after the head. */
  ignored: number;
  malformed: number;
}

/** The end of what this node has appended, acknowledged or not, in the epoch that it has opened. */
interface Tail {
  readonly epoch: number;
  position: number;
  /** Grows whenever appends are given up, so that a late refusal of one of them changes nothing any more. */
  revision: number;
}

const NOT_TAKEN = -1;

export class RaftLog implements Log, StateMachine {
  readonly counts: RaftLogCounts = { applied: 0, ignored: 0, malformed: 0 };
  readonly #options: RaftLogOptions;
  readonly #fold: Fold;
  readonly #feed: RecordFeed;
  #epoch = 0;
  #tail: Tail | null = null;

  constructor(options: RaftLogOptions) {
    this.#options = options;
    this.#fold = options.fold;
    this.#feed = new RecordFeed(options.kept);
  }

  // ---- the log -------------------------------------------------------------------------------------

  head(): LogHead {
    return { position: this.#feed.position, epoch: this.#epoch };
  }

  async open(epoch: number): Promise<LogOpened> {
    if (epoch < this.#epoch) return { outcome: "fenced", epoch: this.#epoch };
    if (!this.#leads(epoch)) throw notLeading(`epoch ${epoch} can't be opened here: this node does not lead in it.`);
    const after = this.#feed.position;
    const outcome = await this.#propose({ kind: "open", epoch, after });
    switch (outcome.outcome) {
      case "refused":
        throw new TenureError(outcome.code, outcome.message);
      case "unknown":
        throw notLeading(`This node stopped leading while it opened epoch ${epoch}.`);
      case "committed":
        break;
      default:
        return assertNever(outcome, "open");
    }
    const position = takenAt(outcome);
    if (position === NOT_TAKEN) return { outcome: "fenced", epoch: this.#epoch };
    // Opened again, the end is known better here than from what is committed.
    if (this.#tail?.epoch !== epoch) this.#tail = { epoch, position, revision: 0 };
    return { outcome: "opened", head: { position, epoch } };
  }

  async append(epoch: number, after: number, batch: readonly Uint8Array[]): Promise<LogAppended> {
    assert(batch.length > 0 && batch.length <= BATCH_RECORDS_MAX, "a batch is bounded", () => String(batch.length));
    if (epoch < this.#epoch) return { outcome: "fenced", epoch: this.#epoch };
    const tail = this.#tail;
    if (tail?.epoch !== epoch) throw notOpened(epoch);
    if (!this.#leads(epoch)) return { outcome: "fenced", epoch: null };
    if (after !== tail.position) throw misplaced(after, tail.position);
    const bytes = appendBytes(batch);
    if (bytes > ENTRY_BYTES_MAX) throw tooLarge(bytes);
    tail.position += batch.length;
    const { revision } = tail;
    const outcome = await this.#propose({ kind: "append", epoch, after, batch });
    switch (outcome.outcome) {
      case "refused":
        return this.#refused(tail, revision, after, outcome);
      case "unknown":
        return { outcome: "unknown" };
      case "committed":
        return this.#taken(epoch, after, takenAt(outcome));
      default:
        return assertNever(outcome, "append");
    }
  }

  async read(from: number, max: number): Promise<readonly LogRecord[]> {
    return this.#feed.read(from, max);
  }

  subscribe(from: number, tell: (record: LogRecord) => void, compacted: () => void): () => void {
    return this.#feed.subscribe(from, tell, compacted);
  }

  #leads(epoch: number): boolean {
    const { role, term, established } = this.#options.lead.status();
    return role === "leader" && established && term === epoch;
  }

  /** In this turn: what was checked before it still holds. */
  #propose(entry: LogEntry): Promise<ProposeOutcome> {
    return this.#options.proposals.propose([encodeEntry(entry)]);
  }

  /** What was appended after it in the meantime will not be taken: it names an end that is not reached. */
  #refused(
    tail: Tail,
    revision: number,
    after: number,
    { code, message }: { code: TenureError["code"]; message: string },
  ): LogAppended {
    if (tail.revision === revision) {
      tail.revision++;
      tail.position = after;
    }
    if (code === "NOT_LEADER") return { outcome: "fenced", epoch: null };
    throw new TenureError(code, message);
  }

  #taken(epoch: number, after: number, position: number): LogAppended {
    if (position !== NOT_TAKEN) return { outcome: "committed", position };
    if (epoch < this.#epoch) return { outcome: "fenced", epoch: this.#epoch };
    throw misplaced(after, this.#feed.position);
  }

  // ---- the state machine ---------------------------------------------------------------------------

  /** The position of the head where the entry was taken. */
  apply(entry: Parameters<StateMachine["apply"]>[0]): number {
    return this.#take(entry.data) ? this.#feed.position : NOT_TAKEN;
  }

  snapshot(): SnapshotData {
    const head = this.head();
    const fold = this.#fold.snapshot();
    return fold instanceof Uint8Array ? encodeSnapshot({ head, fold }) : snapshotPieces(head, fold);
  }

  restore(data: Uint8Array): void {
    const { head, fold } = decodeSnapshot(data) ?? { head: { position: 0, epoch: 0 }, fold: null };
    // A cluster is founded with an empty snapshot, and a fold with nothing has nothing to restore.
    if (fold !== null) this.#fold.restore(fold, head);
    this.#epoch = head.epoch;
    this.#feed.jump(head.position);
  }

  *prepare(data: Uint8Array): Generator<void, void, void> {
    const fold = decodeSnapshot(data)?.fold;
    if (fold !== undefined && this.#fold.prepare !== undefined) yield* this.#fold.prepare(fold);
  }

  #take(bytes: Uint8Array): boolean {
    // A copy of its own: what is kept must not keep the network's whole buffer.
    const entry = decodeEntry(bytes.slice());
    switch (entry.kind) {
      case "open":
        return this.#takeOpen(entry.epoch, entry.after);
      case "append":
        return this.#takeAppend(entry.epoch, entry.after, entry.batch);
      case "malformed":
        this.counts.malformed++;
        return false;
      case "later-version":
        throw laterVersion("an entry", entry.version);
      default:
        return assertNever(entry, "log entry");
    }
  }

  #takeOpen(epoch: number, after: number): boolean {
    if (epoch < this.#epoch) {
      this.counts.ignored++;
      return false;
    }
    // A leader opens an epoch when it has applied all before it, and only it appends in it: so all have the same head, but
    // where it opens again and appends of its own are under way.
    const { position } = this.#feed;
    if (epoch === this.#epoch ? after > position : after !== position) throw otherHead(position, epoch, after);
    this.#epoch = epoch;
    return true;
  }

  #takeAppend(epoch: number, after: number, batch: readonly Uint8Array[]): boolean {
    if (epoch !== this.#epoch || after !== this.#feed.position) {
      this.counts.ignored++;
      return false;
    }
    for (const [at, data] of batch.entries()) {
      const record: LogRecord = { position: after + 1 + at, epoch, data };
      this.#feed.push(record);
      this.#fold.apply(record);
      this.#feed.tell(record);
    }
    this.counts.applied += batch.length;
    return true;
  }
}

function otherHead(position: number, epoch: number, after: number): TenureError {
  return new TenureError(
    "CHAIN_BROKEN",
    `The leader of epoch ${epoch} opened the log behind record ${after}, and this node has ${position}: one of the two has missed records, as under a release that did not know them. This node stops before its state is another one. Compare the nodes, then replace the disk of the one that has fewer.`,
  );
}

/** What `apply` returned for it, here. */
function takenAt({ result }: { readonly result: unknown }): number {
  assert(typeof result === "number", "the log's own machine has applied the entry");
  return result;
}

function notLeading(message: string): TenureError {
  return new TenureError("NOT_LEADER", message);
}
