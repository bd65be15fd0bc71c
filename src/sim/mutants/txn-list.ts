// The planted mistakes of transactions over islands: of an island's part, of the coordinator, and of what an island does of its own accord. Each must be
// found by the simulation of transactions (sim/txn), besides the tests next to the code that name the rule.

import type { TxnKnobs } from "../txn/index.ts";
import { type Mutant, planting } from "./patch.ts";

const DECIDE = "core/txn/decide.ts";
const EFFECTS = "core/txn/effects.ts";
const FENCE = "core/txn/fence.ts";
const FOLD = "core/txn/fold.ts";
const STATE = "core/txn/txn-state.ts";
const COURSE = "core/txn/course.ts";
const REIGN = "controller/transactions/txn-reign.ts";
const RESOLVER = "controller/transactions/resolver.ts";
const DECIDER = "controller/transactions/decider/decider.ts";
const SCOPES = "controller/scopes/scopes-reign.ts";
const DELIVER = "core/jobs/decide/deliver.ts";

function inRunsOf(pins: Partial<TxnKnobs>) {
  return planting({ pins }, "txn");
}

/** Clients push, and little of what they ask for is far away. */
const BUSY = {
  clients: 5,
  clientPauseMs: 150,
  writers: 2,
  skews: "near",
  farMs: 5,
  laterMs: 0,
  ghosts: false,
} as const;
/** Messages between islands are lost, late and cut. */
const APART = { ...BUSY, aim: "links", aims: ["cut-islands", "cut-islands-one-way", "crash-in-txn"] } as const;
/** Coordinators stand still in the middle of what they do, and go on. */
const DEPOSED = { ...BUSY, aim: "coordinators", aims: ["pause-in-txn", "isolate-coordinator"], faults: 10 } as const;
/** Islands change their leaders, with logs that become snapshots. */
const RESTARTED = {
  ...BUSY,
  snapshotAfterEntries: 20,
  aim: "islands",
  aims: ["crash-leader", "crash-in-prepare", "crash-island"],
} as const;
/** From what is decided to what is committed it takes a while. */
const SLOW_DISK: Partial<TxnKnobs> = { ...BUSY, disk: { syncMs: [5, 40] } };
/** Clients ask for different things under one id. */
const QUARRELLING = { ...BUSY, conflictRate: 0.6, farMs: 30 } as const;
/** Many messages come when their senders have gone on. */
const LATE = { lateRate: 0.05, lateMs: [2_000, 20_000] } as const;
/** What was sent once comes again. */
const HAUNTED = { ...APART, ghosts: true } as const;

export const TXN_MUTANTS: readonly Mutant[] = [
  // ---- an island that is not home ------------------------------------------------------------------------
  inRunsOf(APART)("participant-aborts-alone", "69 home decides", {
    file: RESOLVER,
    find: '    if (answer === null) return "silent";\n',
    replace: `    if (answer === null) {
      await actions.decided(id, { phase: "rolled-back", reason: null }).catch(() => undefined);
      return "done";
    }
`,
  }),
  inRunsOf(DEPOSED)("hint-taken-for-the-decision", "69 rollback", {
    file: DECIDE,
    find: "return isHome ? decideRollback(view, request, state, context) : answered(state);",
    replace:
      'return isHome || state?.phase === "prepared" ? decideRollback(view, request, state, context) : answered(state);',
  }),
  inRunsOf(BUSY)("prepared-told-before-committed", "D11", {
    file: REIGN,
    find: "    return this.#send(batch, decision.changes).then(() => decision.answer);\n",
    replace:
      "    void this.#send(batch, decision.changes).catch(() => undefined);\n    return Promise.resolve(decision.answer);\n",
  }),
  inRunsOf(BUSY)("lock-not-taken", "69 locks", {
    file: FOLD,
    find: '    if (after.phase === "prepared") this.#locks.add(after);\n',
  }),
  inRunsOf(BUSY)("lock-kept-after-rollback", "69 locks", {
    file: FOLD,
    find: '    if (before?.phase === "prepared") this.#locks.remove(before);\n',
    replace: '    if (before?.phase === "prepared" && after?.phase === "committed") this.#locks.remove(before);\n',
  }),
  inRunsOf(RESTARTED)("locks-lost-by-a-snapshot", "D10", {
    file: FOLD,
    find: '    for (const state of live) if (state.phase === "prepared") this.#locks.add(state);\n',
  }),
  inRunsOf(BUSY)("plain-write-passes-a-lock", "69 locks", {
    file: "core/values/decide.ts",
    find: '  if (by !== null) return { kind: "locked", by };\n',
    replace: '  if (by !== null && by === name) return { kind: "locked", by };\n',
  }),
  inRunsOf(BUSY)(
    "scope-granted-while-locked",
    "69 locks",
    {
      file: "core/scopes/decide.ts",
      find: '      if (by !== null) return { kind: "locked", by };\n',
      replace: '      if (by === scope) return { kind: "locked", by };\n',
    },
    {
      file: SCOPES,
      find: "    const lock = this.#appends.head.lockedBy({ scope });\n",
      replace: "    const lock = this.#appends.head.lockedBy({ value: `scope ${scope}` });\n",
    },
    { file: SCOPES, find: " || this.#appends.head.lockedBy({ scope }) !== null) return;\n", replace: ") return;\n" },
  ),
  inRunsOf({ ...APART, accounts: 2 })(
    "reserved-room-forgotten",
    "69 room",
    {
      file: EFFECTS,
      find: "values.size + reserved.values + room.values > VALUES_MAX",
      replace: "values.size + room.values > VALUES_MAX",
    },
    {
      file: "core/values/decide.ts",
      find: "[values.size - count + reserved.values,",
      replace: "[values.size - count,",
    },
    { file: "core/kit/limits.ts", find: "export const VALUES_MAX = 10_000;", replace: "export const VALUES_MAX = 13;" },
  ),
  inRunsOf(HAUNTED)("late-prepare-after-rollback", "69 outcomes", {
    file: FOLD,
    find: "    if (after.isSettled) this.#pack(after, atMs);\n",
    replace: '    if (after.isSettled && after.phase === "committed") this.#pack(after, atMs);\n',
  }),
  inRunsOf({ ...APART, ghosts: true, aims: ["jump-island"], aim: "clocks", jumpHours: 30 })(
    "horizon-not-checked",
    "69 horizon",
    {
      file: "core/txn/refusals.ts",
      find: "return txns.horizon !== null && id <= txns.horizon;",
      replace: "return txns.horizon === id;",
    },
  ),
  // ---- home ------------------------------------------------------------------------------------------------
  inRunsOf(BUSY)("require-at-prepare", "69 require", {
    file: DECIDE,
    find: "    requireProblem(view, require) ??\n",
    replace: "    (isOpen ? null : requireProblem(view, require)) ??\n",
  }),
  inRunsOf({ ...SLOW_DISK, writers: 4 })("decided-on-what-is-applied", "D11", {
    file: REIGN,
    find: "decideTxn(this.#desk.head, request, context)",
    replace: "decideTxn(this.#options.applied, request, context)",
  }),
  inRunsOf(APART)("inquire-without-tombstone", "69 presumed abort", {
    file: DECIDE,
    find: "    return rolledBack(header, undecided(id), { ...context, fence: null });\n",
    replace: '    return { kind: "answer", answer: rolledBackAs(undecided(id)) };\n',
  }),
  inRunsOf(QUARRELLING)("other-body-same-id", "2.8 digest", {
    file: STATE,
    find: "    digest === header.digest &&\n",
  }),
  inRunsOf(APART)("commit-dropped-before-acks", "69 settled", {
    file: STATE,
    find: "  return state.outbox.length === 0 && waitsFor(state).length === 0 ? settled(state) : state;",
    replace: "  return state.outbox.length === 0 ? settled(state) : state;",
  }),
  // ---- the fence ---------------------------------------------------------------------------------------------
  inRunsOf(RESTARTED)("fence-in-memory", "69 fence", {
    file: FOLD,
    find: "    this.#fence = fence;\n",
    replace: "    this.#fence = null;\n    void fence;\n",
  }),
  inRunsOf(DEPOSED)("fence-by-equality", "69 fence", {
    file: FENCE,
    find: "  if (asked.term < highest)\n",
    replace: "  if (asked.term < 0)\n",
  }),
  inRunsOf({ ...BUSY, aim: "recovery" })("fence-ignores-recovered-by", "66 recoveries", {
    file: FENCE,
    find: "generationOf(one) === generationOf(asked) && one.recoveredBy !== asked.recoveredBy",
    replace: "generationOf(one) === generationOf(asked) && one.recoveredBy === asked.clusterId",
  }),
  // ---- the coordinator ---------------------------------------------------------------------------------------
  inRunsOf(APART)("commit-without-all-prepared", "2.8 ②", {
    file: COURSE,
    find: "    else if (!isPrepared(said)) reason ??= reasonOf(island, said);\n",
    replace: '    else if (said !== "silent" && !isPrepared(said)) reason ??= reasonOf(island, said);\n',
  }),
  inRunsOf(QUARRELLING)("conflict-is-applied", "2.8 digest", {
    file: COURSE,
    find: "function isPrepared(heard: Heard): boolean {\n",
    replace: `function isPrepared(heard: Heard): boolean {
  if (typeof heard === "object" && heard.kind === "refused" && heard.code === "txn_conflict") return true;
`,
  }),
  inRunsOf(APART)("rollback-before-home", "69 rollback", {
    file: COURSE,
    find: '  if (heard === "silent") return { kind: "unknown", why: `its home ${home} did not answer in time` };\n',
    replace:
      '  if (heard === "silent" && asked === "rollback") return { kind: "rolled-back", reason: null };\n  if (heard === "silent") return { kind: "unknown", why: `its home ${home} did not answer in time` };\n',
  }),
  inRunsOf(DEPOSED)("stale-term-told-as-rollback", "69 terms", {
    file: COURSE,
    find: '  if (isStale(heard)) return { kind: "unknown", why: staleAt(home) };\n',
    replace: '  if (isStale(heard)) return { kind: "rolled-back", reason: null };\n',
  }),
  inRunsOf(APART)("pending-answered-as-applied", "69 pending", {
    file: COURSE,
    find: '  if (heard === "silent" || heard === "lost") return PENDING;\n',
    replace: '  if (heard === "silent" || heard === "lost") return { ...PENDING, state: "applied" };\n',
  }),
  inRunsOf(BUSY)("home-chosen-again", "2.8 home", {
    file: DECIDER,
    find: "    const plan = planOf(body, caller.by, digestOf);\n",
    replace: `    const own = body.participants.find(({ backendHash }) => backendHash === this.#options.own.backendHash);
    const home = body.require.length > 0 ? body.home : (body.home ?? own?.backendHash ?? null);
    const plan = planOf({ ...body, home }, caller.by, digestOf);
`,
  }),
  // ---- jobs, and the end ---------------------------------------------------------------------------------------
  inRunsOf(RESTARTED)(
    "outbox-twice",
    "69 jobs",
    { file: DELIVER, find: "    if (last !== null && !isBehind(job, last)) continue;\n" },
    { file: DELIVER, find: "    if (state.jobs.get(job.id) !== undefined) continue;\n" },
  ),
  inRunsOf(BUSY)("outbox-forgotten", "69 jobs", {
    file: RESOLVER,
    find: "    await log.deliver(given);\n",
    replace: "    void log.deliver(given).catch(() => undefined);\n",
  }),
  inRunsOf(APART)("outcome-forgotten-before-settled", "69 settled", {
    file: RESOLVER,
    find: '      if (this.#isOver || answer?.kind !== "settled") return [];\n      const known = ids.filter((id) => answer.ids.includes(id));\n',
    replace:
      '      if (this.#isOver) return [];\n      const known = answer?.kind === "settled" ? ids.filter((id) => answer.ids.includes(id)) : ids;\n',
  }),
  inRunsOf({ ...BUSY, aim: "clocks", aims: ["jump-island"], jumpHours: 30, weather: LATE })(
    "age-refused-without-a-record",
    "69 horizon",
    {
      file: DECIDE,
      find: "  const operations = operationsAtHome(request, state, context);\n",
      replace: `  const age = state === undefined ? clockProblem(header.id, context.atMs) : null;
  if (age !== null) return refused(age);
  const operations = operationsAtHome(request, state, context);
`,
    },
  ),
];
