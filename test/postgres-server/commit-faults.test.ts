// The database fails while the controller's commits are under way: a session is terminated inside of COMMIT, a backend is killed,
// a server in the middle says that it does not know. Nothing that was acknowledged is lost, nothing that was refused is written,
// nothing is written twice; what is not known is called so.

import { afterAll, afterEach, beforeAll, expect, test } from "vitest";
import { schemaSql } from "../../src/postgres/schema/schema.ts";
import { commitAnswered } from "../postgres/test-answers.ts";
import { type Site, startSite, waitFor } from "./test-site.ts";
import { Submissions } from "./test-submissions.ts";

/** While there is a row in `planted`, COMMIT of an append sleeps, or waits for a standby that is not there. */
const PLANTED = `
create table planted (what text);
create function planted_record() returns trigger language plpgsql as $$
begin
  if exists (select from planted where what = 'sleep') then perform pg_sleep(60); end if;
  if exists (select from planted where what = 'wait') then perform set_config('synchronous_commit', 'on', true); end if;
  return null;
end $$;
create constraint trigger planted after insert on tenure_log deferrable initially deferred
  for each row execute function planted_record()`;

let site: Site;

beforeAll(async () => {
  site = await startSite({
    // Only an append that is told to waits for the standby.
    postgres: { settings: { synchronous_standby_names: "nobody", synchronous_commit: "local" } },
    prepare: async (server) => {
      await server.query(schemaSql("public"));
      await server.query(PLANTED);
    },
  });
}, 120_000);

afterEach(async () => {
  await site.server.query("delete from planted");
});

afterAll(() => site?.end());

async function committing(event: "PgSleep" | "SyncRep"): Promise<number> {
  let pid = 0;
  await waitFor(`a session in ${event}`, async () => {
    const text = "select pid from pg_stat_activity where wait_event = $1";
    [{ pid } = { pid: 0 }] = await site.server.query<{ pid: number }>(text, [event]);
    return pid > 0;
  });
  return pid;
}

test.each([
  ["before the commit record", "sleep", "PgSleep"],
  ["after the commit record", "wait", "SyncRep"],
] as const)(
  "a session that is terminated inside of COMMIT, %s: the caller hears that it is unknown, and the site goes on",
  async (_, what, event) => {
    const submissions = new Submissions(site);
    await submissions.submit();
    await site.server.query("insert into planted values ($1)", [what]);
    const answer = submissions.submit();
    const pid = await committing(event);
    await site.server.query("delete from planted");
    await site.server.query("select pg_terminate_backend($1)", [pid]);
    const { kind, heard } = await answer;
    expect(heard).toBe("unknown");
    submissions.begin(2);
    await submissions.progress(5);
    await submissions.rest();
    expect(await submissions.mistakes()).toEqual([]);
    const found = await site.server.query("select from tenure_log where position($1::bytea in data) > 0", [
      Buffer.from(kind),
    ]);
    expect(found).toHaveLength(what === "wait" ? 1 : 0);
  },
  120_000,
);

test("a backend that is killed takes all sessions with it: nothing is lost or doubled, and one leads again", async () => {
  const submissions = new Submissions(site);
  submissions.begin(4);
  for (let kill = 0; kill < 3; kill++) {
    await submissions.progress(20);
    const text =
      "select pid from pg_stat_activity where application_name like 'tenure log%' order by state_change desc";
    const [session] = await site.server.query<{ pid: number }>(text);
    process.kill(session!.pid, "SIGKILL");
  }
  await submissions.progress(20);
  await submissions.rest();
  expect(await submissions.mistakes()).toEqual([]);
  await site.cluster.steady();
}, 120_000);

test("an append that is committed and answered with 40003 is not called refused, so nobody submits it again unasked", async () => {
  const submissions = new Submissions(site);
  await submissions.submit();
  const leader = await site.leader();
  const proxy = site.proxy(leader.id);
  let isSaid = false;
  proxy.rewrite = (chunk) => {
    const changed = isSaid ? undefined : commitAnswered(chunk, { sqlstate: "40003", severity: "ERROR" });
    isSaid ||= changed !== undefined;
    return changed ?? chunk;
  };
  const { heard, why } = await submissions.submit();
  proxy.rewrite = undefined;
  expect([isSaid, heard]).toEqual([true, "unknown"]);
  expect(why).toContain("OUTCOME_UNKNOWN");
  submissions.begin(2);
  await submissions.progress(5);
  await submissions.rest();
  expect(await submissions.mistakes()).toEqual([]);
}, 120_000);
