// A link that this site dials, to one of its parents, for ever.
//
//   waiting ──▶ registered ──▶ stream open ──hello──▶ up: the stream down, one request after the other up
//      ▲            │ refused       │ refused             │ bye, silence, a request that fails, the end of this leadership
//      └────────────┴───────────────┴────────────────────┘ next attempt after a random part of a bound that doubles, 5 s at most; where the parent
//                                                           has named a time (429, 503 with Retry-After), not before it, which is 30 s at most
//
// Invariants:
// - One request is under way; it carries what waits: wishes in their order, pages, heads when they are due. So wishes arrive in order, and
//   a parent that is slow costs the pages of one send.
// - Of the stream no more is read while as many pages as one send may have are being taken, after a page that had to be refused, or where what brought
//   nothing new is more than a peer may send (PeerQuota). What is new is read as fast as it is taken.
// - Only the configured addresses are called, and those that the site's other nodes have, where the driver allows it.
// - A parent that does not answer delays nothing else.
// - A link that is up has registered with the ring that this site has now.
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
import { Addresses } from "./addresses.ts";
import { endOf, type LinkEnd, type LinkHost, type Wish, Wishes } from "./link-end.ts";
import {
  BAD_PAGE_PAUSE_MS,
  DELIVERY_EVERY_MS,
  PAGES_SENT_MAX,
  REDIAL_MS_MAX,
  REDIAL_MS_MIN,
  RETRY_AFTER_MS_MAX,
  SPARE_DIAL_MS,
} from "../limits.ts";
import type { OwnHeads } from "./own-heads.ts";
import { PeerQuota } from "./quota.ts";

/** As every code of docs/errors.md is spelt; whatever else another server calls its error is not shown. */
const ERROR_CODE = /^[A-Z][A-Z_]{0,39}$/;

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
  readonly introduce: (receiver: string) => Promise<Introduction> | null;
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
  const addresses = new Addresses(options.url, clock);
  // A parent that ends its stream has no other share for that.
  const quota = new PeerQuota(clock);
  while (!signal.aborted) {
    const { url, waitMs } = addresses.next();
    if (waitMs > 0 && !(await pause(clock, waitMs, signal))) return;
    const link = new DialledLink(options, url, quota);
    const ended = await link.run(signal);
    if (signal.aborted) return;
    if (ended.wasUp) addresses.reached();
    addresses.learn(ended.urls);
    if (ended.retryAfterMs !== null) addresses.wait(url, ended.retryAfterMs);
    noted(ended.problem);
    if (ended.isSpare) {
      // When the other link ends, this address may be the one that answers.
      while (!signal.aborted && host.isDialled(link)) await pause(clock, SPARE_DIAL_MS, signal);
      addresses.reached();
      continue;
    }
    await pause(clock, retryInMs(random, addresses.rounds, REDIAL_MS_MIN, REDIAL_MS_MAX), signal);
    addresses.failed();
  }
}

interface Ended {
  readonly problem: string;
  readonly wasUp: boolean;
  /** The site is linked through another of its addresses. */
  readonly isSpare: boolean;
  readonly urls: readonly string[];
  /** Asked for by whoever is at this address; null: it was not. */
  readonly retryAfterMs: number | null;
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
  /** Of `LinkHost.introductions`, when this link registered. */
  #introduced = 0;
  #isSpare = false;
  #roundTripMs: number | null = null;
  #problem = "the stream ended";
  #urls: readonly string[] = [];
  #retryAfterMs: number | null = null;
  #sending: { readonly pages: readonly Page[]; readonly sent: PromiseWithResolvers<SentOutcome> } | null = null;
  /** Pages of the stream that are not answered yet. */
  readonly #taking = new Set<Promise<void>>();
  readonly #quota: PeerQuota;
  /** After a page that had to be refused, or more than a peer may send. */
  #resting: Promise<unknown> = Promise.resolve();

  constructor(options: DialOptions, url: string, quota: PeerQuota) {
    this.#options = options;
    this.url = url;
    this.#quota = quota;
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
    const [problem, wasUp, isSpare] = [this.#problem, this.#wasUp, this.#isSpare];
    return { problem, wasUp, isSpare, urls: this.#urls, retryAfterMs: this.#retryAfterMs };
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

  /** The first problem is the cause; what was cut off because of it fails after it. */
  #ends(problem: string): void {
    if (this.#over.signal.aborted) return;
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
    const { sites, introduce, host } = this.#options;
    this.#introduced = host.introductions;
    const introduction = introduce(this.#controller);
    if (introduction === null) {
      this.#ends("this site has no ring of keys yet");
      return false;
    }
    const answer = await sites.register(this.url, await introduction, this.#over.signal);
    if (answer.kind === "refused") this.#refused(answer);
    return answer.kind === "answer";
  }

  #refused(answer: Extract<SiteAnswer<unknown>, { kind: "refused" }>): void {
    this.#urls = answer.urls;
    // Others name a time too (no leader): there the next address may be the right one.
    if (answer.status === 429 || answer.status === 503) this.#retryAfterMs = answer.retryAfterMs;
    // The runbook goes by the code.
    const code = ERROR_CODE.test(answer.code) ? answer.code : `HTTP ${answer.status}`;
    this.#ends(answer.message === "" ? code : `${code}: ${answer.message}`);
  }

  /** Of the stream: the next message is read when this has resolved. */
  async #receive(message: LinkMessage): Promise<void> {
    if (message.kind === "page" && this.#isUp) await this.#take(message.page);
    else {
      await this.#hear(message);
      // A head costs a signature, as a page does.
      this.#owe(message, message.kind === "heads" ? message.heads.length : 1);
    }
    await this.#resting;
  }

  async #hear(message: LinkMessage): Promise<void> {
    const { host } = this.#options;
    if (message.kind === "hello") return this.#hello(message.introduction);
    if (!this.#isUp) return;
    switch (message.kind) {
      case "heads":
        return host.heads(this, message.heads, message.atMs);
      case "graft":
      case "prune":
        return host.wish(this, message);
      case "bye":
        this.#urls = message.urls;
        return this.#ends("the other node does not lead any more");
      case "page":
      case "other":
        return;
      default:
        return assertNever(message, "message of a link");
    }
  }

  /** Those that come one after the other are taken together: each is verified on what the one before gives, and one append writes them. */
  async #take(page: unknown): Promise<void> {
    const taking = this.#taken(page).finally(() => this.#taking.delete(taking));
    this.#taking.add(taking);
    if (this.#taking.size >= PAGES_SENT_MAX) await Promise.race(this.#taking);
  }

  async #taken(page: unknown): Promise<void> {
    const outcome = await this.#options.host.page(this, page);
    // A parent that sends what nobody has signed, as fast as it is read, must not take the time of everything else; nor one that puts other bytes
    // under a signature: all of those are hashed first.
    const isBad = "error" in outcome && (outcome.error === "EVENT_INVALID" || outcome.error === "suspected");
    if (isBad) this.#rest(BAD_PAGE_PAUSE_MS);
    // What is new was asked for here, and is taken as fast as the own log writes it: a site that joins, or was cut off, has all of it to read.
    const isNew = !("error" in outcome) && outcome.accepted > 0;
    if (!isNew) this.#owe(page, 1);
  }

  /** What brought nothing, and is not hashed, costs its bytes. */
  #owe(message: unknown, events: number): void {
    const waitMs = this.#quota.owe({ events, bytes: JSON.stringify(message).length });
    if (waitMs > 0) this.#rest(waitMs);
  }

  #rest(ms: number): void {
    this.#resting = Promise.all([this.#resting, pause(this.#options.clock, ms, this.#over.signal)]);
  }

  async #hello(introduction: Introduction): Promise<void> {
    if (this.#isUp) return;
    if (introduction.id !== this.#controller) return this.#ends("the site at this address has changed its id");
    await this.#options.met(introduction);
    if (this.#over.signal.aborted) return;
    // The parent would never ask for a line that it was not shown.
    if (this.#introduced !== this.#options.host.introductions) return this.#ends("this site has another ring by now");
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
      const waitMs = Math.min(answer.retryAfterMs ?? SITE_HEADS_MS, RETRY_AFTER_MS_MAX);
      if (!(await pause(clock, waitMs, this.#over.signal))) return null;
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
