// The judge of `chaos jobs` on evidence made up by hand: what is right passes, and each thing that can be wrong is named.

import { describe, expect, test } from "vitest";
import { LeaseSecrets } from "../../src/controller/jobs/lease-secrets.ts";
import { systemDigest } from "../../src/drivers/system/digest.ts";
import type { AgentLine } from "./jobs-journal.ts";
import { type Evidence, judge, type JobEvent } from "./jobs-judge.ts";
import type { Submission } from "./jobs-submitters.ts";

let sequence = 0;
const hash = (leaseId: string): string => new LeaseSecrets(systemDigest).leaseHash(leaseId);

function event(eventType: string, entityId: string, payload: JobEvent["payload"], leaderEpoch = 1): JobEvent {
  return { sequence: ++sequence, eventType, entityId, payload, leaderEpoch };
}

const submitted = (id: string, tag: string): JobEvent => event("build:submitted", id, { spec: { payload: { tag } } });
const assigned = (id: string, leaseId: string, epoch = 1): JobEvent =>
  event("build:assigned", id, { leaseHash: hash(leaseId) }, epoch);
const lost = (id: string, leaseId: string, epoch = 1): JobEvent =>
  event("build:retried", id, { leaseHash: hash(leaseId) }, epoch);
const completed = (id: string, leaseId: string, mark: string): JobEvent =>
  event("build:completed", id, { leaseHash: hash(leaseId), result: { mark } });

function told(tags: readonly string[], fate: Submission["fate"]): Submission {
  return { manner: "patient", tags, fate, wasUnknown: fate.kind === "unknown" };
}

function attempt(job: string, lease: string, mark: string, verdict: "taken" | "stale" | "none" = "taken"): AgentLine[] {
  const who = { agent: "a", job, lease };
  const result = { ...who, outcome: "completed", mark };
  const lines: AgentLine[] = [
    { ...who, is: "leased", session: "s", jobEpoch: 1, leaderEpoch: 1, attempt: 1 },
    { ...who, is: "started" },
    { ...result, is: "sent" },
  ];
  return verdict === "none" ? lines : [...lines, { ...result, is: "told", verdict }];
}

const acknowledged = told(["t1"], { kind: "acknowledged", ids: ["j1"] });

function judged(part: Partial<Evidence>) {
  return judge({ submissions: [acknowledged], lines: [], ghosts: [], events: [], ...part });
}

describe("judge", () => {
  test("a job that was lost by one agent and completed by another is as it should be, and counted as run twice", () => {
    const { findings, ...counts } = judged({
      submissions: [
        acknowledged,
        told(["t2"], { kind: "refused", why: "" }),
        told(["t3"], { kind: "unknown", why: "" }),
      ],
      events: [
        submitted("j1", "t1"),
        assigned("j1", "never-heard"),
        lost("j1", "never-heard", 2),
        assigned("j1", "l1", 2),
        lost("j1", "l1"),
        assigned("j1", "l2"),
        completed("j1", "l2", "m2"),
      ],
      lines: [...attempt("j1", "l1", "m1", "stale"), ...attempt("j1", "l2", "m2")],
      ghosts: [{ job: "j1", lease: "l1", verdict: "refused" }],
    });
    expect(findings).toEqual([]);
    expect(counts).toEqual({
      jobs: 1,
      completed: 1,
      lost: 0,
      doubleSubmitted: 0,
      doubleCommitted: 0,
      executedMoreThanOnce: 1,
      assignments: 3,
      undelivered: 1,
      staleAttempts: 2,
      staleRejected: 2,
      refused: 1,
      unknown: 1,
      unresolved: 1,
      failovers: 1,
    });
  });

  test("lost: acknowledged and not there, another's, or never completed", () => {
    expect(judged({})).toMatchObject({ lost: 1, findings: [expect.stringContaining("lost: job j1 (t1)")] });
    expect(judged({ events: [submitted("j1", "t9")] }).findings.join()).toContain("another's: job j1 is t9, not t1");
    expect(judged({ events: [submitted("j1", "t1")] }).findings.join()).toContain("never completed: job j1");
  });

  test("refused and there all the same, half there, there twice", () => {
    const events = [submitted("j1", "t1"), submitted("j2", "t1")];
    const refused = judged({ submissions: [told(["t1"], { kind: "refused", why: "NOT_LEADER" })], events });
    expect(refused.findings.join("\n")).toMatch(/submitted more than once: t1.*\n.*refused, and done all the same/);
    expect(refused.doubleSubmitted).toBe(1);
    const half = judged({ submissions: [told(["t1", "t2"], { kind: "unknown", why: "" })], events });
    expect(half.findings.join("\n")).toContain("half of a submission is there: t1, t2");
  });

  test("committed twice: by the log, by what agents were told, or by a stale result that was taken", () => {
    const once = [submitted("j1", "t1"), assigned("j1", "l1"), completed("j1", "l1", "m1")];
    const twice = [...once, assigned("j1", "l2"), completed("j1", "l2", "m2")];
    expect(judged({ events: twice })).toMatchObject({ doubleCommitted: 1 });
    const lines = [...attempt("j1", "l1", "m1"), ...attempt("j1", "l2", "m2")];
    const both = judged({ events: once, lines });
    expect(both).toMatchObject({ doubleCommitted: 1, lost: 1 });
    expect(both.findings.join("\n")).toContain(`given a lease that is not in the log: ${hash("l2")}`);
    const ghost = judged({ events: once, ghosts: [{ job: "j1", lease: "l0", verdict: "taken" }] });
    expect(ghost).toMatchObject({ doubleCommitted: 1, staleAttempts: 1, staleRejected: 0 });
  });

  test("a result that was said to be taken, and another stands in the log", () => {
    const events = [submitted("j1", "t1"), assigned("j1", "l1"), completed("j1", "l1", "another")];
    const { lost: count, findings } = judged({ events, lines: attempt("j1", "l1", "m1") });
    expect(count).toBe(1);
    expect(findings).toEqual([expect.stringContaining("said to be taken, and the log has another result or none")]);
  });

  test("two leases at once, a handler that runs twice for one, an agent that was ended", () => {
    const events = [submitted("j1", "t1"), assigned("j1", "l1"), assigned("j1", "l2"), completed("j1", "l2", "m2")];
    const [first] = attempt("j1", "l1", "m1", "none");
    const start: AgentLine = { is: "started", agent: "a", job: "j1", lease: "l1" };
    const { findings } = judged({
      events,
      lines: [first!, start, start, { is: "ended", agent: "a", why: "replaced" }],
    });
    expect(findings).toEqual([
      expect.stringContaining("assigned while somebody held it"),
      "the cluster ended an agent: a: replaced",
      expect.stringContaining(`ran more than once for one lease: job j1, lease ${hash("l1")}, 2 times`),
    ]);
  });

  test("a mistake that shows a hundred times is one line", () => {
    const many = Array.from({ length: 100 }, (_, at) => told([`t${at}`], { kind: "acknowledged", ids: [`j${at}`] }));
    const { findings, lost: count } = judged({ submissions: many });
    expect(count).toBe(100);
    expect(findings).toHaveLength(1);
    expect(findings[0]).toContain("and 97 more");
  });
});
