// Poolers between us and the server (trap 41). Skipped, and said so, where PgBouncer is not installed.

import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { type PgBouncer, pgBouncerPath, type PostgresServer, startPgBouncer, startPostgres } from "../servers/index.ts";
import { Candidate, led } from "./test-elector.ts";
import { connectTo, fasterClock, NEVER, seatOf } from "./test-seat.ts";

describe.skipIf(pgBouncerPath() === undefined)("PgBouncer", () => {
  let server: PostgresServer;
  let bouncer: PgBouncer | undefined;

  beforeAll(async () => {
    server = await startPostgres({ settings: { fsync: "off" } });
  });
  afterEach(() => bouncer?.end());
  afterAll(() => server?.end());

  it.each(["block", "poll"] as const)(
    "trap 41: in transaction mode it is refused, with the reason (%s)",
    async (wait) => {
      bouncer = await startPgBouncer(server, "transaction");
      const seat = seatOf({ url: bouncer?.url(), wait }, "refused");
      const refusal = seat.acquire(NEVER);
      await expect(refusal).rejects.toMatchObject({ code: "POOLER_IN_PATH", retryable: false });
      await expect(refusal).rejects.toThrow(/two connections share one session|one connection had two sessions/);
      await expect(refusal).rejects.toThrow("give the URL of the server itself, or of a pool in session mode");
      const rows = await server.query("select from pg_locks where locktype = 'advisory'");
      expect(rows).toEqual([]);
      const [table] = await server.query<{ there: boolean }>(
        "select to_regclass('tenure_leader_state') is not null as there",
      );
      expect(table?.there).toBe(false);
      await seat.close();
    },
  );

  it("trap 41: in transaction mode with one session for all it is refused too, and not waited for", async () => {
    bouncer = await startPgBouncer(server, "transaction", { settings: { default_pool_size: "1" } });
    const seat = seatOf({ url: bouncer?.url() }, "one");
    await expect(seat.acquire(NEVER)).rejects.toThrow(/two connections share one session/);
    await seat.close();
  });

  it("trap 41: an observer is refused too, and leaves nothing behind on sessions that strangers get next", async () => {
    // In turn, so that what the observer asked was asked of sessions that outlive it.
    bouncer = await startPgBouncer(server, "transaction", {
      settings: { default_pool_size: "3", server_round_robin: "1" },
    });
    const url = bouncer?.url() ?? "";
    const strangers = await Promise.all([connectTo(url), connectTo(url), connectTo(url)]);
    const all = (text: string) => Promise.all(strangers.map(async (one) => (await one.query(text)).rows[0] as unknown));
    const names = ["statement_timeout", "lock_timeout", "idle_session_timeout", "idle_in_transaction_session_timeout"];
    const settings = `select ${names.map((name) => `current_setting('${name}') as ${name}`).join(", ")},
      array(select pg_listening_channels()) as channels`;
    const look = async (): Promise<unknown> => {
      await all("begin");
      const seen = await all(settings);
      await all("commit");
      return seen;
    };
    const untouched = { ...Object.fromEntries(names.map((name) => [name, "0"])), channels: [] };
    expect(await look()).toEqual([untouched, untouched, untouched]);
    const observer = seatOf({ url }, "observed");
    await expect(observer.leader()).rejects.toMatchObject({ code: "POOLER_IN_PATH", retryable: false });
    await observer.close();
    expect(await look()).toEqual([untouched, untouched, untouched]);
    await Promise.all(strangers.map((one) => one.end()));
  });

  it("in session mode with one session says that it needs room for two", async () => {
    bouncer = await startPgBouncer(server, "session", { settings: { default_pool_size: "1" } });
    const seat = seatOf({ url: bouncer?.url() }, "small", undefined, fasterClock(10));
    await expect(seat.acquire(NEVER)).rejects.toThrow(/a pool needs room for both/);
    await seat.close();
  });

  it("ends the campaign of an elector for good", async () => {
    bouncer = await startPgBouncer(server, "transaction");
    const candidate = new Candidate("for-good", { url: bouncer?.url() });
    await expect.poll(() => candidate.refusal).toMatchObject({ code: "POOLER_IN_PATH" });
    await candidate.close();
  });

  it("works in session mode: two candidates, one after the other", async () => {
    bouncer = await startPgBouncer(server, "session");
    const url = bouncer?.url();
    const candidates = [new Candidate("session", { url }), new Candidate("session", { url })];
    try {
      const first = await led(candidates);
      await first.leader.close();
      const others = candidates.filter((one) => one !== first.leader);
      expect((await led(others, first.epoch)).epoch).toBeGreaterThan(first.epoch);
    } finally {
      await Promise.all(candidates.map((one) => one.close()));
    }
  });
});
