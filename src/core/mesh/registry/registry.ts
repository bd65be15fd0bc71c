// The state of the registry, and what each event makes of it, the same on every node. Events were decided by this site's own leader
// (decide.ts), so they are taken as they are; what was decided twice because of a change of leaders changes nothing the second time.

import { parseJson } from "../../kit/parse-json.ts";
import { TextMap } from "../../kit/keyed/text-map.ts";
import type { StoredEvent } from "../../events/index.ts";
import type { LineId } from "../model.ts";
import type {
  LineForked,
  OwnPlace,
  OwnRegistered,
  PinnedLine,
  RegistryEventType,
  Renewal,
  SiteApproved,
  SiteGated,
  SitePresence,
  SiteRegistered,
  SiteResumed,
} from "./events.ts";
import { FORKS_MAX, LINES_PER_SITE_MAX, SITES_MAX } from "./limits.ts";
import {
  type Accept,
  isVouched,
  type KnownSite,
  type LineStanding,
  type OwnSite,
  type Presence,
  type SiteStatus,
} from "./model.ts";

interface Written {
  readonly own: OwnSite | null;
  readonly sites: readonly KnownSite[];
  readonly forks: readonly (readonly [LineId, number])[];
  readonly resumedAt: number;
  readonly gated: OwnPlace | null;
  readonly renewed: Renewal | null;
  readonly leftAt: number | null;
}

export class Registry {
  #own: OwnSite | null = null;
  #resumedAt = 0;
  #gated: OwnPlace | null = null;
  #renewed: Renewal | null = null;
  #leftAt: number | null = null;
  readonly #sites = new Map<string, KnownSite>();
  /** By author: sites with a line whose first ring names it. Null: the sites have changed since it was asked for. */
  #claims: ReadonlyMap<string, readonly string[]> | null = null;
  /** Lines that are proven to have forked: the sequence of the own event that has the evidence. */
  readonly #forks = new TextMap<number>();

  /** Null: this site has written no ring yet. */
  get own(): OwnSite | null {
    return this.#own;
  }

  /** The sequence of the last `controller:resumed`; 0: none. */
  get resumedAt(): number {
    return this.#resumedAt;
  }

  /** Where the own history was when the site was started and not compared yet, the first time of several; null: it is compared. */
  get gated(): OwnPlace | null {
    return this.#gated;
  }

  /** How the last new line began that an operator asked for; null: none. */
  get renewed(): Renewal | null {
    return this.#renewed;
  }

  /** The sequence of the own `controller:left`; null: this site takes part in its mesh. */
  get leftAt(): number | null {
    return this.#leftAt;
  }

  /** Nothing was ever written of it. */
  get isEmpty(): boolean {
    return this.#own === null && this.#sites.size === 0 && this.#forks.size === 0 && this.#resumedAt === 0;
  }

  get size(): number {
    return this.#sites.size;
  }

  site(id: string): KnownSite | undefined {
    return this.#sites.get(id);
  }

  /** By id. */
  sites(): readonly KnownSite[] {
    return [...this.#sites.values()].toSorted((a, b) => (a.id < b.id ? -1 : 1));
  }

  /**
   * Those that have registered here themselves: this site may have sent them its line. By id; without those that are evicted, or have left. Who is heard
   * to have left while the own line is in doubt may have more of it than this disk: only a disk that had the word before has all that the leaver has.
   */
  peers(): readonly string[] {
    const known = this.#gated?.through ?? Infinity;
    const isGone = (presence: Presence | null): boolean => presence?.hasLeft === true && (presence.at ?? 0) <= known;
    return this.sites()
      .filter(
        ({ isEvicted, presence, registeredAtMs, metadata }) =>
          !isEvicted && !isGone(presence) && registeredAtMs > 0 && !isVouched({ metadata }),
      )
      .map(({ id }) => id);
  }

  /** Sites that claim to have written in this author's name: a page may have another one in each of its events. */
  claimsOf(author: string): readonly string[] {
    this.#claims ??= claimsOf(this.#sites.values());
    return this.#claims.get(author) ?? [];
  }

  forkOf(line: LineId): number | undefined {
    return this.#forks.get(line);
  }

  /** Lines that have forked, with the sequence of the own event that has the evidence; in the order in which they were proven. */
  forks(): readonly (readonly [LineId, number])[] {
    return [...this.#forks.entries()].toSorted(([, a], [, b]) => a - b);
  }

  status(site: KnownSite): SiteStatus {
    const newest = site.lines.at(-1);
    if (newest !== undefined && this.#forks.has(newest.line)) return "forked";
    if (site.isEvicted) return "evicted";
    if (site.presence?.hasLeft === true) return "left";
    // Earlier releases let vouched sites expire; one that is approved before it registers has nothing that could.
    if (site.isExpired && site.registeredAtMs > 0 && !isVouched(site)) return "expired";
    return site.isApproved ? "approved" : "registered";
  }

  /**
   * The line that this one continues: of the generations before it, the newest of which something is here (`isHere`). Of others somebody may have spoken
   * who vouches for the site, and nobody ever writes in them. Null: none.
   */
  lineBefore(controller: string, line: LineId, isHere: (line: LineId) => boolean): LineId | null {
    const lines = this.#sites.get(controller)?.lines ?? [];
    const generation = lines.find((one) => one.line === line)?.ring.generation ?? 0;
    const before = lines.filter((one) => one.ring.generation < generation && isHere(one.line));
    return before.toSorted((a, b) => a.ring.generation - b.ring.generation).at(-1)?.line ?? null;
  }

  /** Whether pages of a line are taken. `controller`: the site whose line it is. */
  standingOf(controller: string, line: LineId, accept: Accept): LineStanding {
    const evidence = this.#forks.get(line);
    if (evidence !== undefined) return { kind: "forked", evidence };
    const site = this.#sites.get(controller);
    const found = site?.lines.find((one) => one.line === line);
    if (site === undefined || found === undefined) return { kind: "unknown" };
    if (site.isEvicted) return { kind: "evicted" };
    if (accept === "approved" && !site.isApproved) return { kind: "unapproved" };
    return { kind: "wanted", firstRing: found.ring };
  }

  apply(event: StoredEvent): void {
    const { entityId: id, payload, sequence } = event;
    switch (event.eventType as RegistryEventType) {
      case "controller:registered":
        return "keys" in payload
          ? this.#registeredSelf(event, payload as unknown as OwnRegistered)
          : this.#registered(id, payload as unknown as SiteRegistered, event.timestamp);
      case "controller:expired":
        return this.#change(id, { isExpired: true });
      case "controller:approved":
        return this.#approved(id, payload as unknown as SiteApproved);
      case "controller:evicted":
        return this.#change(id, { isEvicted: true, isApproved: false, approvedRing: null });
      case "controller:left":
      case "controller:joined":
        return this.#present(id, event.eventType === "controller:left", payload as unknown as SitePresence, sequence);
      case "controller:forked":
        return this.#forked(payload as unknown as LineForked, sequence);
      case "controller:resumed":
        return this.#resumed(payload as unknown as SiteResumed, sequence);
      case "controller:gated":
        this.#gated ??= payload as unknown as SiteGated;
        return;
      default:
      // Of another tenant.
    }
  }

  /** Null: nothing was ever written of it, and whoever reads this state need not know of it. */
  encode(): string | null {
    if (this.isEmpty) return null;
    const written: Written = {
      own: this.#own,
      sites: this.sites(),
      forks: this.forks(),
      resumedAt: this.#resumedAt,
      gated: this.#gated,
      renewed: this.#renewed,
      leftAt: this.#leftAt,
    };
    return JSON.stringify(written);
  }

  restore(text: string | null): void {
    this.#sites.clear();
    this.#claims = null;
    this.#forks.clear();
    const empty: Written = { own: null, sites: [], forks: [], resumedAt: 0, gated: null, renewed: null, leftAt: null };
    const { own, sites, forks, resumedAt, gated, renewed, leftAt } =
      text === null ? empty : (parseJson(text) as Written);
    this.#own = own;
    this.#resumedAt = resumedAt;
    this.#gated = gated ?? null;
    this.#renewed = renewed ?? null;
    this.#leftAt = leftAt ?? null;
    for (const site of sites) this.#put({ ...site, presence: site.presence ?? null });
    for (const [line, sequence] of forks) this.#forks.set(line, sequence);
  }

  #registeredSelf({ entityId: controllerId, sequence: since, timestamp }: StoredEvent, payload: OwnRegistered): void {
    const before = this.#own;
    if (before !== null && before.controllerId !== controllerId) return;
    const { name, urls, line, generation, author, keys } = payload;
    const registeredAtMs = before?.registeredAtMs ?? Math.floor(timestamp);
    const lines = pinned(before?.lines ?? [], { line, ring: { controller: controllerId, generation, author, keys } });
    this.#own = { controllerId, name, urls, line, generation, author, keys, since, registeredAtMs, lines };
  }

  #registered(id: string, payload: SiteRegistered, timestamp: number): void {
    const before = this.#sites.get(id);
    if (before === undefined && this.#sites.size >= SITES_MAX) return;
    const { url, name, urls, version, line, ring, earlier = [], metadata = {} } = payload;
    const { isApprovalOver = false, isOlder = false } = payload;
    const lines = before?.lines ?? [];
    const shown = line === undefined || ring === undefined ? [] : [...earlier, { line, ring }];
    this.#put({
      id,
      url,
      name,
      urls,
      version,
      metadata,
      registeredAtMs: Math.floor(timestamp),
      lines: shown.reduce(isOlder ? inserted : pinned, lines),
      isExpired: false,
      isApproved: before?.isApproved ?? false,
      isEvicted: before?.isEvicted ?? false,
      presence: presenceAfter(before, line),
      // Used up by the line that it was given for; where that was pinned before, as soon as its keys are known.
      approvedRing:
        !isApprovalOver && (isOlder || lines.some((one) => one.line === line) || line === undefined)
          ? (before?.approvedRing ?? null)
          : null,
    });
  }

  #approved(id: string, { ring }: SiteApproved): void {
    if (!this.#sites.has(id) && this.#sites.size < SITES_MAX) this.#put(unheard(id));
    this.#change(id, { isApproved: true, isEvicted: false, approvedRing: ring });
  }

  #present(id: string, hasLeft: boolean, { line, sequence }: SitePresence, at: number): void {
    if (this.#own?.controllerId === id) this.#leftAt = hasLeft ? (this.#leftAt ?? at) : null;
    else this.#change(id, { presence: { line, sequence, hasLeft, at } });
  }

  #resumed({ renewed = null }: SiteResumed, sequence: number): void {
    this.#resumedAt = sequence;
    this.#gated = null;
    if (renewed !== null) this.#renewed = renewed;
  }

  #forked({ line }: LineForked, sequence: number): void {
    if (!this.#forks.has(line) && this.#forks.size < FORKS_MAX) this.#forks.set(line, sequence);
  }

  #change(id: string, change: Partial<KnownSite>): void {
    const site = this.#sites.get(id);
    if (site !== undefined) this.#put({ ...site, ...change });
  }

  #put(site: KnownSite): void {
    this.#sites.set(site.id, site);
    this.#claims = null;
  }
}

function claimsOf(sites: Iterable<KnownSite>): ReadonlyMap<string, readonly string[]> {
  const claims = new Map<string, string[]>();
  for (const { id, lines } of sites) {
    for (const author of new Set(lines.map(({ ring }) => ring.author))) {
      const ids = claims.get(author);
      if (ids === undefined) claims.set(author, [id]);
      else ids.push(id);
    }
  }
  return claims;
}

/**
 * Whoever registers is back; where it had left stays known, because that word may come again. A line that is new may be another site's word alone
 * (it is vouched for): then the site itself registers in a moment.
 */
function presenceAfter(before: KnownSite | undefined, line: LineId | undefined): Presence | null {
  const presence = before?.presence ?? null;
  const isKnown = line === undefined || before?.lines.some((one) => one.line === line) === true;
  return presence === null || !isKnown ? presence : { ...presence, hasLeft: false };
}

/** Approved before it registered. */
function unheard(id: string): KnownSite {
  const nothing = { url: "", urls: [], version: null, registeredAtMs: 0, lines: [], metadata: {} };
  return {
    id,
    name: id,
    ...nothing,
    isExpired: true,
    isApproved: false,
    isEvicted: false,
    presence: null,
    approvedRing: null,
  };
}

/** The first ring of a line stays; a line that is new is the last. */
function pinned(lines: readonly PinnedLine[], next: PinnedLine): readonly PinnedLine[] {
  if (lines.some(({ line }) => line === next.line)) return lines;
  return [...lines, next].slice(-LINES_PER_SITE_MAX);
}

/** Before the first line of a later generation. It pushes out none of the others. */
function inserted(lines: readonly PinnedLine[], next: PinnedLine): readonly PinnedLine[] {
  const at = lines.findIndex(({ ring }) => ring.generation > next.ring.generation);
  const isKnown = lines.some(({ line }) => line === next.line);
  return at < 0 || isKnown || lines.length >= LINES_PER_SITE_MAX ? lines : lines.toSpliced(at, 0, next);
}
