// What must hold in every run of spreading sites, looked at after every step, and what is measured.
//
// 1 a page is sent only over a link whose other side asked for the line, and one at a time · 2 no site asks for its own line · 3 a line that
// has something to send is passed over by each other line at most once · 4 state is bounded by links × lines · 5 nothing is applied that was
// not written · 6 a duplicate does not end the last link over which a line comes · and in the silence after the faults: 7 every site has everything, 8 nothing but heads is sent, 9 both ends of a link agree who
// pushes, 10 each line reaches each site over exactly one link, and 11 on a shortest way.

import type { LineId } from "../../core/mesh/model.ts";
import type { PageFate, SentOutcome, Spread, SpreadEffect, SpreadInput } from "../../core/mesh/spread/index.ts";
import { reached, type World } from "../kernel/index.ts";
import type { End, Message, SentPages } from "./connection.ts";
import type { Probe } from "./probes.ts";
import type { Site } from "./site.ts";
import { distancesFrom, type Edge } from "./topology.ts";

/** A refused page waits longer than others: its line is not passed over. (The production constant is 5 s.) */
const REFUSED_EXCUSED_MS = 5_000;

type Key = `${string} ${string} ${LineId}`;

export class SpreadOracle {
  readonly probes: Partial<Record<Probe, number>> = {};
  /** By line, when each event was written. */
  readonly writtenMs = new Map<LineId, number[]>();
  readonly latenciesMs: number[] = [];
  hopsMax = 0;
  /** Events that were sent, counted once for each time. */
  sends = 0;
  lastSendMs = 0;
  lastRequestMs = 0;
  readonly #world: World;
  readonly #isCrowd: boolean;
  readonly #asked = new Set<Key>();
  readonly #underWay = new Map<string, LineId>();
  readonly #passed = new Map<Key, number>();
  readonly #excusedUntilMs = new Map<Key, number>();
  /** Links over which the line of a duplicate came before it was judged. */
  #sources = 0;

  constructor(world: World, isCrowd: boolean) {
    this.#world = world;
    this.#isCrowd = isCrowd;
  }

  get events(): number {
    return [...this.writtenMs.values()].reduce((sum, { length }) => sum + length, 0);
  }

  written(line: LineId, size: number): void {
    const times = this.writtenMs.get(line) ?? [];
    this.writtenMs.set(line, times);
    times[size - 1] = this.#world.nowMs;
  }

  heard(site: Site, end: End, message: Message): void {
    if (message.kind === "graft") this.#asked.add(keyOf(site, end.id, message.line));
    if (message.kind === "prune") this.#asked.delete(keyOf(site, end.id, message.line));
  }

  judged(site: Site, end: End, line: LineId, outcome: PageFate): void {
    this.#sources = outcome === "duplicate" ? sourcesOf(site, line) : 0;
    if (outcome === "duplicate") reached(this.probes, "duplicate-page");
    if (outcome === "refused") reached(this.probes, "page-refused");
    if (outcome === "gap") reached(this.probes, end.isDialler ? "gap-on-a-stream" : "gap-answered");
    this.#world.scheduler.narrate(site.name, () => `page from ${end.peer}: ${outcome}`);
  }

  /** What a site's spread asks for. */
  asked(site: Site, effect: SpreadEffect, end: End | undefined, cause: SpreadInput["kind"]): void {
    const { line, link } = effect;
    this.#world.scheduler.trace(effect.kind, link);
    this.#world.scheduler.narrate(site.name, () => `${effect.kind} ${line} over ${link} (${cause})`);
    this.#check(site, end !== undefined, () => `${effect.kind} over ${link}, which is not connected`);
    if (effect.kind === "send") return this.#checkSend(site, link, line);
    this.lastRequestMs = this.#world.nowMs;
    if (effect.kind === "prune") return reached(this.probes, "pruned");
    this.#check(site, line !== site.own, () => "it asks for its own line");
    if (cause === "time") reached(this.probes, "grafted-after-a-second");
    if (cause === "down") reached(this.probes, "grafted-when-a-link-went-down");
  }

  /** Pages leave it. */
  pushed(site: Site, { line, after, through, pages }: SentPages): void {
    this.sends += through - after;
    this.lastSendMs = this.#world.nowMs;
    if (line !== site.own) reached(this.probes, "relayed");
    if (pages.length > 1) reached(this.probes, "caught-up-by-many-pages");
  }

  settled(site: Site, link: string, line: LineId, outcome: SentOutcome): void {
    this.#underWay.delete(endKeyOf(site, link));
    if (outcome.kind === "refused") {
      this.#excusedUntilMs.set(keyOf(site, link, line), this.#world.nowMs + REFUSED_EXCUSED_MS);
    }
  }

  closed(site: Site, end: End): void {
    this.#underWay.delete(endKeyOf(site, end.id));
    for (const line of this.writtenMs.keys()) {
      const key = keyOf(site, end.id, line);
      this.#asked.delete(key);
      this.#passed.delete(key);
      this.#excusedUntilMs.delete(key);
    }
  }

  lost(message: Message): void {
    if (message.kind === "pages") reached(this.probes, "page-lost-with-its-link");
  }

  applied(site: Site, line: LineId, from: number, through: number, hops: number): void {
    const times = this.writtenMs.get(line) ?? [];
    this.#check(site, through <= times.length, () => `${line} has ${through} events, ${times.length} were written`);
    this.hopsMax = Math.max(this.hopsMax, hops);
    for (let at = from; at < through; at++) this.latenciesMs.push(this.#world.nowMs - times[at]!);
  }

  /** After what `judged` was called with. */
  received(site: Site, line: LineId): void {
    this.#check(
      site,
      this.#sources === 0 || sourcesOf(site, line) > 0,
      () => `a duplicate ended the last way of ${line}`,
    );
  }

  stepped(site: Site, spread: Spread): void {
    if (this.#isCrowd) return;
    let lanes = 0;
    for (const { link, line, size, outgoing } of spread.lanes()) {
      lanes++;
      const isReady = outgoing && size < (site.sizes.get(line) ?? 0);
      if (!isReady) this.#passed.delete(keyOf(site, link, line));
    }
    const bound = site.ends.size * this.writtenMs.size;
    this.#check(
      site,
      lanes <= bound,
      () => `${lanes} lanes for ${site.ends.size} links × ${this.writtenMs.size} lines`,
    );
  }

  // In the silence

  /** Who lacks what; null: everybody has everything. */
  missing(sites: readonly Site[]): string | null {
    for (const site of sites) {
      for (const [line, { length }] of this.writtenMs) {
        const has = site.sizes.get(line) ?? 0;
        if (has < length) return `${site.name} has ${has} of ${length} events of ${line}`;
      }
    }
    return null;
  }

  /** Where two ends of a link think differently; null: nowhere. */
  disagreement(sites: readonly Site[]): string | null {
    const pushes = new Set<string>();
    const expected = new Set<string>();
    for (const site of sites) {
      for (const { link, line, incoming, outgoing } of site.spread?.lanes() ?? []) {
        const peer = site.ends.get(link)?.peer;
        if (outgoing) pushes.add(`${site.name} to ${peer} (${line})`);
        if (incoming) expected.add(`${peer} to ${site.name} (${line})`);
      }
    }
    const wrong = [...pushes].find((way) => !expected.has(way)) ?? [...expected].find((way) => !pushes.has(way));
    return wrong === undefined ? null : `one end thinks that pages go from ${wrong}, the other one does not`;
  }

  /** Where the links over which a line travels are no tree of all sites. */
  loop(sites: readonly Site[]): string | null {
    for (const site of sites) {
      for (const line of this.writtenMs.keys()) {
        const ways = sourcesOf(site, line);
        if (ways !== (line === site.own ? 0 : 1)) return `${line} reaches ${site.name} over ${ways} links`;
      }
    }
    return null;
  }

  /** Who gets a line on a longer way than there is; null: nobody. */
  detour(sites: readonly Site[], edges: readonly Edge[]): string | null {
    for (const [place, { own }] of sites.entries()) {
      if (own === null) continue;
      for (const [at, distance] of distancesFrom(place, edges)) {
        const { name, spread } = sites[at]!;
        const hops = spread?.hops(own);
        if (hops !== distance) return `${own} reaches ${name} over ${hops} links, ${distance} would do`;
      }
    }
    return null;
  }

  #checkSend(site: Site, link: string, line: LineId): void {
    const endKey = endKeyOf(site, link);
    this.#check(site, this.#asked.has(keyOf(site, link, line)), () => `it pushes ${line} over ${link} unasked`);
    const isExcused = (this.#excusedUntilMs.get(keyOf(site, link, line)) ?? 0) > this.#world.nowMs;
    this.#check(site, !isExcused, () => `it sends ${line} again over ${link}, where it was just refused`);
    this.#check(site, !this.#underWay.has(endKey), () => `a second page is under way over ${link}`);
    this.#underWay.set(endKey, line);
    this.#passed.delete(keyOf(site, link, line));
    if (this.#isCrowd) return;
    for (const lane of site.spread?.lanes() ?? []) {
      const isReady = lane.outgoing && lane.size < (site.sizes.get(lane.line) ?? 0);
      if (lane.link === link && lane.line !== line && isReady) this.#pass(site, link, lane.line);
    }
  }

  #pass(site: Site, link: string, line: LineId): void {
    const key = keyOf(site, link, line);
    if ((this.#excusedUntilMs.get(key) ?? 0) >= this.#world.nowMs) return;
    const times = (this.#passed.get(key) ?? 0) + 1;
    this.#passed.set(key, times);
    reached(this.probes, "lines-took-turns");
    this.#check(site, times < this.writtenMs.size, () => `${line} has to wait while other lines go over ${link} twice`);
  }

  #check(site: Site, isTrue: boolean, sentence: () => string): void {
    if (!isTrue) this.#world.report(site.name, sentence());
  }
}

function sourcesOf({ spread }: Site, line: LineId): number {
  return [...(spread?.lanes() ?? [])].filter((lane) => lane.line === line && lane.incoming).length;
}

function keyOf(site: Site, link: string, line: LineId): Key {
  return `${site.name} ${link} ${line}`;
}

function endKeyOf(site: Site, link: string): string {
  return `${site.name} ${link}`;
}
