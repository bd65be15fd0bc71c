// What is true in a simulated mesh: which events each site has committed, with their bytes; what clients were answered; and which arrival
// numbers events have at each site. Nodes report as they apply, and nothing is taken back, except by a disk that was restored: then the
// site has the history of that time again, and goes on from there. What others had of it by then stays the history of the line that it had.
//
// Invariants that are checked as nodes report:
// - All nodes of a site apply the same own events, and the same receipts, each at one place.
// - Arrival numbers of a site are 1, 2, 3, …, each of one event, the same on all nodes; an event of another site has one of them.
// - No event is further ahead of its site's clocks than what moves them may be.
// - A site expires only at its neighbours, and not within a TTL after one of them has answered its registration or heartbeat.
// - What a client submits after events of others were applied has a later timestamp than those that are not too far ahead.

import { newEvents, type SealedReceipt } from "../../core/mesh/receipts/index.ts";
import type { World } from "../kernel/index.ts";
import { MESH_SKEW_MS_MAX } from "./limits.ts";

const textDecoder = new TextDecoder("utf-8", { fatal: true });
/** Events of one millisecond are a microsecond apart. */
const SEALED_MS = 10;
/** Clocks drift, and an answer takes some time. */
const TTL_SHARE_MIN = 0.9;
/** A page that was verified before its site was evicted may be written after it. */
const UNDER_WAY_MS = 2_000;

export interface OwnEvent {
  readonly sequence: number;
  /** The canonical text. */
  readonly text: string;
  readonly eventType: string;
  readonly entityId: string;
  readonly timestamp: number;
  /** When the first node applied it. */
  readonly atMs: number;
}

/** What a site has applied. */
interface History {
  readonly events: OwnEvent[];
  /** By arrival number: `own 5` or `<line> 5`. */
  readonly arrivals: string[];
  /** The place of each, to find doubles. */
  readonly places: Map<string, number>;
  readonly receipts: string[];
}

/** A line whose site was restored. */
interface Restored {
  readonly line: string;
  readonly before: History;
  /** So much of the line each of the others had by then. */
  readonly had: ReadonlyMap<string, number>;
  /** And all of them together. */
  readonly exported: readonly OwnEvent[];
  /** The first event that is another one since; null: none yet. */
  from: number | null;
}

interface SiteBook {
  history: History;
  /** Null: its disks never went back. */
  restored: Restored | null;
  /** Sites that were evicted there, and when. */
  readonly evicted: Map<string, number>;
  /** When it has answered a registration or heartbeat of another site last. */
  readonly heard: Map<string, number>;
  /** How far a clock of it was ever ahead of the world's. */
  aheadMs: number;
}

interface LedgerStage {
  nodesOf(site: string): readonly string[];
  readonly ttlMs: number;
  /** Whoever it dials, and whoever dials it. */
  neighboursOf(site: string): readonly string[];
  /** A site has let another one's registration expire. */
  expired(): void;
  /** A node has applied this event, by which its own site calls another one forked. */
  forked(site: string, node: string, text: string): void;
}

interface Submission {
  readonly site: string;
  readonly jobIds: readonly string[];
  /** Of the newest event of another site that it must come after. */
  readonly afterMs: number;
}

export class Ledger {
  readonly #world: World;
  readonly #stage: LedgerStage;
  readonly #sites = new Map<string, SiteBook>();
  readonly #acknowledged: Submission[] = [];
  /** By node: of the newest event of another site that moves its clock. */
  readonly #causes = new Map<string, number>();
  #acknowledgedCount = 0;
  /** Grows with everything that any node applies. */
  applied = 0;

  constructor(world: World, stage: LedgerStage) {
    this.#world = world;
    this.#stage = stage;
  }

  get events(): number {
    return [...this.#sites.values()].reduce((sum, { history }) => sum + history.events.length, 0);
  }

  get acknowledgedCount(): number {
    return this.#acknowledgedCount;
  }

  heard(site: string, other: string): void {
    this.#book(site).heard.set(other, this.#world.nowMs);
  }

  hasEvicted(site: string, other: string): boolean {
    return this.#book(site).evicted.has(other);
  }

  /** The committed events of a site, by sequence. */
  of(site: string): readonly OwnEvent[] {
    return this.#book(site).history.events;
  }

  /** The one history that a line of this site has. */
  ofLine(site: string, line: string): readonly OwnEvent[] {
    const { history, restored } = this.#book(site);
    if (restored?.line !== line) return history.events;
    const { from, exported } = restored;
    // Where nobody has what is another one since, the line goes on.
    return exported.length < (from ?? history.events.length + 1) ? history.events : exported;
  }

  /** Of a site that was restored: the last event that its old line and the next one have in common; null: its line goes on. */
  endOf(site: string): number | null {
    const { restored } = this.#book(site);
    const from = restored?.from ?? null;
    return restored === null || from === null || restored.exported.length < from ? null : from - 1;
  }

  /** How much of that old line each of the others had when its site was restored. */
  hadOf(site: string): ReadonlyMap<string, number> {
    return this.#book(site).restored?.had ?? new Map();
  }

  /** Others have what a site that has so many own events has not, or has otherwise. */
  isBehind(site: string, have: number): boolean {
    const { restored } = this.#book(site);
    return restored !== null && restored.exported.length >= (restored.from ?? have + 1);
  }

  arrivals(site: string): readonly string[] {
    return this.#book(site).history.arrivals;
  }

  /** A node applies this event of its own site, after so many of others. */
  own(site: string, node: string, position: number, data: Uint8Array, foreign: number): void {
    this.applied++;
    const text = textDecoder.decode(data);
    const { history, restored } = this.#book(site);
    const { events } = history;
    if (restored !== null) goOn(events, restored.before.events, position);
    const known = events[position - 1];
    if (known !== undefined && known.text !== text)
      return this.#wrong(node, `applied another event ${position} than the others of its site`);
    if (known === undefined) {
      if (position !== events.length + 1) return this.#wrong(node, `applied event ${position} after ${events.length}`);
      const isBefore = restored?.before.events[position - 1]?.text === text;
      if (restored !== null && !isBefore) restored.from ??= position;
      const { eventType, entityId, timestamp } = JSON.parse(text) as OwnEvent;
      events.push({ sequence: position, text, eventType, entityId, timestamp, atMs: this.#world.nowMs });
      if (!isBefore) this.#committed(site, node, { eventType, entityId, timestamp, text });
    }
    this.#arrives(site, node, position + foreign, `own ${position}`);
  }

  /** A node has sealed a receipt. `own`: of its own site's events, those that it had applied by then. */
  receipt(site: string, node: string, { receipt, hash }: SealedReceipt, own: number): void {
    this.applied++;
    const { history, restored, evicted } = this.#book(site);
    const { receipts } = history;
    const { sequence, page, first } = receipt;
    if (receipt.own !== own)
      this.#wrong(node, `sealed receipt ${sequence} after ${receipt.own} own events instead of ${own}`);
    if (restored !== null) goOn(receipts, restored.before.receipts, sequence);
    const known = receipts[sequence - 1];
    const evictedMs = evicted.get(page.line.slice(0, page.line.indexOf(".")));
    if (known === undefined && evictedMs !== undefined && this.#world.nowMs > evictedMs + UNDER_WAY_MS)
      return this.#wrong(node, `took a page of ${page.line}, whose site was evicted at ${evictedMs.toFixed(0)} ms`);
    if (known !== undefined && known !== hash)
      return this.#wrong(node, `sealed another receipt ${sequence} than the others of its site`);
    if (sequence > receipts.length + 1) return this.#wrong(node, `sealed receipt ${sequence} after ${receipts.length}`);
    receipts[sequence - 1] = hash;
    for (let at = 0; at < newEvents(receipt); at++)
      this.#arrives(site, node, receipt.own + receipt.foreign + at + 1, `${page.line} ${first + at}`);
  }

  /** A node begins with a snapshot of so many own events, receipts, and events of others. */
  resumes(site: string, own: number, receipts: number, foreign: number): void {
    const { history, restored } = this.#book(site);
    if (restored === null) return;
    goOn(history.events, restored.before.events, own + 1);
    goOn(history.receipts, restored.before.receipts, receipts + 1);
    this.#goOnArriving(history, restored, own + foreign + 1);
  }

  /** This node has applied an event of another site with this timestamp; its leader had it at that time of its own clock. */
  caused(node: string, timestamp: number, arrivedMs: number): void {
    if (timestamp <= arrivedMs + MESH_SKEW_MS_MAX)
      this.#causes.set(node, Math.max(this.#causes.get(node) ?? 0, timestamp));
  }

  /** What a command that this node is given now must come after. */
  causeOf(node: string): number {
    return this.#causes.get(node) ?? 0;
  }

  /** The latest that a clock of this site would show now, had it never been set back. Asked before clocks jump, too. */
  clocks(site: string): number {
    const book = this.#book(site);
    const { nowMs } = this.#world;
    const aheadMs = this.#stage.nodesOf(site).map((node) => this.#world.node(node).process.machine.wallMs() - nowMs);
    book.aheadMs = Math.max(book.aheadMs, ...aheadMs);
    return nowMs + book.aheadMs;
  }

  /** The process of this node ended: what it had applied is read again. */
  ended(node: string): void {
    this.#causes.delete(node);
  }

  /** A client was answered: these jobs exist. */
  acknowledged(site: string, jobIds: readonly string[], afterMs: number): void {
    this.#acknowledgedCount += jobIds.length;
    this.#acknowledged.push({ site, jobIds, afterMs });
  }

  /** The disks of this site are those of an earlier time. Of its line others have so many events, and no more are on their way. */
  restored(site: string, line: string, had: ReadonlyMap<string, number>): void {
    const book = this.#book(site);
    const { history: before } = book;
    const exported = before.events.slice(0, Math.max(...had.values()));
    book.restored = { line, before, had, exported, from: null };
    book.history = emptyHistory();
  }

  /** Null: what clients were answered is committed, and after what caused it. */
  lost(): string | null {
    for (const { site, jobIds, afterMs } of this.#acknowledged) {
      for (const jobId of jobIds) {
        const event = this.of(site).find(
          ({ eventType, entityId }) => eventType === "build:submitted" && entityId === jobId,
        );
        if (event === undefined && this.#isLost(site, jobId)) continue;
        if (event === undefined) return `${site} acknowledged the job ${jobId} and has not committed it`;
        if (event.timestamp <= afterMs)
          return `${site} submitted the job ${jobId} at ${event.timestamp}, after it had applied an event of ${afterMs}`;
      }
    }
    return null;
  }

  /** Acknowledged before the disks went back, and not on them: it is with the others, if they had it by then. */
  #isLost(site: string, jobId: string): boolean {
    const { restored } = this.#book(site);
    const before = restored?.before.events.find(
      ({ eventType, entityId }) => eventType === "build:submitted" && entityId === jobId,
    );
    return before !== undefined && before.sequence >= (restored?.from ?? Infinity);
  }

  #committed(
    site: string,
    node: string,
    { eventType, entityId, timestamp, text }: Pick<OwnEvent, "eventType" | "entityId" | "timestamp" | "text">,
  ): void {
    const aheadMs = timestamp - this.clocks(site);
    if (aheadMs > MESH_SKEW_MS_MAX + SEALED_MS)
      this.#wrong(node, `sealed ${eventType} ${aheadMs.toFixed(0)} ms ahead of the clocks of its site`);
    if (eventType === "controller:expired") this.#expired(site, node, entityId);
    if (eventType === "controller:evicted") this.#book(site).evicted.set(entityId, this.#world.nowMs);
    if (eventType === "controller:recovered") this.#renewed(site, node, text);
    if (eventType === "controller:forked") this.#stage.forked(site, node, text);
  }

  /** By the clock of the leader there, which may be a little faster than the world's. */
  #expired(site: string, node: string, other: string): void {
    this.#stage.expired();
    if (!this.#stage.neighboursOf(site).includes(other)) {
      this.#wrong(node, `took ${other} for expired, which never registers there`);
    }
    const silentMs = this.#world.nowMs - (this.#book(site).heard.get(other) ?? -Infinity);
    if (silentMs < TTL_SHARE_MIN * this.#stage.ttlMs) this.#wrong(node, `took ${other} for expired within a TTL`);
  }

  /** What the next generation takes from the line before is what the others have too. */
  #renewed(site: string, node: string, text: string): void {
    const { through } = (JSON.parse(text) as { readonly payload: { readonly through: number } }).payload;
    const end = this.endOf(site);
    if (end === null) this.#wrong(node, "began a new line, and nobody has more of the old one than it has");
    else if (through > end) this.#wrong(node, `ended its line at ${through}: the others have another event ${end + 1}`);
  }

  #book(site: string): SiteBook {
    const known = this.#sites.get(site);
    if (known !== undefined) return known;
    const book: SiteBook = {
      history: emptyHistory(),
      restored: null,
      evicted: new Map<string, number>(),
      heard: new Map<string, number>(),
      aheadMs: 0,
    };
    this.#sites.set(site, book);
    return book;
  }

  #arrives(site: string, node: string, arrival: number, event: string): void {
    const { history, restored } = this.#book(site);
    const { arrivals, places } = history;
    if (restored !== null) this.#goOnArriving(history, restored, arrival);
    const known = arrivals[arrival - 1];
    if (known !== undefined && known !== event)
      return this.#wrong(node, `gave ${event} the arrival number ${arrival}, which is that of ${known}`);
    if (arrival > arrivals.length + 1)
      return this.#wrong(node, `gave ${event} the arrival number ${arrival} after ${arrivals.length}`);
    const place = places.get(event);
    if (place !== undefined && place !== arrival)
      return this.#wrong(node, `gave ${event} two arrival numbers, ${place} and ${arrival}`);
    arrivals[arrival - 1] = event;
    places.set(event, arrival);
  }

  #goOnArriving({ arrivals, places }: History, { before }: Restored, arrival: number): void {
    const from = arrivals.length;
    goOn(arrivals, before.arrivals, arrival);
    for (const [at, name] of arrivals.slice(from).entries()) places.set(name, from + at + 1);
  }

  #wrong(node: string, what: string): void {
    this.#world.report(node, new Error(`${node} ${what}`));
  }
}

function emptyHistory(): History {
  return { events: [], arrivals: [], places: new Map(), receipts: [] };
}

/** A node whose disk went back begins with what a snapshot has: up to this place, all is as it was. */
function goOn<T>(now: T[], before: readonly T[], place: number): void {
  while (now.length < place - 1 && now.length < before.length) now.push(before[now.length]!);
}
