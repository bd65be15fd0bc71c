// The jobs' log, folded: the chain of events, the book, the API keys and the revoked certificates. The same on every node.
//
//   a record ──▶ links onto the chain? ──▶ the book ──▶ whoever follows (views, SSE, the leader's timers)
//                 │ no: the log is damaged; the node must not go on
//
// The leader knows its own events before they are committed: it proposes them here, and when they come back as records of
// its epoch nothing is parsed or hashed again. Whatever else comes, what was proposed is undone first.
//
// Invariants:
// - All of it is of the same sequence, the position of the last record.
// - What is proposed lies directly behind it, in order, all of one epoch: the only one that may append.

import { assert } from "../../core/kit/assert.ts";
import { ByteReader, ByteWriter } from "../../core/kit/bytes.ts";
import { TenureError } from "../../core/kit/errors.ts";
import type { Json } from "../../core/kit/json.ts";
import { begun, joined, partsOf, type Pieces, readPart } from "../../core/kit/pieces.ts";
import { EVENT_DEPTH_MAX, INTEGER_MAX, SNAPSHOT_BYTES_MAX } from "../../core/kit/limits.ts";
import {
  canonicalJson,
  chainBroken,
  type ChainHead,
  checkLink,
  EMPTY_CHAIN,
  isEventType,
  parseStrictJson,
  type SealedEvent,
} from "../../core/events/index.ts";
import { type BookLimits, JobsBook, type PreparedBook } from "../../core/jobs/index.ts";
import type { Digest } from "../../ports/digest.ts";
import type { Fold, LogHead, LogRecord } from "../../ports/log.ts";
import { CertificatesFold } from "../certificates-fold.ts";
import { KeysFold } from "../keys-fold.ts";

const SNAPSHOT_VERSION = 1;
/** With revoked certificates after the keys; written only where there are any, and then every member reads it. */
const SNAPSHOT_VERSION_OF_CERTIFICATES = 2;
const TEXT_BYTES_MAX = 64;
const HEADER_BYTES_MAX = 192;
const KEYS_BYTES_MAX = 16 * 1024 * 1024;
const CERTIFICATES_BYTES_MAX = 16 * 1024 * 1024;

/** Events are read from their tail and from the history; nobody reads them from the servers' log. */
export const JOBS_LOG_KEPT = { recordsMax: 1 };

export interface SiteJournalOptions {
  /** How much of a snapshot is made in one turn, about. */
  readonly sliceBytes?: number | undefined;
  readonly limits?: Partial<BookLimits> | undefined;
}

export class SiteJournal implements Fold {
  readonly book: JobsBook;
  readonly keys = new KeysFold();
  readonly certificates = new CertificatesFold();
  readonly #bookOptions: ConstructorParameters<typeof JobsBook>[0];
  readonly #digest: Digest;
  readonly #sliceBytes: number | undefined;
  readonly #followers = new Set<(applied: SealedEvent) => void>();
  readonly #restored = new Set<() => void>();
  #prepared: { readonly bytes: Uint8Array; readonly book: PreparedBook } | null = null;
  #chain: ChainHead = EMPTY_CHAIN;
  #own: { readonly epoch: number; readonly events: SealedEvent[] } | null = null;

  constructor(digest: Digest, { sliceBytes, limits }: SiteJournalOptions = {}) {
    this.#digest = digest;
    this.#sliceBytes = sliceBytes;
    this.#bookOptions = { canonical: (value) => canonicalJson(value, INTEGER_MAX), limits };
    this.book = new JobsBook(this.#bookOptions);
  }

  /** The last committed event's. */
  get chain(): ChainHead {
    return this.#chain;
  }

  /** Told of every event after it is applied, in order; must not throw. */
  follow(tell: (applied: SealedEvent) => void): () => void {
    this.#followers.add(tell);
    return () => void this.#followers.delete(tell);
  }

  /** Told when a snapshot has taken the place of everything: what is between was not told. */
  onRestored(tell: () => void): () => void {
    this.#restored.add(tell);
    return () => void this.#restored.delete(tell);
  }

  /** For whoever goes through the events once more, behind this one. */
  emptyBook(sequence: number): JobsBook {
    return new JobsBook(this.#bookOptions, sequence);
  }

  // ---- the leader's head ---------------------------------------------------------------------------

  propose(epoch: number, events: readonly SealedEvent[]): void {
    if (this.#own?.epoch !== epoch) {
      this.rollback();
      this.#own = { epoch, events: [] };
    }
    this.#own.events.push(...events);
    this.book.propose(events.map(({ event }) => event));
  }

  /** What was proposed behind this sequence never came to be, or is not ours to know any more: these events. */
  rollback(to = this.#chain.sequence): readonly SealedEvent[] {
    this.book.rollback(to);
    const own = this.#own;
    if (own === null) return [];
    const kept = Math.max(0, own.events.length - Math.max(0, lastSequence(own.events) - to));
    const takenBack = own.events.splice(kept);
    if (kept === 0) this.#own = null;
    return takenBack;
  }

  // ---- the fold ------------------------------------------------------------------------------------

  apply(record: LogRecord): void {
    const own = this.#own;
    const isOwn = own !== null && own.epoch === record.epoch;
    if (!isOwn) this.rollback();
    const sealed = isOwn ? own.events.shift() : this.#checked(record);
    assert(sealed !== undefined, "a record of our epoch is one that we have proposed", () => String(record.position));
    const { sequence, eventHash, timestamp } = sealed.event;
    assert(sequence === record.position, "an event's sequence is its place in the log");
    if (isOwn) this.book.commit(sequence);
    else this.book.apply(sealed.event);
    if (sealed.event.entityType === "key") this.keys.apply(sealed.event);
    if (sealed.event.entityType === "certificate") this.certificates.apply(sealed.event);
    this.#chain = { sequence, hash: eventHash, timestamp };
    for (const tell of this.#followers) tell(sealed);
  }

  #checked({ position, data }: LogRecord): SealedEvent {
    const checked = checkLink(this.#chain, data, this.#digest);
    if (checked.kind === "broken") throw laterRelease(this.#chain, data) ?? chainBroken(position, checked.reason);
    return { event: checked.event, bytes: data };
  }

  /** Of this moment. */
  snapshot(): Pieces {
    const { sequence, timestamp, hash } = this.#chain;
    const certificates = this.certificates.snapshot();
    const writer = new ByteWriter(HEADER_BYTES_MAX);
    writer.u8(certificates === null ? SNAPSHOT_VERSION : SNAPSHOT_VERSION_OF_CERTIFICATES);
    writer.uint53(sequence);
    writer.text(String(timestamp));
    writer.text(hash ?? "");
    writer.text(this.keys.snapshot());
    if (certificates !== null) writer.text(certificates);
    return joined(writer.finish(), partsOf([begun(this.book.slices(this.#sliceBytes))]));
  }

  *prepare(data: Uint8Array): Generator<void, void, void> {
    const { bytes, timestamp } = readSnapshot(data);
    this.#prepared = null;
    this.#prepared = { bytes, book: yield* this.book.prepare(bytes, timestamp) };
  }

  restore(data: Uint8Array, head: LogHead): void {
    const { sequence, timestamp, hash, keys, certificates, bytes } = readSnapshot(data);
    assert(sequence === head.position, "a snapshot's state is of its own position");
    this.rollback();
    this.keys.restore(keys);
    this.certificates.restore(certificates);
    const prepared = this.#prepared;
    this.#prepared = null;
    if (prepared !== null && isSameView(prepared.bytes, bytes)) this.book.adopt(prepared.book);
    else this.book.restore(bytes, timestamp);
    this.#chain = { sequence, timestamp, hash: hash === "" ? null : hash };
    for (const tell of this.#restored) tell();
  }
}

interface SnapshotParts {
  readonly sequence: number;
  readonly timestamp: number;
  readonly hash: string;
  readonly keys: string;
  /** Null: none are revoked. */
  readonly certificates: string | null;
  /** The book's. */
  readonly bytes: Uint8Array;
}

function readSnapshot(data: Uint8Array): SnapshotParts {
  const reader = new ByteReader(data);
  const version = reader.u8();
  if (version !== SNAPSHOT_VERSION && version !== SNAPSHOT_VERSION_OF_CERTIFICATES) {
    const known = `this release knows ${SNAPSHOT_VERSION} and ${SNAPSHOT_VERSION_OF_CERTIFICATES}`;
    throw new TenureError("FORMAT_UNSUPPORTED", `A snapshot of jobs of version ${version}: ${known}.`);
  }
  const sequence = reader.uint53();
  const timestamp = Number(reader.text(TEXT_BYTES_MAX));
  const hash = reader.text(TEXT_BYTES_MAX);
  const keys = reader.text(KEYS_BYTES_MAX);
  const certificates = version === SNAPSHOT_VERSION ? null : reader.text(CERTIFICATES_BYTES_MAX);
  return { sequence, timestamp, hash, keys, certificates, bytes: readPart(reader, SNAPSHOT_BYTES_MAX) };
}

/** Of the same memory: nobody writes to a snapshot's bytes again. */
function isSameView(one: Uint8Array, other: Uint8Array): boolean {
  return one.buffer === other.buffer && one.byteOffset === other.byteOffset && one.length === other.length;
}

/** Whether what can't be read continues the chain all the same: a newer release has other types of events. */
function laterRelease({ sequence, hash }: ChainHead, data: Uint8Array): TenureError | null {
  let event: Json;
  try {
    event = parseStrictJson(data, EVENT_DEPTH_MAX);
  } catch {
    return null;
  }
  if (event === null || typeof event !== "object" || Array.isArray(event)) return null;
  const { eventType, sequence: at, previousHash } = event as Readonly<Record<string, Json>>;
  if (typeof eventType !== "string" || isEventType(eventType)) return null;
  if (at !== sequence + 1 || previousHash !== hash) return null;
  return new TenureError(
    "FORMAT_UNSUPPORTED",
    `Event ${at} is a "${eventType}", which this release does not know. It stops, because others have applied it: upgrade this node.`,
  );
}

function lastSequence(events: readonly SealedEvent[]): number {
  return events.at(-1)?.event.sequence ?? 0;
}
