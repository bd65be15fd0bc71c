// `tenure scope` as a process, on a real Postgres and a real etcd.

import { readFileSync } from "node:fs";
import { beforeAll, describe, expect, it } from "vitest";
import { etcd } from "../../src/entry/etcd.ts";
import { createElector } from "../../src/entry/index.ts";
import { postgres } from "../../src/entry/postgres.ts";
import type { Term } from "../../src/ports/elector.ts";
import { etcdPath, type EtcdServer, type PostgresServer, startEtcd, startPostgres, waitFor } from "../servers/index.ts";
import { atTheEnd, connect, installed, run, silentLeader, start, tenure, tenureJson } from "./test-tenure.ts";

interface Row {
  readonly scope: string;
  readonly state: string;
  readonly epoch: number;
  readonly identity: string | null;
  readonly since: string | null;
  readonly heartbeat_age_ms: number | null;
}

interface Shown extends Row {
  readonly metadata: Readonly<Record<string, string>>;
  readonly lock_key: string | null;
  readonly asked_to_resign: boolean | null;
  readonly sessions: readonly { pid: number; application_name: string }[] | null;
  readonly waiters: readonly { pid: number; application_name: string }[] | null;
}

interface Resigned {
  readonly outcome: string;
  readonly epoch: number | null;
  readonly leader: { readonly epoch: number; readonly identity: string } | null;
}

let server: PostgresServer;
beforeAll(async () => {
  server = await startPostgres();
  atTheEnd(() => server.end());
});

function leadPostgres(url: string, scope: string, identity: string) {
  const elector = createElector({ scope, backend: postgres(url), identity, metadata: { zone: "b" } });
  atTheEnd(() => elector.close());
  return elector;
}

/** Lets go when it is asked to wind up, as `lead` does. */
function obedient<T extends Term>(term: T): T {
  term.signal.addEventListener("abort", () => void term.resign(), { once: true });
  return term;
}

describe.concurrent("on Postgres", () => {
  it("lists nothing where nobody has led, and says what is missing where nothing is installed", async () => {
    const url = await installed(server);
    expect(await tenureJson("scope", "list", "--backend", url)).toEqual({ code: 0, scopes: [] });
    const empty = await server.createDatabase("cli_empty");
    const said = await tenure("scope", "list", "--backend", empty);
    expect(said).toMatchObject({ code: 78, stdout: "" });
    expect(said.stderr).toContain("tenure schema apply");
  });

  it("tells held, free and stale apart", async () => {
    const url = await installed(server);
    const held = leadPostgres(url, "held", "one");
    await held.acquire();
    const free = leadPostgres(url, "free", "two");
    await (await free.acquire()).resign();
    await silentLeader(url, "late", "77");
    await run(url, "update tenure_heartbeat set last_heartbeat = now() - interval '1 hour' where scope_key = 77");
    const gone = await silentLeader(url, "gone", "78");
    await gone.end();
    const { scopes } = await tenureJson<{ scopes: Row[] }>("scope", "list", "--backend", url);
    expect(scopes.map(({ scope, state, identity }) => [scope, state, identity])).toEqual([
      ["free", "free", null],
      ["gone", "stale", "gone-silent"],
      ["held", "held", "one"],
      ["late", "stale", "late-silent"],
    ]);
    const [, , one, late] = scopes;
    expect(one?.heartbeat_age_ms).toBeLessThan(5_000);
    expect(Math.abs(Date.parse(one?.since ?? "") - Date.now())).toBeLessThan(60_000);
    expect(late?.heartbeat_age_ms).toBeGreaterThan(3_500_000);
    const { stdout } = await tenure("scope", "list", "--backend", url);
    expect(stdout).toMatch(/^SCOPE +STATE +EPOCH +SINCE +HEARTBEAT +LEADER\n/);
    expect(stdout).toMatch(/^late +stale +1 +\S+ +1h00m +late-silent$/m);
    expect((await tenure("scope", "show", "gone", "--backend", url)).stdout).toContain("its session is gone");
  });

  it("shows the lock, its session and who waits for it", async () => {
    const url = await installed(server);
    const leader = await silentLeader(url, "jobs", "4711");
    const waiter = await connect(url, "tenure jobs");
    const waiting = waiter.query("select pg_advisory_lock(4711)").catch(() => undefined);
    await waitFor("the second one to wait", async () => {
      const rows = await server.query(
        "select from pg_locks where locktype = 'advisory' and not granted and objid = 4711",
      );
      return rows.length === 1;
    });
    // A busy machine may take longer than a heartbeat is fresh.
    await run(url, "update tenure_heartbeat set last_heartbeat = now() + interval '1 minute' where scope_key = 4711");
    const shown = await tenureJson<Shown>("scope", "show", "jobs", "--backend", url);
    expect(shown).toMatchObject({ code: 0, state: "held", lock_key: "4711", metadata: { zone: "a" } });
    const pid = async (client: typeof leader): Promise<number> =>
      (await client.query<{ pid: number }>("select pg_backend_pid() as pid")).rows[0]!.pid;
    expect(shown.sessions?.map((one) => one.pid)).toEqual([await pid(leader)]);
    expect(shown.waiters).toHaveLength(1);
    expect(shown.waiters?.[0]?.application_name).toBe("tenure jobs");
    const { stdout } = await tenure("scope", "show", "jobs", "--backend", url);
    expect(stdout).toMatch(/^waits +pid \d+ "tenure jobs" as postgres from 127\.0\.0\.1$/m);
    await leader.end();
    await waiting;
  });

  it("names what exists when a scope does not, with exit code 66", async () => {
    const url = await installed(server);
    await silentLeader(url, "reports", "1");
    const said = await tenure("scope", "show", "report", "--backend", url);
    expect(said).toMatchObject({ code: 66, stdout: "" });
    expect(said.stderr).toBe(
      'tenure: nobody has ever led a scope "report" here; did you mean reports? There are: "reports".\n',
    );
    for (const verb of ["watch", "history", "resign"]) {
      expect((await tenure("scope", verb, "nope", "--backend", url)).code).toBe(66);
    }
  });

  it("tells the last transitions, newest first, with why each ended and how long it was held", async () => {
    const url = await installed(server);
    const elector = leadPostgres(url, "jobs", "one");
    await (await elector.acquire()).resign();
    await elector.acquire();
    const { transitions } = await tenureJson<{
      transitions: { epoch: number; reason: string; held_ms: number | null }[];
    }>("scope", "history", "jobs", "--backend", url);
    expect(transitions.map(({ epoch, reason }) => [epoch, reason])).toEqual([
      [2, "acquired"],
      [1, "resigned"],
      [1, "acquired"],
    ]);
    expect(transitions[1]?.held_ms).toBeGreaterThanOrEqual(0);
    expect(transitions[0]?.held_ms).toBeNull();
  });

  it("asks a leader to step down, waits until its epoch is over, and says who leads then", async () => {
    const url = await installed(server);
    const first = obedient(await leadPostgres(url, "jobs", "one").acquire());
    const second = leadPostgres(url, "jobs", "two").acquire();
    const resigned = await tenureJson<Resigned>("scope", "resign", "jobs", "--backend", url);
    expect(resigned).toMatchObject({ code: 0, outcome: "stepped-down", epoch: first.epoch });
    expect(await first.ended).toBe("asked");
    expect((await second).epoch).toBe(first.epoch + 1);
    const { transitions } = await tenureJson<{ transitions: { reason: string }[] }>(
      "scope",
      "history",
      "jobs",
      "--backend",
      url,
    );
    expect(transitions.map((one) => one.reason)).toContain("asked");
  });

  it("says with exit code 75 that a frozen leader does not step down, and takes the scope away with --force", async () => {
    const url = await installed(server);
    await silentLeader(url, "jobs", "5");
    const asked = await tenure("scope", "resign", "jobs", "--wait", "300ms", "--backend", url);
    expect(asked).toMatchObject({ code: 75, stderr: "" });
    expect(asked.stdout).toContain("tenure scope resign --force");
    expect(await tenureJson("scope", "show", "jobs", "--backend", url)).toMatchObject({ asked_to_resign: true });
    const forced = await tenureJson<Resigned>("scope", "resign", "jobs", "--force", "--backend", url);
    expect(forced).toMatchObject({ code: 0, outcome: "stepped-down", epoch: 1, forced: true, leader: null });
    expect(await tenureJson("scope", "show", "jobs", "--backend", url)).toMatchObject({ state: "stale", sessions: [] });
  });

  it("has nothing to do where nobody leads", async () => {
    const url = await installed(server);
    await (await leadPostgres(url, "jobs", "one").acquire()).resign();
    const resigned = await tenureJson("scope", "resign", "jobs", "--backend", url);
    expect(resigned).toMatchObject({ code: 0, outcome: "nobody-leads", epoch: null, leader: null });
  });

  it("watches over a restart of the database, a line for each change, until SIGINT (130)", async () => {
    const own = await startPostgres();
    atTheEnd(() => own.end());
    const url = await installed(own);
    const elector = leadPostgres(url, "jobs", "one");
    const led: number[] = [];
    const stop = new AbortController();
    const leading = elector
      .lead(
        async ({ epoch, signal }) => {
          led.push(epoch);
          await new Promise((resolve) => signal.addEventListener("abort", resolve, { once: true }));
        },
        { signal: stop.signal },
      )
      .catch(() => undefined);
    await waitFor("the first term", () => led.length === 1);
    const watch = start(["scope", "watch", "jobs", "--backend", url, "-o", "json"]);
    const lines = () =>
      watch.said.stdout
        .split("\n")
        .filter((line) => line !== "")
        .map((line) => JSON.parse(line) as Row);
    await waitFor("the first line", () => lines().length === 1);
    await own.restart();
    await waitFor("the leader after the restart", () => lines().some((line) => (line.epoch ?? 0) > 1), 30_000);
    watch.child.kill("SIGINT");
    const { code } = await watch.ended;
    expect(code).toBe(130);
    expect(lines()[0]).toMatchObject({ scope: "jobs", state: "held", epoch: 1, identity: "one" });
    expect(lines().at(-1)).toMatchObject({ state: "held", identity: "one", epoch: led.at(-1) });
    stop.abort();
    await leading;
  });

  it("needs no more than SELECT on the tables and EXECUTE on tenure_ask_resign", async () => {
    const url = await installed(server);
    await run(
      url,
      "create role cli_operator login password 'operator'",
      "grant select on tenure_leader_state, tenure_heartbeat, tenure_transition to cli_operator",
      "grant execute on function tenure_ask_resign(text, boolean) to cli_operator",
    );
    const leader = await silentLeader(url, "jobs", "6");
    const operator = server.url(new URL(url).pathname.slice(1), "cli_operator", "operator");
    expect((await tenure("scope", "list", "--backend", operator)).code).toBe(0);
    expect(await tenureJson("scope", "show", "jobs", "--backend", operator)).toMatchObject({ code: 0, lock_key: "6" });
    expect((await tenure("scope", "history", "jobs", "--backend", operator)).code).toBe(0);
    expect(await tenureJson("scope", "resign", "jobs", "--force", "--backend", operator)).toMatchObject({ code: 0 });
    await expect(leader.query("select 1")).rejects.toThrow();
    const watch = start(["scope", "watch", "jobs", "--backend", operator]);
    await waitFor("a line", () => watch.said.stdout.includes("nobody leads"));
    watch.child.kill("SIGTERM");
    expect((await watch.ended).code).toBe(143);
  });

  it("can't take a scope away where the owner of the functions may not end sessions, and says how to let it", async () => {
    const url = await installed(server);
    const database = new URL(url).pathname.slice(1);
    await run(
      url,
      "create role cli_owner",
      "create role cli_other login password 'pw'",
      "grant execute on all functions in schema public to cli_other",
      "alter function tenure_ask_resign(text, boolean) owner to cli_owner",
      "grant all on all tables in schema public to cli_owner",
      "grant execute on all functions in schema public to cli_owner",
    );
    const leader = await connect(server.url(database, "cli_other", "pw"), "tenure jobs");
    await leader.query("select pg_advisory_lock(8)");
    await leader.query("select tenure_bump(8, 'jobs', 'one', '{}', 'tenure_leader_change', null)");
    const refused = await tenure("scope", "resign", "jobs", "--force", "--backend", url);
    expect(refused).toMatchObject({ code: 77, stdout: "" });
    expect(refused.stderr).toContain("the owner of this function may not end process");
    await run(url, "grant pg_signal_backend to cli_owner");
    expect((await tenure("scope", "resign", "jobs", "--force", "--backend", url)).code).toBe(0);
  });

  it("runbook: epochs can be raised by hand after a restore, and the next leader goes on above them", async () => {
    const url = await installed(server);
    await (await leadPostgres(url, "S", "one").acquire()).resign();
    const runbook = readFileSync("docs/runbooks/database-failover.md", "utf8");
    const [statement = ""] = /^update tenure_leader_state .*;$/m.exec(runbook) ?? [];
    await run(url, statement);
    expect((await leadPostgres(url, "S", "two").acquire()).epoch).toBe(1_000_001);
    await run(url, statement);
    expect(await tenureJson("scope", "show", "S", "--backend", url)).toMatchObject({ epoch: 1_000_001 });
  });

  it("prints no control characters that a leader put into its name", async () => {
    const url = await installed(server);
    await silentLeader(url, "jobs", "7", "evil\u001b[2J\nheld  99");
    const { stdout } = await tenure("scope", "list", "--backend", url);
    expect(stdout).not.toContain("\u001b");
    expect(stdout.trim().split("\n")).toHaveLength(2);
  });

  it("tells what is wrong with a URL without its password", async () => {
    const url = server.url("postgres", "nobody", "s3cret-word");
    const said = await tenure("scope", "list", "--backend", url);
    expect(said).toMatchObject({ code: 77, stdout: "" });
    expect(said.stderr).toContain("Check the user and the password");
    expect(said.stderr).not.toContain("s3cret-word");
    expect(said.stderr).not.toContain("nobody acts");
  });
});

it("refuses wrong use in one line with exit code 64", async () => {
  const said = await tenure("scope", "shwo", "a", "--backend", "postgres://127.0.0.1:1/x");
  expect(said).toMatchObject({ code: 64, stdout: "" });
  expect(said.stderr).toBe('tenure scope: there is no "shwo"; did you mean show? (tenure scope --help)\n');
});

describe.skipIf(etcdPath() === undefined)("on etcd", () => {
  let node: EtcdServer;
  beforeAll(async () => {
    node = await startEtcd();
    atTheEnd(() => node.end());
  });

  it("lists, shows, tells the history, and asks a leader to step down", async () => {
    const url = node.endpoint.replace("http://", "etcd://");
    expect(await tenureJson("scope", "list", "--backend", url)).toEqual({ code: 0, scopes: [] });
    const elector = createElector({
      scope: "jobs",
      backend: etcd(node.endpoint),
      identity: "one",
      metadata: { zone: "b" },
    });
    atTheEnd(() => elector.close());
    const term = obedient(await elector.acquire());
    const { scopes } = await tenureJson<{ scopes: Row[] }>("scope", "list", "--backend", url);
    expect(scopes).toMatchObject([{ scope: "jobs", state: "held", epoch: term.epoch, identity: "one" }]);
    expect(await tenureJson<Shown>("scope", "show", "jobs", "--backend", url)).toMatchObject({
      metadata: { zone: "b" },
      lock_key: null,
      sessions: null,
    });
    const resigned = await tenureJson<Resigned>("scope", "resign", "jobs", "--backend", url);
    expect(resigned).toMatchObject({ code: 0, outcome: "stepped-down", epoch: term.epoch });
    expect(await term.ended).toBe("asked");
    const { transitions } = await tenureJson<{ transitions: { reason: string }[] }>(
      "scope",
      "history",
      "jobs",
      "--backend",
      url,
    );
    expect(transitions.map((one) => one.reason)).toEqual(["asked", "acquired"]);
  });

  it("says that a silent leader does not step down, and takes the scope away with --force", async () => {
    const url = node.endpoint.replace("http://", "etcd://");
    const post = async (path: string, body: object): Promise<Record<string, string>> => {
      const response = await fetch(`${node.endpoint}/v3/${path}`, { method: "POST", body: JSON.stringify(body) });
      return (await response.json()) as Record<string, string>;
    };
    const { ID } = await post("lease/grant", { TTL: 60 });
    await post("kv/put", { key: btoa("tenure/mute/leader"), value: btoa('{"identity":"mute-one"}'), lease: ID });
    const asked = await tenure("scope", "resign", "mute", "--wait", "300ms", "--backend", url);
    expect(asked.code).toBe(75);
    const forced = await tenureJson("scope", "resign", "mute", "--force", "--backend", url);
    expect(forced).toMatchObject({ code: 0, outcome: "stepped-down", leader: null });
    expect(await tenureJson("scope", "show", "mute", "--backend", url)).toMatchObject({ state: "free" });
  });
});
