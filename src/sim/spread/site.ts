// One simulated site: the production spread, over links that fail, and a store of sizes instead of events. As a real site it keeps the
// pages of others as they were cut, and serves them so; only the author cuts.
// States: down ⇄ up. What was applied survives; what waited to be applied, and the spread itself, do not.

import { assertNever } from "../../core/kit/assert.ts";
import type { Random } from "../../core/kit/random.ts";
import type { LineId } from "../../core/mesh/model.ts";
import { type Head, type PageFate, Spread, type SpreadEffect, type SpreadInput } from "../../core/mesh/spread/index.ts";
import { reached, type Scheduled, type World } from "../kernel/index.ts";
import type { End, Message, Receiver, SentPages, SimPage } from "./connection.ts";
import type { SpreadKnobs } from "./knobs.ts";
import { HEADS_EVERY_MS, SPREAD_PAGE_EVENTS_MAX, REQUEST_PAGES_MAX, SPREAD_WRITTEN_AFTER_MS } from "./limits.ts";
import type { SpreadOracle } from "./oracle.ts";

type Unstamped = SpreadInput extends infer I ? (I extends SpreadInput ? Omit<I, "nowMs"> : never) : never;

export interface SiteContext {
  readonly world: World;
  readonly oracle: SpreadOracle;
  readonly knobs: SpreadKnobs;
  readonly random: Random;
}

export class Site implements Receiver {
  readonly name: string;
  /** Of a writer. */
  readonly own: LineId | null;
  /** Applied, by line. */
  readonly sizes = new Map<LineId, number>();
  readonly ends = new Map<string, End>();
  /** Until then its pages are damaged on their way out. */
  damagedUntilMs = 0;
  /** Until then it can't read the pages that it has. */
  unreadableUntilMs = 0;
  readonly #context: SiteContext;
  readonly #kept = new Map<LineId, SimPage[]>();
  readonly #hops = new Map<LineId, number | undefined>();
  #spread: Spread | null = null;
  /** How far a line will be once what waits is applied. */
  #waiting = new Map<LineId, number>();
  #intake = 0;
  #applyMs = 0;
  #timer: Scheduled | null = null;

  constructor(name: string, isWriter: boolean, context: SiteContext) {
    this.name = name;
    this.own = isWriter ? `${name}.0` : null;
    this.#context = context;
  }

  get spread(): Spread | null {
    return this.#spread;
  }

  start(): void {
    if (this.#spread !== null) return;
    const spread = new Spread({ sizes: this.sizes, unwanted: this.own === null ? [] : [this.own] });
    this.#spread = spread;
    const firstMs = this.#context.random.between(0, HEADS_EVERY_MS);
    this.#after(firstMs, () => this.#reportHeads(spread));
  }

  /** The caller closes its connections. False: it was down already. */
  stop(): boolean {
    if (this.#spread === null) return false;
    this.#spread = null;
    this.#timer?.cancel();
    this.#timer = null;
    this.forget();
    return true;
  }

  /** What waits to be applied is lost, and nobody is notified of it. False: nothing waited. */
  forget(): boolean {
    this.#intake++;
    const isInVain = this.#waiting.size === 0;
    this.#waiting = new Map();
    return !isInVain;
  }

  wipe(): void {
    this.sizes.clear();
    this.#kept.clear();
  }

  /** One event of its own; the events of a line are numbered from 1. */
  write(): void {
    if (this.own === null || this.#spread === null) return;
    const size = (this.sizes.get(this.own) ?? 0) + 1;
    this.sizes.set(this.own, size);
    this.#context.oracle.written(this.own, size);
    this.#step({ kind: "have", line: this.own, size });
  }

  connected(end: End): void {
    this.ends.set(end.id, end);
    this.#step({ kind: "up", link: end.id, controller: end.peer });
    this.#reportTo(end);
  }

  disconnected(end: End): void {
    this.ends.delete(end.id);
    this.#context.oracle.closed(this, end);
    this.#step({ kind: "down", link: end.id });
  }

  receive(end: End, message: Message): void {
    const { oracle } = this.#context;
    oracle.heard(this, end, message);
    switch (message.kind) {
      case "pages":
        return this.#receivePages(end, message);
      case "heads":
        return this.#step({ kind: "heads", link: end.id, heads: message.heads });
      case "answer":
        return this.#step({ kind: "sent", link: end.id, line: message.line, outcome: message.outcome });
      case "graft":
        return this.#step({ kind: "graft", link: end.id, line: message.line, after: message.after });
      case "prune":
        return this.#step({ kind: "prune", link: end.id, line: message.line });
      default:
        return assertNever(message, "message");
    }
  }

  // Pages

  #receivePages(end: End, sent: SentPages): void {
    const { line, through } = sent;
    const size = this.#waiting.get(line) ?? this.sizes.get(line) ?? 0;
    const outcome = outcomeOf(sent, size);
    const { oracle } = this.#context;
    oracle.judged(this, end, line, outcome);
    if (outcome === "new") this.#take(sent, size);
    this.#step({ kind: "page", link: end.id, line, through, outcome });
    oracle.received(this, line);
    // A stream has no answers.
    if (end.isDialler) return;
    const answer = { new: { kind: "taken", through }, duplicate: { kind: "duplicate", through } } as const;
    const refused = outcome === "gap" ? ({ kind: "gap", have: size } as const) : ({ kind: "refused" } as const);
    end.send({
      kind: "answer",
      line,
      outcome: outcome === "new" || outcome === "duplicate" ? answer[outcome] : refused,
    });
  }

  #take({ line, through, pages }: SentPages, size: number): void {
    const { world, knobs, random, oracle } = this.#context;
    const intake = this.#intake;
    this.#waiting.set(line, through);
    // In the order of their arrival.
    this.#applyMs = Math.max(this.#applyMs, world.nowMs + random.between(0.1, knobs.applyMs));
    this.#after(this.#applyMs - world.nowMs, () => {
      if (this.#intake !== intake) return;
      this.sizes.set(line, through);
      if (this.#waiting.get(line) === through) this.#waiting.delete(line);
      for (const page of pages) this.#keep(line, page, size);
      oracle.applied(this, line, size, through, pages.at(-1)!.hops);
      this.#step({ kind: "have", line, size: through });
    });
  }

  #keep(line: LineId, page: SimPage, size: number): void {
    if (page.through <= size) return;
    const pages = this.#kept.get(line);
    if (pages === undefined) this.#kept.set(line, [page]);
    else pages.push(page);
  }

  /** What one request takes of the line after `after`. */
  #cut(line: LineId, after: number): readonly SimPage[] {
    const size = this.sizes.get(line) ?? 0;
    if (line === this.own) {
      return after < size ? [{ after, through: Math.min(size, after + SPREAD_PAGE_EVENTS_MAX), hops: 0 }] : [];
    }
    const pages = this.#kept.get(line) ?? [];
    let low = 0;
    let high = pages.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (pages[middle]!.through > after) high = middle;
      else low = middle + 1;
    }
    return pages.slice(low, low + REQUEST_PAGES_MAX);
  }

  // The spread

  #step(input: Unstamped): void {
    const spread = this.#spread;
    if (spread === null) return;
    const { world, oracle } = this.#context;
    if (input.kind === "sent") oracle.settled(this, input.link, input.line, input.outcome);
    const effects = spread.step({ ...input, nowMs: world.nowMs });
    for (const effect of effects) this.#act(effect, input.kind);
    if (this.#hasMoved(spread)) for (const end of this.ends.values()) this.#reportTo(end);
    oracle.stepped(this, spread);
    this.#arm(spread);
  }

  /** Whether it is nearer to a line's author than it was, or farther: links report that at once, or trees would follow a change a second for each level. */
  #hasMoved(spread: Spread): boolean {
    let hasMoved = false;
    for (const line of this.sizes.keys()) {
      const hops = spread.hops(line);
      if (hops === this.#hops.get(line)) continue;
      this.#hops.set(line, hops);
      hasMoved = true;
    }
    return hasMoved;
  }

  #arm(spread: Spread): void {
    const nextMs = spread.nextTimeMs();
    if (nextMs === null || (this.#timer?.pending === true && this.#timer.atMs <= nextMs)) return;
    this.#timer?.cancel();
    const { scheduler } = this.#context.world;
    this.#timer = scheduler.schedule(nextMs, scheduler.owner(this.name), () => this.#step({ kind: "time" }));
  }

  #act(effect: SpreadEffect, cause: SpreadInput["kind"]): void {
    const { oracle } = this.#context;
    const end = this.ends.get(effect.link);
    oracle.asked(this, effect, end, cause);
    if (end === undefined) return;
    switch (effect.kind) {
      case "graft":
        return end.send({ kind: "graft", line: effect.line, after: effect.after });
      case "prune":
        return end.send({ kind: "prune", line: effect.line });
      case "send":
        return this.#push(end, effect.line, effect.after);
      default:
        return assertNever(effect, "effect");
    }
  }

  #push(end: End, line: LineId, after: number): void {
    const { world, oracle } = this.#context;
    if (world.nowMs < this.unreadableUntilMs) reached(oracle.probes, "page-not-read");
    const isReadable = world.nowMs >= this.unreadableUntilMs;
    const pages = (isReadable ? this.#cut(line, after) : []).map((page) => ({ ...page, hops: page.hops + 1 }));
    const [first] = pages;
    const through = pages.at(-1)?.through ?? after;
    if (first !== undefined) {
      const isGood = world.nowMs >= this.damagedUntilMs;
      const sent = { kind: "pages", line, after: first.after, through, pages, isGood } as const;
      oracle.pushed(this, sent);
      end.send(sent);
    }
    if (end.isDialler && first !== undefined) return;
    const outcome = first === undefined ? ({ kind: "refused" } as const) : ({ kind: "taken", through } as const);
    this.#after(SPREAD_WRITTEN_AFTER_MS, () => {
      if (this.ends.has(end.id)) this.#step({ kind: "sent", link: end.id, line, outcome });
    });
  }

  // Heads

  #reportHeads(spread: Spread): void {
    if (this.#spread !== spread) return;
    for (const end of this.ends.values()) this.#reportTo(end);
    this.#after(HEADS_EVERY_MS, () => this.#reportHeads(spread));
  }

  #reportTo(end: End): void {
    const heads = [...this.sizes].map(([line, size]): Head => [line, size, this.#spread?.hops(line)]);
    const changed = heads.filter((head) => end.reported.get(head[0]) !== String(head));
    if (changed.length === 0) return;
    for (const head of changed) end.reported.set(head[0], String(head));
    end.send({ kind: "heads", heads: changed });
  }

  #after(afterMs: number, fire: () => void): void {
    const { scheduler } = this.#context.world;
    scheduler.schedule(scheduler.nowMs + afterMs, scheduler.owner(this.name), fire);
  }
}

function outcomeOf({ after, through, isGood }: SentPages, size: number): PageFate {
  if (!isGood) return "refused";
  if (through <= size) return "duplicate";
  return after > size ? "gap" : "new";
}
