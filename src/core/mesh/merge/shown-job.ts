// One job as it is shown, out of what all lines say of it.
//
// - Lines of one site are its generations: their rows are merged, the later word stays. What an older generation said after the place from
//   which the next one continues is *lost*: it is shown only where the site says nothing else, and marked.
// - Several sites that say something of one job claim it. The highest ownership epoch wins, then the lowest (timestamp, event id) of the
//   claiming event: the specification's "first event wins, second event ignored". The claiming event is the submission; a line that never
//   submitted the job has ownership epoch 0 and claims by its last assignment, so that it never wins against who did submit it.
// - A line that is marked (forked, evicted) wins against no line that is not. What it has forgotten stays forgotten: whether a job is shown at all
//   depends on no mark and on no `through`, so that neither makes a job appear.

import type { JobState } from "../../jobs/model.ts";
import type { LineId } from "../model.ts";
import { siteOf } from "./events.ts";
import type { JobWords, JobRunSaid, JobSpecSaid, JobStateSaid } from "./job-row.ts";
import { isLater, laterOf, type Said, type Version } from "./version.ts";

export type LineMark = "forked" | "evicted";

export interface LineStanding {
  readonly mark: LineMark | null;
  /** What the line said after this sequence is lost: its next generation continues from here. Null: it has none. */
  readonly through: number | null;
}

export interface ShownJob {
  readonly id: string;
  readonly site: string;
  /** Of the last word about it. */
  readonly line: LineId;
  readonly state: JobState;
  /** Its site does not know this word any more: it was said after the place from which the site was restored. */
  readonly isLost: boolean;
  /** Sites that claim this job; more than 1 is a conflict, of which the first claim is shown. */
  readonly claims: number;
  readonly kind: string | null;
  readonly queue: string | null;
  readonly platform: string | null;
  readonly priority: number;
  readonly labels: readonly (readonly [string, string])[];
  readonly submittedAtMs: number | null;
  readonly submittedBy: string | null;
  readonly agent: string | null;
  readonly attempt: number;
  /** Of the last word, by the clock of its line. */
  readonly changedAtMs: number;
  readonly finishedAtMs: number | null;
  readonly error: string | null;
}

/** What one site says, over its generations. */
interface SiteWord {
  readonly site: string;
  readonly line: LineId;
  readonly isLost: boolean;
  readonly spec: JobSpecSaid | null;
  readonly state: JobStateSaid;
  readonly run: JobRunSaid | null;
}

const FINAL: readonly JobState[] = ["completed", "failed", "cancelled"];

/** Null: no line says anything of it (any more). */
export function shownJob(rows: readonly JobWords[], standingOf: (line: LineId) => LineStanding): ShownJob | null {
  const gone = goneOf(rows);
  const good = rows.filter((row) => standingOf(row.line).mark === null);
  const words = siteWords(good, gone, standingOf);
  const counted = words.length > 0 ? words : siteWords(rows, gone, standingOf);
  const winner = counted.reduce<SiteWord | null>(
    (best, word) => (best === null || claimsBefore(word, best) ? word : best),
    null,
  );
  return winner === null ? null : shown(rows[0]!.id, winner, counted.length);
}

/** Of each site, where a line of it forgot the job last: what one generation forgot, no other one of the site remembers. */
function goneOf(rows: readonly JobWords[]): ReadonlyMap<string, Version> {
  const bySite = new Map<string, Version>();
  for (const { line, gone } of rows) {
    if (gone === null) continue;
    const site = siteOf(line);
    const last = bySite.get(site);
    if (last === undefined || isLater(gone, last)) bySite.set(site, gone);
  }
  return bySite;
}

function siteWords(
  rows: readonly JobWords[],
  goneBySite: ReadonlyMap<string, Version>,
  standingOf: (line: LineId) => LineStanding,
): SiteWord[] {
  const bySite = Map.groupBy(rows, (row) => siteOf(row.line));
  const words: SiteWord[] = [];
  for (const [site, own] of bySite) {
    const isLost = (row: JobWords, said: Said): boolean => {
      const { through } = standingOf(row.line);
      return through !== null && said.at.sequence > through;
    };
    const gone = goneBySite.get(site);
    const pick = <T extends Said>(of: (row: JobWords) => T | null): T | null => {
      let kept: T | null = null;
      let lost: T | null = null;
      for (const row of own) {
        const said = of(row);
        if (said === null || (gone !== undefined && !isLater(said.at, gone))) continue;
        if (isLost(row, said)) lost = laterOf<T>(lost, said);
        else kept = laterOf<T>(kept, said);
      }
      return kept ?? lost;
    };
    const state = pick((row) => row.state);
    if (state === null) continue;
    const from = own.find((row) => row.state === state) as JobWords;
    const [spec, run] = [pick((row) => row.spec), pick((row) => row.run)];
    words.push({ site, line: from.line, isLost: isLost(from, state), spec, state, run });
  }
  return words;
}

function claimsBefore(one: SiteWord, other: SiteWord): boolean {
  const [mine, theirs] = [one.spec?.ownerEpoch ?? 0, other.spec?.ownerEpoch ?? 0];
  if (mine !== theirs) return mine > theirs;
  const [a, b] = [one.spec ?? one.run ?? one.state, other.spec ?? other.run ?? other.state];
  if (a.atMs !== b.atMs) return a.atMs < b.atMs;
  return a.eventId === b.eventId ? one.site < other.site : a.eventId < b.eventId;
}

function shown(id: string, { site, line, isLost, spec, state, run }: SiteWord, claims: number): ShownJob {
  const isPending = state.state === "pending";
  return {
    id,
    site,
    line,
    state: state.state,
    isLost,
    claims,
    kind: spec?.kind ?? null,
    queue: spec?.queue ?? null,
    platform: spec?.platform ?? null,
    priority: spec?.priority ?? 0,
    labels: spec?.labels ?? [],
    submittedAtMs: spec?.submittedAtMs ?? null,
    submittedBy: spec?.by ?? null,
    agent: isPending ? null : (run?.agent ?? null),
    attempt: run?.attempt ?? 0,
    changedAtMs: state.atMs,
    finishedAtMs: FINAL.includes(state.state) ? state.atMs : null,
    error: state.error,
  };
}
