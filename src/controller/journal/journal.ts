// A site's journal: the chain of its events, and the tenants whose state they are. The same on every node.
//
//   drafts ──▶ sealed after the head, tenants propose ──▶ the log ──▶ a record
//   a record ──▶ links onto the chain? ──▶ tenants apply ──▶ whoever follows (views, SSE, the leader's timers)
//                 │ no: the log is damaged; the node must not go on
//
// The leader knows its own events before they are committed: when they come back as records of its epoch nothing is parsed or
// hashed again. Whatever else comes, what was proposed is undone first. What is sealed and not committed is here and nowhere else
// (the tail): whoever appends names it by its place, and takes its bytes when it sends them.
//
// Invariants:
// - All of it is of the same sequence, the position of the last record.
// - The tail lies directly after it, in order, all of one epoch: the only one that may append. The sealer's head is its end.

import { assert } from "../../core/kit/assert.ts";
import { ByteReader, ByteWriter } from "../../core/kit/bytes.ts";
import { TenureError } from "../../core/kit/errors.ts";
import { SNAPSHOT_BYTES_MAX } from "../../core/kit/limits.ts";
import { joined, partsOf, type Pieces, readPart } from "../../core/kit/pieces.ts";
import {
  chainBroken,
  type ChainEvent,
  type ChainHead,
  checkLink,
  EMPTY_CHAIN,
  type EventDraft,
  isLifted,
  type SealedEvent,
  Sealer,
} from "../../core/events/index.ts";
import type { Digest } from "../../ports/digest.ts";
import type { Fold, LogHead, LogRecord } from "../../ports/log.ts";
import * as limits from "./limits.ts";
import type { LargeTenant, Tenant } from "./tenant.ts";

/** The n-th version has the states of the first n of these, without their names. */
const UNNAMED = ["keys", "certificates"];
/** With names; written only where there are others than those, and then every member reads it. */
const SNAPSHOT_VERSION_OF_NAMES = 3;

/** Of the site itself. */
const OWN_TYPES = ["controller:recovered"];
const NO_BYTES = new Uint8Array(0);

/** Who writes: the leader of this epoch, in the name of the site's incarnation. */
export interface Author {
  readonly epoch: number;
  readonly author: string;
}

/** What one decision has put into the tail. */
export interface Proposed {
  /** The chain before its first event. */
  readonly before: ChainHead;
  readonly events: number;
  readonly bytes: number;
}

export class Journal implements Fold {
  readonly #digest: Digest;
  readonly #tenants: readonly Tenant[];
  readonly #large: LargeTenant | null;
  readonly #all: readonly (Tenant | LargeTenant)[];
  readonly #floorMs: () => number;
  /** All that it knows. */
  readonly eventTypes: ReadonlySet<string>;
  readonly #followers = new Set<(applied: SealedEvent) => void>();
  readonly #restored = new Set<() => void>();
  #chain: ChainHead = EMPTY_CHAIN;
  #isLifted = false;
  #tail: (Author & { readonly sealer: Sealer; readonly events: SealedEvent[] }) | null = null;

  /** `floorMs`: above it lie the timestamps of all events that are sealed from now on (core/events/chain.ts). */
  constructor(
    digest: Digest,
    tenants: readonly Tenant[],
    large: LargeTenant | null = null,
    floorMs: () => number = () => 0,
  ) {
    this.#digest = digest;
    this.#floorMs = floorMs;
    this.#tenants = tenants;
    this.#large = large;
    this.#all = large === null ? tenants : [...tenants, large];
    const types = [...OWN_TYPES, ...this.#all.flatMap(({ eventTypes }) => eventTypes)];
    this.eventTypes = new Set(types);
    assert(this.eventTypes.size === types.length, "a type of events has one tenant", () => types.join());
    assert(new Set(this.#all.map(({ name }) => name)).size === this.#all.length, "tenants have names of their own");
  }

  /** The last committed event's. */
  get chain(): ChainHead {
    return this.#chain;
  }

  /**
   * The last event's timestamp is that of another site's event, and a tick: it says nothing about the time here. A follower may ask this
   * while it hears of that event.
   */
  get isLifted(): boolean {
    return this.#isLifted;
  }

  /** Called with every event after it is applied, in order; must not throw. */
  follow(tell: (applied: SealedEvent) => void): () => void {
    this.#followers.add(tell);
    return () => void this.#followers.delete(tell);
  }

  /** Called when a snapshot has taken the place of everything: events between were not passed on. */
  onRestored(tell: () => void): () => void {
    this.#restored.add(tell);
    return () => void this.#restored.delete(tell);
  }

  // ---- the leader's tail ---------------------------------------------------------------------------

  /** Seals what one decision writes and has the tenants evolve: all of it. Where it throws, nothing has changed. */
  propose({ epoch, author }: Author, drafts: readonly EventDraft[]): Proposed {
    if (this.#tail?.epoch !== epoch) {
      this.rollback();
      this.#tail = null;
    }
    if (this.#tail?.author !== author) {
      const [digest, floorMs] = [this.#digest, this.#floorMs];
      const { head, events } = { head: this.#tail?.sealer.head ?? this.#chain, events: this.#tail?.events ?? [] };
      const sealer = new Sealer({ head, sourceControllerId: author, leaderEpoch: epoch, digest, floorMs });
      this.#tail = { epoch, author, sealer, events };
    }
    const { sealer, events } = this.#tail;
    const before = sealer.head;
    const sealed = this.#seal(sealer, drafts);
    events.push(...sealed);
    const proposed = sealed.map(({ event }) => event);
    for (const tenant of this.#all) tenant.propose?.(proposed);
    return { before, events: sealed.length, bytes: bytesOf(sealed) };
  }

  /** The bytes of so many events of the tail, after this sequence; null: another epoch's record, or a snapshot, came first. */
  tailAfter(sequence: number, count: number): readonly Uint8Array[] | null {
    const events = this.#tail?.events ?? [];
    const from = events.length - (lastSequence(events) - sequence);
    if (from < 0 || from + count > events.length) return null;
    return events.slice(from, from + count).map(({ bytes }) => bytes);
  }

  /** What was proposed after this sequence never came to be, or is not ours to know any more: these events. */
  rollback(to = this.#chain.sequence): readonly SealedEvent[] {
    for (const tenant of this.#all) tenant.undo?.(to);
    const tail = this.#tail;
    if (tail === null) return [];
    const kept = Math.max(0, tail.events.length - Math.max(0, lastSequence(tail.events) - to));
    const takenBack = tail.events.splice(kept);
    const last = tail.events.at(-1);
    if (last === undefined) this.#tail = null;
    else tail.sealer.rewind(headOf(last.event));
    return takenBack;
  }

  #seal(sealer: Sealer, drafts: readonly EventDraft[]): SealedEvent[] {
    const before = sealer.head;
    try {
      const sealed = drafts.map((draft) => sealer.seal(draft));
      const bytes = bytesOf(sealed);
      assert(
        drafts.every(({ eventType }) => this.eventTypes.has(eventType)),
        "what is written has a tenant",
      );
      if (bytes <= limits.DECISION_BYTES_MAX && sealed.length <= limits.DECISION_EVENTS_MAX) return sealed;
      throw new TenureError(
        "PAYLOAD_TOO_LARGE",
        `This would write ${sealed.length} events of ${bytes} bytes; at once ${limits.DECISION_EVENTS_MAX} and ${limits.DECISION_BYTES_MAX} are possible. Nothing was done: send less at a time.`,
      );
    } catch (error) {
      sealer.rewind(before);
      throw error;
    }
  }

  // ---- the fold ------------------------------------------------------------------------------------

  apply(record: LogRecord): void {
    const tail = this.#tail;
    const isOwn = tail !== null && tail.epoch === record.epoch;
    if (!isOwn) this.rollback();
    const sealed = isOwn ? tail.events.shift() : this.#checked(record);
    assert(sealed !== undefined, "a record of our epoch is one that we have proposed", () => String(record.position));
    const { event } = sealed;
    assert(event.sequence === record.position, "an event's sequence is its place in the log");
    for (const tenant of this.#all) tenant.apply(event, isOwn);
    this.#isLifted = isLifted(event.timestamp, this.#chain, this.#floorMs(), this.#isLifted);
    this.#chain = headOf(event);
    for (const tell of this.#followers) tell(sealed);
  }

  #checked({ position, data }: LogRecord): SealedEvent {
    const checked = checkLink(this.#chain, data, this.#digest);
    if (checked.kind === "broken") throw chainBroken(position, checked.reason);
    const { event } = checked;
    if (this.eventTypes.has(event.eventType)) return { event, bytes: data };
    throw new TenureError(
      "FORMAT_UNSUPPORTED",
      `Event ${position} is a "${event.eventType}", which this release does not know. It stops, because others have applied it: upgrade this node.`,
    );
  }

  // ---- snapshots -----------------------------------------------------------------------------------

  /** Of this moment. */
  snapshot(): Pieces {
    const { sequence, timestamp, hash } = this.#chain;
    const states = this.#tenants.flatMap((tenant) => {
      const state = tenant.snapshot();
      return state === null ? [] : [[tenant.name, state] as const];
    });
    const isNamed = states.length === 0 || states.some(([name], at) => name !== UNNAMED[at]);
    const writer = new ByteWriter(limits.JOURNAL_HEADER_BYTES_MAX);
    writer.u8(isNamed ? SNAPSHOT_VERSION_OF_NAMES : states.length);
    writer.uint53(sequence);
    writer.text(String(timestamp));
    writer.text(hash ?? "");
    if (isNamed) writer.u32(states.length);
    for (const [name, state] of states) {
      if (isNamed) writer.text(name);
      writer.text(state);
    }
    return joined(writer.finish(), partsOf([this.#large?.snapshot() ?? NO_BYTES]));
  }

  *prepare(data: Uint8Array): Generator<void, void, void> {
    const { head, large } = readSnapshot(data);
    if (this.#large !== null) yield* this.#large.prepare(large, head.timestamp);
  }

  restore(data: Uint8Array, { position }: LogHead): void {
    const { head, states, large } = readSnapshot(data);
    assert(head.sequence === position, "a snapshot's state is of its own position");
    const strange = [...states.keys()].find((name) => !this.#tenants.some((tenant) => tenant.name === name));
    if (strange !== undefined) {
      const text = `A snapshot has a state of "${strange}", which this release does not know: use the release that wrote it, or a newer one.`;
      throw new TenureError("FORMAT_UNSUPPORTED", text);
    }
    this.rollback();
    for (const tenant of this.#tenants) tenant.restore(states.get(tenant.name) ?? null);
    this.#large?.restore(large, head);
    this.#chain = head;
    this.#isLifted = false;
    for (const tell of this.#restored) tell();
  }
}

interface Snapshot {
  readonly head: ChainHead;
  /** By tenant. */
  readonly states: ReadonlyMap<string, string>;
  readonly large: Uint8Array;
}

function readSnapshot(data: Uint8Array): Snapshot {
  const reader = new ByteReader(data);
  const version = reader.u8();
  if (version < 1 || version > SNAPSHOT_VERSION_OF_NAMES) {
    const known = `this release knows 1 to ${SNAPSHOT_VERSION_OF_NAMES}`;
    throw new TenureError("FORMAT_UNSUPPORTED", `A snapshot of jobs of version ${version}: ${known}.`);
  }
  const sequence = reader.uint53();
  const timestamp = Number(reader.text(limits.TENANT_NAME_BYTES_MAX));
  const hash = reader.text(limits.TENANT_NAME_BYTES_MAX);
  const isNamed = version === SNAPSHOT_VERSION_OF_NAMES;
  const count = isNamed ? Math.min(reader.u32(), limits.TENANTS_MAX) : version;
  const states = new Map<string, string>();
  for (let at = 0; at < count; at++) {
    const name = isNamed ? reader.text(limits.TENANT_NAME_BYTES_MAX) : UNNAMED[at]!;
    states.set(name, reader.text(limits.TENANT_STATE_BYTES_MAX));
  }
  const head = { sequence, timestamp, hash: hash === "" ? null : hash };
  return { head, states, large: readPart(reader, SNAPSHOT_BYTES_MAX) };
}

function headOf({ sequence, eventHash, timestamp }: ChainEvent): ChainHead {
  return { sequence, hash: eventHash, timestamp };
}

function lastSequence(events: readonly SealedEvent[]): number {
  return events.at(-1)?.event.sequence ?? 0;
}

function bytesOf(events: readonly SealedEvent[]): number {
  return events.reduce((sum, { bytes }) => sum + bytes.length, 0);
}
