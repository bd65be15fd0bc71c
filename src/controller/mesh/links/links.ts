// The links of one leadership: dials the parents, serves the sites that dial, and does what the spread decides. Everything of it ends with the
// leadership; the next leader dials again, from what is replicated.
//
// Invariants:
// - What is sent is read from what is applied here; what comes in goes through the intake, whoever delivers it.
// - A link holds the pages of one send, which are no more than one page may be, the wishes of its lines, and nothing else.
// - The spread is called in one turn at a time, and its effects are carried out in their order.

import type { Random } from "../../../core/kit/random.ts";
import { TenureError } from "../../../core/kit/errors.ts";
import type { LineId, Page } from "../../../core/mesh/model.ts";
import { type LinkId, Spread, type SpreadEffect, type SpreadInput } from "../../../core/mesh/spread/index.ts";
import type { Clock, Timer } from "../../../ports/clock.ts";
import type { LineSource } from "../../../ports/mesh/lines.ts";
import type { CutOffView, LinkView, ReceivedDelivery } from "../../../ports/mesh/links.ts";
import type { Delivered, Introduction, PageOutcome, Sites } from "../../../ports/mesh/sites.ts";
import type { Blame } from "./blame.ts";
import { type CutOffOptions, cutOffSites } from "./cut-off.ts";
import { dialForEver } from "./dialled-link.ts";
import type { AskProof, HeadsJudge } from "./heads-judge.ts";
import type { IntakeQueue, KnownLines } from "./intake-queue.ts";
import { endOf, type LinkEnd, type LinkHost, type Wish } from "./link-end.ts";
import { type LinkHeard, LinkViews } from "./link-views.ts";
import type { Lag, LagLane } from "./lags.ts";
import { Departure } from "./departure.ts";
import { LINES_CHECK_MS } from "../limits.ts";
import { OwnHeads } from "./own-heads.ts";
import { ServedLink } from "./served-link.ts";

export interface LinksOptions {
  readonly clock: Clock;
  readonly random: Random;
  readonly sites: Sites;
  readonly parents: readonly string[];
  readonly heartbeatMs: number;
  readonly lines: Pick<LineSource, "lines" | "has" | "size" | "checkpoint" | "pages">;
  readonly known: KnownLines;
  readonly intake: IntakeQueue;
  readonly judge: HeadsJudge;
  readonly blame: Blame;
  readonly ownId: () => string;
  /** To the site with this id. Null: this site has no ring of keys yet. */
  readonly introduce: (receiver: string) => Promise<Introduction> | null;
  /** Another site says who it is: see DialOptions. */
  readonly met: (introduction: Introduction) => Promise<void>;
  readonly heard: (controller: string) => void;
  /** It has registered here: what it has of the own line is compared before it is shown anything of it (decision 62). */
  readonly isPeer: (controller: string) => boolean;
  /** It is sent nothing any more. A site that leaves ends its links itself, when it knows that its word has arrived. */
  readonly isEvicted: (controller: string) => boolean;
  /** The place in the own line where this site has left its mesh; null: it takes part. */
  readonly leftAt: () => number | null;
  /** Of this site's nodes. */
  readonly urls: () => readonly string[];
  /** What a site has, as it says; `isAll`: it has no other lines. */
  readonly headsOf: (controller: string, notes: readonly string[], isAll: boolean) => void;
}

export class Links implements LinkHost {
  introductions = 0;
  readonly #options: LinksOptions;
  readonly #heads: OwnHeads;
  readonly #spread: Spread;
  readonly #ends = new Map<LinkId, LinkEnd>();
  readonly #heard = new Map<LinkId, LinkHeard>();
  readonly #problems = new Map<string, string | null>();
  readonly #over = new AbortController();
  readonly #departure: Departure;
  readonly #views: LinkViews;
  /** Lines that grew and that the spread was not notified of. */
  readonly #grown = new Set<LineId>();
  readonly #unwanted = new Set<LineId>();
  #timer: Timer | null = null;
  #check: Timer | null = null;

  constructor(options: LinksOptions) {
    const { lines, clock } = options;
    this.#options = options;
    this.#heads = new OwnHeads(lines, clock);
    this.#spread = new Spread({ sizes: [], unwanted: [] });
    this.#views = new LinkViews({
      ...options,
      ends: this.#ends,
      heard: this.#heard,
      problems: this.#problems,
      lanes: () => this.#lanes(),
    });
    this.#departure = new Departure({
      clock,
      leftAt: options.leftAt,
      heardBy: (sequence) => this.#heardBy(sequence),
      dial: (signal) => options.parents.forEach((url) => void this.#dial(url, signal)),
      endAll: () => this.#endAll(),
    });
    this.#review();
  }

  /** Safe to call twice. */
  end(): void {
    this.#over.abort();
    this.#departure.end();
    this.#timer?.cancel();
    this.#check?.cancel();
    for (const end of this.#ends.values()) end.close();
    this.#ends.clear();
  }

  /** Resolves when every linked site has heard that this one has left, or time is up, and no link is left: with those that have. */
  left(): Promise<readonly string[]> {
    this.#departure.review();
    return this.#departure.done;
  }

  /** It takes part again. */
  joined(): void {
    this.#departure.review();
  }

  /** There is more of this line here. Those of one turn become one input. */
  grew(line: LineId): void {
    this.#grown.add(line);
    if (this.#grown.size === 1) void Promise.resolve().then(() => this.#flush());
  }

  /** Every link begins again, because the site introduces itself with another ring; one that is being made ends when it would be up. */
  introduceAgain(): void {
    this.introductions++;
    for (const end of this.#ends.values()) end.close();
  }

  open(controller: string, heads: readonly string[]): ServedLink {
    const { clock, urls, introduce } = this.#options;
    const introduction = introduce(controller);
    if (introduction === null) {
      const text = "This site has no ring of keys yet. Retry in a moment.";
      throw new TenureError("BACKEND_UNAVAILABLE", text);
    }
    const id = `from ${controller}`;
    const before = this.#ends.get(id);
    if (before !== undefined) {
      before.close();
      this.down(before);
    }
    const link = new ServedLink({ id, controller, clock, introduction, heads: this.#heads.forLink(), urls });
    this.up(link);
    void this.heads(link, heads, null);
    return link;
  }

  /** Whether this site has dialled, and its stream is open. */
  isServed(controller: string): boolean {
    return this.#ends.has(`from ${controller}`);
  }

  isLinked(controller: string): boolean {
    return [...this.#ends.values()].some((end) => end.controller === controller);
  }

  /** What a site that dialled has sent, after it was let in. */
  async deliver({ controller, pages = [], heads, at, graft = [], prune = [] }: ReceivedDelivery): Promise<Delivered> {
    const end = this.#ends.get(`from ${controller}`);
    // All of them are in their lines' queues before the first one is answered.
    const taken = pages.map((page) =>
      end === undefined ? this.#options.intake.take(controller, page) : this.page(end, page),
    );
    const outcomes = await Promise.all(taken);
    if (end === undefined) {
      if (heads !== undefined) await this.#options.judge.judge(controller, heads, null);
      // Without a stream the answer is all that it hears.
      const shown = await this.#heads.now();
      return { pages: outcomes, heads: shown.filter(({ line }) => this.#mayShow(line, controller)).map(noteOf) };
    }
    if (heads !== undefined) await this.heads(end, heads, at ?? null);
    for (const one of graft) this.wish(end, { kind: "graft", graft: one });
    for (const { line } of prune) this.wish(end, { kind: "prune", line });
    return { pages: outcomes, heads: [] };
  }

  /** With no peers nothing is held, and whoever has not registered is nobody's peer: a disk from before it met that site would show it a second history. */
  #mayShow(line: LineId, controller: string): boolean {
    const { known, isPeer } = this.#options;
    return !known.isOwn(line) || isPeer(controller);
  }

  views(): readonly LinkView[] {
    return this.#views.all();
  }

  /** Of the sites that had a link here and have none now. */
  cutOff(known: Pick<CutOffOptions, "registry" | "heardMsAgo">): ReadonlyMap<string, CutOffView> {
    return cutOffSites({ ...known, clock: this.#options.clock, links: this.#views });
  }

  /** What is lacking here of each line, as far as those that are linked say. */
  lacking(): ReadonlyMap<LineId, Lag> {
    return this.#views.lacking();
  }

  /** How far a site's wall clock is ahead of this one's; null: no link has measured it. */
  skewOf(controller: string): number | null {
    for (const { id, controller: other } of this.#ends.values()) {
      const skewMs = other === controller ? this.#heard.get(id)?.skewMs : null;
      if (typeof skewMs === "number") return skewMs;
    }
    return null;
  }

  /** Asks the site that delivered something for a proof, where this site dialled it. */
  askOf(controller: string): AskProof {
    const { sites } = this.#options;
    const url = [...this.#ends.values()].find((end) => end.controller === controller && end.url !== null)?.url ?? null;
    if (url === null) return null;
    return async (line, from, to) => {
      const answer = await sites.consistency(url, { line, from, to }, this.#over.signal);
      return answer.kind === "answer" ? answer.body : null;
    };
  }

  // What links report

  up(end: LinkEnd): void {
    this.#ends.set(end.id, end);
    this.#heard.set(end.id, { atMs: this.#nowMs, skewMs: null, hasHeads: false, ownSize: 0 });
    this.#step({ kind: "up", link: end.id, controller: end.controller });
  }

  down(end: LinkEnd): void {
    if (this.#ends.get(end.id) !== end) return;
    this.#ends.delete(end.id);
    this.#step({ kind: "down", link: end.id });
  }

  isDialled({ id, controller }: Pick<LinkEnd, "id" | "controller">): boolean {
    const ends = [...this.#ends.values()];
    const isDialled = ends.some((other) => other.id !== id && other.url !== null && other.controller === controller);
    if (isDialled) this.#views.reached(id, controller);
    return isDialled;
  }

  /** Resolves when they are judged: whoever sends more than that waits. */
  async heads(end: LinkEnd, notes: readonly string[], atMs: number | null): Promise<void> {
    const { clock, judge } = this.#options;
    if (this.#isShutOut(end)) return;
    const heard = this.#heard.get(end.id);
    if (heard !== undefined) {
      heard.atMs = this.#nowMs;
      if (atMs !== null) heard.skewMs = Math.round(atMs - clock.wallMs() + (end.roundTripMs ?? 0) / 2);
    }
    this.#options.headsOf(end.controller, notes, heard?.hasHeads === false);
    if (heard !== undefined) heard.hasHeads = true;
    if (notes.length === 0) return;
    const heads = await judge.judge(end.controller, notes, this.askOf(end.controller));
    if (this.#ends.get(end.id) !== end) return;
    for (const [line, size] of heads) {
      this.#keepOwn(line);
      if (heard !== undefined && this.#options.known.isOwn(line)) heard.ownSize = Math.max(heard.ownSize, size);
    }
    this.#step({ kind: "heads", link: end.id, heads });
  }

  /** An own line is not asked for, also where it is not shown: before the site was compared with its peers. */
  #keepOwn(line: LineId): void {
    if (!this.#options.known.isOwn(line) || this.#unwanted.has(line)) return;
    this.#unwanted.add(line);
    this.#step({ kind: "wanted", line, wanted: false });
  }

  async page(end: LinkEnd, page: unknown): Promise<PageOutcome> {
    // Whosever line it is.
    if (this.#isShutOut(end)) return { line: "", error: "not_wanted" };
    const outcome = await this.#options.intake.take(end.controller, page);
    const heard = this.#heard.get(end.id);
    if (heard !== undefined) heard.atMs = this.#nowMs;
    const input = spreadOutcomeOf(outcome);
    if (input !== null && this.#ends.get(end.id) === end && this.#isKnown(outcome.line)) {
      // What was refused may be anything.
      const through = input === "refused" ? 0 : endOf(page as Page);
      this.#step({ kind: "page", link: end.id, line: outcome.line, through, outcome: input });
    }
    return outcome;
  }

  wish(end: LinkEnd, wish: Wish): void {
    const line = wish.kind === "graft" ? wish.graft.line : wish.line;
    if (this.#ends.get(end.id) !== end || !this.#isKnown(line) || this.#isShutOut(end)) return;
    if (wish.kind === "graft") this.#step({ kind: "graft", link: end.id, ...wish.graft });
    else this.#step({ kind: "prune", link: end.id, line: wish.line });
  }

  /** The link of a site that was evicted ends. */
  #isShutOut(end: LinkEnd): boolean {
    if (!this.#options.isEvicted(end.controller)) return false;
    end.close();
    this.down(end);
    return true;
  }

  // The spread

  /** The spread remembers every line that it hears of: others name any, and only these count. */
  #isKnown(line: LineId): boolean {
    const { lines, known } = this.#options;
    return lines.has(line) || known.firstRingOf(line) !== null;
  }

  get #nowMs(): number {
    return this.#options.clock.monotonicMs();
  }

  #step(input: SpreadInput extends infer I ? (I extends { nowMs: number } ? Omit<I, "nowMs"> : never) : never): void {
    if (this.#over.signal.aborted) return;
    const effects = this.#spread.step({ ...input, nowMs: this.#nowMs });
    for (const effect of effects) this.#perform(effect);
    this.#arm();
  }

  #arm(): void {
    this.#timer?.cancel();
    const atMs = this.#spread.nextTimeMs();
    this.#timer = atMs === null ? null : this.#options.clock.setTimer(atMs, () => this.#step({ kind: "time" }));
  }

  #perform(effect: SpreadEffect): void {
    const end = this.#ends.get(effect.link);
    if (end === undefined) return;
    if (effect.kind === "send") void this.#send(end, effect.line, effect.after);
    else if (effect.kind === "graft") end.ask({ kind: "graft", graft: { line: effect.line, after: effect.after } });
    else end.ask({ kind: "prune", line: effect.line });
  }

  async #send(end: LinkEnd, line: LineId, after: number): Promise<void> {
    const outcome = await this.#sent(end, line, after);
    if (outcome !== null && this.#ends.get(end.id) === end) this.#step({ kind: "sent", link: end.id, line, outcome });
  }

  /** Null: the link is down. */
  async #sent(end: LinkEnd, line: LineId, after: number): Promise<Awaited<ReturnType<LinkEnd["send"]>> | null> {
    try {
      const pages = await this.#options.lines.pages(line, after);
      if (pages.length === 0) return { kind: "refused" };
      return await end.send(pages).catch(() => null);
    } catch (error) {
      // What retention has cut off, or what can't be read now.
      if (!TenureError.is(error)) throw error;
      return { kind: "refused" };
    }
  }

  #flush(): void {
    const { lines } = this.#options;
    const grown = [...this.#grown];
    this.#grown.clear();
    for (const line of grown) this.#step({ kind: "have", line, size: lines.size(line) });
  }

  /** Lines that are new here, and what the registry says of each by now. */
  #review(): void {
    const { lines, known, clock } = this.#options;
    this.#departure.review();
    this.#views.review();
    for (const end of this.#ends.values()) this.#isShutOut(end);
    const here = lines.lines();
    // Also lines of which only others have something: one that is frozen before its first page came must not be asked for any more.
    const named = Array.from(this.#spread.lanes(), ({ line }) => line);
    for (const line of new Set([...here, ...named])) {
      const isWanted = !known.isOwn(line) && known.isWanted(line);
      if (isWanted === !this.#unwanted.has(line)) continue;
      if (isWanted) this.#unwanted.delete(line);
      else this.#unwanted.add(line);
      this.#step({ kind: "wanted", line, wanted: isWanted });
    }
    for (const line of here) this.#step({ kind: "have", line, size: lines.size(line) });
    if (!this.#over.signal.aborted) {
      this.#check = clock.setTimer(clock.monotonicMs() + LINES_CHECK_MS, () => this.#review());
    }
  }

  *#lanes(): Iterable<LagLane> {
    for (const { link, line, size, outgoing } of this.#spread.lanes()) {
      yield { link, line, size, isAsked: outgoing, isWanted: !this.#unwanted.has(line) };
    }
  }

  // Parents

  #dial(url: string, signal: AbortSignal): Promise<void> {
    const { random, ...around } = this.#options;
    this.#problems.set(url, "not reached yet");
    const noted = (problem: string | null): void => void this.#problems.set(url, problem);
    const dial = { ...around, url, host: this, heads: this.#heads, random: random.fork(url), noted };
    return dialForEver(dial, signal);
  }

  #endAll(): void {
    for (const end of this.#ends.values()) {
      end.close();
      this.down(end);
    }
    for (const url of this.#options.parents) this.#problems.set(url, "this site has left its mesh");
  }

  /** Of the sites that have a link here. */
  #heardBy(sequence: number): { readonly heard: readonly string[]; readonly isAll: boolean } {
    const { known } = this.#options;
    const heard = new Set<string>();
    for (const { link, line, size } of this.#spread.lanes()) {
      const end = this.#ends.get(link);
      if (end === undefined || !known.isOwn(line)) continue;
      // A request is answered when what it brings is taken; what was written to a stream may not have arrived.
      const has = end.url === null ? (this.#heard.get(link)?.ownSize ?? 0) : size;
      if (has >= sequence) heard.add(end.controller);
    }
    const isAll = [...this.#ends.values()].every(({ controller }) => heard.has(controller));
    return { heard: [...heard].toSorted(), isAll };
  }
}

function noteOf({ note }: { readonly note: string }): string {
  return note;
}

/** Null: of our own making (too much at once, no leader any more): it says nothing about the link. */
function spreadOutcomeOf(outcome: PageOutcome): "new" | "duplicate" | "gap" | "refused" | null {
  if (!("error" in outcome)) return outcome.accepted > 0 ? "new" : "duplicate";
  switch (outcome.error) {
    case "CHAIN_GAP":
      return "gap";
    case "NOT_LEADER":
    case "RATE_LIMITED":
    case "BACKEND_UNAVAILABLE":
      return null;
    default:
      return "refused";
  }
}
