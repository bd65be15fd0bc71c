// The lines of other sites as this node has them, for whoever asks: pages as they were cut, out of the receipts with which they came.
//
// The newest receipts of all lines are in memory, because what has just come is what is passed on. Of older ones the place is looked up
// (`receiptOf`); where that does not know it, the receipts are read in order, from the last place that was found for that line.
//
// Invariants: a page is handed out as it came, with its own note; what is remembered is bounded by RECENT_BYTES_MAX, and a few places for a line.
// What retention has cut is found to be gone once: whoever lacks it asks for it for ever, and all that is kept would be read each time.

import { eventHashOf } from "../../../core/events/event.ts";
import { bytesOfHash, decodeEvent, MerkleFrontier } from "../../../core/events/index.ts";
import { TenureError } from "../../../core/kit/errors.ts";
import type { LineId, LineState, Page } from "../../../core/mesh/model.ts";
import { PAGE_BYTES_MAX, PAGE_ITEMS_MAX } from "../../../core/mesh/proof/index.ts";
import {
  decodeReceipt,
  type HeldPage,
  pageOf,
  type Receipt,
  type SealedReceipt,
} from "../../../core/mesh/receipts/index.ts";
import { giveWay } from "../../../loops/time.ts";
import type { Clock } from "../../../ports/clock.ts";
import type { Digest } from "../../../ports/digest.ts";
import type { ConsistencyProof, InclusionProof } from "../../../ports/events.ts";
import type { LineSource } from "../../../ports/mesh/lines.ts";
import { EventProofs } from "../../journal/event-proofs.ts";
import { Slice } from "../../slice.ts";
import { PAGES_SENT_MAX, PROVEN_LINES_KEPT_MAX, RECEIPTS_READ_MAX, RECENT_BYTES_MAX } from "../limits.ts";

export interface ForeignLinesOptions {
  readonly receipts: {
    readonly state: {
      readonly head: { readonly sequence: number };
      lines(): Iterable<LineState>;
      line(id: LineId): LineState | undefined;
    };
    follow(tell: (applied: SealedReceipt) => void): () => void;
    onRestored(tell: () => void): () => void;
  };
  /** The archive of receipts. */
  readonly archive: {
    readonly lastSequence: number;
    read(from: number, max?: number): AsyncIterable<readonly { readonly bytes: Uint8Array }[]>;
    manifest(): { readonly start: { readonly sequence: number } };
  };
  readonly digest: Digest;
  readonly clock: Clock;
  /** The line that this one continues, as the registry has it; null: none. */
  readonly lineBefore: (line: LineId) => LineId | null;
  /** The receipt with which an event came; null: not known there. */
  readonly receiptOf?: ((line: LineId, sequence: number) => Promise<number | null>) | undefined;
}

/** The receipt in which an event of a line was found last. */
interface Place {
  readonly sequence: number;
  readonly receipt: number;
}

export class ForeignLines implements LineSource {
  readonly #options: ForeignLinesOptions;
  /** The newest, in order. */
  #recent: SealedReceipt[] = [];
  #recentBytes = 0;
  readonly #places = new Map<LineId, Place>();
  readonly #proofs = new Map<LineId, EventProofs>();
  /** Of lines that continue another: the sequence before their first event. */
  readonly #starts = new Map<LineId, number>();
  /** Of those whose start was not found yet: after which event the first page begins that is kept, and the receipt to go on with. */
  readonly #sought = new Map<LineId, { readonly first: number | null; readonly next: number }>();
  /** Up to this event a line is not kept any more. */
  readonly #gone = new Map<LineId, number>();
  readonly #stops: readonly (() => void)[];

  constructor(options: ForeignLinesOptions) {
    this.#options = options;
    this.#stops = [
      options.receipts.follow((applied) => this.#keep(applied)),
      options.receipts.onRestored(() => this.#forget()),
    ];
  }

  close(): void {
    for (const stop of this.#stops) stop();
  }

  lines(): readonly LineId[] {
    return Array.from(this.#options.receipts.state.lines(), ({ line }) => line);
  }

  has(line: LineId): boolean {
    return this.#options.receipts.state.line(line) !== undefined;
  }

  size(line: LineId): number {
    return this.#options.receipts.state.line(line)?.size ?? 0;
  }

  async checkpoint(line: LineId): Promise<string> {
    const note = this.#known(line).checkpoint;
    if (note === null) throw new TenureError("NOT_FOUND", `Nothing of the line ${line} is here yet.`);
    return note;
  }

  async page(line: LineId, after: number): Promise<Page | null> {
    const [first] = await this.#gather(line, after, 1);
    return first ?? null;
  }

  pages(line: LineId, after: number): Promise<readonly Page[]> {
    return this.#gather(line, after, PAGES_SENT_MAX);
  }

  async #gather(line: LineId, after: number, max: number): Promise<readonly Page[]> {
    if (after >= this.#known(line).size) return [];
    // Whoever does not know where a line begins that continues another is shown that.
    const from = Math.max(after, await this.#startOf(line));
    const pages: Page[] = [];
    let [next, items, bytes, others] = [from + 1, 0, 0, 0];
    for await (const receipt of this.#receiptsFrom(line, next)) {
      if (!isNewIn(receipt, line, next)) {
        // Lines are mixed in the archive: what is found so far is enough.
        if (++others > RECEIPTS_READ_MAX) break;
        continue;
      }
      const { page } = receipt;
      items += page.items.length;
      bytes += bytesOf(page);
      if (pages.length > 0 && (items > PAGE_ITEMS_MAX || bytes > PAGE_BYTES_MAX)) break;
      pages.push(pageOf(await this.#asSigned(receipt)));
      next = page.after + page.items.length + 1;
      if (pages.length >= max || next > this.#known(line).size) break;
    }
    if (pages.length > 0) return pages;
    throw new TenureError("LOG_COMPACTED", `Event ${after + 1} of the line ${line} is not kept here any more.`);
  }

  /**
   * What of a page was known when it came was not verified then, and whoever brought it may have changed it: it is handed out as it is in the receipts
   * in which it was new. Where these are not kept any more, whoever asks has it, and verifies it as little.
   */
  async #asSigned({ page, first }: Receipt): Promise<HeldPage> {
    const { line, after, items } = page;
    const known: HeldPage["items"][number][] = [];
    if (first > after + 1) {
      for await (const receipt of this.#receiptsFrom(line, after + 1)) {
        if (receipt.page.line !== line) continue;
        known.push(...receipt.page.items.slice(after + known.length - receipt.page.after));
        if (after + known.length >= first - 1) break;
      }
    }
    const count = Math.min(known.length, first - 1 - after);
    return count === 0 ? page : { ...page, items: [...known.slice(0, count), ...items.slice(count)] };
  }

  /** A line as it was at an earlier size. */
  async pointOf(line: LineState, size: number): Promise<Pick<LineState, "hash" | "timestamp" | "frontier">> {
    if (size === line.size) return line;
    const tree = new MerkleFrontier(this.#options.digest);
    let hash: string | null = null;
    for await (const batch of this.#hashes(line.line, 1, size)) {
      for (const { eventHash } of batch) tree.append(bytesOfHash((hash = eventHash)));
    }
    if (tree.size !== size) {
      throw new TenureError(
        "LOG_COMPACTED",
        `The first ${size} events of ${line.line} are not all kept here any more.`,
      );
    }
    // Of an event that is not the last one the time is in its text, which may be withheld: nothing rests on it.
    return { hash, timestamp: 0, frontier: tree.encode().slice() };
  }

  async consistency(line: LineId, from: number, to: number): Promise<ConsistencyProof> {
    this.#checkWithin(line, from, to);
    return this.#proofsOf(line).consistency(from, to);
  }

  async inclusion(line: LineId, sequence: number, size: number): Promise<InclusionProof> {
    this.#checkWithin(line, sequence, size);
    return this.#proofsOf(line).inclusion(sequence, size);
  }

  #known(line: LineId): LineState {
    const state = this.#options.receipts.state.line(line);
    if (state === undefined) throw new TenureError("NOT_FOUND", `There is no line ${line} here.`);
    return state;
  }

  #checkWithin(line: LineId, from: number, size: number): void {
    const through = this.#known(line).size;
    if (from >= 1 && from <= size && size <= through) return;
    const needed = `a proof needs 1 ≤ ${from} ≤ ${size} ≤ ${through}`;
    throw new TenureError("NOT_FOUND", `The line ${line} has ${through} events here; ${needed}.`);
  }

  #keep(applied: SealedReceipt): void {
    this.#recent.push(applied);
    this.#recentBytes += applied.bytes.length;
    while (this.#recentBytes > RECENT_BYTES_MAX && this.#recent.length > 1) {
      this.#recentBytes -= this.#recent.shift()!.bytes.length;
    }
  }

  #forget(): void {
    this.#recent = [];
    this.#recentBytes = 0;
    this.#places.clear();
    this.#proofs.clear();
    this.#starts.clear();
    this.#sought.clear();
    this.#gone.clear();
  }

  /** The one whose page has this event as a new one; null: it is not kept. */
  async #receiptOf(line: LineId, sequence: number): Promise<Receipt | null> {
    for await (const receipt of this.#receiptsFrom(line, sequence)) return receipt;
    return null;
  }

  /** In the order of arrival, of all lines, from the one on whose page has this event as a new one; none: it is not kept. */
  async *#receiptsFrom(line: LineId, sequence: number): AsyncGenerator<Receipt, void, void> {
    const at = this.#recent.findLastIndex(({ receipt }) => isNewIn(receipt, line, sequence));
    if (at !== -1) {
      // Those of this moment.
      for (const { receipt } of this.#recent.slice(at)) yield receipt;
      return;
    }
    if (sequence <= (this.#gone.get(line) ?? 0)) return;
    const place = this.#places.get(line);
    const known = await this.#options.receiptOf?.(line, sequence);
    const from = known ?? (place !== undefined && place.sequence <= sequence ? place.receipt : null);
    const isAll = (from ?? 0) <= this.#firstKept && this.#isArchived;
    const { lastSequence } = this.#options.archive;
    let [isFound, isOver] = [false, false];
    for await (const receipt of this.#read(from ?? this.#firstKept)) {
      // A line comes in order.
      const isPast = receipt.page.line === line && receipt.first > sequence;
      isOver = isPast || receipt.sequence >= lastSequence;
      if (!isFound && isPast) break;
      if (!isFound && !isNewIn(receipt, line, sequence)) continue;
      if (!isFound) this.#places.set(line, { sequence, receipt: receipt.sequence });
      isFound = true;
      yield receipt;
    }
    if (!isFound && isAll && isOver) this.#gone.set(line, sequence);
  }

  /** What is applied is in the archive: after a snapshot it may not be yet. */
  get #isArchived(): boolean {
    const { archive, receipts } = this.#options;
    return archive.lastSequence >= receipts.state.head.sequence;
  }

  get #firstKept(): number {
    return this.#options.archive.manifest().start.sequence + 1;
  }

  /** All that is kept, in the order of arrival. */
  receipts(): AsyncGenerator<Receipt, void, void> {
    return this.#read(1);
  }

  /**
   * In slices: all of a long line may be read, and each of its events hashed. In steps that double: whoever asks for one page takes one receipt, and
   * whoever reads on is soon at RECEIPTS_READ_MAX.
   */
  async *#read(from: number): AsyncGenerator<Receipt, void, void> {
    const { archive, clock } = this.#options;
    let [slice, step] = [new Slice(clock), 1];
    for (let next = Math.max(from, this.#firstKept); next <= archive.lastSequence;) {
      const before = next;
      for await (const batch of archive.read(next, step)) {
        for (const { bytes } of batch) {
          const read = decodeReceipt(bytes);
          if (read.kind === "malformed") throw new TenureError("DISK_DAMAGED", `receipt ${next}: ${read.problem}.`);
          next++;
          yield read.receipt;
          if (!slice.isOver) continue;
          await giveWay(clock);
          slice = new Slice(clock);
        }
      }
      if (next === before) return;
      step = Math.min(2 * step, RECEIPTS_READ_MAX);
    }
  }

  #proofsOf(line: LineId): EventProofs {
    const kept = this.#proofs.get(line);
    if (kept !== undefined) return kept;
    const made = new EventProofs({ read: (from, max) => this.#hashes(line, from, max) }, this.#options.digest);
    this.#proofs.set(line, made);
    if (this.#proofs.size > PROVEN_LINES_KEPT_MAX) {
      const [oldest] = this.#proofs.keys();
      this.#proofs.delete(oldest!);
    }
    return made;
  }

  /** 0 where the line continues no other, or where its beginning is not kept any more: what is asked for from before that is not found then. */
  async #startOf(line: LineId): Promise<number> {
    const { ring } = this.#known(line);
    if (ring.generation === 1) return 0;
    const known = this.#starts.get(line);
    if (known !== undefined) return known;
    const isCut = this.#firstKept > 1;
    let { first, next } = this.#sought.get(line) ?? { first: null, next: this.#firstKept };
    for await (const { sequence, page } of this.#read(next)) {
      next = sequence + 1;
      if (page.line !== line) continue;
      first ??= page.after;
      // The first page that is kept is not the first that came; the first event of the line's own author says where it begins.
      const named = isCut ? recoveredIn(page, ring.author) : first;
      if (named === null) continue;
      const start = named === first ? first : 0;
      this.#starts.set(line, start);
      this.#sought.delete(line);
      return start;
    }
    this.#sought.set(line, { first, next });
    return 0;
  }

  /** Of the events of a line from `from` on, those of the lines that it continues included; `max` at most. */
  async *#hashes(line: LineId, from: number, max: number): AsyncGenerator<readonly { readonly eventHash: string }[]> {
    const begin = await this.#startOf(line);
    const before = from <= begin ? this.#options.lineBefore(line) : null;
    if (before === null) {
      yield* this.#hashesHere(line, from, max);
      return;
    }
    yield* this.#hashes(before, from, Math.min(max, begin - from + 1));
    const rest = max - (begin - from + 1);
    if (rest > 0) yield* this.#hashesHere(line, begin + 1, rest);
  }

  async *#hashesHere(
    line: LineId,
    from: number,
    max: number,
  ): AsyncGenerator<readonly { readonly eventHash: string }[]> {
    let next = from;
    const start = await this.#receiptOf(line, from);
    if (start === null) return;
    for await (const receipt of this.#read(start.sequence)) {
      if (receipt.page.line !== line) continue;
      const hashes = this.#hashesIn(receipt.page, next, from + max - 1);
      next += hashes.length;
      yield hashes;
      if (next >= from + max) return;
    }
  }

  #hashesIn({ after, items }: HeldPage, first: number, last: number): readonly { readonly eventHash: string }[] {
    const { digest } = this.#options;
    const wanted = items.slice(Math.max(0, first - after - 1), Math.max(0, last - after));
    return wanted.map((item) => ({ eventHash: "hash" in item ? item.hash : eventHashOf(item.bytes, digest) }));
  }
}

/**
 * After which event the line continues the one before it: its author's first event is `controller:recovered`, and what comes before that is of
 * the author before. -1: the author's first event is another one. Null: nothing here is of that author.
 */
function recoveredIn({ items }: HeldPage, author: string): number | null {
  for (const item of items) {
    const read = "bytes" in item ? decodeEvent(item.bytes) : null;
    if (read?.kind !== "event" || read.event.sourceControllerId !== author) continue;
    const { eventType, payload } = read.event;
    return eventType === "controller:recovered" && typeof payload["through"] === "number" ? payload["through"] : -1;
  }
  return null;
}

function bytesOf({ items }: HeldPage): number {
  return items.reduce((sum, item) => sum + ("hash" in item ? item.hash : item.bytes).length, 0);
}

function isNewIn({ page, first }: Receipt, line: LineId, sequence: number): boolean {
  return page.line === line && sequence >= first && sequence <= page.after + page.items.length;
}
