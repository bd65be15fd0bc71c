// Who pushes which line to whom: epidemic broadcast trees (Plumtree), for append-only lines instead of single messages.
//
// For each line and each link there is a *lane*, with two flags that know nothing of each other:
//
//   incoming   the other side pushes the line to us: we asked for it (graft) and have not taken that back (prune)
//   outgoing   we push the line to the other side: it asked
//
// Every lane is born with neither. The receiver decides: it asks one link at once where a line has no incoming lane, and the line's own site
// whenever a link to it comes up; a duplicate page takes back that one direction; where others have more and nothing new comes for a
// second, it asks the next of them, and again a second later; a link with a shorter way to the author replaces the present one, or
// repairs would make trees ever deeper. Heads, which come every second, are what makes this safe: the flags only
// decide how fast a line travels.
//
// Invariants:
// - Memory is bounded by lines × links: a lane is a cursor (`size`, what the other side has), never a queue of pages.
// - One page is under way on a link; the lines of a link take turns.
// - A page is sent only where the other side asked and has less. Where nobody has less, nothing is sent.
// - Sending to a link ends or pauses, whatever it answers: it goes forward, or back once in REFUSED_PAUSE_MS, and else the line pauses there.
// - Only what makes a line longer counts as progress: duplicates and refused pages, however many, put off no graft.
// - The last incoming lane of a line is not pruned for a duplicate.

import { assertNever } from "../../kit/assert.ts";
import { TextMap } from "../../kit/keyed/text-map.ts";
import type { LineId } from "../model.ts";
import {
  GRAFT_AFTER_MS,
  GRAFT_AGAIN_MS_MAX,
  HOPS_SAVED_MIN,
  REFUSED_PAUSE_MS,
  SHORTER_WAY_AGAIN_MS,
} from "./limits.ts";
import type { Head, LinkId, PageFate, SentOutcome, SpreadEffect, SpreadInput } from "./messages.ts";

interface Line {
  readonly id: LineId;
  /** Applied here. */
  have: number;
  /** Arrived, at most waiting to be applied: what progress is measured by. */
  arrived: number;
  wanted: boolean;
  /** How far its author was, when that was known last. */
  nearest: number;
  readonly lanes: Map<LinkId, Lane>;
}

interface Link {
  readonly id: LinkId;
  readonly controller: string;
  readonly lanes: TextMap<Lane>;
  /** Lanes with something to send, in the order of their turns. */
  readonly ready: Set<Lane>;
  underWay: { readonly lane: Lane; readonly after: number } | null;
}

interface Lane {
  readonly line: Line;
  readonly link: Link;
  /** How much of the line the other side has, as far as is known here. */
  size: number;
  incoming: boolean;
  outgoing: boolean;
  /** From the line's author to the other side. */
  hops: number;
  /** Monotonic; of our last graft. */
  askedMs: number;
  /** How often the other side was asked and sent nothing new, while it claims to have more. */
  askedInVain: number;
  /** It was to bring the line, others had more, and nothing came: until then its way is not taken for a short one. */
  disbelievedUntilMs: number;
  /** The other side's pages had to be refused: it is not asked until then. */
  distrustedUntilMs: number;
  /** Monotonic; when a page was answered by a gap, and the line sent from there on at once. */
  wentBackMs: number;
}

/** A lane as others may see it. */
export interface LaneView {
  readonly link: LinkId;
  readonly line: LineId;
  readonly size: number;
  readonly incoming: boolean;
  readonly outgoing: boolean;
}

export interface SpreadOptions {
  /** What is applied here. */
  readonly sizes: Iterable<readonly [LineId, number]>;
  /** Lines that others are not asked for: the site's own first of all. */
  readonly unwanted: Iterable<LineId>;
}

export class Spread {
  readonly #lines = new TextMap<Line>();
  readonly #links = new Map<LinkId, Link>();
  /** Lines of which others have more, with the time of the next graft. In the order of these times, as all wait equally long. */
  readonly #lagging = new Map<Line, number>();
  /** Lanes whose last page was refused, with the end of the pause, in this order. */
  readonly #paused = new Map<Lane, number>();
  #nowMs = -Infinity;
  #effects: SpreadEffect[] = [];

  constructor({ sizes, unwanted }: SpreadOptions) {
    for (const [line, size] of sizes) this.#grow(this.#line(line), size);
    for (const line of unwanted) this.#line(line).wanted = false;
  }

  step(input: SpreadInput): readonly SpreadEffect[] {
    // The timers rely on their order.
    this.#nowMs = Math.max(this.#nowMs, input.nowMs);
    this.#effects = [];
    this.#apply(input);
    return this.#effects;
  }

  /** When `step` must be called with the time, if nothing else happens before. */
  nextTimeMs(): number | null {
    const [graftMs] = this.#lagging.values();
    const [pauseMs] = this.#paused.values();
    const nextMs = Math.min(graftMs ?? Infinity, pauseMs ?? Infinity);
    return nextMs === Infinity ? null : nextMs;
  }

  /** How many links this site is from the line's author; undefined where no page comes. Heads report it. */
  hops(id: LineId): number | undefined {
    const line = this.#lines.get(id);
    const hops = line === undefined ? Infinity : hopsTo(line);
    return hops === Infinity ? undefined : hops;
  }

  *lanes(): Iterable<LaneView> {
    for (const link of this.#links.values()) {
      for (const [, { line, size, incoming, outgoing }] of link.lanes.entries()) {
        yield { link: link.id, line: line.id, size, incoming, outgoing };
      }
    }
  }

  #apply(input: SpreadInput): void {
    switch (input.kind) {
      case "up":
        this.#down(input.link);
        this.#up(input.link, input.controller);
        return;
      case "down":
        return this.#down(input.link);
      case "have":
        return this.#have(this.#line(input.line), input.size);
      case "wanted":
        return this.#want(this.#line(input.line), input.wanted);
      case "time":
        return this.#onTime();
      case "heads":
      case "page":
      case "graft":
      case "prune":
      case "sent": {
        // What was under way when the link went down says nothing about the one that is connected now.
        const link = this.#links.get(input.link);
        if (link !== undefined) this.#applyTo(link, input);
        return;
      }
      default:
        return assertNever(input, "input of the spread");
    }
  }

  #applyTo(
    link: Link,
    input: Extract<SpreadInput, { readonly kind: "heads" | "page" | "graft" | "prune" | "sent" }>,
  ): void {
    switch (input.kind) {
      case "heads":
        for (const head of input.heads) this.#head(link, head);
        return;
      case "page":
        return this.#page(this.#lane(link, input.line), input.through, input.outcome);
      case "graft":
        return this.#grafted(this.#lane(link, input.line), input.after);
      case "prune": {
        const lane = this.#lane(link, input.line);
        lane.outgoing = false;
        return this.#offer(lane);
      }
      case "sent":
        return this.#sent(link, input.line, input.outcome);
      default:
        return assertNever(input, "input of a link");
    }
  }

  // Links

  #up(id: LinkId, controller: string): void {
    this.#links.set(id, { id, controller, lanes: new TextMap(), ready: new Set(), underWay: null });
  }

  #down(id: LinkId): void {
    const link = this.#links.get(id);
    if (link === undefined) return;
    this.#links.delete(id);
    for (const [, lane] of link.lanes.entries()) {
      lane.line.lanes.delete(id);
      this.#paused.delete(lane);
      if (!isAhead(lane.line)) this.#lagging.delete(lane.line);
    }
    for (const [, lane] of link.lanes.entries()) if (lane.incoming) this.#replace(lane.line);
  }

  #head(link: Link, [id, size, hops]: Head): void {
    const isFirst = !link.lanes.has(id);
    const lane = this.#lane(link, id);
    lane.hops = hops ?? Infinity;
    this.#reaches(lane, size);
    if (!lane.line.wanted) return;
    if (hopsTo(lane.line) < Infinity) lane.line.nearest = hopsTo(lane.line);
    // Also where the way that is in use became longer.
    const shortest = this.#shortest(lane.line);
    if (shortest !== undefined) return this.#replaceBy(shortest);
    if (lane.incoming || this.#isDistrusted(lane)) return;
    if ((isFirst && isOrigin(link, id)) || (!hasIncoming(lane.line) && isUseful(lane))) this.#graft(lane);
  }

  /** Of the links whose way to the author is shorter than the one in use. */
  #shortest(line: Line): Lane | undefined {
    let best: Lane | undefined;
    for (const lane of line.lanes.values()) {
      if (lane.hops < (best?.hops ?? Infinity) && this.#isShorter(lane)) best = lane;
    }
    return best;
  }

  #isShorter(lane: Lane): boolean {
    const { line, size, incoming, outgoing, hops } = lane;
    const isSource = !incoming && !outgoing && size >= line.have && hasIncoming(line) && !this.#isDistrusted(lane);
    const isBelieved = lane.disbelievedUntilMs <= this.#nowMs;
    const present = hopsTo(line);
    const isLess = present === Infinity ? hops + 1 <= line.nearest : hops + 1 + HOPS_SAVED_MIN <= present;
    return isSource && isBelieved && isLess;
  }

  #replaceBy(lane: Lane): void {
    for (const other of lane.line.lanes.values()) if (other.incoming) this.#prune(other);
    this.#graft(lane);
  }

  // Receiving

  #have(line: Line, size: number): void {
    if (size <= line.have) return;
    this.#grow(line, size);
    this.#progress(line);
    for (const lane of line.lanes.values()) {
      // What it claimed was true.
      if (lane.size <= line.have) lane.askedInVain = 0;
      this.#offer(lane);
    }
  }

  #page(lane: Lane, through: number, outcome: PageFate): void {
    const { line } = lane;
    switch (outcome) {
      case "new":
        this.#reaches(lane, through);
        if (through <= line.arrived) return;
        line.arrived = through;
        lane.askedInVain = 0;
        this.#progress(line);
        return this.#endMutual(lane);
      case "duplicate":
        this.#reaches(lane, through);
        if (!lane.incoming || incomingOf(line) > 1) this.#prune(lane);
        return;
      case "gap":
        // Each page that was under way before the first graft arrived is one more: one graft is enough for them.
        if (lane.incoming && this.#nowMs - lane.askedMs >= GRAFT_AFTER_MS) this.#graft(lane);
        return;
      case "refused":
        lane.distrustedUntilMs = this.#nowMs + REFUSED_PAUSE_MS;
        this.#prune(lane);
        return this.#replace(line);
      default:
        return assertNever(outcome, "outcome of a page");
    }
  }

  /**
   * Two sites that asked each other push nothing back, so no duplicate ever shows that one of the two has no other source. What came over
   * another link shows it.
   */
  #endMutual(source: Lane): void {
    for (const lane of source.line.lanes.values()) {
      if (lane !== source && source.incoming && lane.incoming && lane.outgoing) this.#prune(lane);
    }
  }

  #want(line: Line, wanted: boolean): void {
    line.wanted = wanted;
    if (wanted) {
      this.#watch(line);
      return this.#replace(line);
    }
    this.#lagging.delete(line);
    for (const lane of line.lanes.values()) if (lane.incoming) this.#prune(lane);
  }

  /** Where the line has no incoming lane any more, another link is asked at once: of those that can help, the nearest to the author. */
  #replace(line: Line): void {
    if (!line.wanted || hasIncoming(line)) return;
    const useful = [...line.lanes.values()].filter((lane) => isUseful(lane) && !this.#isDistrusted(lane));
    const [first, ...others] = useful;
    if (first !== undefined) this.#graft(others.reduce((best, lane) => (lane.hops < best.hops ? lane : best), first));
  }

  #onTime(): void {
    for (const [line, atMs] of this.#lagging) {
      if (atMs > this.#nowMs) break;
      this.#lagging.delete(line);
      for (const lane of line.lanes.values()) {
        if (lane.incoming) lane.disbelievedUntilMs = this.#nowMs + SHORTER_WAY_AGAIN_MS;
      }
      const next = this.#turn(line);
      if (next !== undefined) this.#graft(next);
      this.#watch(line);
    }
    for (const [lane, untilMs] of this.#paused) {
      if (untilMs > this.#nowMs) break;
      this.#paused.delete(lane);
      this.#offer(lane);
    }
  }

  /** Of those that have more: whoever was asked in vain least often; of these the nearest to the author, and then in turn. */
  #turn(line: Line): Lane | undefined {
    const able = [...line.lanes.values()].filter((lane) => lane.size > line.have && !this.#isDistrusted(lane));
    const ready = able.filter((lane) => this.#nowMs - lane.askedMs >= waitMsOf(lane));
    return ready.toSorted(byTurn)[0];
  }

  #graft(lane: Lane): void {
    const { line, link } = lane;
    // A way that is longer than the last one may lead through this site itself. It counts when the other side reports it again; until then
    // this site reports none, and nobody follows, or distances would count up together while an author is away.
    if (lane.hops + 1 > line.nearest) lane.hops = Infinity;
    lane.incoming = true;
    lane.askedInVain++;
    lane.askedMs = this.#nowMs;
    this.#effects.push({ kind: "graft", link: link.id, line: line.id, after: line.have });
  }

  #prune(lane: Lane): void {
    lane.incoming = false;
    this.#effects.push({ kind: "prune", link: lane.link.id, line: lane.line.id });
  }

  #isDistrusted({ distrustedUntilMs }: Lane): boolean {
    return distrustedUntilMs > this.#nowMs;
  }

  // Progress

  #grow(line: Line, size: number): void {
    line.have = Math.max(line.have, size);
    line.arrived = Math.max(line.arrived, line.have);
  }

  /** The wait begins anew. */
  #progress(line: Line): void {
    this.#lagging.delete(line);
    this.#watch(line);
  }

  #watch(line: Line): void {
    if (!line.wanted || this.#lagging.has(line) || !isAhead(line)) return;
    this.#lagging.set(line, this.#nowMs + GRAFT_AFTER_MS);
  }

  /** The other side has at least so much. */
  #reaches(lane: Lane, size: number): void {
    if (size <= lane.size) return;
    lane.size = size;
    this.#watch(lane.line);
    this.#offer(lane);
  }

  // Sending

  #grafted(lane: Lane, after: number): void {
    lane.outgoing = true;
    // It may have lost what we took it to have. What is above our own size is a claim that nobody signed.
    lane.size = after < lane.line.have ? after : Math.max(lane.size, lane.line.have);
    if (!isAhead(lane.line)) this.#lagging.delete(lane.line);
    this.#offer(lane);
  }

  #sent(link: Link, id: LineId, outcome: SentOutcome): void {
    const { underWay } = link;
    if (underWay === null || underWay.lane.line.id !== id) return;
    const { lane, after } = underWay;
    link.underWay = null;
    if (outcome.kind === "gap") lane.size = Math.min(outcome.have, lane.line.have);
    if (outcome.kind === "gap" && this.#mayGoBack(lane)) lane.wentBackMs = this.#nowMs;
    else if ("through" in outcome && outcome.through > after) this.#reaches(lane, outcome.through);
    // Also where a page brought nothing forward: it would be cut again, and again.
    else this.#paused.set(lane, this.#nowMs + REFUSED_PAUSE_MS);
    this.#offer(lane);
    this.#pump(link);
  }

  /** An honest gap is closed by the next page. Whoever answers with one again, whatever it took in between, would be sent to for ever. */
  #mayGoBack({ wentBackMs }: Lane): boolean {
    return this.#nowMs - wentBackMs >= REFUSED_PAUSE_MS;
  }

  /** Gives the lane a turn, or takes it back. */
  #offer(lane: Lane): void {
    const { link, line } = lane;
    const hasPage = lane.outgoing && lane.size < line.have && !this.#paused.has(lane) && link.underWay?.lane !== lane;
    if (!hasPage) {
      link.ready.delete(lane);
      return;
    }
    link.ready.add(lane);
    this.#pump(link);
  }

  #pump(link: Link): void {
    const [lane] = link.ready;
    if (link.underWay !== null || lane === undefined) return;
    link.ready.delete(lane);
    link.underWay = { lane, after: lane.size };
    this.#effects.push({ kind: "send", link: link.id, line: lane.line.id, after: lane.size });
  }

  // Lines and lanes, from the first time that they are named

  #line(id: LineId): Line {
    let line = this.#lines.get(id);
    if (line === undefined) {
      line = { id, have: 0, arrived: 0, wanted: true, nearest: Infinity, lanes: new Map() };
      this.#lines.set(id, line);
    }
    return line;
  }

  #lane(link: Link, id: LineId): Lane {
    let lane = link.lanes.get(id);
    if (lane === undefined) {
      const line = this.#line(id);
      lane = {
        line,
        link,
        size: 0,
        incoming: false,
        outgoing: false,
        hops: Infinity,
        askedMs: -Infinity,
        askedInVain: 0,
        disbelievedUntilMs: -Infinity,
        distrustedUntilMs: -Infinity,
        wentBackMs: -Infinity,
      };
      link.lanes.set(id, lane);
      line.lanes.set(link.id, lane);
    }
    return lane;
  }
}

/** Others have more. */
function isAhead({ lanes, have }: Line): boolean {
  for (const { size } of lanes.values()) if (size > have) return true;
  return false;
}

function incomingOf({ lanes }: Line): number {
  let count = 0;
  for (const { incoming } of lanes.values()) if (incoming) count++;
  return count;
}

function hasIncoming(line: Line): boolean {
  return incomingOf(line) > 0;
}

/** What is not asked for is the site's own, or goes nowhere. */
function hopsTo({ lanes, wanted }: Line): number {
  let least = wanted ? Infinity : 0;
  for (const { incoming, hops } of lanes.values()) if (incoming) least = Math.min(least, hops + 1);
  return least;
}

function byTurn(a: Lane, b: Lane): number {
  return a.askedInVain - b.askedInVain || a.hops - b.hops || a.askedMs - b.askedMs;
}

/** Whoever claims more, which nobody may have signed, and sends nothing is asked ever less often. */
function waitMsOf({ askedInVain }: Lane): number {
  return askedInVain === 0 ? 0 : Math.min(GRAFT_AFTER_MS * 2 ** (askedInVain - 1), GRAFT_AGAIN_MS_MAX);
}

/** It has more, or may get more from somewhere else than from us. */
function isUseful({ size, line, outgoing }: Lane): boolean {
  return size > line.have || (size > 0 && !outgoing);
}

/** The line is the other side's own (`<controller>.<hash>`). */
function isOrigin({ controller }: Link, line: LineId): boolean {
  return line.startsWith(`${controller}.`);
}
