// The fence in a real Postgres: what the SQL refuses, under every isolation level and in every order of events; and
// `term.tx` and `term.fence` over it.

import { Client, Pool } from "pg";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import { createElector } from "../../src/entry/index.ts";
import { type PooledClient, postgres, type PostgresTerm } from "../../src/entry/postgres.ts";
import type { Term } from "../../src/ports/elector.ts";
import { type PostgresServer, startPostgres, startProxy, waitFor } from "../servers/index.ts";
import { connectTo, FAST } from "./test-seat.ts";
import { bump, bumpAgain, freshDatabase, one, refusal } from "./test-sql.ts";

const KEY = 5;
const SCOPE = "ledger";
const ISOLATIONS = ["read committed", "repeatable read", "serializable"] as const;
const CALLS = {
  function: (epoch: number) => `select public.tenure_require_epoch('${SCOPE}', ${epoch})`,
  procedure: (epoch: number) => `call public.tenure_fence(${KEY}, ${epoch})`,
} as const;

let server: PostgresServer;
let url: string;
const closing: (() => Promise<unknown>)[] = [];

beforeAll(async () => {
  server = await startPostgres();
});

afterEach(async () => {
  for (const close of closing.splice(0).toReversed()) await close().catch(() => undefined);
});

afterAll(async () => {
  await server.end();
});

async function client(to = url): Promise<Client> {
  const connected = await connectTo(to);
  closing.push(() => connected.end());
  return connected;
}

/** A database with a table to write to, and a session that leads scope "ledger" in epoch 1. */
async function ledger(): Promise<Client> {
  url = await freshDatabase(server);
  const leader = await client();
  await leader.query("create table written (what text unique deferrable initially deferred)");
  expect(await bump(leader, KEY, SCOPE)).toBe(1);
  return leader;
}

async function written(): Promise<string[]> {
  const { rows } = await (await client()).query<{ what: string }>("select what from written order by 1");
  return rows.map((row) => row.what);
}

describe("decision 7: what the server does with an old snapshot", () => {
  test.each([
    ["read committed", "", "2"],
    ["repeatable read", "", "1"],
    ["repeatable read", "for key share", "1"],
    ["repeatable read", "for share", "40001"],
    ["serializable", "for key share", "1"],
    ["serializable", "for share", "40001"],
  ])("%s %s: %s", async (isolation, lock, expected) => {
    await ledger();
    const [old, other] = [await client(), await client()];
    await other.query("create table epochs (k int primary key, epoch bigint); insert into epochs values (1, 1)");
    await old.query(`begin isolation level ${isolation}`);
    await old.query("select from epochs");
    await other.query("update epochs set epoch = 2");
    const read = one(old, `select epoch from epochs where k = 1 ${lock}`);
    expect((await refusal(read)) || (await read)).toBe(expected);
  });
});

describe.each(Object.keys(CALLS) as (keyof typeof CALLS)[])("the %s", (form) => {
  const call = CALLS[form];

  test.each(ISOLATIONS)(
    "trap 36: in %s, a snapshot that is older than the bump does not let a stale write through",
    async (isolation) => {
      const leader = await ledger();
      const writer = await client();
      await writer.query(`begin isolation level ${isolation}`);
      await writer.query("insert into written values ('stale')");
      expect(await bumpAgain(leader, KEY, SCOPE)).toBe(2);
      expect(await refusal(writer.query(call(1)))).toBe(isolation === "read committed" ? "TN001" : "40001");
      await writer.query("commit");
      expect(await written()).toEqual([]);
    },
  );

  test.each(ISOLATIONS)("in %s, that holds for an epoch that a plain UPDATE has raised, too", async (isolation) => {
    const leader = await ledger();
    const writer = await client();
    await writer.query(`begin isolation level ${isolation}`);
    await writer.query("insert into written values ('stale')");
    await leader.query("update tenure_leader_state set epoch = 2");
    expect(await refusal(writer.query(call(1)))).toBe(isolation === "read committed" ? "TN001" : "40001");
  });

  test.each(ISOLATIONS)(
    "trap 36: in %s, a check that waits for a bump under way sees its outcome",
    async (isolation) => {
      const leader = await ledger();
      const writer = await client();
      await leader.query("begin");
      await bumpAgain(leader, KEY, SCOPE);
      const checked = refusal(writer.query(`begin isolation level ${isolation}; ${call(1)}`));
      const waits = "select count(*)::int from pg_locks where locktype = 'advisory' and not granted";
      await waitFor("the check to wait", async () => (await one(leader, waits)) === 1);
      await leader.query("commit");
      expect(await checked).toBe(isolation === "read committed" ? "TN001" : "40001");
      await writer.query("rollback");
      expect(await refusal(writer.query(`begin isolation level ${isolation}; ${call(1)}`))).toBe("TN001");
    },
  );

  test.each(ISOLATIONS)("in %s, a bump comes after a fenced transaction under way, or ends it", async (isolation) => {
    const leader = await ledger();
    const [writer, watcher] = [await client(), await client()];
    await writer.query(`begin isolation level ${isolation}; ${call(1)}`);
    await writer.query("insert into written values ('in time')");
    const bumped = bumpAgain(leader, KEY, SCOPE);
    // The row is still the old one for as long as the writer can commit.
    const epoch = "select epoch from tenure_leader_state";
    const seen = await one(watcher, epoch);
    const committed = await refusal(writer.query("commit"));
    expect(await bumped).toBe(2);
    if (seen === "2") expect(committed).not.toBe("");
    expect(await written()).toEqual(committed === "" ? ["in time"] : []);
  });

  test("it refuses an epoch that is over, one that never was, an unknown scope, a resigned term and NULL", async () => {
    const leader = await ledger();
    await bumpAgain(leader, KEY, SCOPE);
    expect(await refusal(leader.query(call(1)))).toBe("TN001");
    expect(await refusal(leader.query(call(3)))).toBe("TN001");
    expect(await refusal(leader.query(call(2)))).toBe("");
    expect(await refusal(leader.query("select tenure_require_epoch('unknown', 1)"))).toBe("TN001");
    expect(await refusal(leader.query("call tenure_fence(6, 1)"))).toBe("TN001");
    expect(await refusal(leader.query(`select tenure_require_epoch('${SCOPE}', null)`))).toBe("TN001");
    expect(await refusal(leader.query("call tenure_fence(null, null)"))).toBe("TN001");
    await expect(leader.query(call(1))).rejects.toThrow(
      'epoch 1 of scope "ledger" is over or never was: epoch 2 is in force',
    );
    await leader.query(`select tenure_resign(${KEY}, 2, 'resigned')`);
    await expect(leader.query(call(2))).rejects.toMatchObject({ code: "TN001", message: /its leader has resigned/ });
  });

  test("trap 49b: it has the server look for a vanished client every 200 ms, unless the user's is shorter", async () => {
    const writer = await ledger();
    const shown = "show client_connection_check_interval";
    for (const [before, during] of [
      ["0", "200ms"],
      ["50ms", "50ms"],
      ["2s", "200ms"],
      ["1d", "200ms"],
    ]) {
      await writer.query(`set client_connection_check_interval = '${before}'`);
      await writer.query(`begin; ${call(1)}`);
      expect(await one(writer, shown)).toBe(during);
      await writer.query("commit");
      expect(await one(writer, shown)).toBe(before);
    }
  });
});

test("the bump ends a fenced transaction that sleeps, in far less time than it sleeps, and spares those that come and go", async () => {
  const leader = await ledger();
  const [sleeper, ...busy] = await Promise.all(Array.from({ length: 9 }, () => client()));
  await sleeper!.query(`begin; ${CALLS.procedure(1)}`);
  const slept = refusal(sleeper!.query("select pg_sleep(60)"));
  const state = { stop: false, rounds: 0, ended: 0 };
  const streams = busy.map(async (writer) => {
    try {
      while (!state.stop) {
        const begun = await refusal(writer.query(`begin; ${CALLS.procedure(1)}`));
        if (begun !== "" && begun !== "TN001") throw new Error(begun);
        await writer.query("rollback");
        state.rounds++;
      }
    } catch {
      state.ended++;
    }
  });
  await waitFor("traffic", () => state.rounds > 50);
  const startedAt = performance.now();
  expect(await bumpAgain(leader, KEY, SCOPE)).toBe(2);
  expect(performance.now() - startedAt).toBeLessThan(1_500);
  expect(await slept).toBe("57P01");
  state.stop = true;
  await Promise.all(streams);
  // One that the machine kept from running for the whole grace may be among the ended; all of them may not.
  expect(state.ended).toBeLessThan(busy.length / 2);
});

test("trap 49b: the transaction of a vanished client ends by itself in the middle of a statement", async () => {
  const watcher = await ledger();
  const writer = new Client({ connectionString: url });
  writer.on("error", () => undefined);
  await writer.connect();
  const pid = await one(writer, "select pg_backend_pid()");
  await writer.query(`begin; ${CALLS.procedure(1)}`);
  const slept = refusal(writer.query("select pg_sleep(60)"));
  const alive = "select count(*)::int from pg_stat_activity where pid = $1 and state = 'active'";
  await waitFor("the statement to run", async () => (await one(watcher, alive, [pid])) === 1);
  (writer as unknown as { connection: { stream: { destroy(): void } } }).connection.stream.destroy();
  await slept;
  await waitFor("the server to notice", async () => (await one(watcher, alive, [pid])) === 0);
});

describe("a term", () => {
  type FencedTerm = Term & PostgresTerm<PooledClient>;

  async function lead(
    scope: string,
    options: Partial<Parameters<typeof postgres>[0] & object> = {},
  ): Promise<FencedTerm> {
    const backend = postgres({ ...FAST, url, ...options });
    const elector = createElector({ scope, backend });
    closing.push(() => elector.close());
    return elector.acquire();
  }

  /** Another epoch, although the leader's session lives: as after a failover that it has not heard of. */
  async function supersede(scope: string): Promise<void> {
    const admin = await client();
    await admin.query("update tenure_leader_state set epoch = epoch + 1 where scope = $1", [scope]);
  }

  test.each(["plain", "it's", 'a "quoted" one', "back\\slash", "dollar $1 $$ $tenure$", "ünïcödé 🦊", "%s %I -- ;"])(
    "writes through tx and fence in scope %j",
    async (scope) => {
      await ledger();
      const term = await lead(scope);
      const result = await term.tx(async (db) => {
        await term.fence((text, values) => db.query(text, values));
        await db.query("insert into written values ($1)", [scope]);
        return 7;
      });
      expect(result).toBe(7);
      expect(await written()).toEqual([scope]);
      await supersede(scope);
      await expect(term.tx((db) => db.query("insert into written values ('stale')"))).rejects.toMatchObject({
        code: "STALE_EPOCH",
      });
      expect(await written()).toEqual([scope]);
    },
  );

  test.each(ISOLATIONS)("tx runs in %s, on a session that is not the leader's", async (isolation) => {
    await ledger();
    const term = await lead("sessions");
    const [level, pid, holder] = await term.tx(
      async (db) => {
        const { rows } = await db.query<{ level: string; pid: number; holder: number }>(`select
          current_setting('transaction_isolation') as level, pg_backend_pid() as pid,
          (select pid from pg_locks where locktype = 'advisory' and mode = 'ExclusiveLock' and pid <> ${await leaderPid()}) as holder`);
        return [rows[0]!.level, rows[0]!.pid, rows[0]!.holder];
      },
      { isolation },
    );
    expect(level).toBe(isolation);
    expect(holder).toBeGreaterThan(0);
    expect(holder).not.toBe(pid);
  });

  /** Of the session that `ledger` left leading its own scope. */
  async function leaderPid(): Promise<number> {
    const pid = await one(await client(), "select l.pid from tenure_lock_holders(5) l");
    return Number(pid);
  }

  test("a stale epoch ends the term as superseded, before `work` is called", async () => {
    await ledger();
    const term = await lead("stale");
    await supersede("stale");
    let called = false;
    const refused = term.tx(() => {
      called = true;
    });
    await expect(refused).rejects.toMatchObject({ code: "STALE_EPOCH", scope: "stale", epoch: term.epoch });
    expect(called).toBe(false);
    expect(term.signal.aborted).toBe(true);
    expect(await term.ended).toBe("superseded");
    await expect(term.tx(() => undefined)).rejects.toMatchObject({ code: "NOT_LEADER" });
    await expect(term.fence(() => Promise.resolve())).rejects.toMatchObject({ code: "NOT_LEADER" });
  });

  test("another scope's refusal in the same transaction is not this term's end", async () => {
    await ledger();
    const term = await lead("mine");
    const nested = term.tx((db) => db.query("select tenure_require_epoch('ledger', 99)"));
    await expect(nested).rejects.toMatchObject({ code: "TN001" });
    expect(term.signal.aborted).toBe(false);
    expect(term.check()).toBe(term.epoch);
  });

  test("an error of `work` rolls back and comes out as it is, and the client is used again", async () => {
    await ledger();
    const pool = new Pool({ connectionString: url, max: 1 });
    closing.push(() => pool.end());
    const term = await lead("rolled back", { connect: () => pool.connect() });
    const mine = new Error("mine");
    const failed = term.tx(async (db) => {
      await db.query("insert into written values ('gone')");
      throw mine;
    });
    await expect(failed).rejects.toBe(mine);
    await term.tx((db) => db.query("insert into written values ('kept')"));
    expect(await written()).toEqual(["kept"]);
    expect(pool.totalCount).toBe(1);
  });

  test("a transaction that failed inside is not told as committed, although `work` caught the error", async () => {
    await ledger();
    const term = await lead("swallowed");
    const swallowing = term.tx(async (db) => {
      await db.query("insert into written values ('gone')");
      await db.query("select 1 / 0").catch(() => undefined);
    });
    await expect(swallowing).rejects.toMatchObject({ code: "TX_MISUSED" });
    expect(await written()).toEqual([]);
  });

  test("what COMMIT itself refuses is told as refused, not as unknown", async () => {
    await ledger();
    const term = await lead("deferred");
    const doubled = term.tx((db) => db.query("insert into written values ('twice'), ('twice')"));
    await expect(doubled).rejects.toMatchObject({ code: "23505" });
    await term.tx((db) => db.query("insert into written values ('once')"));
    expect(await written()).toEqual(["once"]);
  });

  test("trap 66: a connection that breaks while COMMIT is under way leaves the outcome unknown, and the error says so", async () => {
    await ledger();
    const proxy = await startProxy({ host: "127.0.0.1", port: server.port });
    closing.push(() => proxy.end());
    const through = new URL(url);
    through.port = String(proxy.port);
    const pool = new Pool({ connectionString: through.href, max: 1 });
    pool.on("error", () => undefined);
    closing.push(() => pool.end());
    const term = await lead("unknown", { connect: () => pool.connect() });
    const unknown = term.tx(async (db) => {
      await db.query("insert into written values ('maybe')");
      // COMMIT arrives, and its answer does not.
      proxy.cut("to-client");
      void waitFor("the commit to be done", async () => (await written()).length === 1).then(() => proxy.reset());
    });
    await expect(unknown).rejects.toMatchObject({ code: "OUTCOME_UNKNOWN", retryable: false });
    expect(await written()).toEqual(["maybe"]);
    expect(term.signal.aborted).toBe(false);
    await proxy.heal();
    await term.tx((db) => db.query("insert into written values ('next')"));
    expect(await written()).toEqual(["maybe", "next"]);
  });

  test("a session that was ended before COMMIT has written nothing, and that is known", async () => {
    await ledger();
    const term = await lead("ended before");
    const ended = term.tx(async (db) => {
      await db.query("insert into written values ('gone')");
      const { rows } = await db.query<{ pid: number }>("select pg_backend_pid() as pid");
      const closed = new Promise<void>((resolve) => db.on("end", () => resolve()));
      await (await client()).query("select pg_terminate_backend($1)", [rows[0]?.pid]);
      await closed;
    });
    await expect(ended).rejects.toMatchObject({ code: "BACKEND_UNAVAILABLE", message: /nothing was written/ });
    expect(await written()).toEqual([]);
    await term.tx((db) => db.query("insert into written values ('next')"));
  });

  test("an unknown isolation level is refused before anything is sent", async () => {
    await ledger();
    const term = await lead("isolation");
    const wrong = term.tx(() => undefined, { isolation: "chaos; drop table written" as "serializable" });
    await expect(wrong).rejects.toMatchObject({ code: "CONFIG_INVALID" });
  });

  test("sixteen transactions at once all commit", async () => {
    await ledger();
    const term = await lead("many");
    const names = Array.from({ length: 16 }, (_, at) => `row ${String(at).padStart(2, "0")}`);
    await Promise.all(names.map((name) => term.tx((db) => db.query("insert into written values ($1)", [name]))));
    expect(await written()).toEqual(names);
  });
});
