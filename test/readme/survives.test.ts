// The program of README.md, on two instances and a real Postgres, through what happens to databases and processes: it lives,
// it goes on paying, and pays nothing twice.

import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { type PostgresPair, startPostgresPair, waitFor } from "../servers/index.ts";
import { PAYOUTS, Program } from "./test-snippet.ts";

const PATIENCE_MS = 60_000;
/** Payments after a fault that show that the program goes on. */
const PAYMENTS = 20;

let pair: PostgresPair;
let programs: Program[] = [];

beforeAll(async () => {
  pair = await startPostgresPair((primary) => primary.query(PAYOUTS));
  programs = [new Program(pair.url), new Program(pair.url)];
}, 120_000);

afterAll(async () => {
  await Promise.all(programs.map((one) => one.end()));
  await pair?.end();
});

interface State {
  readonly paid: number;
  /** Who paid last. */
  readonly pid: number;
}

async function state(): Promise<State> {
  const text = "select payment::int as paid, pid from payout order by payment desc limit 1";
  const [row] = await pair.server.query<State>(text);
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
  const wrong = await pair.server.query(
    "select payment, count(*) from payout group by payment having count(*) > 1 order by payment limit 3",
  );
  expect(wrong, "paid twice").toEqual([]);
  const [all] = await pair.server.query<{ gaps: string }>("select max(payment) - count(*) as gaps from payout");
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
  await pair.server.restart(mode);
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
    if (name === "inside COMMIT") await pair.server.query("insert into slow_commit values (0.2)");
    await waitFor("such a session", async () => {
      const text = `select pg_terminate_backend(pid) from pg_stat_activity where datname = 'postgres' and ${which}`;
      return (await pair.server.query(text)).length > 0;
    });
    await pair.server.query("delete from slow_commit");
    await goesOn();
  });
});

it("pays nothing twice where a commit goes on in the server after its connection is lost", async () => {
  // Each kind of trouble is said once: these have not said any.
  await Promise.all(programs.map((one) => one.end()));
  programs = [new Program(pair.url), new Program(pair.url)];
  const pids = programs.map(({ pid }) => pid);
  await goesOn(({ pid }) => pids.includes(pid));
  await pair.server.query("insert into slow_commit values (1.5)");
  (await leader()).signal("SIGUSR2");
  const isUnknown = (): boolean => programs.some((one) => one.errors.includes("[OUTCOME_UNKNOWN]"));
  await waitFor("an unknown outcome", () => isUnknown() || !lives());
  await pair.server.query("delete from slow_commit");
  await goesOn();
  await waitFor("the end of the commit that nobody hears of", async () => {
    const text = "select from pg_stat_activity where wait_event = 'PgSleep' and query like '%commit%'";
    return (await pair.server.query(text)).length === 0;
  });
  await goesOn();
});

it("goes on after kill -9 of the leader, and the killed one starts again", async () => {
  const killed = await leader();
  await killed.end();
  programs = programs.filter((one) => one !== killed);
  await goesOn(({ pid }) => pid !== killed.pid);
  programs.push(new Program(pair.url));
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
  await pair.failover();
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
