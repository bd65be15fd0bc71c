// What a reader has been shown of the events of all sites, and how it grows. Pure.

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
  readonly error: string | null;
}

export const EMPTY_FEED: Feed = { events: [], after: null, error: null };
const KEPT_MAX = 400;

/** With the answer to a question after `feed.after`. */
export function fed(feed: Feed, { events, next, through }: EventsAnswer): Feed {
  // Fewer than there were: this is another history, or a node that has not got so far.
  if (feed.after !== null && through < feed.after) return feed;
  const fresh = events.filter(({ arrival }) => arrival > (feed.after ?? 0));
  return { events: [...feed.events, ...fresh].slice(-KEPT_MAX), after: next ?? through, error: null };
}
