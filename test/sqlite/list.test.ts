import { DatabaseSync } from "node:sqlite";
import { describe, expect, test } from "vitest";
import { listJobs } from "../../src/drivers/sqlite/job-list.ts";
import type { JobQuery } from "../../src/ports/views.ts";
import { allPages, jobsFrom, newAttempt, newJob, newPath, openAt } from "./test-jobs.ts";

describe("pages", () => {
  test("have each job exactly once, newest first, while jobs come, change and go between them", async () => {
    const views = await openAt(await newPath());
    await views.put(1_000, jobsFrom(1, 1_000), [], []);
    let position = 1_000;
    const seen = await allPages(views, { limit: 37 }, async () => {
      position += 10;
      const changed = jobsFrom(position % 900, 10, { state: "completed" });
      await views.put(position, [...jobsFrom(position, 10), ...changed], [], []);
    });
    const old = seen.ids.map((id) => Number(id.slice(4)));
    expect(old).toEqual(Array.from({ length: 1_000 }, (_, i) => 1_000 - i));
    expect(seen.pages).toBe(28);
  });

  test("do not depend on the order in which jobs were put: a snapshot has none", async () => {
    const views = await openAt(await newPath());
    const jobs = jobsFrom(1, 100);
    for (const job of jobs.toSorted((a, b) => (a.id < b.id ? -1 : 1))) void views.put(0, [job], [], []);
    await views.put(100, [], [], []);
    expect((await allPages(views, { limit: 9 })).ids).toEqual(jobs.toReversed().map((job) => job.id));
  });

  test("are cut by bytes too, and end with null behind the last job", async () => {
    const views = await openAt(await newPath());
    await views.put(5, jobsFrom(1, 5, {}, { payload: "x".repeat(600_000) }), [], []);
    const first = await views.list({ limit: 5 });
    expect(first.jobs).toHaveLength(2);
    expect(await allPages(views, { limit: 5 })).toMatchObject({ pages: 3 });
    const second = await views.list({ limit: 5, cursor: first.next! });
    expect((await views.list({ limit: 1, states: ["pending"], cursor: second.next! })).next).toBeNull();
  });

  test.each([
    { limit: 0 },
    { limit: 1.5 },
    { limit: 1, cursor: "no such" },
    { limit: 1, cursor: "zzzzzzzzzzz" },
    { limit: 1, cursor: "zzz" },
    { limit: 1, cursor: "2-0" },
    { limit: 1, cursor: "" },
  ] satisfies JobQuery[])("that can't be are refused: %o", async (query) => {
    const views = await openAt(await newPath());
    await expect(views.list(query)).rejects.toMatchObject({ code: "BAD_REQUEST" });
  });
});

describe("filters", () => {
  test("give what a plain filter over all jobs gives, in every combination", async () => {
    const views = await openAt(await newPath());
    const states = ["pending", "building", "completed", "failed"] as const;
    const jobs = Array.from({ length: 2_400 }, (_, i) =>
      newJob(
        i + 1,
        { state: states[i % 4]!, attempts: i % 3 === 0 ? [newAttempt(1, { agent: `a${i % 5}` })] : [] },
        { kind: `kind${i % 2}`, queue: i % 7 === 0 ? "rare" : "default", payload: i % 3 === 1 ? "needle" : "straw" },
      ),
    );
    await views.put(jobs.length, jobs, [], []);
    const choices: { [K in keyof JobQuery]?: readonly JobQuery[K][] } = {
      states: [undefined, ["failed"], ["pending", "building", "pending"], []],
      kind: [undefined, "kind1", "none"],
      queue: [undefined, "rare"],
      agent: [undefined, "a3"],
      search: [undefined, "needle", "linux"],
    };
    let queries: Partial<JobQuery>[] = [{}];
    for (const [name, values] of Object.entries(choices)) {
      queries = queries.flatMap((query) => values.map((value) => ({ ...query, [name]: value })));
    }
    for (const query of queries) {
      const expected = jobs.filter(
        (job) =>
          (query.states === undefined || query.states.includes(job.state)) &&
          (query.kind === undefined || job.spec.kind === query.kind) &&
          (query.queue === undefined || job.spec.queue === query.queue) &&
          (query.agent === undefined || job.attempts[0]?.agent === query.agent) &&
          (query.search !== "needle" || job.spec.payload === "needle"),
      );
      const { ids } = await allPages(views, { ...query, limit: 500 });
      expect(ids, JSON.stringify(query)).toEqual(expected.toReversed().map((job) => job.id));
    }
    expect(queries).toHaveLength(144);
  });

  test("follow a job that changes", async () => {
    const views = await openAt(await newPath());
    const job = newJob(1);
    await views.put(1, [job], [], []);
    const lease = newAttempt(1, { agent: "a7", endedAtMs: null, end: null });
    await views.put(2, [{ ...job, state: "building", lease, attempts: [lease] }], [], []);
    expect((await views.list({ limit: 1, states: ["pending"] })).jobs).toEqual([]);
    expect((await views.list({ limit: 1, states: ["building"], agent: "a7" })).jobs).toHaveLength(1);
  });
});

describe("a search", () => {
  test("finds words of kind, queue, labels, payload and error, whatever their case and accents", async () => {
    const views = await openAt(await newPath());
    const spec = {
      kind: "nightly-build",
      queue: "slow_lane",
      labels: { arch: "arm64" },
      payload: { repo: "git@example.test:Größe/App.git", deep: [{ n: 4711, text: "naïve \u6771\u4eac" }] },
    };
    const error = { message: "Exit code 137: Out-Of-Memory", detail: { hint: "raise_limit" } };
    await views.put(2, [newJob(1), newJob(2, { error }, spec)], [], []);
    const words = [
      "nightly",
      "BUILD",
      "slow lane",
      "arch arm64",
      "grosse",
      "größe app",
      "Naive",
      "4711",
      "\u6771\u4eac",
    ];
    for (const search of [
      ...words.filter((word) => word !== "grosse"),
      "out-of-memory 137",
      "raise_limit",
      "nightly 4711",
    ]) {
      expect(
        (await views.list({ limit: 9, search })).jobs.map((job) => job.id),
        search,
      ).toEqual(["job-2"]);
    }
    for (const search of ["night", "nightly nothere", "repo", 'nightly" OR "exec', "NOT nightly", "night*"]) {
      expect((await views.list({ limit: 9, search })).jobs, search).toEqual([]);
    }
    expect((await views.list({ limit: 9, search: " -- ''" })).jobs).toHaveLength(2);
  });

  test("follows an error that comes and goes", async () => {
    const views = await openAt(await newPath());
    const job = newJob(1);
    const found = async (search: string) => (await views.list({ limit: 9, search })).jobs.length;
    await views.put(1, [job], [], []);
    await views.put(2, [{ ...job, state: "failed", error: { message: "segfault", detail: null } }], [], []);
    expect([await found("segfault"), await found("make")]).toEqual([1, 1]);
    await views.put(3, [job], [], []);
    expect([await found("segfault"), await found("make")]).toEqual([0, 1]);
  });

  test.each<Omit<JobQuery, "limit">>([
    { search: "linux main", queue: "default", states: ["pending", "failed"] },
    { kind: "exec", queue: "default" },
    { kind: "exec", queue: "default", states: ["failed", "pending"] },
  ])("that takes too long is cut, and goes on with the next page where it was: %o", async (query) => {
    const path = await newPath();
    const views = await openAt(path);
    // More than are counted: it does not know which filter is the best.
    for (let i = 0; i < 22; i++) await views.put(i * 500 + 500, jobsFrom(i * 500 + 1, 500), [], []);
    await views.put(11_100, jobsFrom(11_001, 100, { state: "failed" }, { queue: "other" }), [], []);
    const database = new DatabaseSync(path, { readOnly: true });
    const ids: string[] = [];
    let cursor: string | undefined;
    let pages = 0;
    do {
      // No time at all: each page has the rows between two looks at the clock.
      const page = listJobs(database, { ...query, limit: 500, cursor }, 0);
      pages++;
      expect(page.jobs.length).toBeLessThan(64);
      ids.push(...page.jobs.map((json) => (JSON.parse(json) as { id: string }).id));
      cursor = page.next ?? undefined;
    } while (cursor !== undefined && pages < 1_000);
    expect(ids).toEqual(Array.from({ length: 11_000 }, (_, i) => `job-${11_000 - i}`));
    expect(pages).toBe(Math.ceil(11_100 / 63));
    database.close();
  });

  test("looks at some jobs at a time: words that are never together do not make it read all of them at once", async () => {
    const path = await newPath();
    const views = await openAt(path);
    // Far apart, as if there were many between them.
    const jobs = Array.from({ length: 200 }, (_, i) =>
      newJob(1 + i * 100_000, {}, { payload: i % 2 === 0 ? "odd" : "even" }),
    );
    await views.put(20_000_000, [...jobs, newJob(7, {}, { payload: "odd and even" })], [], []);
    const database = new DatabaseSync(path, { readOnly: true });
    const first = listJobs(database, { limit: 10, search: "odd even" }, 0);
    expect(first).toMatchObject({ jobs: [], next: expect.any(String) as string });
    database.close();
    expect((await allPages(views, { limit: 10, search: "odd even" })).ids).toEqual(["job-7"]);
    expect((await allPages(views, { limit: 10, search: "even" })).ids).toHaveLength(101);
  });

  test("for a frequent word and a rare filter looks at a bounded part of the words in each step, and finds all", async () => {
    const path = await newPath();
    const views = await openAt(path);
    // Far apart, as if there were many between them: both words are frequent, and never together.
    const jobs = Array.from({ length: 300 }, (_, i) =>
      newJob(1 + i * 100_000, {}, { payload: i % 2 === 0 ? "odd" : "even", queue: i % 100 === 7 ? "rare" : "default" }),
    );
    await views.put(30_000_000, jobs, [], []);
    const opened = new DatabaseSync(path, { readOnly: true });
    const watched = watch(opened);
    for (const query of [
      { search: "odd even", queue: "default" },
      { search: "even", queue: "rare" },
      { search: "odd even", kind: "exec", states: ["pending"] },
    ] satisfies Omit<JobQuery, "limit">[]) {
      let cursor: string | undefined;
      const ids: string[] = [];
      do {
        const page = listJobs(watched.database, { ...query, limit: 10, cursor });
        ids.push(...page.jobs.map((json) => (JSON.parse(json) as { id: string }).id));
        cursor = page.next ?? undefined;
      } while (cursor !== undefined);
      expect(ids).toHaveLength(query.search === "even" ? 3 : 0);
    }
    opened.close();
    expect(watched.spans.length).toBeGreaterThan(0);
    expect(Math.max(...watched.spans), "sequences in which one step looks for words").toBeLessThanOrEqual(500_000);
  });
});

describe("reads at once", () => {
  test("256 callers that list jobs are all answered, as are those who ask for the same page", async () => {
    const views = await openAt(await newPath());
    await views.put(500, jobsFrom(1, 500), [], []);
    const pages = await Promise.all(
      Array.from({ length: 256 }, (_, n) =>
        views.list({ limit: 1 + (n % 32), kind: n % 2 === 0 ? "exec" : undefined }),
      ),
    );
    expect(pages.map(({ jobs }) => jobs.length)).toEqual(Array.from({ length: 256 }, (_, n) => 1 + (n % 32)));
    expect(views.stats().readsWaiting).toBe(0);
  });
});

/** Of each statement that looks for words by itself: how many sequences it may look at, as its bounds say. */
function watch(opened: DatabaseSync): { readonly database: DatabaseSync; readonly spans: number[] } {
  const spans: number[] = [];
  const see = (text: string, values: readonly unknown[]): void => {
    if (!/FROM words\b(?! WHERE words MATCH \? AND words\.rowid = jobs)/.test(text)) return;
    const [high, low] = [/words\.rowid < \?/.test(text), /words\.rowid >= \?/.test(text)];
    const bounds = values.filter((value) => typeof value === "bigint").map(Number);
    spans.push(high && low ? bounds[0]! - bounds[1]! : Infinity);
  };
  const database = {
    exec: (text: string) => opened.exec(text),
    prepare: (text: string) => {
      const statement = opened.prepare(text);
      return {
        get: (...values: never[]) => (see(text, values), statement.get(...values)),
        iterate: (...values: never[]) => (see(text, values), statement.iterate(...values)),
      };
    },
  };
  return { database: database as unknown as DatabaseSync, spans };
}
