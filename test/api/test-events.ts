// Events on a log in memory, sealed, checked and proved by core/events: what ports/events.ts promises, without a disk.

import {
  bytesOfHash,
  EMPTY_CHAIN,
  type EventDraft,
  eventHashOf,
  hexOf,
  leafHash,
  MerkleFrontier,
  Sealer,
  Verifier,
} from "../../src/core/events/index.ts";
import { consistencyProof, inclusionProof } from "../../src/core/events/test-merkle.ts";
import { TenureError } from "../../src/core/kit/errors.ts";
import { systemDigest as digest } from "../../src/drivers/system/digest.ts";
import { MemoryLog } from "../../src/logs/index.ts";
import type { Events, EventsFilter, EventsPage, EventsWanted, InTurn, Verified } from "../../src/ports/events.ts";

const EPOCH = 7;

export class TestEvents implements Events {
  readonly log = new MemoryLog();
  readonly #sealer = new Sealer({ head: EMPTY_CHAIN, sourceControllerId: "c-1.0", leaderEpoch: EPOCH, digest });
  readonly #bytes: Uint8Array[] = [];
  readonly #waiting = new Set<() => void>();
  readonly #replaced: (() => void)[] = [];
  /** Retention has cut what is before it. */
  first = 1;
  /** This node has applied no more than that; null: everything. */
  appliedMax: number | null = null;
  reads = 0;
  /** Of points that are in memory no more: how many were read, and what holds such a read up. */
  pointReads = 0;
  pointGate: Promise<void> = Promise.resolve();
  /** Holds a verification up until it resolves. */
  gate: Promise<void> = Promise.resolve();

  constructor() {
    void this.log.open(EPOCH);
    this.log.subscribe(
      1,
      ({ data }) => {
        this.#bytes.push(data);
        this.wake();
      },
      () => undefined,
    );
  }

  append(draft: Pick<EventDraft, "eventType" | "entityId" | "entityType" | "payload">): number {
    const after = this.#sealer.head.sequence;
    const id = `00000000-0000-4000-8000-${String(after + 1).padStart(12, "0")}`;
    const { event, bytes } = this.#sealer.seal({ id, timestamp: 1_700_000_000_000 + after, ...draft });
    void this.log.append(EPOCH, after, [bytes]);
    return event.sequence;
  }

  /** As a disk does it, unnoticed. */
  flip(sequence: number): void {
    const bytes = this.#bytes[sequence - 1];
    if (bytes !== undefined) bytes[20] = (bytes[20] ?? 0) ^ 1;
  }

  wake(): void {
    for (const look of this.#waiting) look();
  }

  get waiting(): number {
    return this.#waiting.size;
  }

  onReplaced(listener: () => void): void {
    this.#replaced.push(listener);
  }

  /** As where the node has taken over another state; what is here is as it was. */
  replaced(): void {
    for (const tell of this.#replaced) tell();
  }

  head(): { sequence: number; first: number } {
    return { sequence: Math.min(this.#bytes.length, this.appliedMax ?? Number.POSITIVE_INFINITY), first: this.first };
  }

  async hashAt(sequence: number, inTurn: InTurn = (make) => make()): Promise<string | null> {
    if (sequence + 1 < this.first) throw new TenureError("LOG_COMPACTED", `Events before ${this.first} are not kept.`);
    if (sequence === 0 || sequence > this.head().sequence) return null;
    const hash = eventHashOf(this.#bytes[sequence - 1] as Uint8Array, digest);
    if (sequence > this.head().sequence - this.recentMax) return hash;
    return inTurn(async () => {
      this.pointReads++;
      await this.pointGate;
      return hash;
    });
  }

  async read(after: number, { filter, max, bytesMax }: EventsWanted): Promise<EventsPage> {
    this.reads++;
    if (after + 1 < this.first) {
      throw new TenureError("LOG_COMPACTED", `Events before ${this.first} are not kept any more. Begin there.`);
    }
    return this.#page(after, { filter, max, bytesMax });
  }

  /** The last so many are in memory. */
  recentMax = 100;

  recent(after: number, wanted: EventsWanted): EventsPage | null {
    return after < this.head().sequence - this.recentMax ? null : this.#page(after, wanted);
  }

  #page(after: number, { filter, max, bytesMax }: EventsWanted): EventsPage {
    const events: EventsPage["events"][number][] = [];
    let through = after;
    let size = 0;
    while (through < this.head().sequence && through - after < max && size < bytesMax) {
      through++;
      const bytes = this.#bytes[through - 1] as Uint8Array;
      const { eventType, entityId, entityType } = JSON.parse(new TextDecoder().decode(bytes)) as EventDraft;
      if (!fits(filter, eventType, entityId, entityType)) continue;
      events.push({ sequence: through, eventType, bytes, eventHash: eventHashOf(bytes, digest) });
      size += bytes.length;
    }
    const hash = through === after ? null : eventHashOf(this.#bytes[through - 1] as Uint8Array, digest);
    return { events, through, hash };
  }

  arrived(after: number, signal: AbortSignal): Promise<void> {
    return new Promise((resolve) => {
      const look = (): void => {
        if (this.head().sequence <= after && !signal.aborted) return;
        this.#waiting.delete(look);
        signal.removeEventListener("abort", look);
        resolve();
      };
      this.#waiting.add(look);
      signal.addEventListener("abort", look);
      look();
    });
  }

  async arrivedOf(entityId: string, signal: AbortSignal): Promise<void> {
    const filter = { types: null, entityId, entityType: null };
    for (let seen = this.head().sequence; !signal.aborted;) {
      await this.arrived(seen, signal);
      const page = this.#page(seen, { filter, max: 1_000, bytesMax: 1_000_000 });
      if (page.events.length > 0) return;
      seen = page.through;
    }
  }

  async verify(progress: (sequence: number) => void, signal: AbortSignal): Promise<Verified> {
    const gone = new Promise<never>((_resolve, reject) => {
      signal.addEventListener("abort", () => reject(new Error("the verification was given up")));
    });
    await Promise.race([this.gate, gone]);
    const tree = new MerkleFrontier(digest);
    const verifier = new Verifier({ checkpoint: EMPTY_CHAIN, digest, tree });
    for (const [at, bytes] of this.#bytes.entries()) {
      if (!verifier.feed(at + 1, bytes)) break;
      progress(at + 1);
    }
    const { valid, firstBrokenSequence = 0, reason = "", head } = verifier.end(this.#sealer.head);
    if (!valid) return { valid: false, first: 1, firstBrokenSequence, reason };
    return { valid: true, first: 1, through: head.sequence, headHash: head.hash, root: hexOf(tree.root()) };
  }

  async inclusion(sequence: number, treeSize: number) {
    const path = inclusionProof(this.#leaves(), sequence - 1, treeSize, digest).map((hash) => hexOf(hash));
    const leaf = leafOf(this.#bytes[sequence - 1] as Uint8Array);
    return { sequence, treeSize, leafHash: hexOf(leaf), root: this.#root(treeSize), path };
  }

  async consistency(fromSize: number, treeSize: number) {
    const path = consistencyProof(this.#leaves(), fromSize, treeSize, digest).map((hash) => hexOf(hash));
    return { fromSize, treeSize, fromRoot: this.#root(fromSize), root: this.#root(treeSize), path };
  }

  #leaves() {
    return this.#bytes.map((bytes) => leafOf(bytes));
  }

  #root(size: number): string {
    const tree = new MerkleFrontier(digest);
    for (const bytes of this.#bytes.slice(0, size)) tree.appendLeafHash(leafOf(bytes));
    return hexOf(tree.root());
  }
}

/** A leaf is made of the event's hash. */
function leafOf(bytes: Uint8Array): Uint8Array {
  return leafHash(bytesOfHash(eventHashOf(bytes, digest)), digest);
}

function fits(filter: EventsFilter | null, type: string, entityId: string, entityType: string): boolean {
  if (filter === null) return true;
  const isType = (one: string): boolean => one === type || (one.endsWith("*") && type.startsWith(one.slice(0, -1)));
  if (filter.types !== null && !filter.types.some((one) => isType(one))) return false;
  if (filter.entityId !== null && filter.entityId !== entityId) return false;
  return filter.entityType === null || filter.entityType === entityType;
}
