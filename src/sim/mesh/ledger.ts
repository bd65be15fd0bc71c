// What is true in a simulated mesh: which events each site has committed, with their bytes; what clients were answered; and which arrival
// numbers events have at each site. Nodes report as they apply, and nothing is taken back, except by a disk that was restored.
//
// Invariants that are checked as nodes report:
// - All nodes of a site apply the same own events, and the same receipts, each at one place.
// - Arrival numbers of a site are 1, 2, 3, …, each of one event, the same on all nodes; an event of another site has one of them.
// - No event is further ahead of its site's clocks than what moves them may be, and no site expires: runs are shorter than a TTL.
// - What a client submits after events of others were applied has a later timestamp than those that are not too far ahead.

import { newEvents, type SealedReceipt } from "../../core/mesh/receipts/index.ts";
import type { World } from "../kernel/index.ts";
import { MESH_SKEW_MS_MAX } from "./limits.ts";

const textDecoder = new TextDecoder("utf-8", { fatal: true });
/** Events of one millisecond are a microsecond apart. */
const SEALED_MS = 10;
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

interface SiteBook {
  events: OwnEvent[];
  /** After a restore: each of them may go on otherwise from one place on. */
  mayRewrite: { events: boolean; receipts: boolean; arrivals: boolean };
  /** By arrival number: `own 5` or `<line> 5`. */
  arrivals: string[];
  /** The place of each, to find doubles. */
  places: Map<string, number>;
  receipts: string[];
  /** Sites that were evicted there, and when. */
  readonly evicted: Map<string, number>;
  /** How far a clock of it was ever ahead of the world's. */
  aheadMs: number;
}

interface LedgerStage {
  nodesOf(site: string): readonly string[];
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
  readonly #nodesOf: LedgerStage["nodesOf"];
  readonly #forked: LedgerStage["forked"];
  readonly #sites = new Map<string, SiteBook>();
  #acknowledged: Submission[] = [];
  /** By node: of the newest event of another site that moves its clock. */
  readonly #causes = new Map<string, number>();
  #acknowledgedCount = 0;
  /** Grows with everything that any node applies. */
  applied = 0;

  constructor(world: World, stage: LedgerStage) {
    this.#world = world;
    this.#nodesOf = (site) => stage.nodesOf(site);
    this.#forked = (site, node, text) => stage.forked(site, node, text);
  }

  get events(): number {
    return [...this.#sites.values()].reduce((sum, { events }) => sum + events.length, 0);
  }

  get acknowledgedCount(): number {
    return this.#acknowledgedCount;
  }

  hasEvicted(site: string, other: string): boolean {
    return this.#book(site).evicted.has(other);
  }

  /** The committed events of a site, by sequence. */
  of(site: string): readonly OwnEvent[] {
    return this.#book(site).events;
  }

  arrivals(site: string): readonly string[] {
    return this.#book(site).arrivals;
  }

  /** A node applies this event of its own site, after so many of others. */
  own(site: string, node: string, position: number, data: Uint8Array, foreign: number): void {
    this.applied++;
    const text = textDecoder.decode(data);
    const book = this.#book(site);
    const known = book.events[position - 1];
    if (known !== undefined && known.text !== text && !this.#rewritten(book, position))
      return this.#wrong(node, `applied another event ${position} than the others of its site`);
    if (known === undefined || known.text !== text) {
      if (position !== book.events.length + 1)
        return this.#wrong(node, `applied event ${position} after ${book.events.length}`);
      const { eventType, entityId, timestamp } = JSON.parse(text) as OwnEvent;
      book.events.push({ sequence: position, text, eventType, entityId, timestamp, atMs: this.#world.nowMs });
      this.#committed(site, node, { eventType, entityId, timestamp, text });
    }
    this.#arrives(site, node, position + foreign, `own ${position}`);
  }

  /** A node has sealed a receipt. `own`: of its own site's events, those that it had applied by then. */
  receipt(site: string, node: string, { receipt, hash }: SealedReceipt, own: number): void {
    this.applied++;
    const book = this.#book(site);
    const { receipts, evicted } = book;
    const { sequence, page, first } = receipt;
    if (receipt.own !== own)
      this.#wrong(node, `sealed receipt ${sequence} after ${receipt.own} own events instead of ${own}`);
    const known = receipts[sequence - 1];
    const evictedMs = evicted.get(page.line.slice(0, page.line.indexOf(".")));
    if (known === undefined && evictedMs !== undefined && this.#world.nowMs > evictedMs + UNDER_WAY_MS)
      return this.#wrong(node, `took a page of ${page.line}, whose site was evicted at ${evictedMs.toFixed(0)} ms`);
    if (known !== undefined && known !== hash && book.mayRewrite.receipts) {
      book.mayRewrite.receipts = false;
      receipts.splice(sequence - 1);
    } else if (known !== undefined && known !== hash)
      return this.#wrong(node, `sealed another receipt ${sequence} than the others of its site`);
    if (sequence > receipts.length + 1) return this.#wrong(node, `sealed receipt ${sequence} after ${receipts.length}`);
    receipts[sequence - 1] = hash;
    for (let at = 0; at < newEvents(receipt); at++)
      this.#arrives(site, node, receipt.own + receipt.foreign + at + 1, `${page.line} ${first + at}`);
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
    const aheadMs = this.#nodesOf(site).map((node) => this.#world.node(node).process.machine.wallMs() - nowMs);
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

  /** The disks of this site are those of an earlier time: what was acknowledged since may be lost to it. */
  restored(site: string): void {
    const book = this.#book(site);
    book.mayRewrite = { events: true, receipts: true, arrivals: true };
    this.#acknowledged = this.#acknowledged.filter((one) => one.site !== site);
  }

  /** Null: what clients were answered is committed, and after what caused it. */
  lost(): string | null {
    for (const { site, jobIds, afterMs } of this.#acknowledged) {
      for (const jobId of jobIds) {
        const event = this.of(site).find(
          ({ eventType, entityId }) => eventType === "build:submitted" && entityId === jobId,
        );
        if (event === undefined) return `${site} acknowledged the job ${jobId} and has not committed it`;
        if (event.timestamp <= afterMs)
          return `${site} submitted the job ${jobId} at ${event.timestamp}, after it had applied an event of ${afterMs}`;
      }
    }
    return null;
  }

  #committed(
    site: string,
    node: string,
    { eventType, entityId, timestamp, text }: Pick<OwnEvent, "eventType" | "entityId" | "timestamp" | "text">,
  ): void {
    const aheadMs = timestamp - this.clocks(site);
    if (aheadMs > MESH_SKEW_MS_MAX + SEALED_MS)
      this.#wrong(node, `sealed ${eventType} ${aheadMs.toFixed(0)} ms ahead of the clocks of its site`);
    if (eventType === "controller:expired") this.#wrong(node, `took ${entityId} for expired within a TTL`);
    if (eventType === "controller:evicted") this.#book(site).evicted.set(entityId, this.#world.nowMs);
    if (eventType === "controller:forked") this.#forked(site, node, text);
  }

  #book(site: string): SiteBook {
    const known = this.#sites.get(site);
    if (known !== undefined) return known;
    const book = {
      events: [],
      mayRewrite: { events: false, receipts: false, arrivals: false },
      arrivals: [],
      places: new Map<string, number>(),
      receipts: [],
      evicted: new Map<string, number>(),
      aheadMs: 0,
    };
    this.#sites.set(site, book);
    return book;
  }

  #rewritten(book: SiteBook, position: number): boolean {
    if (!book.mayRewrite.events) return false;
    book.mayRewrite.events = false;
    book.events = book.events.slice(0, position - 1);
    return true;
  }

  #arrives(site: string, node: string, arrival: number, event: string): void {
    const book = this.#book(site);
    const known = book.arrivals[arrival - 1];
    if (known !== undefined && known !== event && book.mayRewrite.arrivals) {
      book.mayRewrite.arrivals = false;
      book.arrivals = book.arrivals.slice(0, arrival - 1);
      book.places = new Map(book.arrivals.map((name, at) => [name, at + 1]));
    } else if (known !== undefined && known !== event)
      return this.#wrong(node, `gave ${event} the arrival number ${arrival}, which is that of ${known}`);
    const { arrivals, places } = book;
    if (arrival > arrivals.length + 1)
      return this.#wrong(node, `gave ${event} the arrival number ${arrival} after ${arrivals.length}`);
    const place = places.get(event);
    if (place !== undefined && place !== arrival)
      return this.#wrong(node, `gave ${event} two arrival numbers, ${place} and ${arrival}`);
    arrivals[arrival - 1] = event;
    places.set(event, arrival);
  }

  #wrong(node: string, what: string): void {
    this.#world.report(node, new Error(`${node} ${what}`));
  }
}
