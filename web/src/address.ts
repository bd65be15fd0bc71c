// What the page shows, as its URL says it: a reload, a bookmark and the back button bring the same view. Pure. The query is
// the page's own; the path is always "/", which is all that the servers know.

import { JOB_STATES, type JobState } from "../../src/core/jobs/model.ts";

export const VIEWS = ["cluster", "jobs", "work", "scopes", "values", "sites", "islands"] as const;
export type ViewName = (typeof VIEWS)[number];

export interface Address {
  readonly view: ViewName;
  readonly states: readonly JobState[];
  readonly kind: string;
  readonly queue: string;
  readonly search: string;
  /** Where a page of the list begins, as the server said; "" for the newest. */
  readonly cursor: string;
  /** The job that is open; "" for none. */
  readonly job: string;
  /** The scope whose history is open. */
  readonly scope: string;
  /** Of values: how the names of those that are listed begin, and the one whose content is open. */
  readonly prefix: string;
  readonly value: string;
  /** Of sites: the one whose jobs and events are shown, and which of its events; "" for all. */
  readonly site: string;
  readonly type: string;
  readonly entity: string;
}

export const HOME: Address = {
  view: "cluster",
  states: [],
  kind: "",
  queue: "",
  search: "",
  cursor: "",
  job: "",
  scope: "",
  prefix: "",
  value: "",
  site: "",
  type: "",
  entity: "",
};

const TEXTS = [
  "kind",
  "queue",
  "search",
  "cursor",
  "job",
  "scope",
  "prefix",
  "value",
  "site",
  "type",
  "entity",
] as const;

/** What does not belong there is left out: an old bookmark opens something. */
export function parseAddress(query: string): Address {
  const given = new URLSearchParams(query);
  const view = VIEWS.find((one) => one === given.get("view")) ?? HOME.view;
  const words = (given.get("state") ?? "").split(",");
  const states = JOB_STATES.filter((state) => words.includes(state));
  const texts = Object.fromEntries(TEXTS.map((name) => [name, given.get(name) ?? ""]));
  return { ...HOME, ...texts, view, states };
}

/** Without what is as by default. "?" where nothing is left: a link must be one. */
export function formatAddress(address: Address): string {
  const query = new URLSearchParams();
  if (address.view !== HOME.view) query.set("view", address.view);
  if (address.states.length > 0) query.set("state", address.states.join(","));
  for (const name of TEXTS) if (address[name] !== "") query.set(name, address[name]);
  return `?${query.toString()}`;
}

/** The query for GET /v1/jobs. */
export function jobsPath({ states, kind, queue, search, cursor }: Address, limit: number): string {
  const query = new URLSearchParams({ limit: String(limit) });
  if (states.length > 0) query.set("state", states.join(","));
  for (const [name, value] of Object.entries({ kind, queue, search: search.trim(), cursor })) {
    if (value !== "") query.set(name, value);
  }
  return `/v1/jobs?${query.toString()}`;
}

/** The query for GET /v1/values: names are the reader's own, white space included. */
export function valuesPath({ prefix, cursor }: Address, limit: number): string {
  return `/v1/values?${queryOf({ limit: String(limit), prefix, after: cursor })}`;
}

/** The query for GET /v1/mesh/jobs. */
export function meshJobsPath({ site, search, cursor }: Address, limit: number): string {
  return `/v1/mesh/jobs?${queryOf({ limit: String(limit), site: site.trim(), search: search.trim(), cursor })}`;
}

/** The query for GET /v1/mesh/events; `after` null: the newest that fit. */
export function meshEventsPath({ site, type, entity }: EventFilter, after: number | null, limit: number): string {
  const place = after === null ? {} : { after_arrival: String(after) };
  const filter = { site: site.trim(), type: type.trim(), entity: entity.trim() };
  return `/v1/mesh/events?${queryOf({ limit: String(limit), ...place, ...filter })}`;
}

export type EventFilter = Pick<Address, "site" | "type" | "entity">;

function queryOf(given: Readonly<Record<string, string>>): string {
  return new URLSearchParams(Object.entries(given).filter(([, value]) => value !== "")).toString();
}

/** The key of `#key=…`, which npm start prints; null where there is none. */
export function keyOf(hash: string): string | null {
  const found = /^#key=([^&]+)$/.exec(hash)?.[1];
  if (found === undefined) return null;
  try {
    return decodeURIComponent(found);
  } catch {
    return null;
  }
}
