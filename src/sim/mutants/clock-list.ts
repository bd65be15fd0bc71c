// The planted mistakes about clocks that are days off (docs/decisions/0026): each must be found by the simulation of jobs.

import { inRunsOf } from "./jobs-runs.ts";
import type { Mutant } from "./patch.ts";

const WATCH = "controller/cluster/clock-watch.ts";
const REIGN = "controller/journal/journal-reign.ts";
const RETENTION = "controller/jobs/retention.ts";
const IDEMPOTENCY = "core/jobs/state/idempotency.ts";
const JOBS = "core/jobs/decide/jobs.ts";

// Each where clocks are off in one way: in any other such a mistake changes nothing.
export const CLOCK_MUTANTS: readonly Mutant[] = [
  inRunsOf({ clocks: "one" })("wall-clock-followed-without-bound", "trap 74", {
    file: WATCH,
    find: "return this.#clocks.believedMs(this.#moment());",
    replace: "return this.#moment().wallMs;",
  }),
  inRunsOf({ clocks: "gap" })("agreed-time-never-believed", "trap 74", {
    file: WATCH,
    find: "return this.#clocks.believedMs(this.#moment());",
    replace: "return this.#moment().nowMs < 0 ? 0 : null;",
  }),
  inRunsOf({ clocks: "one" })("willing-though-its-clock-is-off", "trap 74", {
    file: WATCH,
    find: 'willingness.set("clock", view.state === "skewed");',
    replace: 'willingness.set("clock", false);',
  }),
  inRunsOf({ clocks: "most" })("keys-age-by-jumps-of-the-clock", "trap 74", {
    file: IDEMPOTENCY,
    find: "if (known === undefined || witnessedMs(state, known.atMs, times) >= IDEMPOTENCY_MS) return NEW;",
    replace: "if (known === undefined || times.nowMs - known.atMs >= IDEMPOTENCY_MS) return NEW;",
  }),
  inRunsOf({ clocks: "most" })("keys-dropped-by-jumps-of-the-clock", "trap 74", {
    file: IDEMPOTENCY,
    find: "if (witnessedMs(state, oldest.atMs, { nowMs: atMs, skippedMs: 0 }) < IDEMPOTENCY_MS) return;",
  }),
  inRunsOf({ clocks: "most" })(
    "finished-jobs-age-by-jumps-of-the-clock",
    "trap 74",
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
  inRunsOf({ clocks: "most" })("jump-of-the-clock-not-written-down", "trap 74", {
    file: REIGN,
    find: "if (first === undefined || skippedMs < CLOCK_SKIP_MS_MIN) return drafts;",
    replace: "if (first === undefined || skippedMs < Number.MAX_VALUE * CLOCK_SKIP_MS_MIN) return drafts;",
  }),
];
