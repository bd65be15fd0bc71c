// The book of jobs as a tenant of the journal: the one that decides on its head, and whose state is large.

import { INTEGER_MAX } from "../../core/kit/limits.ts";
import { begun, type Pieces } from "../../core/kit/pieces.ts";
import { EVENT_TYPES } from "../../core/events/names.ts";
import { canonicalJson, type ChainEvent, type ChainHead } from "../../core/events/index.ts";
import { type BookLimits, isAboutJobs, JobsBook, type PreparedBook } from "../../core/jobs/index.ts";
import type { LargeTenant } from "./tenant.ts";

export interface JobsTenantOptions {
  /** How much of a snapshot is made in one turn, about. */
  readonly sliceBytes?: number | undefined;
  readonly limits?: Partial<BookLimits> | undefined;
}

export class JobsTenant implements LargeTenant {
  readonly name = "jobs";
  readonly eventTypes = EVENT_TYPES.filter(isAboutJobs);
  readonly book: JobsBook;
  readonly #bookOptions: ConstructorParameters<typeof JobsBook>[0];
  readonly #sliceBytes: number | undefined;
  #prepared: { readonly bytes: Uint8Array; readonly book: PreparedBook } | null = null;

  constructor({ sliceBytes, limits }: JobsTenantOptions = {}) {
    this.#sliceBytes = sliceBytes;
    this.#bookOptions = { canonical: (value) => canonicalJson(value, INTEGER_MAX), limits };
    this.book = new JobsBook(this.#bookOptions);
  }

  /** For whoever goes through the events once more, after this one. */
  emptyBook(sequence: number): JobsBook {
    return new JobsBook(this.#bookOptions, sequence);
  }

  propose(events: readonly ChainEvent[]): void {
    this.book.propose(events);
  }

  apply(event: ChainEvent, wasProposed: boolean): void {
    if (wasProposed) this.book.commit(event.sequence);
    else this.book.apply(event);
  }

  undo(to: number): void {
    this.book.rollback(to);
  }

  snapshot(): Pieces {
    return begun(this.book.slices(this.#sliceBytes));
  }

  *prepare(bytes: Uint8Array, timestamp: number): Generator<void, void, void> {
    this.#prepared = null;
    this.#prepared = { bytes, book: yield* this.book.prepare(bytes, timestamp) };
  }

  restore(bytes: Uint8Array, { timestamp }: ChainHead): void {
    const prepared = this.#prepared;
    this.#prepared = null;
    if (prepared !== null && isSameView(prepared.bytes, bytes)) this.book.adopt(prepared.book);
    else this.book.restore(bytes, timestamp);
  }
}

/** Of the same memory: nobody writes to a snapshot's bytes again. */
function isSameView(one: Uint8Array, other: Uint8Array): boolean {
  return one.buffer === other.buffer && one.byteOffset === other.byteOffset && one.length === other.length;
}
