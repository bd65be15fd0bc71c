// The fence: what a leader had under way when it was frozen reaches the database after its term, and is not taken. Shown with
// the same steps on a database whose guard is taken out: there it would be.

import { randomUUID } from "node:crypto";
import { expect, onTestFinished, test } from "vitest";
import { schemaSql } from "../../src/postgres/schema/schema.ts";
import { key, type Site, startSite, waitFor } from "./test-site.ts";

const GUARD = "and h.epoch = p_epoch and h.opened = p_opened\n      and h.position = p_after";

interface Outcome {
  readonly status: number;
  readonly error: string;
  /** Records that an epoch wrote after the opening of the next. */
  readonly late: number;
}

/** A job is submitted to a leader whose way to the database is cut, so its append is under way; then it is frozen. */
async function lateAppend(site: Site): Promise<Outcome> {
  await site.submit({ kind: randomUUID() });
  const old = await site.leader();
  const [before] = await site.server.query<{ position: string }>("select position from tenure_log_head");
  site.proxy(old.id).cut("to-server");
  const answer = old.call<{ error?: string }>("/v1/jobs", { key, body: { kind: randomUUID() }, limitMs: 60_000 });
  // It answers what came later: it has decided what came before, and sent it.
  for (let asked = 0; asked < 3; asked++) await old.call("/role", { key });
  old.stop();
  const next = await site.leader(old.id);
  await waitFor("the next leader to have opened the log", async () => {
    const [head] = await site.server.query<{ epoch: string }>("select epoch from tenure_log_head");
    return Number(head?.epoch) === (await next.view())?.term;
  });
  const [now] = await site.server.query<{ now: Date }>("select clock_timestamp() as now");
  await site.proxy(old.id).heal("resume");
  const arrived = `select from pg_stat_activity where query like '%tenure_log_append(%' and query not like '%pg_stat%'
    and state = 'idle' and state_change > $1`;
  await waitFor("the append to have arrived", async () => (await site.server.query(arrived, [now?.now])).length > 0);
  old.cont();
  const { status, body } = await answer;
  const behind = "select r.epoch from tenure_log r, tenure_log_head h where r.position > $1 and r.epoch < h.epoch";
  const late = await site.server.query(behind, [before?.position]);
  return { status, error: body.error ?? "", late: late.length };
}

test("an append that reaches the database after its leader's term is not taken, and nobody is told that it was", async () => {
  const site = await startSite({ nodes: 2 });
  onTestFinished(() => site.end());
  const { status, error, late } = await lateAppend(site);
  expect(late).toBe(0);
  expect(status).not.toBe(200);
  expect(["NOT_LEADER", "OUTCOME_UNKNOWN"]).toContain(error);
  // And the site goes on, with the old leader in it.
  await site.submit({ kind: randomUUID() });
  await site.cluster.steady();
}, 120_000);

test("without the guard in the database the same append is taken: the test above can fail", async () => {
  const right = schemaSql("public");
  expect(right.split(GUARD)).toHaveLength(2);
  const open = right.replace(GUARD, "and h.position = p_after");
  const site = await startSite({ nodes: 2, prepare: async (server) => void (await server.query(open)) });
  onTestFinished(() => site.end());
  expect((await lateAppend(site)).late).toBe(1);
}, 120_000);
