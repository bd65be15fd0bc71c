// The program of README.md, on two instances and a real Postgres, through what happens to databases and processes: it lives,
// it goes on paying, and pays nothing twice.

import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { type PostgresServer, startPostgres, startProxy, type TcpProxy, waitFor } from "../servers/index.ts";
import { PAYOUTS, Program } from "./test-snippet.ts";

const PATIENCE_MS = 60_000;
/** Payments after a fault that show that the program goes on. */
const PAYMENTS = 20;

let primary: PostgresServer;
let standby: PostgresServer;
/** The one that is written to. */
let server: PostgresServer;
let proxy: TcpProxy;
let programs: Program[] = [];
const url = (): string => `postgres://postgres@127.0.0.1:${proxy.port}/postgres`;

beforeAll(async () => {
  primary = await startPostgres();
  server = primary;
  await server.query(PAYOUTS);
  standby = await primary.standby();
  proxy = await startProxy({ host: "127.0.0.1", port: primary.port });
  programs = [new Program(url()), new Program(url())];
}, 120_000);

afterAll(async () => {
  await Promise.all(programs.map((one) => one.end()));
  await proxy?.end();
  await standby?.end();
  await primary?.end();
});

interface State {
  readonly paid: number;
  /** Who paid last. */
  readonly pid: number;
}

async function state(): Promise<State> {
  const text = "select payment::int as paid, pid from payout order by payment desc limit 1";
  const [row] = await server.query<State>(text);
  return row ?? { paid: 0, pid: 0 };
}

const lives = (): boolean => programs.every((one) => one.exit === undefined);

/** More payments are made, by whom is said, and every program lives. */
async function goesOn(paid: (now: State) => boolean = () => true): Promise<void> {
  const before = await state();
  await waitFor(
    "more payments, or the end of a program",
    async () => {
      const now = await state();
      return !lives() || (now.paid >= before.paid + PAYMENTS && paid(now));
    },
    PATIENCE_MS,
  );
  const ends = programs.map(({ exit, errors }) => ({ exit, errors }));
  expect(lives(), `a program ended: ${JSON.stringify(ends)}`).toBe(true);
  const wrong = await server.query(
    "select payment, count(*) from payout group by payment having count(*) > 1 order by payment limit 3",
  );
  expect(wrong, "paid twice").toEqual([]);
  const [all] = await server.query<{ gaps: string }>("select max(payment) - count(*) as gaps from payout");
  expect(Number(all?.gaps), "payments that were left out").toBe(0);
}

async function leader(): Promise<Program> {
  const { pid } = await state();
  const one = programs.find((program) => program.pid === pid);
  if (one === undefined) throw new Error(`nobody has the process id ${pid}`);
  return one;
}

beforeEach(() => goesOn(), 120_000);

it.each(["immediate", "fast"] as const)("goes on after a restart of the database: %s", async (mode) => {
  await server.restart(mode);
  await goesOn();
});

describe("goes on after the end of a session", () => {
  const POINTS = {
    "inside a transaction, between two statements": "application_name = 'tenure tx' and state = 'idle in transaction'",
    "inside a statement": "application_name = 'tenure tx' and wait_event = 'PgSleep' and query like 'select pg_sleep%'",
    "inside COMMIT": "application_name = 'tenure tx' and wait_event = 'PgSleep' and query like '%commit%'",
    "that holds the scope":
      "pid in (select pid from pg_locks where locktype = 'advisory' and mode = 'ExclusiveLock' and granted)",
    "that waits for the scope": "pid in (select pid from pg_locks where locktype = 'advisory' and not granted)",
    "of all": "application_name like 'tenure%'",
  };

  it.each(Object.entries(POINTS))("%s", async (name, which) => {
    if (name === "inside COMMIT") await server.query("insert into slow_commit values (0.2)");
    await waitFor("such a session", async () => {
      const text = `select pg_terminate_backend(pid) from pg_stat_activity where datname = 'postgres' and ${which}`;
      return (await server.query(text)).length > 0;
    });
    await server.query("delete from slow_commit");
    await goesOn();
  });
});

it("pays nothing twice where a commit goes on in the server after its connection is lost", async () => {
  // Each kind of trouble is said once: these have not said any.
  await Promise.all(programs.map((one) => one.end()));
  programs = [new Program(url()), new Program(url())];
  const pids = programs.map(({ pid }) => pid);
  await goesOn(({ pid }) => pids.includes(pid));
  await server.query("insert into slow_commit values (1.5)");
  (await leader()).signal("SIGUSR2");
  const isUnknown = (): boolean => programs.some((one) => one.errors.includes("[OUTCOME_UNKNOWN]"));
  await waitFor("an unknown outcome", () => isUnknown() || !lives());
  await server.query("delete from slow_commit");
  await goesOn();
  await waitFor("the end of the commit that nobody hears of", async () => {
    const text = "select from pg_stat_activity where wait_event = 'PgSleep' and query like '%commit%'";
    return (await server.query(text)).length === 0;
  });
  await goesOn();
});

it("goes on after kill -9 of the leader, and the killed one starts again", async () => {
  const killed = await leader();
  await killed.end();
  programs = programs.filter((one) => one !== killed);
  await goesOn(({ pid }) => pid !== killed.pid);
  programs.push(new Program(url()));
});

it("goes on after the leader was frozen for longer than its trust lasts, and the frozen one lives", async () => {
  const frozen = await leader();
  frozen.signal("SIGSTOP");
  try {
    await goesOn(({ pid }) => pid !== frozen.pid);
  } finally {
    frozen.signal("SIGCONT");
  }
  await goesOn();
});

it("goes on after a failover to a standby", async () => {
  await standby.caughtUp(primary);
  proxy.cut("both", "refused");
  await primary.stop("immediate");
  await standby.promote();
  server = standby;
  proxy.swap({ host: "127.0.0.1", port: standby.port });
  await proxy.heal();
  await goesOn();
});

it("has said what happened, and ended nothing", () => {
  for (const { errors, exit } of programs) {
    expect(exit).toBeUndefined();
    const lines = errors
      .split("\n")
      .filter((line) => line !== "" && !/TenureWarning|Use `node --trace-warnings/.test(line));
    expect(lines).toEqual([]);
  }
});
