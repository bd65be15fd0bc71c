// What is shown of the links of one leadership: who is at the other end, since when it is out of reach, and how far the two sites are apart.

import type { LineId } from "../../../core/mesh/model.ts";
import type { LinkId } from "../../../core/mesh/spread/index.ts";
import type { Clock } from "../../../ports/clock.ts";
import type { LineSource } from "../../../ports/mesh/lines.ts";
import type { LinkView } from "../../../ports/mesh/links.ts";
import type { Blame } from "./blame.ts";
import { type Lag, type LagLane, Lags, NO_LAGS } from "./lags.ts";
import type { LinkEnd } from "./link-end.ts";

/** What was heard over one link. */
export interface LinkHeard {
  atMs: number;
  skewMs: number | null;
  /** The first heads of a link are all that the other site has. */
  hasHeads: boolean;
  /** So much of the own line it says that it has. */
  ownSize: number;
}

export interface LinkViewsOptions {
  readonly clock: Clock;
  readonly parents: readonly string[];
  readonly lines: Pick<LineSource, "has" | "size">;
  readonly blame: Blame;
  readonly ends: ReadonlyMap<LinkId, LinkEnd>;
  readonly heard: ReadonlyMap<LinkId, LinkHeard>;
  /** Of parents: why they are not connected. */
  readonly problems: ReadonlyMap<string, string | null>;
  readonly lanes: () => Iterable<LagLane>;
}

/** What there was of links to one site since this node leads. */
export interface LinkTrace {
  readonly isLinked: boolean;
  /** It is at the address of a configured parent: it was last, or says so itself. */
  readonly isParent: boolean;
  /** Over a link that has ended; null: there was none. */
  readonly heardAtMs: number | null;
}

type LagsByLink = ReturnType<Lags["ofLinks"]>;

export class LinkViews {
  readonly #options: LinkViewsOptions;
  readonly #lags = new Lags();
  readonly beganMs: number;
  /** Who answered at a parent's address last, and when: also after that link has ended. */
  readonly #parents = new Map<string, { readonly controller: string; readonly atMs: number }>();

  constructor(options: LinkViewsOptions) {
    this.#options = options;
    this.beganMs = options.clock.monotonicMs();
  }

  /** Every second. */
  review(): void {
    const { lanes, parents, ends } = this.#options;
    const atMs = this.#nowMs;
    this.#lags.review(atMs, lanes(), this.#sizeOf);
    for (const url of parents) {
      const end = ends.get(`to ${url}`);
      if (end !== undefined) this.#parents.set(url, { controller: end.controller, atMs });
    }
  }

  /** A parent's address answers, and is not used: the site is linked through another one. */
  reached(id: LinkId, controller: string): void {
    const url = this.#options.parents.find((one) => `to ${one}` === id);
    if (url !== undefined) this.#parents.set(url, { controller, atMs: this.#nowMs });
  }

  all(): readonly LinkView[] {
    const { ends, parents, blame, lanes } = this.#options;
    // Once for all of them: a site has as many lanes as links times lines.
    const lags = this.#lags.ofLinks(this.#nowMs, lanes(), this.#sizeOf);
    const served = [...ends.values()].filter(({ url }) => url === null);
    const dialled = parents.map((url) => this.#view(url, ends.get(`to ${url}`), lags));
    const linked = new Set([...ends.values()].map(({ controller }) => controller));
    const gone = blame.peers().filter((peer) => !linked.has(peer));
    return [...dialled, ...served.map((end) => this.#view(null, end, lags)), ...gone.map((peer) => this.#blamed(peer))];
  }

  /** `urls`: as the site has registered them. */
  traceOf(controller: string, urls: readonly string[]): LinkTrace {
    const { ends, heard, parents } = this.#options;
    const own = parents.filter((url) => {
      const before = this.#parents.get(url);
      return before === undefined ? urls.includes(url) : before.controller === controller;
    });
    const times = [`from ${controller}`, ...own.map((url) => `to ${url}`)].flatMap((id) => heard.get(id)?.atMs ?? []);
    return {
      isLinked: [...ends.values()].some((end) => end.controller === controller),
      isParent: own.length > 0,
      heardAtMs: times.length === 0 ? null : Math.max(...times),
    };
  }

  lacking(): ReadonlyMap<LineId, Lag> {
    return this.#lags.lines(this.#nowMs, this.#options.lanes(), this.#sizeOf);
  }

  readonly #sizeOf = (line: LineId): number => {
    const { lines } = this.#options;
    return lines.has(line) ? lines.size(line) : 0;
  };

  get #nowMs(): number {
    return this.#options.clock.monotonicMs();
  }

  #view(url: string | null, end: LinkEnd | undefined, lags: LagsByLink): LinkView {
    const { ends, heard: heards, problems, blame } = this.#options;
    const nowMs = this.#nowMs;
    const heard = end === undefined ? undefined : heards.get(end.id);
    const before = url === null ? undefined : this.#parents.get(url);
    // Through another of its addresses.
    const isLinked = [...ends.values()].some((other) => other.url !== null && other.controller === before?.controller);
    const [lag, missing] = (end === undefined ? undefined : lags.get(end.id)) ?? NO_LAGS;
    return {
      controller: end?.controller ?? before?.controller ?? null,
      direction: url === null ? "served" : "dialled",
      url,
      connected: end !== undefined,
      downMs: end !== undefined || url === null || isLinked ? null : Math.round(nowMs - (before?.atMs ?? this.beganMs)),
      roundTripMs: end?.roundTripMs ?? null,
      lagEvents: lag.events,
      lagMs: Math.round(lag.ms),
      missingEvents: missing.events,
      missingMs: Math.round(missing.ms),
      skewMs: heard?.skewMs ?? null,
      heardMsAgo: heard === undefined ? null : Math.round(nowMs - heard.atMs),
      problem: url === null ? null : (problems.get(url) ?? null),
      blamed: end === undefined ? {} : blame.of(end.controller),
    };
  }

  /** Of a site that has no link here: what it delivered all the same. */
  #blamed(controller: string): LinkView {
    return { ...this.#view(null, undefined, new Map()), controller, blamed: this.#options.blame.of(controller) };
  }
}
