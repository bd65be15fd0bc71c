// The site's events, as this node has them: the newest from memory, older ones from its history, which works in slices. A few
// readers of the history are served at a time, the others wait: nothing here holds the loop.

import { TenureError } from "../../core/kit/errors.ts";
import { Shards } from "../../core/kit/keyed/shards.ts";
import { decodeEvent, EventScanner, hexOf, MerkleFrontier, type StoredEvent } from "../../core/events/index.ts";
import type { Digest } from "../../ports/digest.ts";
import type {
  ConsistencyProof,
  Events,
  EventsFilter,
  EventsHead,
  EventsPage,
  EventsWanted,
  InclusionProof,
  InTurn,
  EventRecord,
  Verified,
} from "../../ports/events.ts";
import { EventProofs } from "./event-proofs.ts";
import { EventTail, type TailEvent } from "./event-tail.ts";
import type { Journal } from "./journal.ts";
import { EVENT_READERS_MAX, EVENT_READERS_WAITING_MAX } from "./limits.ts";
import { Turns } from "../turns.ts";

/** What is needed of the archive. */
export interface EventHistory {
  read(from: number, max?: number): AsyncIterable<readonly HistoricEvent[]>;
  verify(): AsyncIterable<VerifyStep>;
  stats(): { readonly startSequence: number; readonly lastSequence: number };
}

interface HistoricEvent {
  readonly sequence: number;
  readonly bytes: Uint8Array;
  readonly eventHash: string;
}

type VerifyStep =
  | { readonly kind: "progress"; readonly through: number }
  | { readonly kind: "broken"; readonly sequence: number; readonly why: string }
  | { readonly kind: "missing"; readonly first: number; readonly last: number; readonly isLost: boolean }
  | { readonly kind: "end"; readonly point: HistoricPoint | null };

interface HistoricPoint {
  readonly sequence: number;
  readonly hash: string | null;
  readonly frontier: Uint8Array;
}

export interface EventsServiceOptions {
  readonly journal: Pick<Journal, "chain" | "follow" | "onRestored">;
  readonly history: EventHistory;
  readonly digest: Digest;
}

const scanner = new EventScanner();

export class EventsService implements Events {
  readonly #options: EventsServiceOptions;
  readonly #waiting = new Set<() => void>();
  /** By the entity whose events they wait for: a thousand who follow a job each are not woken by every job. */
  readonly #waitingOf = new Shards<Set<() => void>>();
  readonly #tail = new EventTail();
  readonly #proofs: EventProofs;
  readonly #readings = new Turns({
    atOnceMax: EVENT_READERS_MAX,
    waitingMax: EVENT_READERS_WAITING_MAX,
    doing: "old events are read",
  });
  readonly #stops: readonly (() => void)[];
  readonly #onReplaced: (() => void)[] = [];

  constructor(options: EventsServiceOptions) {
    this.#options = options;
    this.#proofs = new EventProofs(options.history, options.digest);
    this.#stops = [
      options.journal.follow((sealed) => {
        this.#tail.push(sealed);
        this.#wake(this.#waiting);
        this.#wake(this.#waitingOf.get(sealed.event.entityId));
      }),
      options.journal.onRestored(() => {
        this.#tail.clear();
        this.#proofs.clear();
        for (const tell of this.#onReplaced) tell();
      }),
    ];
  }

  close(): void {
    for (const stop of this.#stops) stop();
    this.#wake(this.#waiting);
    for (const waiting of this.#waitingOf.values()) this.#wake(waiting);
  }

  onReplaced(listener: () => void): void {
    this.#onReplaced.push(listener);
  }

  head(): EventsHead {
    const { startSequence } = this.#options.history.stats();
    return { sequence: this.#options.journal.chain.sequence, first: startSequence + 1 };
  }

  async hashAt(sequence: number, inTurn: InTurn = (make) => make()): Promise<string | null> {
    const { chain } = this.#options.journal;
    if (sequence >= chain.sequence) return sequence === chain.sequence ? chain.hash : null;
    const { first } = this.head();
    if (sequence + 1 < first) throw compacted(sequence + 1, first);
    if (sequence === 0) return null;
    const held = this.#tail.hashOf(sequence);
    if (held !== null) return held;
    return inTurn(() => this.#readings.take(() => this.#readHashBefore(sequence + 1)));
  }

  /** From the event that names it: the one itself may be cut off. */
  async #readHashBefore(sequence: number): Promise<string | null> {
    for await (const [next] of this.#options.history.read(sequence, 1)) {
      if (next === undefined) continue;
      return decoded(next).previousHash;
    }
    throw new TenureError("BACKEND_UNAVAILABLE", `Event ${sequence} can't be read here now. Ask another node.`);
  }

  async read(after: number, wanted: EventsWanted): Promise<EventsPage> {
    const { sequence, first } = this.head();
    if (after + 1 < first) throw compacted(after + 1, first);
    const page = this.recent(after, wanted);
    if (page !== null) return page;
    return this.#readings.take(() => this.#readHistory(after, sequence, wanted));
  }

  recent(after: number, wanted: EventsWanted): EventsPage | null {
    if (after >= this.#options.journal.chain.sequence) return { events: [], through: after, hash: null };
    return this.#tail.has(after + 1) ? pageOf(after, this.#tail.behind(after), wanted) : null;
  }

  async #readHistory(after: number, last: number, wanted: EventsWanted): Promise<EventsPage> {
    const page = new Page(after, wanted);
    try {
      for await (const batch of this.#options.history.read(after + 1, wanted.max)) {
        for (const one of batch) if (one.sequence > last || !page.take(described(one))) return page;
      }
    } catch (error) {
      // What is here is given out: the next page begins where nothing is, and says so.
      if (page.through === after) throw error;
    }
    return page;
  }

  arrived(after: number, signal: AbortSignal): Promise<void> {
    if (this.head().sequence > after) return Promise.resolve();
    return woken(this.#waiting, signal);
  }

  async arrivedOf(entityId: string, signal: AbortSignal): Promise<void> {
    let waiting = this.#waitingOf.get(entityId);
    if (waiting === undefined) this.#waitingOf.set(entityId, (waiting = new Set()));
    await woken(waiting, signal);
    if (waiting.size === 0 && this.#waitingOf.get(entityId) === waiting) this.#waitingOf.delete(entityId);
  }

  async verify(progress: (sequence: number) => void, signal: AbortSignal): Promise<Verified> {
    const { first } = this.head();
    for await (const step of this.#options.history.verify()) {
      signal.throwIfAborted();
      switch (step.kind) {
        case "progress":
          progress(step.through);
          break;
        case "broken":
          return { valid: false, first, firstBrokenSequence: step.sequence, reason: step.why };
        case "missing":
          return { valid: false, first, firstBrokenSequence: step.first, reason: missing(step) };
        case "end":
          return this.#intact(first, step.point);
      }
    }
    throw new TenureError("INTERNAL", "The verification ended without a result.");
  }

  #intact(first: number, point: HistoricPoint | null): Verified {
    const { digest } = this.#options;
    if (point === null || point.sequence === 0) {
      return { valid: true, first, through: 0, headHash: null, root: hexOf(new MerkleFrontier(digest).root()) };
    }
    const root = hexOf(MerkleFrontier.decode(point.frontier, digest).root());
    return { valid: true, first, through: point.sequence, headHash: point.hash, root };
  }

  async inclusion(sequence: number, treeSize: number): Promise<InclusionProof> {
    this.#checkProvable(sequence, treeSize);
    return this.#proofs.inclusion(sequence, treeSize);
  }

  async consistency(fromSize: number, treeSize: number): Promise<ConsistencyProof> {
    this.#checkProvable(fromSize, treeSize);
    return this.#proofs.consistency(fromSize, treeSize);
  }

  #checkProvable(from: number, treeSize: number): void {
    const { sequence, first } = this.head();
    if (treeSize > sequence || from > treeSize || from < 1) {
      throw new TenureError(
        "NOT_FOUND",
        `This node has ${sequence} events; a proof needs 1 ≤ ${from} ≤ ${treeSize} ≤ ${sequence}.`,
      );
    }
    // The tree is over all events from the first on.
    if (first > 1) throw compacted(1, first);
  }

  #wake(waiting: ReadonlySet<() => void> = NOBODY): void {
    for (const wake of waiting) wake();
  }
}

const NOBODY: ReadonlySet<() => void> = new Set();

/** Waits in the set until it is woken there, or the signal aborts. */
function woken(waiting: Set<() => void>, signal: AbortSignal): Promise<void> {
  if (signal.aborted) return Promise.resolve();
  return new Promise((resolve) => {
    const wake = (): void => {
      signal.removeEventListener("abort", wake);
      waiting.delete(wake);
      resolve();
    };
    signal.addEventListener("abort", wake, { once: true });
    waiting.add(wake);
  });
}

/** Of one reader: what it wants of the events that pass, in order. */
class Page implements EventsPage {
  readonly events: EventRecord[] = [];
  through: number;
  hash: string | null = null;
  readonly #wanted: EventsWanted;
  #seen = 0;
  #bytes = 0;

  constructor(after: number, wanted: EventsWanted) {
    this.through = after;
    this.#wanted = wanted;
  }

  /** False: the page is full. */
  take(event: TailEvent): boolean {
    const { filter, max, bytesMax } = this.#wanted;
    this.through = event.sequence;
    this.hash = event.eventHash;
    this.#seen++;
    if (isWanted(event, filter)) {
      this.events.push(event);
      this.#bytes += event.bytes.length;
    }
    return this.#seen < max && this.#bytes < bytesMax;
  }
}

function pageOf(after: number, events: Iterable<TailEvent>, wanted: EventsWanted): EventsPage {
  const page = new Page(after, wanted);
  for (const event of events) if (!page.take(event)) break;
  return page;
}

function isWanted({ eventType, entityType, entityId }: TailEvent, filter: EventsFilter | null): boolean {
  if (filter === null) return true;
  const { types } = filter;
  if (types !== null && !types.some((type) => type === eventType || type === `${entityType}:*`)) return false;
  if (filter.entityId !== null && filter.entityId !== entityId) return false;
  return filter.entityType === null || filter.entityType === entityType;
}

function described(one: HistoricEvent): TailEvent {
  const { sequence, bytes, eventHash } = one;
  // What is not canonical is read in full, or refused there.
  const { eventType, entityId } = scanner.scan(bytes) === null ? scanner : decoded(one);
  const entityType = eventType.slice(0, eventType.indexOf(":"));
  return { sequence, eventType, entityType, entityId, bytes, eventHash };
}

function decoded({ sequence, bytes }: HistoricEvent): StoredEvent {
  const read = decodeEvent(bytes);
  // The history's own check has seen to it that these are the bytes that were sealed.
  if (read.kind === "malformed")
    throw new TenureError("CHAIN_BROKEN", `Event ${sequence} can't be read: ${read.problem}`);
  return read.event;
}

function compacted(wantedFrom: number, first: number): TenureError {
  return new TenureError(
    "LOG_COMPACTED",
    `Events from ${wantedFrom} on are asked for, and this node keeps them from ${first} on.`,
  );
}

function missing({ first, last, isLost }: VerifyStep & { readonly kind: "missing" }): string {
  if (isLost) return `events ${first} to ${last} are lost: no member of the cluster has them`;
  return `events ${first} to ${last} are not here; the other members are asked for them`;
}
