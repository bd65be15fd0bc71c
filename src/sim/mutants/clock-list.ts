// The planted mistakes about clocks that are days off (docs/decisions/0026): each must be found by the simulation of jobs.

import type { ClockMood } from "../jobs/index.ts";
import type { Edit, Mutant } from "./patch.ts";

const WATCH = "controller/cluster/clock-watch.ts";
const REIGN = "controller/journal/journal-reign.ts";
const RETENTION = "controller/jobs/retention.ts";
const IDEMPOTENCY = "core/jobs/state/idempotency.ts";
const JOBS = "core/jobs/decide/jobs.ts";

/** Where clocks are off in this way: in any other such a mistake changes nothing. */
function mutant(name: string, clocks: ClockMood, ...edits: readonly Edit[]): Mutant {
  return { name, breaks: "trap 74", edits, subject: "jobs", limits: { pins: { clocks } } };
}

export const CLOCK_MUTANTS: readonly Mutant[] = [
  mutant("wall-clock-followed-without-bound", "one", {
    file: WATCH,
    find: "return this.#clocks.believedMs(this.#moment());",
    replace: "return this.#moment().wallMs;",
  }),
  mutant("agreed-time-never-believed", "gap", {
    file: WATCH,
    find: "return this.#clocks.believedMs(this.#moment());",
    replace: "return this.#moment().nowMs < 0 ? 0 : null;",
  }),
  mutant("willing-though-its-clock-is-off", "one", {
    file: WATCH,
    find: 'willingness.set("clock", view.state === "skewed");',
    replace: 'willingness.set("clock", false);',
  }),
  mutant("keys-age-by-jumps-of-the-clock", "most", {
    file: IDEMPOTENCY,
    find: "if (known === undefined || witnessedMs(state, known.atMs, times) >= IDEMPOTENCY_MS) return NEW;",
    replace: "if (known === undefined || times.nowMs - known.atMs >= IDEMPOTENCY_MS) return NEW;",
  }),
  mutant("keys-dropped-by-jumps-of-the-clock", "most", {
    file: IDEMPOTENCY,
    find: "if (witnessedMs(state, oldest.atMs, { nowMs: atMs, skippedMs: 0 }) < IDEMPOTENCY_MS) return;",
    replace: "",
  }),
  mutant(
    "finished-jobs-age-by-jumps-of-the-clock",
    "most",
    {
      file: JOBS,
      find: "return witnessedMs(book, finishedAtMs, times) >= ticket.policy.retentionMs;",
      replace: "return times.nowMs - finishedAtMs >= ticket.policy.retentionMs && book.jobs.size > 0;",
    },
    {
      file: RETENTION,
      find: "fold.book.witnessedMs(finishedAtMs, times) >= expiresAtMs - finishedAtMs;",
      replace: "times.nowMs >= expiresAtMs + finishedAtMs * 0;",
    },
  ),
  mutant("jump-of-the-clock-not-written-down", "most", {
    file: REIGN,
    find: "if (first === undefined || skippedMs < CLOCK_SKIP_MS_MIN) return drafts;",
    replace: "if (first === undefined || skippedMs < Number.MAX_VALUE * CLOCK_SKIP_MS_MIN) return drafts;",
  }),
];
