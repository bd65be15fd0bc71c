// Finds one page of jobs, newest first.
//
// One of the filters is walked by its index, from the cursor down; the others are checked on each row that it gives. Every
// row is handed out, fitting or not, so that the clock is looked at between two of them: a page that takes too long is cut
// where it has got to, and goes on from there with the next one. So no search blocks the thread or starts over.
// Node's SQLite can't be interrupted within a step, and words that are never together make one step of a whole walk: it is
// cut into windows, and the clock is looked at between them.
//
// Keys are bound as bigints: Node binds numbers as reals, and FTS5 takes no notice of a bound that is not an integer. It
// then reads the words of all jobs, or, for `=`, gives another row.

import type { DatabaseSync } from "node:sqlite";
import { crc32 } from "node:zlib";
import { TenureError } from "../../core/kit/errors.ts";
import type { JobQuery } from "../../ports/views.ts";
import type { JobState } from "../../core/jobs/model.ts";
import {
  PAGE_BYTES_MAX,
  PAGE_JOBS_MAX,
  PAGE_MS_MAX,
  PAGE_ROWS_PER_LOOK,
  PROBE_ROWS_MAX,
  SEARCH_WINDOW,
} from "./limits.ts";
import type { StoredPage } from "./messages.ts";
import { readPosition, STATE_NUMBERS } from "./store.ts";
import { matchOf } from "./words.ts";

const ALL_STATES = Object.keys(STATE_NUMBERS) as JobState[];

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

/** Inside of a read transaction, so that the position is that of the page. */
export function listJobs(database: DatabaseSync, query: JobQuery, pageMsMax: number = PAGE_MS_MAX): StoredPage {
  const endsAtMs = performance.now() + pageMsMax;
  const limit = limitOf(query);
  const before = cursorSequence(query.cursor);
  database.exec("BEGIN");
  try {
    const position = readPosition(database);
    const newest = database.prepare("SELECT coalesce(max(sequence), 0) AS newest FROM jobs").get()!["newest"] as number;
    const start = Math.min(before, newest + 1);
    const filters = filtersOf(query);
    const first = filters.length < 2 ? (filters[0] ?? ALL) : firstOf(database, filters, start);
    const rest = filters.filter((filter) => filter !== first);
    return { ...walk(database, first, rest, start, limit, endsAtMs), position };
  } finally {
    database.exec("COMMIT");
  }
}

const ALL: Filter = {
  walks: [{ text: "jobs WHERE TRUE", values: [] }],
  probes: [],
  key: "jobs.sequence",
  condition: { text: "TRUE", values: [] },
  window: Number.MAX_SAFE_INTEGER,
};

function filtersOf(query: JobQuery): Filter[] {
  const filters: Filter[] = [];
  const match = query.search === undefined ? null : matchOf(query.search);
  if (match !== null) filters.push(matches(match));
  for (const column of ["agent", "queue", "kind"] as const) {
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
    key: "words.rowid",
    condition: {
      text: "EXISTS (SELECT 1 FROM words WHERE words MATCH ? AND words.rowid = jobs.sequence)",
      values,
    },
    window: SEARCH_WINDOW,
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

/** The filter that fits the fewest. If all fit many: the words; or the states, whose index has the other columns in it. */
function firstOf(database: DatabaseSync, filters: readonly Filter[], before: number): Filter {
  let best: Filter | null = null;
  let fewest = PROBE_ROWS_MAX;
  for (const filter of filters) {
    let count = 0;
    for (const { text, values } of filter.probes) {
      if (count >= fewest) break;
      const probe = `SELECT count(*) AS count FROM (SELECT 1 FROM ${text} AND ${filter.key} < ? LIMIT ${fewest})`;
      count += database.prepare(probe).get(...values, BigInt(before))!["count"] as number;
    }
    if (count >= fewest) continue;
    best = filter;
    fewest = count;
  }
  if (best !== null) return best;
  const words = filters.find((filter) => filter.key === "words.rowid");
  return words ?? filters.find((filter) => filter.condition.text.startsWith("state ")) ?? inStates(ALL_STATES);
}

function walk(
  database: DatabaseSync,
  first: Filter,
  rest: readonly Filter[],
  start: number,
  limit: number,
  endsAtMs: number,
): Omit<StoredPage, "position"> {
  if (first.walks.length === 0) return { jobs: [], next: null };
  const fits = rest.map((filter) => filter.condition.text).join(" AND ");
  const json = fits === "" ? "jobs.json" : `CASE WHEN ${fits} THEN jobs.json END`;
  const { key } = first;
  const one = (part: Part): string =>
    `SELECT ${key} AS place, ${json} AS json FROM ${part.text} AND ${key} < ? AND ${key} >= ?`;
  const statement = database.prepare(`${first.walks.map(one).join(" UNION ALL ")} ORDER BY place DESC`);
  const restValues = rest.flatMap((filter) => filter.condition.values);
  const jobs: string[] = [];
  let bytes = 0;
  let rows = 0;
  let place = start;
  for (let high = start; high > 0; high -= first.window) {
    const low = Math.max(0, high - first.window);
    const values = first.walks.flatMap((part) => [...restValues, ...part.values, BigInt(high), BigInt(low)]);
    for (const row of statement.iterate(...values)) {
      // There is one more row, so there may be one more page.
      const isFull = jobs.length >= limit || bytes >= PAGE_BYTES_MAX;
      if (isFull || (++rows % PAGE_ROWS_PER_LOOK === 0 && performance.now() >= endsAtMs)) {
        return { jobs, next: cursorOf(place) };
      }
      place = row["place"] as number;
      const found = row["json"] as string | null;
      if (found === null) continue;
      jobs.push(found);
      bytes += found.length;
    }
    place = low;
    if (low > 0 && performance.now() >= endsAtMs) return { jobs, next: cursorOf(low) };
  }
  return { jobs, next: null };
}

function limitOf(query: JobQuery): number {
  const { limit } = query;
  if (Number.isSafeInteger(limit) && limit >= 1) return Math.min(limit, PAGE_JOBS_MAX);
  throw new TenureError("BAD_REQUEST", `a limit of ${limit} is none: it is a whole number from 1 to ${PAGE_JOBS_MAX}.`);
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
