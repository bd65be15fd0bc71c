// `tenure_submit` in the user's own transaction: it becomes a job with the transaction, exactly once, whoever leads.

import { randomUUID } from "node:crypto";
import { afterAll, beforeAll, expect, test } from "vitest";
import { key, type Site, startSite, waitFor } from "./test-site.ts";

let site: Site;

beforeAll(async () => {
  site = await startSite();
}, 120_000);

afterAll(() => site?.end());

interface JobAnswer {
  readonly state: string;
  readonly submitted_by: string;
  readonly error: { readonly message: string } | null;
  readonly spec: { readonly payload: unknown; readonly priority: number };
}

async function job(id: string): Promise<{ status: number; body: JobAnswer }> {
  return (await site.leader()).call<JobAnswer>(`/v1/jobs/${id}?consistency=linearizable`, { key });
}

async function inboxIsEmpty(): Promise<boolean> {
  const [row] = await site.server.query<{ count: number }>("select count(*)::int as count from tenure_inbox");
  return row?.count === 0;
}

test("a submission becomes a job when its transaction commits, and none when it is rolled back", async () => {
  const kind = randomUUID();
  await site.server.query("create table orders (id integer)");
  // One query of several statements is one transaction, unless it says otherwise.
  const made =
    "insert into orders values (1); select tenure_submit($$KIND$$, '{\"order\": 1}', '{\"priority\": 7}') as id";
  await site.server.query(`begin; ${made.replace("KIND", kind)}; rollback`);
  await site.server.query(`begin; ${made.replace("KIND", kind)}; commit`);
  await waitFor("it to be taken over", inboxIsEmpty);
  const [order] = await site.server.query<{ count: number }>("select count(*)::int as count from orders");
  expect(order?.count).toBe(1);
  const events = (await site.events(await site.leader())).filter(({ eventType }) => eventType === "build:submitted");
  expect(events).toHaveLength(1);
  expect((await job(events[0]!.entityId)).body).toMatchObject({
    state: "pending",
    submitted_by: "postgres:postgres",
    spec: { payload: { order: 1 }, priority: 7 },
  });
});

test.each([
  ["an option that does not exist", "'{\"priorty\": 1}'", /priorty/],
  ["an option out of range", "'{\"attempts_max\": 0}'", /attempts_max/],
])("%s makes a failed job that says so, and holds up nobody", async (_what, options, why) => {
  const kind = randomUUID();
  const [bad] = await site.server.query<{ id: string }>(`select tenure_submit('${kind}', '1', ${options}) as id`);
  const [good] = await site.server.query<{ id: string }>(`select tenure_submit('${kind}', '2') as id`);
  await waitFor("both to be taken over", inboxIsEmpty);
  const { body } = await job(bad!.id);
  expect(body).toMatchObject({ state: "failed" });
  expect(body.error?.message).toMatch(why);
  expect((await job(good!.id)).body).toMatchObject({ state: "pending" });
});

const DEEP = `${"[".repeat(2_000)}${"]".repeat(2_000)}`;

test.each([
  ["a kind that is no name", "'send mail', '1', '{}'", /kind/],
  ["a number that JavaScript takes for infinity", "'k', '1e400', '{}'", /2\^53/],
  ["a payload of 2,000 levels", `'k', '${DEEP}', '{}'`, /levels/],
  ["an option that is no number any more", "'k', '1', '{\"priority\": 1e400}'", /priority/],
])(
  "F4: %s that got past tenure_submit makes a failed job that says so, and holds up nobody",
  async (_what, row, why) => {
    const insert = `insert into tenure_inbox (log, kind, payload, options) values ('jobs', ${row}) returning id::text`;
    const [bad] = await site.server.query<{ id: string }>(insert);
    const [good] = await site.server.query<{ id: string }>("select tenure_submit('k', '2') as id");
    await waitFor("both to be taken over", inboxIsEmpty);
    const { body } = await job(bad!.id);
    expect(body).toMatchObject({ state: "failed" });
    expect(body.error?.message).toMatch(why);
    expect((await job(good!.id)).body).toMatchObject({ state: "pending" });
  },
);

test("each is taken over exactly once while leaders are killed", async () => {
  const kind = randomUUID();
  const submitted: string[] = [];
  const crowd = { isOver: false };
  const submitting = (async () => {
    while (!crowd.isOver) {
      const rows = await site.server.query<{ id: string }>(
        "select tenure_submit($1, to_jsonb(n)) as id from generate_series(1, 5) n",
        [kind],
      );
      submitted.push(...rows.map(({ id }) => id));
    }
  })();
  for (let round = 0; round < 3; round++) {
    const old = await site.leader();
    const target = submitted.length + 50;
    await waitFor("more to be submitted", () => Promise.resolve(submitted.length >= target));
    await old.kill9();
    await site.leader(old.id);
    old.start();
    await site.cluster.steady();
  }
  crowd.isOver = true;
  await submitting;
  await waitFor("the inbox to be empty", inboxIsEmpty);
  const counts = new Map<string, number>();
  for (const { eventType, entityId } of await site.events(await site.leader())) {
    if (eventType === "build:submitted") counts.set(entityId, (counts.get(entityId) ?? 0) + 1);
  }
  expect(submitted.length).toBeGreaterThan(150);
  expect(submitted.filter((id) => counts.get(id) !== 1)).toEqual([]);
}, 120_000);
