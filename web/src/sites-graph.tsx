// The picture of the sites: this one in the middle, a line for each link that it has, with what it measures of it. An arrow leads from the site
// that dialled. The table next to it says the same in words.

import { drawingOf, isForked, lineBetween, type Link, linkText, type Place, type Site } from "./sites.ts";
import { plural } from "./words.ts";

const RADIUS = 30;
/** A label's distance from its line. */
const LABEL_UP = 8;

export function SitesGraph({ sites }: { readonly sites: readonly Site[] }) {
  const { width, height, places } = drawingOf(sites);
  const own = sites.find(({ isOwn }) => isOwn);
  const middle = own === undefined ? undefined : places.get(own.id);
  return (
    <svg class="sites-graph" viewBox={`0 0 ${width} ${height}`} role="img" aria-label={graphText(sites)}>
      <defs>
        {(["live", "stale", "down"] as const).map((state) => (
          <marker
            key={state}
            id={`arrow-${state}`}
            class={`arrow ${state}`}
            viewBox="0 0 10 10"
            refX="9"
            refY="5"
            markerWidth="7"
            markerHeight="7"
            orient="auto-start-reverse"
          >
            <path d="M0 0 10 5 0 10z" />
          </marker>
        ))}
      </defs>
      {middle !== undefined &&
        sites.flatMap((site) => {
          const place = places.get(site.id);
          if (place === undefined) return [];
          return site.links.map((link, at) => (
            <Edge key={`${site.id} ${link.direction} ${link.url}`} link={link} own={middle} other={place} at={at} />
          ));
        })}
      {sites.map((site) => {
        const place = places.get(site.id);
        return place === undefined ? null : <Circle key={site.id} site={site} place={place} />;
      })}
    </svg>
  );
}

interface EdgeProps {
  readonly link: Link;
  readonly own: Place;
  readonly other: Place;
  readonly at: number;
}

function Edge({ link, own, other, at }: EdgeProps) {
  const isOurs = link.direction === "dialled";
  const { from, to } = lineBetween(isOurs ? own : other, isOurs ? other : own, RADIUS, at);
  return (
    <g class={`edge ${link.state}`}>
      <line x1={from.x} y1={from.y} x2={to.x} y2={to.y} marker-end={`url(#arrow-${link.state})`} />
      <text x={(from.x + to.x) / 2} y={(from.y + to.y) / 2 - LABEL_UP}>
        {linkText(link)}
      </text>
    </g>
  );
}

function Circle({ site, place }: { readonly site: Site; readonly place: Place }) {
  const isWrong = isForked(site) || site.status === "evicted";
  return (
    <g class={`site ${site.isOwn ? "own" : ""} ${isWrong ? "forked" : ""}`} data-site={site.id}>
      <circle cx={place.x} cy={place.y} r={RADIUS} />
      <text class="site-name" x={place.x} y={place.y + 4}>
        {shortened(site.id)}
      </text>
      <text class="site-about" x={place.x} y={place.y + RADIUS + 16}>
        {aboutOf(site)}
      </text>
    </g>
  );
}

const NAME_LETTERS_MAX = 24;

function shortened(name: string): string {
  return name.length > NAME_LETTERS_MAX ? `${name.slice(0, NAME_LETTERS_MAX)}…` : name;
}

function aboutOf({ isOwn, isCutOff, status, events, links }: Site): string {
  const held = events === null ? "no events here" : plural(events, "event");
  if (isOwn) return `this site, ${held}`;
  if (isCutOff && status !== "expired") return `cut off, ${held}`;
  if (["registered", "approved"].includes(status)) return links.length === 0 ? `no link, ${held}` : held;
  return `${status}, ${held}`;
}

/** For readers who do not see it. */
function graphText(sites: readonly Site[]): string {
  const links = sites.flatMap(({ id, links: some }) => some.map((link) => `${id}: ${linkText(link)}`));
  return `The sites and their links. ${links.length === 0 ? "No links." : links.join("; ")}`;
}
