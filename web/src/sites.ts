// The sites of a mesh as this site knows them, and where each is drawn. Pure. An edge is a link that this site has and measures itself: what
// other sites have between them it does not know, and nothing is drawn for it.

import { count, duration } from "./words.ts";

/** GET /v1/mesh/sites. */
export interface SitesAnswer {
  readonly status: "signing" | "waiting" | "gated" | "not-signing";
  readonly why: string | null;
  /** Whether the own line is given out; absent: of a node of an earlier release. */
  readonly gate?: { readonly state: string } | undefined;
  readonly own: { readonly controller: string; readonly name: string; readonly line: string } | null;
  readonly sites: readonly SiteAnswer[];
  readonly links: readonly LinkAnswer[];
}

interface SiteAnswer {
  readonly id: string;
  readonly name: string;
  readonly url: string;
  readonly status: string;
  readonly line: string | null;
  /** Known on the leader alone. */
  readonly missingEvents: number | null;
  readonly missingMs: number | null;
  /** By that site's clock. */
  readonly lastEventAtMs: number | null;
  readonly heardMsAgo: number | null;
  /** It had a link here and has none now; absent: of a node of an earlier release. */
  readonly cutOffMs?: number | null | undefined;
}

export interface LinkAnswer {
  readonly controller: string | null;
  /** This site dialled the other, or the other this one. */
  readonly direction: "dialled" | "served";
  readonly url: string | null;
  readonly connected: boolean;
  /** Of a parent that is out of reach; null: it is connected, through this address or another one, or it dials. */
  readonly downMs: number | null;
  readonly roundTripMs: number | null;
  readonly lagEvents: number;
  readonly lagMs: number;
  readonly missingEvents: number;
  readonly missingMs: number;
  readonly heardMsAgo: number | null;
  readonly problem: string | null;
  readonly blamed: Readonly<Record<string, number>>;
}

/** GET /api/controllers. */
export interface ControllersAnswer {
  readonly controllers: readonly {
    readonly id: string;
    readonly name: string;
    readonly status: string;
    readonly metadata: Readonly<Record<string, unknown>>;
  }[];
}

/** "hub", or "hub (Hamburg)". Null: the site is standalone; one that takes part has a line. */
export function ownSiteIn({ controllers }: ControllersAnswer): string | null {
  const own = controllers.find(({ status }) => status === "own");
  if (own?.metadata["line"] === undefined) return null;
  return own.name === "" || own.name === own.id ? own.id : `${own.id} (${own.name})`;
}

export interface Site {
  readonly id: string;
  readonly name: string;
  /** Of its own dashboard; null: not known, or no address of a web page. */
  readonly url: string | null;
  readonly isOwn: boolean;
  readonly status: string;
  /** Of its newest line, that are here; null: none. */
  readonly events: number | null;
  /** Of that line, that a linked site has and that are not here, and for how long that is known; null: not known on this node. */
  readonly missing: { readonly events: number; readonly ms: number } | null;
  readonly lastEventAtMs: number | null;
  /** It had a link here, and has none now. */
  readonly isCutOff: boolean;
  readonly links: readonly Link[];
}

export type LinkState = "live" | "stale" | "down";

export interface Link extends LinkAnswer {
  readonly state: LinkState;
  /** What is to be sent nobody has asked for, since this site shows nothing of its own line yet. */
  readonly isHeld: boolean;
}

/** Heads come each second, of an idle link every third; after ten the link is given up. */
const STALE_AFTER_MS = 6_000;

/** `heads`: signed notes, whose second line is the size of their line. */
export function sitesOf({ own, sites, gate, links: answered }: SitesAnswer, heads: readonly string[]): readonly Site[] {
  const sizes = new Map(heads.map((note) => note.split("\n", 2)).map(([line = "", size]) => [line, Number(size)]));
  const links = [...answered.map((link) => named(link, sites)), ...sites.flatMap((site) => endedOf(site, answered))];
  // One that was never connected and whose address nobody gave is no link: it only has something on its record. Nor is an address of a site that
  // is linked through another one: nothing is cut off there.
  const measured = links.filter(
    ({ connected, url, downMs, heardMsAgo }) => connected || (url !== null && downMs !== null) || heardMsAgo !== null,
  );
  const linksOf = (id: string): Link[] =>
    measured
      .filter((link) => nameOf(link) === id)
      .map((link) => ({ ...link, state: stateOf(link), isHeld: isHeld(link, gate?.state ?? "open") }));
  const known = sites.map((site): Site => ({
    id: site.id,
    name: site.name,
    url: webUrl(site.url),
    isOwn: false,
    status: site.status,
    events: site.line === null ? null : (sizes.get(site.line) ?? 0),
    missing: site.missingEvents === null ? null : { events: site.missingEvents, ms: site.missingMs ?? 0 },
    lastEventAtMs: site.lastEventAtMs,
    isCutOff: (site.cutOffMs ?? null) !== null,
    links: linksOf(site.id),
  }));
  const strangers = [...new Set(measured.map(nameOf))].filter((name) => !sites.some(({ id }) => id === name));
  const first: Site[] =
    own === null
      ? []
      : [
          {
            id: own.controller,
            name: own.name,
            url: null,
            isOwn: true,
            status: "own",
            events: sizes.get(own.line) ?? 0,
            missing: { events: 0, ms: 0 },
            lastEventAtMs: null,
            isCutOff: false,
            links: [],
          },
        ];
  const others = [...known, ...strangers.map((id) => strangerOf(id, linksOf(id)))];
  return [...first, ...others.toSorted((a, b) => (a.id < b.id ? -1 : 1))];
}

/** A parent that has not answered since this node leads is the site that has registered with that address; it was heard when the site was. */
function named(link: LinkAnswer, sites: readonly SiteAnswer[]): LinkAnswer {
  if (link.connected || link.url === null) return link;
  const site = sites.find(({ id, url }) => (link.controller === null ? url === link.url : id === link.controller));
  return site === undefined ? link : { ...link, controller: site.id, heardMsAgo: link.heardMsAgo ?? site.heardMsAgo };
}

/** The link of a site that had dialled and is cut off: nobody answers it any more, so it is not among the answer's links. */
function endedOf({ id, url, cutOffMs = null, heardMsAgo }: SiteAnswer, links: readonly LinkAnswer[]): LinkAnswer[] {
  const isDialled = links.some((link) => link.url !== null && (link.controller === id || link.url === url));
  if (cutOffMs === null || isDialled) return [];
  return [{ ...NO_LINK, controller: id, downMs: cutOffMs, heardMsAgo, blamed: recordOf(id, links) }];
}

function recordOf(id: string, links: readonly LinkAnswer[]): LinkAnswer["blamed"] {
  return links.find(({ controller }) => controller === id)?.blamed ?? {};
}

const NO_LINK = {
  direction: "served",
  url: null,
  connected: false,
  roundTripMs: null,
  lagEvents: 0,
  lagMs: 0,
  missingEvents: 0,
  missingMs: 0,
  problem: null,
} as const;

/** It has not said who it is: its address stands for it. */
function nameOf({ controller, url }: LinkAnswer): string {
  return controller ?? url ?? "?";
}

function strangerOf(id: string, links: readonly Link[]): Site {
  return {
    id,
    name: "",
    url: null,
    isOwn: false,
    status: "not registered",
    events: null,
    missing: null,
    lastEventAtMs: null,
    isCutOff: false,
    links,
  };
}

function stateOf({ connected, heardMsAgo }: LinkAnswer): LinkState {
  if (!connected) return "down";
  return heardMsAgo !== null && heardMsAgo > STALE_AFTER_MS ? "stale" : "live";
}

/** An age has only what was asked for. */
function isHeld({ lagEvents, lagMs }: LinkAnswer, gate: string): boolean {
  return gate !== "open" && lagEvents > 0 && lagMs === 0;
}

/** What another site says of itself may be anything. */
export function webUrl(text: string): string | null {
  return URL.canParse(text) && /^https?:$/.test(new URL(text).protocol) ? text : null;
}

export function isForked({ status }: Pick<Site, "status">): boolean {
  return status === "forked";
}

/** For the edge, in few letters. */
export function linkText({
  state,
  roundTripMs,
  lagEvents,
  missingEvents,
  isHeld: held,
  heardMsAgo,
  downMs,
}: Link): string {
  switch (state) {
    case "down":
      if (heardMsAgo !== null) return `cut off, heard ${duration(heardMsAgo)} ago`;
      return downMs === null ? "cut off" : `cut off for ${duration(downMs)}`;
    case "stale":
      return `silent for ${duration(heardMsAgo ?? 0)}`;
    case "live": {
      const trip = roundTripMs === null ? "" : `${duration(roundTripMs)}, `;
      return `${trip}${lagText({ lagEvents, missingEvents, isHeld: held })}`;
    }
    default:
      throw state satisfies never;
  }
}

/** What is missing here of a site's line: "?" where only the leader knows. What one that is cut off has written since nobody can say. */
export function missingText({ isOwn, isCutOff, missing }: Pick<Site, "isOwn" | "isCutOff" | "missing">): string {
  if (isOwn) return "-";
  if (missing === null) return "?";
  if (missing.events === 0) return isCutOff ? "not known" : "none known";
  return `${count(missing.events)} for ${duration(missing.ms)}`;
}

export function lagText(link: Pick<Link, "lagEvents" | "missingEvents" | "isHeld">): string {
  const { lagEvents, missingEvents } = link;
  const parts = [
    lagEvents > 0 ? `${count(lagEvents)} ${link.isHeld ? "held back until this site signs" : "to send"}` : "",
    missingEvents > 0 ? `${count(missingEvents)} to get` : "",
  ].filter((part) => part !== "");
  return parts.length === 0 ? "in step" : parts.join(", ");
}

export interface Place {
  readonly x: number;
  readonly y: number;
}

export interface Drawing {
  readonly width: number;
  readonly height: number;
  /** By the site's id. */
  readonly places: ReadonlyMap<string, Place>;
}

const WIDTH = 860;
const HEIGHT_MIN = 150;
const HEIGHT_A_SITE = 44;
const MARGIN_X = 110;
const MARGIN_Y = 55;

/** This site in the middle, the others on an ellipse around it, by id: nobody moves while it is the same sites. */
export function drawingOf(sites: readonly Site[]): Drawing {
  const others = sites.filter(({ isOwn }) => !isOwn);
  const height = Math.max(HEIGHT_MIN, others.length <= 2 ? 0 : HEIGHT_A_SITE * others.length + 2 * MARGIN_Y);
  const middle = { x: WIDTH / 2, y: height / 2 };
  const places = new Map<string, Place>();
  for (const { id, isOwn } of sites) if (isOwn) places.set(id, middle);
  others.forEach(({ id }, at) => {
    // The first to the left, then clockwise.
    const angle = Math.PI + (2 * Math.PI * at) / others.length;
    places.set(id, {
      x: middle.x + (WIDTH / 2 - MARGIN_X) * Math.cos(angle),
      y: middle.y + (height / 2 - MARGIN_Y) * Math.sin(angle),
    });
  });
  return { width: WIDTH, height, places };
}

/** From the rim of one circle to that of the other; the `at`-th of several links between the same two is moved aside. */
export function lineBetween(from: Place, to: Place, radius: number, at: number): { from: Place; to: Place } {
  const length = Math.hypot(to.x - from.x, to.y - from.y) || 1;
  const [dx, dy] = [(to.x - from.x) / length, (to.y - from.y) / length];
  const aside = { x: -dy * at * LINKS_APART, y: dx * at * LINKS_APART };
  return {
    from: { x: from.x + dx * radius + aside.x, y: from.y + dy * radius + aside.y },
    to: { x: to.x - dx * radius + aside.x, y: to.y - dy * radius + aside.y },
  };
}

const LINKS_APART = 22;
