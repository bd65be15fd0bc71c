// A link that this site dials, to one of its parents, for ever.
//
//   waiting ──▶ registered ──▶ stream open ──hello──▶ up: the stream down, one request after the other up
//      ▲            │ refused       │ refused             │ bye, silence, a request that fails, the end of this leadership
//      └────────────┴───────────────┴────────────────────┘ next attempt after a random part of a bound that doubles, 5 s at most
//
// Invariants:
// - One request is under way; it carries what waits: wishes in their order, pages, heads when they are due. So wishes arrive in order, and
//   a parent that is slow costs the pages of one send.
// - Of the stream no more is read while as many pages as one send may have are being taken, or after a page that had to be refused.
// - Only the configured addresses are called, and those that the site's other nodes have, where the driver allows it.
// - A parent that does not answer delays nothing else.
// - A site whose nodes are named one by one has one link: it serves one stream to a caller, and each would end the one before it.

import { assertNever } from "../../../core/kit/assert.ts";
import { TenureError } from "../../../core/kit/errors.ts";
import type { Random } from "../../../core/kit/random.ts";
import { SITE_HEADS_MS } from "../../../core/kit/timeouts.ts";
import type { Page } from "../../../core/mesh/model.ts";
import { controllerOf } from "../../../core/mesh/proof/index.ts";
import type { LinkId, SentOutcome } from "../../../core/mesh/spread/index.ts";
import { Bell } from "../../../loops/bell.ts";
import { pause, retryInMs } from "../../../loops/time.ts";
import type { Clock } from "../../../ports/clock.ts";
import type {
  Delivered,
  Delivery,
  Introduction,
  LinkMessage,
  PageOutcome,
  SiteAnswer,
  Sites,
} from "../../../ports/mesh/sites.ts";
import { endOf, type LinkEnd, type LinkHost, type Wish, Wishes } from "./link-end.ts";
import {
  BAD_PAGE_PAUSE_MS,
  DELIVERY_EVERY_MS,
  PAGES_SENT_MAX,
  REDIAL_MS_MAX,
  REDIAL_MS_MIN,
  SPARE_DIAL_MS,
} from "../limits.ts";
import type { OwnHeads } from "./own-heads.ts";

export interface DialOptions {
  /** As configured. */
  readonly url: string;
  readonly clock: Clock;
  readonly random: Random;
  readonly sites: Sites;
  readonly host: LinkHost;
  readonly heads: OwnHeads;
  readonly heartbeatMs: number;
  readonly ownId: () => string;
  /** To the site with this id. Null: this site can't introduce itself yet. */
  readonly introduce: (receiver: string) => Introduction | null;
  /** The parent says who it is: its ring is pinned here as that of a site that registers. Throws what refuses it. */
  readonly met: (introduction: Introduction) => Promise<void>;
  /** It was heard: its registration here goes on. */
  readonly heard: (controller: string) => void;
  /** What went wrong; null: nothing any more. */
  readonly noted: (problem: string | null) => void;
}

/** Until the signal aborts. */
export async function dialForEver(options: DialOptions, signal: AbortSignal): Promise<void> {
  const { clock, random, noted, host } = options;
  let failures = 0;
  let urls: readonly string[] = [options.url];
  while (!signal.aborted) {
    const url = urls[failures % urls.length]!;
    const link = new DialledLink(options, url);
    const ended = await link.run(signal);
    if (signal.aborted) return;
    if (ended.wasUp) failures = 0;
    // Where the parent's other nodes are; what was configured is always among them.
    if (ended.urls.length > 0) urls = [...new Set([...ended.urls, options.url])];
    noted(ended.problem);
    if (ended.isSpare) {
      // When the other link ends, this address may be the one that answers.
      while (!signal.aborted && host.isDialled(link)) await pause(clock, SPARE_DIAL_MS, signal);
      failures = 0;
      continue;
    }
    // One address may be down, or must not be called, while the next one answers: the bound grows when all of them were tried.
    const rounds = Math.floor(failures / urls.length);
    await pause(clock, retryInMs(random, rounds, REDIAL_MS_MIN, REDIAL_MS_MAX), signal);
    failures++;
  }
}

interface Ended {
  readonly problem: string;
  readonly wasUp: boolean;
  /** The site is linked through another of its addresses. */
  readonly isSpare: boolean;
  readonly urls: readonly string[];
}

class DialledLink implements LinkEnd {
  readonly url: string;
  readonly #options: DialOptions;
  readonly #bell: Bell;
  readonly #wishes = new Wishes();
  readonly #over = new AbortController();
  #controller = "";
  #isUp = false;
  #wasUp = false;
  #isSpare = false;
  #roundTripMs: number | null = null;
  #problem = "the stream ended";
  #urls: readonly string[] = [];
  #sending: { readonly pages: readonly Page[]; readonly sent: PromiseWithResolvers<SentOutcome> } | null = null;
  /** Pages of the stream that are not answered yet. */
  readonly #taking = new Set<Promise<void>>();
  /** After a page that had to be refused. */
  #resting: Promise<unknown> = Promise.resolve();

  constructor(options: DialOptions, url: string) {
    this.#options = options;
    this.url = url;
    this.#bell = new Bell(options.clock);
  }

  get id(): LinkId {
    return `to ${this.#options.url}`;
  }

  get controller(): string {
    return this.#controller;
  }

  get roundTripMs(): number | null {
    return this.#roundTripMs;
  }

  async run(signal: AbortSignal): Promise<Ended> {
    const onAbort = (): void => this.close();
    signal.addEventListener("abort", onAbort, { once: true });
    if (signal.aborted) onAbort();
    try {
      await this.#connect();
    } catch (error) {
      if (!TenureError.is(error)) throw error;
      this.#ends(error.message);
    } finally {
      signal.removeEventListener("abort", onAbort);
      this.close();
    }
    return { problem: this.#problem, wasUp: this.#wasUp, isSpare: this.#isSpare, urls: this.#urls };
  }

  send(pages: readonly Page[]): Promise<SentOutcome> {
    const sent = Promise.withResolvers<SentOutcome>();
    if (this.#over.signal.aborted) sent.reject(new Error("the link is down"));
    else this.#sending = { pages, sent };
    this.#bell.ring();
    return sent.promise;
  }

  ask(wish: Wish): void {
    this.#wishes.add(wish);
    this.#bell.ring();
  }

  close(): void {
    if (this.#over.signal.aborted) return;
    this.#over.abort();
    if (this.#isUp) this.#options.host.down(this);
    this.#isUp = false;
    this.#sending?.sent.reject(new Error("the link is down"));
    this.#sending = null;
    this.#bell.ring();
  }

  #ends(problem: string): void {
    this.#problem = problem;
    this.close();
  }

  async #connect(): Promise<void> {
    const { sites, heads, ownId, host } = this.#options;
    const asked = await sites.identify(this.url, this.#over.signal);
    if (asked.kind === "refused") return this.#refused(asked);
    this.#controller = asked.body;
    if (this.#controller === ownId()) return this.#ends("this is the address of this site itself");
    if (host.isDialled(this)) {
      this.#isSpare = true;
      return this.#ends("this site is linked through another of its addresses");
    }
    if (!(await this.#register())) return;
    // Nothing of the own line: a parent that was not met before this disk was copied is compared first (decision 62).
    const others = (await heads.now()).filter(({ line }) => controllerOf(line) !== ownId());
    const opening = { controller: ownId(), heads: others.map(({ note }) => note) };
    const answer = await sites.stream(this.url, opening, this.#over.signal, (message) => this.#receive(message));
    if (answer.kind === "refused") this.#refused(answer);
  }

  async #register(): Promise<boolean> {
    const { sites, introduce } = this.#options;
    const introduction = introduce(this.#controller);
    if (introduction === null) {
      this.#ends("this site has no ring of keys yet");
      return false;
    }
    const answer = await sites.register(this.url, introduction, this.#over.signal);
    if (answer.kind === "refused") this.#refused(answer);
    return answer.kind === "answer";
  }

  #refused(answer: Extract<SiteAnswer<unknown>, { kind: "refused" }>): void {
    this.#urls = answer.urls;
    this.#ends(answer.message === "" ? `HTTP ${answer.status}` : answer.message);
  }

  async #receive(message: LinkMessage): Promise<void> {
    const { host } = this.#options;
    if (message.kind === "hello") return this.#hello(message.introduction);
    if (!this.#isUp) return;
    switch (message.kind) {
      case "heads":
        return host.heads(this, message.heads, message.atMs);
      case "page":
        return this.#take(message.page);
      case "graft":
      case "prune":
        return host.wish(this, message);
      case "bye":
        this.#urls = message.urls;
        return this.#ends("the other node does not lead any more");
      default:
        return assertNever(message, "message of a link");
    }
  }

  /** Those that come one after the other are taken together: each is verified on what the one before gives, and one append writes them. */
  async #take(page: unknown): Promise<void> {
    const taking = this.#taken(page).finally(() => this.#taking.delete(taking));
    this.#taking.add(taking);
    if (this.#taking.size >= PAGES_SENT_MAX) await Promise.race(this.#taking);
    await this.#resting;
  }

  async #taken(page: unknown): Promise<void> {
    const { host, clock } = this.#options;
    const outcome = await host.page(this, page);
    // A parent that sends what nobody has signed, as fast as it is read, must not take the time of everything else; nor one that puts other bytes
    // under a signature: all of those are hashed first.
    const isBad = "error" in outcome && (outcome.error === "EVENT_INVALID" || outcome.error === "suspected");
    if (isBad) this.#resting = pause(clock, BAD_PAGE_PAUSE_MS, this.#over.signal);
  }

  async #hello(introduction: Introduction): Promise<void> {
    if (this.#isUp) return;
    if (introduction.id !== this.#controller) return this.#ends("the site at this address has changed its id");
    await this.#options.met(introduction);
    if (this.#over.signal.aborted) return;
    this.#isUp = this.#wasUp = true;
    this.#options.noted(null);
    this.#options.host.up(this);
    void this.#deliverForEver();
  }

  /** The way up. Whatever fails ends the link: it is dialled again. */
  async #deliverForEver(): Promise<void> {
    const { clock, heads, heartbeatMs } = this.#options;
    const signal = this.#over.signal;
    const sent = heads.forLink();
    let headsAtMs = -Infinity;
    let heartbeatAtMs = clock.monotonicMs() + heartbeatMs;
    try {
      while (!signal.aborted) {
        const nowMs = clock.monotonicMs();
        if (nowMs >= heartbeatAtMs) {
          await this.#heartbeat();
          heartbeatAtMs = nowMs + heartbeatMs;
        }
        const isDue = nowMs >= headsAtMs;
        if (isDue) headsAtMs = nowMs + SITE_HEADS_MS;
        const notes = isDue ? await sent.next() : null;
        if (notes !== null || this.#sending !== null || !this.#wishes.isEmpty) {
          await this.#deliver(notes ?? []);
          // What comes meanwhile goes together: a site has so many requests in a second (PEER_REQUESTS_PER_S_MAX), whatever is in them.
          await pause(clock, nowMs + DELIVERY_EVERY_MS - clock.monotonicMs(), signal);
        }
        if (this.#sending === null && this.#wishes.isEmpty) await this.#bell.wait(Math.min(headsAtMs, heartbeatAtMs));
      }
    } catch (error) {
      if (!TenureError.is(error)) throw error;
      this.#ends(error.message);
    }
  }

  async #heartbeat(): Promise<void> {
    const { sites, ownId, heard } = this.#options;
    const answer = await sites.heartbeat(this.url, ownId(), this.#over.signal);
    // The registration has expired there, or was forgotten: this site registers again.
    if (answer.kind === "refused" && answer.status === 404) await this.#register();
    else if (answer.kind === "refused") this.#refused(answer);
    else heard(this.#controller);
  }

  async #deliver(heads: readonly string[]): Promise<void> {
    const { sites, clock, host } = this.#options;
    const sending = this.#sending;
    const wishes = this.#wishes.take();
    const delivery: Delivery = {
      controller: this.#options.ownId(),
      ...(sending === null ? {} : { pages: sending.pages }),
      // Also where none are due: a request with a page alone is refused as a whole where the page is.
      heads,
      at: Math.floor(clock.wallMs()),
      ...grafts(wishes),
    };
    const sentMs = clock.monotonicMs();
    const answer = await this.#patiently(() => sites.deliver(this.url, delivery, this.#over.signal));
    if (answer === null) return;
    this.#roundTripMs = clock.monotonicMs() - sentMs;
    if (answer.heads.length > 0) await host.heads(this, answer.heads, null);
    if (sending === null || this.#sending !== sending) return;
    this.#sending = null;
    sending.sent.resolve(sentOutcomeOf(answer.pages, sending.pages));
  }

  /** Where the parent says that it was too much, the same is sent again after the time that it names. Null: the link is over. */
  async #patiently(call: () => Promise<SiteAnswer<Delivered>>): Promise<Delivered | null> {
    const { clock } = this.#options;
    for (;;) {
      const answer = await call();
      if (answer.kind === "answer") return answer.body;
      if (answer.status !== 429) {
        this.#refused(answer);
        return null;
      }
      if (!(await pause(clock, answer.retryAfterMs ?? SITE_HEADS_MS, this.#over.signal))) return null;
    }
  }
}

function grafts(wishes: readonly Wish[]): Pick<Delivery, "graft" | "prune"> {
  const graft = wishes.flatMap((wish) => (wish.kind === "graft" ? [wish.graft] : []));
  const prune = wishes.flatMap((wish) => (wish.kind === "prune" ? [{ line: wish.line }] : []));
  return { ...(graft.length === 0 ? {} : { graft }), ...(prune.length === 0 ? {} : { prune }) };
}

/** Of pages that were sent together: how far they were taken; where the first was not, why. */
function sentOutcomeOf(outcomes: readonly PageOutcome[], pages: readonly Page[]): SentOutcome {
  const failedAt = outcomes.findIndex((outcome) => "error" in outcome);
  const taken = failedAt === -1 ? outcomes : outcomes.slice(0, failedAt);
  if (taken.length > 0) {
    const isNew = taken.some((outcome) => !("error" in outcome) && outcome.accepted > 0);
    return { kind: isNew ? "taken" : "duplicate", through: endOf(pages[taken.length - 1]!) };
  }
  const [first] = outcomes;
  const isGap = first !== undefined && "error" in first && first.error === "CHAIN_GAP" && first.have !== undefined;
  return isGap ? { kind: "gap", have: first.have } : { kind: "refused" };
}
