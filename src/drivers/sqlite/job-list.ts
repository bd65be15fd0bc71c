// Finds one page of jobs, newest first.
//
// One of the filters is walked by its index, from the cursor down; the others are checked on each row that it gives. Every
// row is handed out, fitting or not, so that the clock is looked at between two of them: a page that takes too long is cut
// where it has got to, and goes on from there with the next one. So no search blocks the thread or starts over.
// Node's SQLite can't be interrupted within a step, and words that are never together make one step of a whole walk: whatever
// looks for words is cut into windows of sequences, and the clock is looked at between them. That holds for the walk and for
// the count that chooses it.
//
// Which filter is walked is chosen by what fits the fewest, and to count is dear where all fit many. But then a page is soon
// full whichever is walked: so a few of the newest rows are looked at first, and only where that does not fill the page is
// anything counted.
//
// Keys are bound as bigints: Node binds numbers as reals, and FTS5 takes no notice of a bound that is not an integer. It
// then reads the words of all jobs, or, for `=`, gives another row.

import type { DatabaseSync, StatementSync } from "node:sqlite";
import { crc32 } from "node:zlib";
import { TenureError } from "../../core/kit/errors.ts";
import type { JobQuery } from "../../ports/views.ts";
import type { JobState } from "../../core/jobs/model.ts";
import * as limits from "./limits.ts";
import type { StoredPage } from "./messages.ts";
import { readPosition, STATE_NUMBERS } from "./store.ts";
import { matchOf } from "./words.ts";

const ALL_STATES = Object.keys(STATE_NUMBERS) as JobState[];

const WORDS_KEY = "words.rowid";

type Value = string | number | bigint;

interface Part {
  readonly text: string;
  readonly values: readonly Value[];
}

interface Filter {
  /** What is walked: one index for each value, merged, because `IN` would make SQLite sort all that fits. */
  readonly walks: readonly Part[];
  /** Counts what fits without looking at the jobs; the same indexes. */
  readonly probes: readonly Part[];
  /** The sequence, as the index has it. */
  readonly key: string;
  /** The same as a condition on a job. */
  readonly condition: Part;
  /** How many sequences one statement looks at. */
  readonly window: number;
}

/** `site`: of jobs of the mesh, whose table has one. */
export type ListQuery = JobQuery & { readonly site?: string | undefined };

/** Inside of a read transaction, so that the position is that of the page. */
export function listJobs(database: DatabaseSync, query: ListQuery, pageMsMax: number = limits.PAGE_MS_MAX): StoredPage {
  const endsAtMs = performance.now() + pageMsMax;
  const limit = limitOf(query);
  const before = cursorSequence(query.cursor);
  database.exec("BEGIN");
  try {
    const position = readPosition(database);
    const newest = prepared(database, "SELECT coalesce(max(sequence), 0) AS newest FROM jobs").get()![
      "newest"
    ] as number;
    const start = Math.min(before, newest + 1);
    const page = new Page(start, limit, endsAtMs);
    find(database, filtersOf(query), page);
    return { jobs: page.jobs, next: page.next, position };
  } finally {
    database.exec("COMMIT");
  }
}

function find(database: DatabaseSync, filters: readonly Filter[], page: Page): void {
  const restOf = (first: Filter): Filter[] => filters.filter((filter) => filter !== first);
  if (filters.length < 2) return walk(database, filters[0] ?? ALL, [], page);
  const likely = likelyOf(filters);
  walk(database, likely, restOf(likely), page, { rows: limits.GLANCE_ROWS_MAX, sequences: limits.GLANCE_WINDOW });
  if (page.isOver) return;
  const first = firstOf(database, filters, page.place);
  walk(database, first, restOf(first), page);
}

const ALL: Filter = {
  walks: [{ text: "jobs WHERE TRUE", values: [] }],
  probes: [],
  key: "jobs.sequence",
  condition: { text: "TRUE", values: [] },
  window: Number.MAX_SAFE_INTEGER,
};

function filtersOf(query: ListQuery): Filter[] {
  const filters: Filter[] = [];
  const match = query.search === undefined ? null : matchOf(query.search);
  if (match !== null) filters.push(matches(match));
  for (const column of ["agent", "queue", "kind", "site"] as const) {
    const value = query[column];
    if (value !== undefined) filters.push(equals(column, [value]));
  }
  if (query.states !== undefined) filters.push(inStates(query.states));
  return filters;
}

function matches(match: string): Filter {
  const values = [match];
  return {
    walks: [{ text: "words CROSS JOIN jobs ON jobs.sequence = words.rowid WHERE words MATCH ?", values }],
    probes: [{ text: "words WHERE words MATCH ?", values }],
    key: WORDS_KEY,
    condition: {
      text: "EXISTS (SELECT 1 FROM words WHERE words MATCH ? AND words.rowid = jobs.sequence)",
      values,
    },
    window: limits.SEARCH_WINDOW,
  };
}

function inStates(states: readonly JobState[]): Filter {
  return equals(
    "state",
    [...new Set(states)].map((state) => STATE_NUMBERS[state]),
  );
}

function equals(column: string, values: readonly Value[]): Filter {
  const walks = values.map((value) => ({
    text: `jobs INDEXED BY jobs_${column} WHERE ${column} = ?`,
    values: [value],
  }));
  return {
    walks,
    probes: walks,
    key: "jobs.sequence",
    condition: { text: `${column} IN (${values.map(() => "?").join(", ")})`, values },
    window: Number.MAX_SAFE_INTEGER,
  };
}

/** If all fit many: the words; or the states, whose index has the other columns in it. */
function likelyOf(filters: readonly Filter[]): Filter {
  const words = filters.find((filter) => filter.key === WORDS_KEY);
  return words ?? filters.find((filter) => filter.condition.text.startsWith("state ")) ?? inStates(ALL_STATES);
}

/** The filter that fits the fewest. */
function firstOf(database: DatabaseSync, filters: readonly Filter[], before: number): Filter {
  let best: Filter | null = null;
  let fewest = limits.PROBE_ROWS_MAX;
  const words = filters.find((filter) => filter.key === WORDS_KEY);
  for (const filter of filters) {
    const count = filter === words ? Infinity : countOf(database, filter, before, fewest);
    if (count >= fewest) continue;
    best = filter;
    fewest = count;
  }
  // Where something else fits few, words are not counted: they are checked on those.
  if (words !== undefined && fewest > limits.PROBE_FEW && wordsCount(database, words, before, fewest) < fewest)
    return words;
  return best ?? likelyOf(filters);
}

/** At most `max`. */
function countOf(database: DatabaseSync, { probes, key }: Filter, before: number, max: number, from = 0): number {
  let count = 0;
  for (const { text, values } of probes) {
    if (count >= max) break;
    const probe = `SELECT count(*) AS count FROM (SELECT 1 FROM ${text} AND ${key} < ? AND ${key} >= ? LIMIT ?)`;
    const bounds = [BigInt(before), BigInt(from), BigInt(max - count)];
    count += prepared(database, probe).get(...values, ...bounds)!["count"] as number;
  }
  return count;
}

/**
 * Of the newest; as many as would be in all if the older ones were like them. A count of all could be one step over every job
 * that there is.
 */
function wordsCount(database: DatabaseSync, filter: Filter, before: number, max: number): number {
  let count = 0;
  let high = before;
  for (let n = 0; n < limits.PROBE_WINDOWS_MAX && high > 0 && count < max; n++) {
    const low = Math.max(0, high - limits.PROBE_WINDOW);
    count += countOf(database, filter, high, max - count, low);
    high = low;
  }
  if (high === 0 || count >= max) return count;
  // One more than were seen: none in the newest is not none at all.
  return Math.ceil(((count + 1) * before) / (before - high));
}

/** What was found so far, and where. */
class Page {
  readonly jobs: string[] = [];
  /** Everything from here on was looked at. */
  place: number;
  next: string | null = null;
  /** Nothing more is looked for: it is full, its time is over, or there is no more. */
  isOver = false;
  readonly #limit: number;
  readonly #endsAtMs: number;
  #bytes = 0;
  #rows = 0;

  constructor(start: number, limit: number, endsAtMs: number) {
    this.place = start;
    this.#limit = limit;
    this.#endsAtMs = endsAtMs;
  }

  get isLate(): boolean {
    return performance.now() >= this.#endsAtMs;
  }

  /** False: there is one more row, and so there may be one more page. */
  take(place: number, json: string | null): boolean {
    const isFull = this.jobs.length >= this.#limit || this.#bytes >= limits.JOBS_PAGE_BYTES_MAX;
    if (isFull || (++this.#rows % limits.PAGE_ROWS_PER_LOOK === 0 && this.isLate)) {
      this.cut();
      return false;
    }
    this.place = place;
    if (json === null) return true;
    this.jobs.push(json);
    this.#bytes += json.length;
    return true;
  }

  cut(): void {
    this.next = cursorOf(this.place);
    this.isOver = true;
  }
}

interface Glance {
  readonly rows: number;
  readonly sequences: number;
}

/** From the page's place down, until it is over; a glance may end before. */
function walk(database: DatabaseSync, first: Filter, rest: readonly Filter[], page: Page, glance?: Glance): void {
  const fits = rest.map((filter) => filter.condition.text).join(" AND ");
  const json = fits === "" ? "jobs.json" : `CASE WHEN ${fits} THEN jobs.json END`;
  const { key, walks } = first;
  const one = (part: Part): string =>
    `SELECT ${key} AS place, ${json} AS json FROM ${part.text} AND ${key} < ? AND ${key} >= ?`;
  const window = Math.min(first.window, glance?.sequences ?? Infinity);
  const restValues = rest.flatMap((filter) => filter.condition.values);
  let rows = 0;
  for (let high = page.place; high > 0 && walks.length > 0;) {
    const low = Math.max(0, high - window);
    const values = walks.flatMap((part) => [...restValues, ...part.values, BigInt(high), BigInt(low)]);
    const statement = prepared(database, `${walks.map(one).join(" UNION ALL ")} ORDER BY place DESC`);
    for (const row of statement.iterate(...values)) {
      if (glance !== undefined && ++rows > glance.rows) return;
      if (!page.take(row["place"] as number, row["json"] as string | null)) return;
    }
    page.place = low;
    high = low;
    if (low > 0 && page.isLate) return page.cut();
    if (low > 0 && glance !== undefined) return;
  }
  page.isOver = true;
}

/** Of each connection; the oldest goes first. */
const kept = new WeakMap<DatabaseSync, Map<string, StatementSync>>();

function prepared(database: DatabaseSync, text: string): StatementSync {
  let statements = kept.get(database);
  if (statements === undefined) kept.set(database, (statements = new Map()));
  const known = statements.get(text);
  if (known !== undefined) return known;
  const statement = database.prepare(text);
  if (statements.size >= limits.STATEMENTS_KEPT) statements.delete(statements.keys().next().value!);
  statements.set(text, statement);
  return statement;
}

function limitOf(query: JobQuery): number {
  const { limit } = query;
  if (Number.isSafeInteger(limit) && limit >= 1) return Math.min(limit, limits.PAGE_JOBS_MAX);
  throw new TenureError(
    "BAD_REQUEST",
    `a limit of ${limit} is none: it is a whole number from 1 to ${limits.PAGE_JOBS_MAX}.`,
  );
}

/** With its own checksum: a text that somebody made up would else be a place like any other. Every node's is the same. */
function cursorOf(sequence: number): string {
  return `${sequence.toString(36)}-${crc32(`jobs below ${sequence}`).toString(36)}`;
}

function cursorSequence(cursor: string | undefined): number {
  if (cursor === undefined) return Number.MAX_SAFE_INTEGER;
  const sequence = Number.parseInt(/^([0-9a-z]{1,11})-/.exec(cursor)?.[1] ?? "", 36);
  if (Number.isSafeInteger(sequence) && cursorOf(sequence) === cursor) return sequence;
  throw new TenureError("BAD_REQUEST", "cursor was not given out here: take `next` of the page before, as it is.");
}
