// The tables and functions in a real Postgres: installed by many at once, checked, guarded, and doing what the
// headers of src/postgres/schema/*.ts say.

import type { Client } from "pg";
import { afterAll, afterEach, beforeAll, expect, test } from "vitest";
import { urlDriver } from "../../src/drivers/postgres/index.ts";
import { fenceKeyOf } from "../../src/postgres/lock-key.ts";
import { applySchema, checkSchema, schemaSql } from "../../src/postgres/schema/schema.ts";
import { createElector } from "../../src/entry/index.ts";
import { postgres } from "../../src/entry/postgres.ts";
import type { SqlSession } from "../../src/ports/backends/sql.ts";
import { type PostgresServer, startPostgres, waitFor } from "../servers/index.ts";
import { connectTo, FAST } from "./test-seat.ts";
import { bump, bumpAgain, freshDatabase, one, refusal } from "./test-sql.ts";

let server: PostgresServer;
const open: { end(): Promise<void> }[] = [];

beforeAll(async () => {
  server = await startPostgres({ settings: { max_prepared_transactions: "4" } });
});

afterEach(async () => {
  await Promise.all(open.splice(0).map((one) => one.end().catch(() => undefined)));
});

afterAll(async () => {
  await server.end();
});

async function client(url: string): Promise<Client> {
  const connected = await connectTo(url);
  open.push(connected);
  return connected;
}

function session(url: string): SqlSession {
  const opened = urlDriver(url, "test").open({});
  open.push(opened);
  return opened;
}

test("eight processes that start at once install it once, and none of them fails", async () => {
  const url = await server.createDatabase("at_once");
  const results = await Promise.all(Array.from({ length: 8 }, () => applySchema(session(url), "tenure")));
  expect(results).toHaveLength(8);
  const admin = await client(url);
  expect(await one(admin, "select count(*)::int from tenure.tenure_schema_version")).toBe(3);
  expect(await checkSchema(session(url), "tenure")).toEqual({ kind: "current", version: 3, denied: [], foreign: [] });
});

test("applying it again keeps rows, epochs and grants", async () => {
  const url = await freshDatabase(server);
  const admin = await client(url);
  await bump(admin, 1, "kept");
  await admin.query("create role keeper; grant execute on function tenure_require_epoch to keeper");
  await admin.query(schemaSql("public"));
  expect(await one(admin, "select epoch from tenure_leader_state")).toBe("1");
  const kept = "select has_function_privilege('keeper', 'tenure_require_epoch(text, bigint)', 'execute')";
  expect(await one(admin, kept)).toBe(true);
  await admin.query("drop owned by keeper; drop role keeper");
});

test("a schema with capitals or a keyword as its name works", async () => {
  const url = await server.createDatabase("names");
  for (const name of ["Order", "select", "a".repeat(63)]) {
    await applySchema(session(url), name);
    expect(await checkSchema(session(url), name)).toMatchObject({ kind: "current" });
  }
});

test.each(["", "1a", "a-b", 'a"b', "pg_mine", "a".repeat(64), "ä", "a b"])("the schema name %j is refused", (name) => {
  expect(() => schemaSql(name)).toThrow(/schema is /);
});

test("check says what is missing and touches nothing", async () => {
  const url = await server.createDatabase("nothing_yet");
  const state = await checkSchema(session(url), "tenure");
  expect(state).toMatchObject({ kind: "missing", version: 0 });
  expect(state).toHaveProperty("missing", expect.arrayContaining(['schema "tenure"', "table tenure_heartbeat"]));
  await applySchema(session(url), "tenure");
  const admin = await client(url);
  await admin.query("drop function tenure.tenure_beat");
  expect(await checkSchema(session(url), "tenure")).toEqual({
    kind: "missing",
    version: 3,
    missing: ["function tenure_beat(bigint, bigint)"],
  });
  await applySchema(session(url), "tenure");
  expect(await checkSchema(session(url), "tenure")).toMatchObject({ kind: "current" });
});

test("an older schema is told from a newer one that still works and one that does not, and neither is overwritten", async () => {
  const url = await freshDatabase(server);
  const admin = await client(url);
  await admin.query("delete from tenure_schema_version");
  expect(await checkSchema(session(url), "public")).toEqual({ kind: "older", version: 0 });
  await admin.query("insert into tenure_schema_version values (1, 1), (2, 1), (3, 1), (4, 1)");
  expect(await checkSchema(session(url), "public")).toEqual({ kind: "newer", version: 4, denied: [], foreign: [] });
  const applying = session(url);
  await expect(applySchema(applying, "public")).rejects.toMatchObject({ sqlstate: "TN008" });
  expect(await applying.query("select 1 as usable")).toEqual([{ usable: 1 }]);
  await admin.query("update tenure_schema_version set works_from = 4 where version = 4");
  expect(await checkSchema(session(url), "public")).toEqual({ kind: "unusable", version: 4 });
});

test("a database of version 1 gets the tables of the log, and keeps what it has", async () => {
  const url = await freshDatabase(server);
  const admin = await client(url);
  await bump(admin, 1, "kept");
  await admin.query(`drop table tenure_log_head, tenure_log, tenure_log_snapshot, tenure_inbox, tenure_node;
    drop function tenure_log_open, tenure_log_append, tenure_log_save, tenure_log_trim, tenure_submit, tenure_log_guard,
      tenure_site, tenure_node_beat, tenure_node_leave;
    delete from tenure_schema_version where version >= 2`);
  expect(await checkSchema(session(url), "public")).toEqual({ kind: "older", version: 1 });
  await applySchema(session(url), "public");
  for (const use of ["elector", "log"] as const)
    expect(await checkSchema(session(url), "public", use)).toMatchObject({ kind: "current", version: 3, denied: [] });
  expect(await one(admin, "select epoch from tenure_leader_state")).toBe("1");
});

test("a database of version 2 gets the fence's mark, and keeps epochs and grants; its library goes on with version 3", async () => {
  const url = await freshDatabase(server);
  const admin = await client(url);
  await bump(admin, 1, "kept");
  const definition = String(await one(admin, "select pg_get_functiondef('tenure_fence'::regproc)"));
  const unmarked = definition.replaceAll(/set_config\('tenure\.fence'.*?\) <> ''/g, "true");
  expect(unmarked).not.toBe(definition);
  await admin.query(`${unmarked}; delete from tenure_schema_version where version = 3`);
  await admin.query("create role writer; grant execute on procedure tenure_fence to writer");
  expect(await checkSchema(session(url), "public")).toEqual({ kind: "older", version: 2 });
  const elector = createElector({ scope: "checks", backend: postgres({ ...FAST, url, migrate: "check" }) });
  await expect(elector.acquire()).rejects.toMatchObject({ code: "SCHEMA_MISSING" });
  await elector.close();

  await applySchema(session(url), "public");
  expect(await checkSchema(session(url), "public")).toMatchObject({ kind: "current", version: 3, denied: [] });
  expect(await one(admin, "select works_from from tenure_schema_version where version = 3")).toBe(1);
  expect(await one(admin, "select epoch from tenure_leader_state")).toBe("1");
  expect(await one(admin, "select has_function_privilege('writer', 'tenure_fence(bigint, bigint)', 'execute')")).toBe(
    true,
  );
  await admin.query("begin; set local role writer; call tenure_fence(1, 1)");
  expect(await one(admin, "show tenure.fence")).toBe('"public"/1/1');
  await admin.query("commit");
  expect(await one(admin, "show tenure.fence")).toBe("");
  // What the library of version 2 sends.
  await admin.query("begin");
  const sent = `select "public".tenure_require_epoch('kept'::text, 1::bigint)::text,
    pg_catalog.set_config('tenure.fence', '0123456789abcdef', true)`;
  await admin.query(sent);
  expect(await one(admin, "show tenure.fence")).toBe("0123456789abcdef");
  await admin.query("commit");
  await admin.query("drop owned by writer; drop role writer");
});

test("nobody but the owner may execute anything of it until it is granted", async () => {
  const url = await freshDatabase(server);
  const admin = await client(url);
  const text = `select array_agg(proname::text order by 1) from pg_proc
    where proname like 'tenure%' and has_function_privilege('stranger', oid, 'execute')`;
  await admin.query("create role stranger");
  expect(await one(admin, text)).toBeNull();
  await admin.query("drop role stranger");
  expect(await one(admin, "select count(*)::int from pg_proc where proname like 'tenure%'")).toBe(23);
});

test("functions that run as their owner do not look at the caller's search_path", async () => {
  const url = await freshDatabase(server);
  const admin = await client(url);
  await bump(admin, 1, "guarded");
  await admin.query(`create schema evil;
    create function evil.always(bigint, bigint) returns boolean language sql as 'select true';
    create operator evil.= (leftarg = bigint, rightarg = bigint, function = evil.always);
    create function evil.pg_is_in_recovery() returns boolean language sql as 'select false';
    create function evil.set_config(text, text, boolean) returns text language sql as $$ select 'nothing' $$;
    create table evil.tenure_leader_state as select scope_key, scope, 7::bigint as epoch, 'x' as holder_identity
      from public.tenure_leader_state;
    set search_path = evil, pg_catalog, public`);
  expect(await one(admin, "select 1::bigint = 2::bigint")).toBe(true);
  expect(await refusal(admin.query("select public.tenure_require_epoch('guarded', 7)"))).toBe("TN001");
  expect(await refusal(admin.query("call public.tenure_fence(1, 7)"))).toBe("TN001");
  expect(await refusal(admin.query("select public.tenure_require_epoch('guarded', 1)"))).toBe("");
  await admin.query("begin; call public.tenure_fence(1, 1)");
  expect(await one(admin, "show tenure.fence")).toBe('"public"/1/1');
  await admin.query("rollback");
});

test("trap 43: a row of the state can't be deleted, truncated, renamed or sent back, and its table is logged", async () => {
  const admin = await client(await freshDatabase(server));
  await bump(admin, 1, "kept");
  await bumpAgain(admin, 1, "kept");
  for (const text of [
    "delete from tenure_leader_state",
    "truncate tenure_leader_state cascade",
    "update tenure_leader_state set epoch = epoch - 1",
    "update tenure_leader_state set scope_key = 2",
    "update tenure_leader_state set scope = 'other'",
  ]) {
    expect(await refusal(admin.query(text)), text).toMatch(/^(TN007|23503)$/);
  }
  expect(await one(admin, "select epoch from tenure_leader_state")).toBe("2");
  const persistence = "select string_agg(distinct relpersistence::text, '') from pg_class where relname like 'tenure%'";
  expect(await one(admin, persistence)).toBe("p");
});

test("an epoch is only given to the session that holds the lock in exclusive mode", async () => {
  const url = await freshDatabase(server);
  const [holder, other] = [await client(url), await client(url)];
  expect(await refusal(bumpAgain(holder, 1, "held"))).toBe("TN003");
  await other.query("select pg_advisory_lock_shared(1)");
  expect(await refusal(bumpAgain(other, 1, "held"))).toBe("TN003");
  await other.query("select pg_advisory_unlock_shared(1)");
  // The halves of a key are listed apart: another key with one of them must not pass for it.
  await holder.query("select pg_advisory_lock(1 + (1::bigint << 32)), pg_advisory_lock(0, 1)");
  expect(await refusal(bumpAgain(holder, 1, "held"))).toBe("TN003");
  for (const [at, key] of ["1", "-1", "9223372036854775807", "-9223372036854775808", "-4294967296"].entries()) {
    expect(await bump(holder, key, `held ${at}`)).toBe(1);
    expect(await refusal(bumpAgain(other, key, `held ${at}`))).toBe("TN003");
    expect(await one(holder, "select tenure_beat($1, 1)", [key])).toBe("held");
    expect(await one(other, "select tenure_beat($1, 1)", [key])).toBe("unlocked");
  }
});

test("the fence key is the same here and in the database", async () => {
  const admin = await client(await freshDatabase(server));
  for (const key of [0n, 1n, -1n, 2n ** 63n - 1n, -(2n ** 63n), 0x54454e5552454643n]) {
    expect(await one(admin, "select tenure_fence_key($1)", [String(key)])).toBe(String(fenceKeyOf(key)));
  }
});

test("two scopes with one key, and one scope with two keys, are a clash", async () => {
  const url = await freshDatabase(server);
  const [first, second] = [await client(url), await client(url)];
  await bump(first, 1, "invoices");
  await first.query("select tenure_resign(1, 1, 'resigned')");
  expect(await refusal(bump(second, 1, "orders"))).toBe("TN002");
  expect(await refusal(bump(second, 2, "invoices"))).toBe("TN002");
});

test("a beat says held, resign, superseded or unlocked", async () => {
  const url = await freshDatabase(server);
  const [leader, operator] = [await client(url), await client(url)];
  await bump(leader, 5, "beats");
  const beat = (epoch: number): Promise<unknown> => one(leader, "select tenure_beat(5, $1)", [epoch]);
  expect(await beat(1)).toBe("held");
  expect(await beat(2)).toBe("superseded");
  expect((await operator.query("select * from tenure_ask_resign('beats', false)")).rows).toEqual([
    { epoch: "1", holder_identity: "me", terminated: 0 },
  ]);
  expect(await beat(1)).toBe("resign");
  await bumpAgain(leader, 5, "beats");
  expect(await beat(1)).toBe("superseded");
  expect(await beat(2)).toBe("held");
  await leader.query("select pg_advisory_unlock(5), pg_advisory_unlock(5)");
  expect(await beat(2)).toBe("unlocked");
});

test("trap 40: a resignation frees a lock that was taken three times", async () => {
  const url = await freshDatabase(server);
  const [leader, next] = [await client(url), await client(url)];
  await bump(leader, 5, "stacked");
  await leader.query("select pg_advisory_lock(5), pg_advisory_lock(5)");
  expect(await one(leader, "select tenure_resign(5, 1, 'resigned')")).toBe(true);
  expect(await one(next, "select pg_try_advisory_lock(5)")).toBe(true);
  expect(await one(leader, "select tenure_resign(5, 1, 'resigned')")).toBe(false);
});

test("a resignation with an epoch that is over frees the lock and changes no row", async () => {
  const url = await freshDatabase(server);
  const [leader, next] = [await client(url), await client(url)];
  await bump(leader, 5, "late");
  await bumpAgain(leader, 5, "late");
  expect(await one(leader, "select tenure_resign(5, 1, 'resigned')")).toBe(false);
  expect(await one(next, "select holder_identity from tenure_leader_state")).toBe("me");
  expect(await one(next, "select pg_try_advisory_lock(5)")).toBe(true);
});

test("the lock is free before the resignation commits, and the next bump waits for that", async () => {
  const url = await freshDatabase(server);
  const [leader, next, watcher] = [await client(url), await client(url), await client(url)];
  await bump(leader, 5, "handed over", "old");
  await leader.query("begin");
  await leader.query("select tenure_resign(5, 1, 'resigned')");
  const bumped = bump(next, 5, "handed over", "new");
  const waits =
    "select count(*)::int from pg_stat_activity where wait_event_type = 'Lock' and query like '%tenure_bump%'";
  await waitFor("the bump to wait for the row", async () => (await one(watcher, waits)) === 1);
  await leader.query("commit");
  expect(await bumped).toBe(2);
  const reasons = "select string_agg(reason, ' ' order by id) from tenure_transition";
  expect(await one(next, reasons)).toBe("acquired resigned acquired");
});

test("the history has who led, how it ended and for how long, and only the last 100", async () => {
  const url = await freshDatabase(server);
  const [leader, operator] = [await client(url), await client(url)];
  await bump(leader, 5, "history", "a");
  await leader.query("select tenure_beat(5, 1)");
  await bumpAgain(leader, 5, "history", "b");
  await operator.query("select tenure_ask_resign('history', false)");
  await leader.query("select tenure_resign(5, 2, 'resigned')");
  await bump(leader, 5, "history", "c");
  await leader.query("select tenure_resign(5, 3, 'resigned')");
  const { rows } = await operator.query(
    "select epoch::int, holder_identity as who, reason, held_ms is not null as held from tenure_transition order by id",
  );
  expect(rows).toEqual([
    { epoch: 1, who: "a", reason: "acquired", held: false },
    { epoch: 1, who: "a", reason: "lost", held: true },
    { epoch: 2, who: "b", reason: "acquired", held: false },
    { epoch: 2, who: "b", reason: "asked", held: true },
    { epoch: 3, who: "c", reason: "acquired", held: false },
    { epoch: 3, who: "c", reason: "resigned", held: true },
  ]);
  const held = `select h.held_ms - round(extract(epoch from h.at - a.at) * 1000)::int from tenure_transition h
    join tenure_transition a on a.epoch = h.epoch and a.reason = 'acquired' where h.reason = 'lost'`;
  expect(await one(operator, held)).toBe("0");
  await bump(leader, 6, "another");
  await leader.query("select pg_advisory_lock(5)");
  for (let i = 0; i < 60; i++) await bumpAgain(leader, 5, "history", "d");
  const kept = "select count(*)::int, min(epoch)::int, max(epoch)::int from tenure_transition where scope_key = 5";
  expect((await operator.query(kept)).rows).toEqual([{ count: 100, min: 13, max: 63 }]);
  expect(await one(operator, "select count(*)::int from tenure_transition where scope_key = 6")).toBe(1);
});

test("trap 46: one NOTIFY for each transition, on the channel of the bump, and none for heartbeats", async () => {
  const url = await freshDatabase(server);
  const [leader, observer] = [await client(url), await client(url)];
  const heard: string[] = [];
  observer.on("notification", ({ channel, payload }) => void heard.push(`${channel} ${payload}`));
  await observer.query('listen tenure_leader_change; listen "Mine"; listen done');
  await bump(leader, -5, "told");
  for (let i = 0; i < 5; i++) await leader.query("select tenure_beat(-5, 1)");
  await leader.query("select tenure_ask_resign('told', false)");
  await leader.query("select tenure_bump(-5, 'told', 'me', '{}', 'Mine', null)");
  await leader.query("select tenure_resign(-5, 2, 'resigned')");
  await leader.query("notify done");
  await waitFor("the last notification", () => heard.includes("done "));
  expect(heard).toEqual(["tenure_leader_change -5:1", "Mine -5:2", "Mine -5:2", "done "]);
});

test("the bump gives the session its idle timeout, and leaves its other settings as they were", async () => {
  const leader = await client(await freshDatabase(server));
  await leader.query("set lock_timeout = '1s'; set statement_timeout = '2s'; set idle_session_timeout = '2s'");
  await leader.query("select pg_advisory_lock(5)");
  await leader.query("select tenure_bump(5, 'settings', 'me', '{}', 'c', 6000)");
  await leader.query("select tenure_beat(5, 1)");
  const shown = `select concat_ws(' ', current_setting('idle_session_timeout'), current_setting('lock_timeout'),
    current_setting('statement_timeout'), current_setting('synchronous_commit'), current_setting('search_path'))`;
  expect(await one(leader, shown)).toBe('6s 1s 2s on "$user", public');
});

test("force ends the session that holds the lock, and nobody else's", async () => {
  const url = await freshDatabase(server);
  const [leader, operator, waiter] = [await client(url), await client(url), await client(url)];
  await bump(leader, 5, "forced");
  const waiting = bump(waiter, 5, "forced", "next");
  expect((await operator.query("select terminated from tenure_ask_resign('forced', true)")).rows).toEqual([
    { terminated: 1 },
  ]);
  expect(await waiting).toBe(2);
  expect(await refusal(leader.query("select 1"))).not.toBe("");
  expect((await operator.query("select * from tenure_ask_resign('nobody', true)")).rows).toEqual([]);
});

test("an empty identity, a NULL scope and an unknown reason are refused", async () => {
  const leader = await client(await freshDatabase(server));
  await leader.query("select pg_advisory_lock(5)");
  for (const text of [
    "select tenure_bump(5, 's', '', '{}', 'c', null)",
    "select tenure_bump(5, null, 'me', '{}', 'c', null)",
    "select tenure_bump(5, 's', 'me', '{}', '', null)",
    "select tenure_resign(5, 1, 'bored')",
    "select tenure_resign(5, 1, null)",
  ]) {
    expect(await refusal(leader.query(text)), text).toBe("TN006");
  }
  expect(await refusal(leader.query("select tenure_bump(null, 's', 'me', '{}', 'c', null)"))).toBe("TN003");
});

test("a prepared transaction holds the fence, and the bump says so instead of waiting for ever", async () => {
  const url = await freshDatabase(server);
  const [leader, writer] = [await client(url), await client(url)];
  await bump(leader, 5, "prepared");
  await writer.query("begin; call tenure_fence(5, 1); create table two_phase (n int); prepare transaction 'p'");
  await leader.query("set statement_timeout = '400ms'");
  await expect(bumpAgain(leader, 5, "prepared")).rejects.toMatchObject({
    code: "TN004",
    message: expect.stringContaining("it is prepared"),
  });
  await writer.query("rollback prepared 'p'");
  expect(await bumpAgain(leader, 5, "prepared")).toBe(2);
});

test("trap 38: a promoted standby gives out epochs above any that its lost primary gave out", async () => {
  // A server of its own: a copy of the shared one would copy every test's database.
  const primary = await startPostgres();
  const ends: PostgresServer[] = [primary];
  try {
    const url = await freshDatabase(primary);
    const database = new URL(url).pathname.slice(1);
    const leader = await client(url);
    expect(await bump(leader, 5, "failover")).toBe(1);
    const standby = await primary.standby();
    ends.unshift(standby);
    await standby.caughtUp(primary);
    const reader = await client(standby.url(database));
    // Trap 37: the standby grants the same key.
    expect(await one(reader, "select pg_try_advisory_lock(5)")).toBe(true);
    expect(await one(reader, "select tenure_beat(5, 1)")).toBe("read-only");
    expect(await refusal(bumpAgain(reader, 5, "failover"))).toBe("25006");
    expect(await refusal(reader.query("select tenure_require_epoch('failover', 1)"))).toBe("25006");
    expect(await refusal(reader.query("call tenure_fence(5, 1)"))).toBe("25006");

    await standby.query("alter system set primary_conninfo = ''");
    await standby.query("select pg_reload_conf()");
    const receivers = "select count(*)::int as n from pg_stat_wal_receiver";
    await waitFor("the copying to end", async () => (await standby.query<{ n: number }>(receivers))[0]?.n === 0);
    for (const epoch of [2, 3, 4]) expect(await bumpAgain(leader, 5, "failover")).toBe(epoch);
    await standby.promote();
    expect(await one(reader, "select epoch from tenure_leader_state")).toBe("1");
    expect(await bump(reader, 5, "failover")).toBe(2 ** 32 + 1);
    expect(await bumpAgain(reader, 5, "failover")).toBe(2 ** 32 + 2);
  } finally {
    for (const one of ends) await one.end();
  }
});

test("trap 38: another timeline than the last leader's begins a new block, for pg_upgrade sets it back to 1", async () => {
  const url = await freshDatabase(server);
  const leader = await client(url);
  expect(await bump(leader, 6, "upgraded")).toBe(1);
  await leader.query("update tenure_leader_state set epoch = 6 * 4294967296 + 5, timeline = '00000007'");
  expect(await bumpAgain(leader, 6, "upgraded")).toBe(7 * 2 ** 32 + 1);
  expect(await bumpAgain(leader, 6, "upgraded")).toBe(7 * 2 ** 32 + 2);
});

test("an epoch survives a crash of a server whose commits are asynchronous", async () => {
  // The server's own writer comes too late for what a commit did not write itself.
  const settings = { synchronous_commit: "off", wal_writer_delay: "10s", wal_writer_flush_after: "1GB" };
  const careless = await startPostgres({ settings });
  try {
    const url = await freshDatabase(careless);
    const leader = await client(url);
    expect(await bump(leader, 5, "crash")).toBe(1);
    await careless.kill();
    await careless.start();
    const next = await client(url);
    expect(await bump(next, 5, "crash")).toBe(2);
  } finally {
    await careless.end();
  }
});
