// Jobs between wire and code, the user's own JSON, and what is one request.

import { describe, expect, it } from "vitest";
import type { Job, JobSpec } from "../../core/jobs/model.ts";
import { INTEGER_MAX } from "../../core/kit/limits.ts";
import { requestText } from "../body-hash.ts";
import {
  eventText,
  eventWire,
  jobAnswer,
  jobBrief,
  leaseCallOf,
  leaseMistake,
  resultCallOf,
  resultMistake,
  specOf,
  timelineOf,
} from "./wire.ts";
import { jsonMistake } from "../json-value.ts";
import { ROUTES } from "../routes.ts";
import { toCamel, toSnake } from "../snake-case.ts";

const spec: JobSpec = specOf({ kind: "build", payload: { fooBar: 1 } });
const lease = { jobEpoch: 3, leaderEpoch: 7, attempt: 2, agent: "a-1", session: "s", ttlMs: 5_000 };
const job: Job = {
  id: "j",
  spec,
  state: "building",
  jobEpoch: 3,
  failures: 0,
  losses: 1,
  submittedAtMs: 10,
  submittedSequence: 1,
  submittedBy: "ci",
  readyAtMs: 10,
  lease: { ...lease, leaseId: "secret-2" },
  progress: { share: 0.5, message: null, atMs: 50 },
  attempts: [
    {
      ...lease,
      leaseId: "secret-1",
      jobEpoch: 1,
      attempt: 1,
      assignedAtMs: 20,
      startedAtMs: null,
      endedAtMs: 30,
      end: "lost",
    },
    { ...lease, leaseId: "secret-2", assignedAtMs: 40, startedAtMs: 45, endedAtMs: null, end: null },
  ],
  finishedAtMs: null,
  result: null,
  error: null,
};

describe("one or many", () => {
  it.each([
    ["submit", { kind: "build", jobs: [{ kind: "build" }] }, "kind", "send either one job or `jobs`"],
    ["results", { session: "s", job_id: "j", results: [] }, "job_id", "send either one result or `results`"],
  ] as const)("%s takes one of them, and says so to whoever sends both", (route, body, field, said) => {
    const message = expect.stringContaining(said) as string;
    expect(ROUTES[route].body.check(body)).toEqual({ ok: false, mistakes: [{ field, message }] });
  });

  it("what belongs to neither is not known, whichever is meant", () => {
    const mistakes = [{ field: "job", message: "is not known; did you mean jobs?" }];
    expect(ROUTES.submit.body.check({ jobs: [{ kind: "a" }], job: 1 })).toEqual({ ok: false, mistakes });
  });
});

describe("jobs on the wire", () => {
  it("a spec goes there and back, and says everything that was left out", () => {
    expect(toCamel(toSnake(spec))).toEqual(spec);
    const whole = toSnake(spec);
    expect(specOf(whole as Parameters<typeof specOf>[0])).toEqual(spec);
    expect(Object.values(spec)).not.toContain(undefined);
  });

  it("a job is shown without the ids of its leases, and in lists without what may be large", () => {
    expect(JSON.stringify([jobAnswer(job), jobBrief(job)])).not.toMatch(/secret|leaseId|lease_id/);
    expect(jobBrief(job)).toMatchObject({ id: "j", kind: "build", agent: "a-1", error_message: null });
    expect(jobBrief(job)).not.toHaveProperty("payload");
  });

  it("its timeline names attempts and epochs, oldest first", () => {
    expect(
      timelineOf(job).map(({ atMs, what, attempt, jobEpoch, end }) => [atMs, what, attempt, jobEpoch, end]),
    ).toEqual([
      [10, "submitted", null, null, null],
      [20, "assigned", 1, 1, null],
      [30, "ended", 1, 1, "lost"],
      [40, "assigned", 2, 3, null],
      [45, "started", 2, 3, null],
    ]);
  });

  it("a failure is retried unless it says otherwise", () => {
    const base = { job_id: "j", job_epoch: 1, lease_id: "l", leader_epoch: 7 };
    const failed = { ...base, outcome: "failed" as const, error: { message: "m" } };
    expect(resultCallOf(failed).outcome).toEqual({
      kind: "failed",
      error: { message: "m", detail: null },
      retry: true,
    });
    expect(resultCallOf({ ...failed, retry: false }).outcome).toMatchObject({ retry: false });
    expect(resultMistake(failed)).toBeNull();
    expect(resultMistake({ ...base, outcome: "failed" })).toMatchObject({ field: "error" });
  });

  it("a call for jobs has a number and the last that was answered, or neither, or its own alone", () => {
    const agent = { name: "a", session: "s", kinds: ["k"], platform: "p", capacity: 1 };
    const base = { agent, max: 1, ttl_ms: 10_000 };
    const checked = (change: object) => ROUTES.lease.body.check({ ...base, ...change }).ok;
    expect([{ poll: 1 }, { poll: 1, answered: 0 }, { poll: INTEGER_MAX }].map(checked)).toEqual([true, true, true]);
    const wrong = [{ poll: 0 }, { poll: 1.5 }, { poll: INTEGER_MAX + 1 }, { poll: 1, answered: -1 }, { poll: null }];
    expect(wrong.map(checked)).toEqual(wrong.map(() => false));
    for (const fine of [{}, { poll: 1 }, { poll: 1, answered: 0 }, { poll: 9, answered: 8 }])
      expect(leaseMistake({ ...base, ...fine })).toBeNull();
    for (const mistaken of [{ answered: 0 }, { poll: 1, answered: 1 }, { poll: 8, answered: 9 }]) {
      const message = expect.stringContaining("poll") as string;
      expect(leaseMistake({ ...base, ...mistaken })).toEqual({ field: "answered", message });
    }
    expect(leaseCallOf({ ...base, poll: 9, answered: 7 })).toMatchObject({ poll: 9, answered: 7 });
    expect(leaseCallOf(base)).toMatchObject({ poll: undefined, answered: undefined });
  });

  it("an event keeps its bytes under /api and its payload under /v1", () => {
    const bytes = new TextEncoder().encode('{"entityId":"j","payload":{"fooBar":"é"}}');
    expect(eventText(bytes, "ab")).toBe('{"eventHash":"ab","entityId":"j","payload":{"fooBar":"é"}}');
    expect(eventWire(bytes, "ab")).toEqual({ event_hash: "ab", entity_id: "j", payload: { fooBar: "é" } });
  });
});

describe("the user's own JSON", () => {
  it.each([null, true, 0, -1.5, "", "é\u0000", [], {}, { a: [{ b: null }] }, 2 ** 53 - 1])("%j is fine", (value) => {
    expect(jsonMistake(value, 100)).toBeNull();
  });

  it.each([
    [2 ** 53],
    [Number.NaN],
    [Number.POSITIVE_INFINITY],
    ["\ud800"],
    [{ "\udfff": 1 }],
    [undefined],
    [[() => 1]],
    [1n],
  ])("%# is refused", (value) => {
    expect(jsonMistake(value, 1_000)).toMatch(/^must/);
  });

  it("is measured in bytes, and as it would be written", () => {
    for (const [value, bytes] of [
      ["é", 4],
      ["\u0000", 8],
      [{ a: [1, 2] }, 11],
      ["\\", 4],
    ] as const) {
      expect([jsonMistake(value, bytes), jsonMistake(value, bytes - 1)]).toEqual([
        null,
        expect.stringContaining("bytes"),
      ]);
    }
  });
});

describe("one request", () => {
  it("is the same in any order of names, and another with another value, method or path", () => {
    const one = requestText("POST", "/v1/jobs", { b: [1, { d: 1, c: 2 }], a: "x" });
    expect(requestText("POST", "/v1/jobs", { a: "x", b: [1, { c: 2, d: 1 }] })).toBe(one);
    expect(one).toBe('POST /v1/jobs\n{"a":"x","b":[1,{"c":2,"d":1}]}');
    const others = [
      requestText("PUT", "/v1/jobs", { b: [1, { d: 1, c: 2 }], a: "x" }),
      requestText("POST", "/v1/job", { b: [1, { d: 1, c: 2 }], a: "x" }),
      requestText("POST", "/v1/jobs", { b: [{ d: 1, c: 2 }, 1], a: "x" }),
      requestText("POST", "/v1/jobs", { b: [1, { d: 1, c: "2" }], a: "x" }),
    ];
    expect(new Set([one, ...others]).size).toBe(5);
  });

  it("sorts names as UTF-16 does, as RFC 8785 wants it", () => {
    const names = { "\u20ac": 1, "\r": 1, "\ufb33": 1, "1": 1, "\ud83d\ude00": 1, "\u0080": 1, "\u00f6": 1 };
    const text = requestText("POST", "/", names).slice("POST /\n".length);
    expect(Object.keys(JSON.parse(text) as object)).toEqual([
      "1",
      "\r",
      "\u0080",
      "\u00f6",
      "\u20ac",
      "\ud83d\ude00",
      "\ufb33",
    ]);
  });
});

it("a body that is one or many is told by its mistakes which of them is meant", () => {
  const { body } = ROUTES.submit;
  const mistakes = (value: unknown) => {
    const checked = body.check(value);
    return checked.ok ? [] : checked.mistakes.map(({ field }) => field);
  };
  expect(mistakes({ kind: "a" })).toEqual([]);
  expect(mistakes({ jobs: [{ kind: "a" }] })).toEqual([]);
  expect(mistakes({ kind: "a", jobs: [{ kind: "a" }] })).toEqual(["kind"]);
  expect(mistakes({ jobs: [{ kind: "a", queue: "" }] })).toEqual(["jobs[0].queue"]);
  expect(mistakes({})).toEqual(["kind"]);
});
