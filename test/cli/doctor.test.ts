// `tenure doctor` on real servers that are made ill: each row is produced for real, and where SQL repairs it, that SQL is
// run as it was printed and the row turns ok. Several illnesses share one examination where they do not hide each other.

import { beforeAll, describe, expect, it } from "vitest";
import { lockKeyOf } from "../../src/postgres/lock-key.ts";
import { createHash } from "node:crypto";
import {
  freePort,
  pgBouncerPath,
  type PostgresServer,
  startPgBouncer,
  startPostgres,
  startProxy,
  waitFor,
} from "../servers/index.ts";
import { doctor } from "./test-report.ts";
import { atTheEnd, connect, installed, run, silentLeader, start, tenure } from "./test-tenure.ts";

let server: PostgresServer;
beforeAll(async () => {
  server = await startPostgres({ settings: { max_prepared_transactions: "5" } });
  atTheEnd(() => server.end());
});

const databaseOf = (url: string): string => new URL(url).pathname.slice(1);
const keyOf = (scope: string): string =>
  lockKeyOf(scope, (bytes) => createHash("sha256").update(bytes).digest()).toString();

let roles = 0;

/** A role that may do all that an elector does, and the URL with which it logs in. */
async function elector(url: string): Promise<{ role: string; url: string }> {
  const role = `elector_${++roles}`;
  await run(
    url,
    `create role ${role} login password 'pw'`,
    `grant select on all tables in schema public to ${role}`,
    `grant execute on all functions in schema public to ${role}`,
  );
  return { role, url: server.url(databaseOf(url), role, "pw") };
}

describe.concurrent("a healthy server", () => {
  it("has no complaint, also for a role with an elector's rights and no more", async () => {
    const url = await installed(server);
    const { url: own } = await elector(url);
    expect((await doctor(own)).complaints).toEqual([]);
    const { stdout, code } = await tenure("doctor", "--backend", own, "--strict");
    expect([code, stdout.trimEnd().split("\n").at(-1)]).toEqual([0, "All is well."]);
    expect(stdout).not.toContain("pw@");
  });
});

describe.concurrent("a connection", () => {
  it("that fails says where: DNS, TCP, TLS, login, database, too many, silence", async () => {
    const silent = await startProxy({ host: "127.0.0.1", port: server.port });
    atTheEnd(() => silent.end());
    silent.cut();
    await run(server.url(), "create role full_up login password 'pw' connection limit 0");
    const urls = {
      dns: "postgres://u:s3cret-word@no-such-host.invalid/x",
      tcp: `postgres://u:s3cret-word@127.0.0.1:${await freePort()}/x`,
      tls: `${server.url()}?sslmode=verify-full`,
      login: server.url("postgres", "postgres_not", "s3cret-word"),
      database: server.url("no_such_database"),
      full: server.url("postgres", "full_up", "pw"),
      silent: `postgres://postgres@127.0.0.1:${silent.port}/postgres`,
    };
    const reports = await Promise.all(Object.values(urls).map((url) => doctor(url)));
    const seen = reports.map((report) => /^failed at (\w+):/.exec(report.row("connection").seen)?.[1]);
    expect(seen).toEqual(Object.keys(urls));
    for (const report of reports) {
      expect(report.complaints).toEqual(["connection: problem"]);
      expect(report.text).not.toContain("s3cret-word");
    }
  });
});

describe.concurrent("settings that a role or a database brings along", () => {
  it("are told, with the SQL that undoes each where it was made", async () => {
    const url = await installed(server);
    const { role, url: own } = await elector(url);
    const database = databaseOf(url);
    await run(
      url,
      `alter role ${role} set default_transaction_read_only = on`,
      `alter role ${role} set statement_timeout = '900ms'`,
      `alter database ${database} set transaction_timeout = '1s'`,
      `alter role ${role} in database ${database} set synchronous_commit = off`,
      `alter database ${database} set default_transaction_isolation = 'serializable'`,
      `alter role ${role} connection limit 3`,
    );
    const report = await doctor(own);
    expect(report.complaints).toEqual([
      "writable: problem",
      "isolation: warning",
      "preset timeouts: problem",
      "transaction timeout: problem",
      "synchronous commit: warning",
      "connections: problem",
    ]);
    await report.mend(url);
    expect((await doctor(own)).complaints).toEqual([]);
  });

  it("of the whole server are told too, and undone with a reload", async () => {
    const own = await startPostgres();
    atTheEnd(() => own.end());
    const url = await installed(own);
    await run(
      url,
      "alter system set fsync = off",
      "alter system set full_page_writes = off",
      "alter role all set synchronous_commit = off",
      "select pg_reload_conf()",
    );
    const report = await doctor(url);
    expect(report.complaints).toEqual(["durability: warning", "synchronous commit: warning"]);
    expect((await tenure("doctor", "--backend", url)).code).toBe(0);
    expect((await tenure("doctor", "--backend", url, "--strict")).code).toBe(1);
    await report.mend(url);
    expect((await doctor(url)).complaints).toEqual([]);
  });
});

describe.concurrent("the schema", () => {
  it("in another database is found there", async () => {
    await installed(server);
    const wrong = await server.createDatabase("wrong_one");
    const report = await doctor(wrong);
    expect(report.complaints).toEqual(["schema: problem"]);
    expect(report.row("schema").means).toMatch(
      /wrong place: Tenure's tables are in .*database "cli_\d+", schema "public"/,
    );
  });

  it("in another schema of the same database is found there", async () => {
    const url = await installed(server);
    const report = await doctor(`${url}?tenure_pg_schema=other`);
    expect(report.row("schema").means).toContain(`database "${databaseOf(url)}", schema "public"`);
  });

  it("that lost a function is told, and mended by the command that is advised", async () => {
    const url = await installed(server);
    await run(url, "drop function tenure_beat(bigint, bigint)");
    const report = await doctor(url);
    expect(report.complaints).toEqual(["schema: problem"]);
    expect(report.row("schema").seen).toContain("no function tenure_beat(bigint, bigint)");
    expect(report.row("schema").advice).toContain('"tenure schema apply"');
    expect((await tenure("schema", "apply", "--backend", url)).code).toBe(0);
    expect((await doctor(url)).complaints).toEqual([]);
  });

  it("of a newer version that does not work with this one is told", async () => {
    const url = await installed(server);
    await run(url, "insert into tenure_schema_version (version, works_from) values (99, 99)");
    expect((await doctor(url)).row("schema")).toMatchObject({ level: "problem", advice: "Upgrade this one." });
  });

  it("that a role may not use is mended by the grants as printed", async () => {
    const url = await installed(server);
    await run(url, 'create role "no ""rights" login password \'pw\'', "revoke usage on schema public from public");
    const own = server.url(databaseOf(url), 'no "rights', "pw");
    const report = await doctor(own);
    expect(report.row("rights").level).toBe("problem");
    expect(report.row("rights").seen).toContain("schema");
    await report.mend(url);
    expect((await doctor(own)).complaints).toEqual([]);
    const { stdout } = await start(["run", "--scope", "proof", "--backend", own, "--", "echo", "led"]).ended;
    expect(stdout).toBe("led\n");
  });

  it("trap 43: without its guards, or unlogged, is mended by the SQL as printed", async () => {
    const url = await installed(server);
    await run(
      url,
      "alter table tenure_leader_state disable trigger tenure_guard_row",
      "alter table tenure_leader_state disable trigger tenure_notify",
      "alter table tenure_transition set unlogged",
      "alter table tenure_heartbeat set unlogged",
      "alter table tenure_leader_state set unlogged",
    );
    const report = await doctor(url);
    expect(report.complaints).toEqual(["triggers: problem", "durable tables: problem"]);
    await report.mend(url);
    expect((await doctor(url)).complaints).toEqual([]);
  });

  it("of a server's log without its guards, or with a role that lacks grants, is mended by the SQL as printed", async () => {
    const url = await installed(server);
    await run(
      url,
      "select tenure_site('jobs')",
      "create role keeper login password 'pw'",
      "grant select on all tables in schema public to keeper",
      "alter table tenure_log disable trigger tenure_log_guard_record",
      "alter table tenure_log_head disable trigger tenure_log_guard_row",
    );
    const own = server.url(databaseOf(url), "keeper", "pw");
    const report = await doctor(own);
    expect(report.complaints).toEqual(expect.arrayContaining(["log rights: problem", "log triggers: problem"]));
    await report.mend(url);
    const mended = await doctor(own);
    expect([mended.row("log rights").level, mended.row("log triggers").level]).toEqual(["ok", "ok"]);
  });

  it("of a log that lost its last record, or whose inbox nobody empties, is told", async () => {
    const url = await installed(server);
    await run(
      url,
      "select tenure_log_open('jobs', 1)",
      "select tenure_log_append('jobs', 1, 1, 0, 'ab', '{1,1}', null)",
      "alter table tenure_log disable trigger user",
      "delete from tenure_log where position = 2",
      "alter table tenure_log enable trigger user",
      "select tenure_submit('k', '1')",
      "update tenure_inbox set submitted_at = now() - interval '1 minute'",
    );
    const report = await doctor(url);
    expect(report.complaints).toEqual(["log: problem", "inbox: warning"]);
  });

  it("to which was submitted under another log's name is told, and mended by the SQL as printed", async () => {
    const url = await installed(server);
    await run(
      url,
      "select tenure_site('jobs')",
      "select tenure_submit('k', '1', '{}', 'builds') from generate_series(1, 2)",
    );
    const report = await doctor(url);
    expect(report.complaints).toEqual(["lost submissions: problem"]);
    expect(report.row("lost submissions").seen).toBe("2 submissions to 'builds', which no server keeps");
    await report.mend(url);
    const mended = await doctor(url);
    expect([mended.complaints, mended.row("inbox").seen]).toEqual([[], expect.stringContaining("2 submissions wait")]);
  });

  it("whose owner may not end the sessions of other roles is a warning, and mended", async () => {
    const url = await server.createDatabase("owned");
    await run(
      url,
      "create role owner_1 login password 'pw'",
      "create role user_1 login password 'pw'",
      "grant create on schema public to owner_1",
    );
    expect((await tenure("schema", "apply", "--backend", server.url("owned", "owner_1", "pw"))).code).toBe(0);
    await run(
      url,
      "grant select on all tables in schema public to user_1",
      "grant execute on all functions in schema public to user_1",
    );
    const own = server.url("owned", "user_1", "pw");
    const report = await doctor(own);
    expect(report.complaints).toEqual(["ending sessions: warning"]);
    await report.mend(url);
    expect((await doctor(own)).complaints).toEqual([]);
  });
});

describe.concurrent("scopes", () => {
  it("whose key is taken by another scope, or was set by hand, are a clash", async () => {
    const url = await installed(server);
    await silentLeader(url, "mail", "42");
    const clash = await doctor(`${url}?tenure_leader_lock_key=42`, "jobs");
    expect(clash.row("lock keys")).toMatchObject({
      level: "problem",
      seen: 'key 42 of scope "jobs" belongs to scope "mail"',
    });
    const other = await doctor(url, "mail");
    expect(other.row("lock keys").level).toBe("problem");
    const [, key = ""] = /TENURE_LEADER_LOCK_KEY=(-?\d+)/.exec(other.row("lock keys").advice) ?? [];
    const mended = await doctor(`${url}?tenure_leader_lock_key=${key}`, "mail");
    expect(mended.row("lock keys").level).toBe("ok");
  });

  it("whose lock is with a session that is not Tenure's, or whose fence is stuck, are told with who it is", async () => {
    const url = await installed(server);
    const key = keyOf("jobs");
    const leader = await silentLeader(url, "jobs", key);
    await leader.query("select tenure_resign($1, 1, 'resigned')", [key]);
    const stranger = await connect(url, "billing");
    await stranger.query("select pg_advisory_lock($1)", [key]);
    const stuck = await connect(url, "slow report");
    await stuck.query("begin");
    await stuck.query("select pg_advisory_xact_lock_shared(tenure_fence_key($1))", [key]);
    const prepared = await connect(url, "two-phase");
    await prepared.query("begin");
    await prepared.query("select pg_advisory_xact_lock_shared(tenure_fence_key($1))", [key]);
    await prepared.query("prepare transaction 'it''s stuck'");
    await waitFor("the fenced transaction to be old", async () => {
      const text =
        "select from pg_stat_activity where application_name = 'slow report' and xact_start < now() - '6 s'::interval";
      return (await server.query(text)).length === 1;
    });
    const report = await doctor(url, "jobs");
    expect(report.complaints).toEqual(["lock holders: problem", "fences: problem", "leaders: warning"]);
    expect(report.row("lock holders").seen).toContain('"billing" as postgres from 127.0.0.1');
    expect(report.row("fences").seen).toContain('prepared transaction "it\'s stuck"');
    expect(report.row("fences").seen).toContain('"slow report"');
    await report.mend(url);
    const mended = await doctor(url, "jobs");
    expect(mended.complaints).toEqual(["leaders: warning"]);
    expect(mended.row("leaders").seen).toBe('nobody leads "jobs"');
  });

  it("whose leader is gone are told", async () => {
    const url = await installed(server);
    await (await silentLeader(url, "jobs", keyOf("jobs"))).end();
    const report = await doctor(url);
    expect(report.complaints).toEqual(["leaders: warning"]);
    expect(report.row("leaders").seen).toContain("its leader is gone, and nobody has followed");
  });
});

describe.concurrent("what stands between", () => {
  it("trap 37: a standby is refused, and is fine once it is promoted", async () => {
    const primary = await startPostgres();
    atTheEnd(() => primary.end());
    const standby = await primary.standby();
    atTheEnd(() => standby.end());
    const report = await doctor(standby.url());
    expect(report.row("primary")).toMatchObject({
      level: "problem",
      seen: `a standby; it follows 127.0.0.1:${primary.port}`,
    });
    expect((await tenure("doctor", "--backend", standby.url())).code).toBe(1);
    await standby.promote();
    expect((await doctor(standby.url())).row("primary").level).toBe("ok");
  });

  it.skipIf(pgBouncerPath() === undefined)(
    "trap 41: a pooler that shares sessions is a problem; in session mode it is none",
    async () => {
      const url = await installed(server);
      const database = databaseOf(url);
      for (const mode of ["transaction", "statement", "session"] as const) {
        const pooler = await startPgBouncer(server, mode === "session" ? "session" : "transaction", {
          settings: { pool_mode: mode },
        });
        atTheEnd(() => pooler!.end());
        const report = await doctor(pooler!.url(database));
        if (mode === "session") expect(report.complaints).toEqual([]);
        else {
          expect(report.complaints).toEqual(["pooler: problem", "session timeouts: unknown", "notify: unknown"]);
          expect(report.row("pooler").seen).toContain(`one in ${mode} mode`);
          // The pooler's sessions are as they were: the next one who gets them must not find our timeouts there.
          const next = await connect(pooler!.url(database));
          const { rows } = await next.query("select current_setting('idle_session_timeout') as idle");
          expect(rows).toEqual([{ idle: "0" }]);
        }
      }
    },
  );

  it("an old server, a clock that runs at double speed and lost notifications are told", async () => {
    const proxy = await startProxy({ host: "127.0.0.1", port: server.port });
    atTheEnd(() => proxy.end());
    let first: number | undefined;
    proxy.rewrite = (bytes) => {
      const text = bytes.toString("latin1").replace("180004", "130004").replace("tenure_doctor", "tenure_dokter");
      const changed = text.replace(/\d{13}\.\d{3}/, (digits) => {
        const ms = Number(digits);
        first ??= ms;
        return (first + 2 * (ms - first)).toFixed(3);
      });
      return Buffer.from(changed, "latin1");
    };
    const [version] = await server.query<{ number: string }>("select current_setting('server_version_num') as number");
    expect(version?.number, "the version that is rewritten").toBe("180004");
    const report = await doctor(`postgres://postgres@127.0.0.1:${proxy.port}/${databaseOf(await installed(server))}`);
    expect(report.complaints).toEqual(["version: problem", "notify: warning", "clock rate: problem"]);
    expect(report.row("clock rate").seen).toMatch(/^(1\.9|2\.0)/);
  });

  it("a network as slow as a heartbeat has room is a problem", async () => {
    const proxy = await startProxy({ host: "127.0.0.1", port: server.port });
    atTheEnd(() => proxy.end());
    proxy.delay(50);
    const database = databaseOf(await installed(server));
    const url = `postgres://postgres@127.0.0.1:${proxy.port}/${database}`;
    // Trust of 150 ms − 38 ms, and a heartbeat after 30 ms: a round trip of 100 ms does not fit.
    const tight = await doctor(`${url}?tenure_server_timeout_ms=150`);
    // On a busy machine the server ends the doctor's own session, which is idle for 150 ms: what was not seen then is unknown.
    expect(tight.complaints.filter((one) => !one.endsWith(": unknown"))).toEqual(["latency: problem"]);
  });
});

describe.concurrent("wrong use", () => {
  it("is refused in one line", async () => {
    expect(await tenure("doctor")).toMatchObject({ code: 64, stdout: "" });
    expect(await tenure("doctor", "jobs", "--backend", server.url())).toMatchObject({ code: 64, stdout: "" });
    expect(await tenure("doctor", "--scope=", "--backend", server.url())).toMatchObject({ code: 64, stdout: "" });
  });
});
