// Which job next: pending jobs that are ready, by class and lane; those whose time has not come, by time; and how many run
// for each concurrency key. Only an index: it can be built again from the records at any time, and no snapshot has it.
//
// There are two kinds of time. A backoff is a duration: it ends by the events' own clock, which goes on where the last leader
// left it. A `notBefore` is a date that somebody wrote down: it comes by the leader's wall clock and by nothing else.
//
// Invariants:
// - Exactly the pending jobs are in it, each once, by their slots: `placeOf` says where.
// - A ready job's time has come. That of one that waits for it may have come too: at most so many are moved at once, because
//   at midnight a million may be due.

import { Shards } from "../../kit/keyed/shards.ts";
import { Ranked } from "./ranked.ts";
import type { JobClass, Lane } from "./job-class.ts";
import type { JobRecord, Ticket } from "./records.ts";
import type { Shelf } from "../shelf/shelf.ts";
import { PLACE, type Slots } from "../shelf/slots.ts";

/** The jobs with one concurrency key. */
interface Gate {
  running: number;
  /** Lanes that are not empty, by their limit: a change of `running` opens or closes those of one limit. */
  readonly lanes: Map<number, Set<Lane>>;
}

const NO_CLASSES: ReadonlySet<JobClass> = new Set();

export class Ready {
  readonly #shelf: Shelf;
  readonly #slots: Slots;
  readonly #timed: Ranked<number>;
  readonly #dated: Ranked<number>;
  readonly #gates = new Shards<Gate>();
  /** Classes with an open lane. */
  readonly #byKind = new Map<string, Set<JobClass>>();
  /** The latest that was seen of the events' clock. */
  #nowMs = 0;

  constructor(shelf: Shelf) {
    this.#shelf = shelf;
    this.#slots = shelf.slots;
    this.#timed = new Ranked<number>(shelf.slots.byDueTime);
    this.#dated = new Ranked<number>(shelf.slots.byDueTime);
  }

  /** The job that goes first, of two slots. */
  get rank(): (one: number, other: number) => number {
    return this.#slots.rank;
  }

  /** When the next backoff ends, by the events' clock. */
  get nextTimedMs(): number {
    return this.#nextMs(this.#timed);
  }

  /** When the next date comes, by the wall clock. */
  get nextDatedMs(): number {
    return this.#nextMs(this.#dated);
  }

  #nextMs({ first }: Ranked<number>): number {
    return first === undefined ? Infinity : this.#slots.dueMsOf(first);
  }

  runningWith(key: string): number {
    return this.#gates.get(key)?.running ?? 0;
  }

  /** Those with a job that may run now. */
  get kinds(): Pick<ReadonlyMap<string, unknown>, "size" | "has" | "keys"> {
    return this.#byKind;
  }

  classesWith(kind: string): ReadonlySet<JobClass> {
    return this.#byKind.get(kind) ?? NO_CLASSES;
  }

  /** Moves at most `max` whose backoff is over. */
  advance(nowMs: number, max: number): void {
    this.#nowMs = Math.max(this.#nowMs, nowMs);
    this.#move(this.#timed, this.#nowMs, max);
  }

  /** Moves at most `max` whose date has come. A clock that goes back takes nothing back. */
  advanceDates(wallMs: number, max: number): void {
    this.#move(this.#dated, wallMs, max);
  }

  #move(waiting: Ranked<number>, untilMs: number, max: number): void {
    for (let moved = 0; moved < max; moved++) {
      const slot = waiting.first;
      if (slot === undefined || this.#slots.dueMsOf(slot) > untilMs) return;
      waiting.remove(slot);
      this.#enter(slot, this.#shelf.at(slot).ticket);
    }
  }

  /** The job is pending now. */
  add(slot: number, { ticket, readyAtMs }: JobRecord): void {
    const isDated = ticket.notBeforeMs === readyAtMs;
    if (!isDated && readyAtMs <= this.#nowMs) return this.#enter(slot, ticket);
    this.#slots.setDueMs(slot, readyAtMs);
    this.#slots.setPlace(slot, isDated ? PLACE.dated : PLACE.timed);
    (isDated ? this.#dated : this.#timed).add(slot);
  }

  remove(slot: number, { ticket }: JobRecord): void {
    const place = this.#slots.placeOf(slot);
    if (place === PLACE.timed) this.#timed.remove(slot);
    else if (place === PLACE.dated) this.#dated.remove(slot);
    else this.#leave(slot, ticket);
    this.#slots.setPlace(slot, PLACE.none);
  }

  /** The job holds a place of its key, or gives it up. */
  occupy({ concurrencyKey: key }: Ticket, by: 1 | -1): void {
    if (key === null) return;
    const gate = this.#gateOf(key);
    const before = gate.running;
    gate.running += by;
    const limit = Math.max(before, gate.running);
    for (const lane of gate.lanes.get(limit) ?? []) this.#review(lane);
    this.#dropIfIdle(key, gate);
  }

  // ---- lanes ---------------------------------------------------------------------------------------

  #enter(slot: number, ticket: Ticket): void {
    const lane = ticket.class.laneOf(ticket);
    const { first } = lane.slots;
    const isFirst = first === undefined || this.#slots.rank(slot, first) < 0;
    if (isFirst) this.#close(lane);
    lane.slots.add(slot);
    this.#slots.setPlace(slot, PLACE.ready);
    if (!isFirst) return;
    if (first === undefined && lane.key !== null) this.#atGate(lane, lane.key);
    this.#review(lane);
  }

  #leave(slot: number, ticket: Ticket): void {
    const lane = ticket.class.laneOf(ticket);
    if (lane.slots.first !== slot) return lane.slots.remove(slot);
    this.#close(lane);
    lane.slots.remove(slot);
    if (lane.slots.size > 0) return this.#review(lane);
    lane.class.drop(lane);
    if (lane.key === null) return;
    const gate = this.#gateOf(lane.key);
    const lanes = gate.lanes.get(lane.limit);
    lanes?.delete(lane);
    if (lanes?.size === 0) gate.lanes.delete(lane.limit);
    this.#dropIfIdle(lane.key, gate);
  }

  #atGate(lane: Lane, key: string): void {
    const { lanes } = this.#gateOf(key);
    const same = lanes.get(lane.limit);
    if (same === undefined) lanes.set(lane.limit, new Set([lane]));
    else same.add(lane);
  }

  /** Opens it or closes it, as its key and its jobs ask for. */
  #review(lane: Lane): void {
    const hasRoom = lane.key === null || this.runningWith(lane.key) < lane.limit;
    if (!hasRoom || lane.slots.size === 0) return this.#close(lane);
    if (lane.isOpen) return;
    lane.isOpen = true;
    const { open, kind } = lane.class;
    open.add(lane);
    if (open.size > 1) return;
    const classes = this.#byKind.get(kind);
    if (classes === undefined) this.#byKind.set(kind, new Set([lane.class]));
    else classes.add(lane.class);
  }

  #close(lane: Lane): void {
    if (!lane.isOpen) return;
    lane.isOpen = false;
    const { open, kind } = lane.class;
    open.remove(lane);
    if (open.size > 0) return;
    const classes = this.#byKind.get(kind);
    classes?.delete(lane.class);
    if (classes?.size === 0) this.#byKind.delete(kind);
  }

  #gateOf(key: string): Gate {
    let gate = this.#gates.get(key);
    if (gate === undefined) this.#gates.set(key, (gate = { running: 0, lanes: new Map<number, Set<Lane>>() }));
    return gate;
  }

  #dropIfIdle(key: string, gate: Gate): void {
    if (gate.running === 0 && gate.lanes.size === 0) this.#gates.delete(key);
  }
}
