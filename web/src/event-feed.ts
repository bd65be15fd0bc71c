// What a reader has been shown of the events of all sites, and how it grows: with what is new, and, at first, with what came before. Pure.

import type { Site } from "./sites.ts";
import { ago } from "./words.ts";

/** As it is on the wire. */
export interface MeshEvent {
  readonly arrival: number;
  readonly site: string;
  readonly line: string;
  readonly line_sequence: number;
  readonly timestamp: number;
  readonly event_type: string;
  readonly entity_id: string;
  readonly entity_type: string;
  readonly payload: object;
  readonly event_hash: string;
}

export interface EventsAnswer {
  readonly events: readonly MeshEvent[];
  readonly next: number | null;
  readonly through: number;
}

export interface Feed {
  /** In order of arrival. */
  readonly events: readonly MeshEvent[];
  /** Everything up to here was asked for; null: nothing yet. */
  readonly after: number | null;
  /** Everything that fits and arrived after this is in `events`; 0: all that there is. */
  readonly from: number;
  readonly error: string | null;
}

export const EMPTY_FEED: Feed = { events: [], after: null, from: 0, error: null };
/** Events of one answer: as many as are given. */
export const EVENTS_PAGE = 200;
/** A minute of ten events in a second. */
const KEPT_MAX = 4 * EVENTS_PAGE;
/** The longest window that is shown. */
export const WINDOW_MS_MAX = 300_000;

/** With the answer to a question after `feed.after`. */
export function fed(feed: Feed, { events, next, through }: EventsAnswer): Feed {
  // Fewer than there were: this is another history, or a node that has not got so far.
  if (feed.after !== null && through < feed.after) return feed;
  const fresh = events.filter(({ arrival }) => arrival > (feed.after ?? 0));
  const all = [...feed.events, ...fresh];
  // The first question is for the newest: a full page has others before it.
  const isCut = all.length > KEPT_MAX || (feed.after === null && events.length >= EVENTS_PAGE);
  const kept = all.slice(-KEPT_MAX);
  const from = isCut ? (kept[0]?.arrival ?? 1) - 1 : feed.from;
  return { events: kept, after: next ?? through, from, error: null };
}

/** The arrival after which the page before the first event begins; null: the window is full, or there is no room, or nothing before it. */
export function earlierPlace({ events, from }: Feed, nowMs: number): number | null {
  const [first] = events;
  if (first === undefined || from === 0 || events.length + EVENTS_PAGE > KEPT_MAX) return null;
  return first.timestamp < nowMs - WINDOW_MS_MAX ? null : Math.max(0, from - EVENTS_PAGE);
}

/** With the answer to a question after `place`, which is before the first event. */
export function fedBack(feed: Feed, place: number, { events }: EventsAnswer): Feed {
  const earlier = events.filter(({ arrival }) => arrival > place && arrival <= feed.from);
  return { ...feed, events: [...earlier, ...feed.events], from: Math.min(feed.from, place) };
}

/** The time of the first event, where others before it are not loaded; null: all are. */
export function beginMs({ events, from }: Feed): number | null {
  return from === 0 ? null : (events[0]?.timestamp ?? null);
}

/** Of a site none of whose events is among these. */
export function laneHint(site: Pick<Site, "events" | "lastEventAtMs"> | undefined, feed: Feed, nowMs: number): string {
  if (beginMs(feed) === null || site === undefined || site.events === null || site.events === 0)
    return "nothing of it is shown here";
  if (site.lastEventAtMs === null) return "none of its events is among those that are loaded";
  return `its last event, ${ago(site.lastEventAtMs, nowMs)}, is not among those that are loaded`;
}
