// What a seat does on a real server, in both ways of waiting, without an elector that would repair anything.

import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { Pool, type PoolClient } from "pg";
import { TenureError } from "../../src/core/kit/errors.ts";
import { type PostgresServer, startPostgres, startProxy, type TcpProxy, waitFor } from "../servers/index.ts";
import { connectTo, FAST, fasterClock, NEVER, seatOf as makeSeat, type TestSeat } from "./test-seat.ts";

let server: PostgresServer;
let proxy: TcpProxy;
const seats: TestSeat[] = [];

function seatOf(...parameters: Parameters<typeof makeSeat>): TestSeat {
  const seat = makeSeat(...parameters);
  seats.push(seat);
  return seat;
}

beforeAll(async () => {
  server = await startPostgres({ settings: { fsync: "off" } });
  proxy = await startProxy({ host: "127.0.0.1", port: server.port });
});
afterEach(async () => {
  await proxy.heal();
  await Promise.all(seats.splice(0).map((seat) => seat.close()));
});
afterAll(async () => {
  await proxy?.end();
  await server?.end();
});

const throughProxy = (): string => `postgres://postgres@127.0.0.1:${proxy.port}/postgres`;

/** A cut proxy does not see either that a client is gone: healed, it delivers the end of what is closed. */
async function socketsDestroyed(): Promise<void> {
  await proxy.heal("resume");
  await waitFor("the client's sockets to be destroyed", () => proxy.connections === 0);
}

/** Sessions that wait for, or hold, the lock of a seat. */
async function sessionsAt(seat: TestSeat): Promise<{ pid: number; granted: boolean }[]> {
  return server.query(
    `select pid, granted from pg_locks where locktype = 'advisory' and objsubid = 1
       and classid::bigint = (($1::bigint >> 32) & 4294967295) and objid::bigint = ($1::bigint & 4294967295)`,
    [seat.scopeKey],
  );
}

async function holderOf(seat: TestSeat): Promise<number> {
  const [holder] = (await sessionsAt(seat)).filter((one) => one.granted);
  return holder?.pid ?? 0;
}

async function refusal(work: Promise<unknown>): Promise<TenureError> {
  const error = await work.then(
    () => undefined,
    (reason: unknown) => reason,
  );
  if (!TenureError.is(error)) throw new Error(`expected a TenureError, and got ${String(error)}`);
  return error;
}

describe.each(["block", "poll"] as const)("a seat that waits by %s", (wait) => {
  const options = () => ({ url: server.url(), wait });

  it("acquires, proves its hold, and lets go; the next one has a higher epoch", async () => {
    const a = seatOf(options(), `basic-${wait}`);
    const b = seatOf(options(), `basic-${wait}`);
    const first = await a.acquire(NEVER);
    const second = b.acquire(NEVER);
    const beat = await a.beat(first.epoch);
    expect(beat.sentAt.monotonicMs).toBeGreaterThan(first.sentAt.monotonicMs);
    await a.release(first.epoch);
    expect((await second).epoch).toBeGreaterThan(first.epoch);
    expect(a.lost).toEqual([]);
  });

  it("takes the moment of a grant before it is sent (trap 44)", async () => {
    const slow = seatOf({ url: throughProxy(), wait }, `sent-${wait}`);
    await slow.acquire(NEVER).then(({ epoch }) => slow.release(epoch));
    proxy.delay(40);
    try {
      const { sentAt } = await slow.acquire(NEVER);
      expect(performance.now() - sentAt.monotonicMs).toBeGreaterThanOrEqual(80);
    } finally {
      proxy.delay(0);
    }
  });

  it("reports the loss at once when its session is terminated, without a beat", async () => {
    const seat = seatOf(options(), `terminated-${wait}`);
    const { epoch } = await seat.acquire(NEVER);
    await server.query("select pg_terminate_backend($1)", [await holderOf(seat)]);
    await waitFor("the loss", () => seat.lost.length > 0);
    expect(seat.lost).toEqual([{ epoch, reason: "session-ended" }]);
    expect((await seat.acquire(NEVER)).epoch).toBeGreaterThan(epoch);
  });

  it("trap 42: keeps its hold over a transient error, and beats again", async () => {
    const seat = seatOf(options(), `transient-${wait}`);
    const { epoch } = await seat.acquire(NEVER);
    const blocker = await connectTo(server.url());
    try {
      await blocker.query("begin");
      // A row alone is not waited for; a table is, for no longer than lock_timeout.
      await blocker.query("lock table tenure_heartbeat in access exclusive mode");
      const error = await refusal(seat.beat(epoch));
      expect(error).toMatchObject({ code: "BACKEND_UNAVAILABLE", retryable: true });
      await blocker.query("rollback");
    } finally {
      await blocker.end();
    }
    expect(seat.lost).toEqual([]);
    await expect(seat.beat(epoch)).resolves.toMatchObject({ resignRequested: false });
  });

  it("waits for its turn without a word in the server's log", async () => {
    const complaints = (): number => server.log.split("lock timeout").length;
    const a = seatOf(options(), `quiet-${wait}`);
    const { epoch } = await a.acquire(NEVER);
    const before = complaints();
    const b = seatOf(options(), `quiet-${wait}`).acquire(NEVER);
    const sinceMs = performance.now();
    // Ten times lock_timeout; a's session would be ended if it did not beat.
    while (performance.now() - sinceMs < 2_500) {
      await a.beat(epoch);
      await new Promise((resolve) => setTimeout(resolve, FAST.heartbeatMs));
    }
    await a.release(epoch);
    expect((await b).epoch).toBeGreaterThan(epoch);
    expect(complaints()).toBe(before);
  });

  it("passes on an operator's wish that it resigns", async () => {
    const seat = seatOf(options(), `asked-${wait}`);
    const { epoch } = await seat.acquire(NEVER);
    await server.query("select tenure_ask_resign($1, false)", [`asked-${wait}`]);
    await expect(seat.beat(epoch)).resolves.toMatchObject({ resignRequested: true });
  });

  it("is told that it holds nothing when another epoch is in force", async () => {
    const seat = seatOf(options(), `superseded-${wait}`);
    const { epoch } = await seat.acquire(NEVER);
    await server.query("update tenure_leader_state set epoch = epoch + 1 where scope_key = $1", [seat.scopeKey]);
    await refusal(seat.beat(epoch));
    expect(seat.lost).toEqual([{ epoch, reason: "superseded" }]);
  });

  it("can be abandoned while it waits, and leaves nobody in the queue", async () => {
    const a = seatOf(options(), `leave-${wait}`);
    const b = seatOf(options(), `leave-${wait}`);
    const { epoch } = await a.acquire(NEVER);
    const waiting = b.acquire(NEVER);
    if (wait === "block") await waitFor("b in the queue", async () => (await sessionsAt(a)).length === 2);
    b.abandon();
    expect((await refusal(waiting)).code).toBe("BACKEND_UNAVAILABLE");
    await waitFor("b to be gone", async () => (await sessionsAt(a)).length === 1);
    await a.beat(epoch);
  });

  it("frees its scope when it is abandoned while it leads", async () => {
    const a = seatOf(options(), `drop-${wait}`);
    const b = seatOf(options(), `drop-${wait}`);
    const { epoch } = await a.acquire(NEVER);
    a.abandon();
    expect((await b.acquire(NEVER)).epoch).toBeGreaterThan(epoch);
    expect(a.lost).toEqual([]);
  });

  it("trap 39: can be abandoned while it connects, and acquires with a new session afterwards", async () => {
    const seat = seatOf({ url: throughProxy(), wait }, `connect-${wait}`);
    proxy.cut();
    const connecting = seat.acquire(NEVER);
    await waitFor("the connection", () => proxy.connections > 0);
    if (wait === "block") seat.abandon();
    else await seat.close();
    await refusal(connecting);
    await socketsDestroyed();
  });

  it("gives up a server that accepts and never answers, and says so", async () => {
    const seat = seatOf({ url: throughProxy(), wait }, `mute-${wait}`, undefined, fasterClock(20));
    proxy.cut();
    const error = await refusal(seat.acquire(NEVER));
    expect(error).toMatchObject({ code: "BACKEND_UNAVAILABLE" });
    expect(error.message).toContain(`127.0.0.1:${proxy.port}/postgres did not let us in within 5000 ms`);
    await socketsDestroyed();
  });

  it("notices a half-open connection while it waits", async () => {
    const leader = seatOf(options(), `half-${wait}`);
    await leader.acquire(NEVER);
    const seat = seatOf({ url: throughProxy(), wait }, `half-${wait}`, undefined, fasterClock(20));
    const waiting = refusal(seat.acquire(NEVER));
    await waitFor("the session", async () => {
      const [row] = await server.query<{ count: string }>(
        "select count(*)::text as count from pg_stat_activity where application_name in ($1, 'tenure (many scopes)')",
        [`tenure half-${wait}`],
      );
      return row?.count === "2";
    });
    proxy.cut();
    expect((await waiting).message).toMatch(/did not answer within \d+ ms/);
    await socketsDestroyed();
  });

  it("loses the scope to another when its connection is half-open for the server timeout", async () => {
    const cut = seatOf({ url: throughProxy(), wait }, `cut-${wait}`);
    const { epoch } = await cut.acquire(NEVER);
    const startMs = performance.now();
    proxy.cut();
    const beat = refusal(cut.beat(epoch));
    const other = await seatOf(options(), `cut-${wait}`).acquire(NEVER);
    expect(other.epoch).toBeGreaterThan(epoch);
    // Not earlier than the server's own clock allows: the old leader trusts itself until then.
    expect(performance.now() - startMs).toBeGreaterThan(FAST.serverTimeoutMs - FAST.marginMs);
    cut.abandon();
    await beat;
  });

  it("reads and watches the leader, and says null when it has crashed", async () => {
    const leader = seatOf(options(), `watch-${wait}`, "the-leader");
    const observer = seatOf(options(), `watch-${wait}`);
    const told: unknown[] = [];
    observer.watch(
      (one) => told.push(one?.identity ?? null),
      () => undefined,
    );
    await waitFor("the first word", () => told.length > 0);
    const { epoch } = await leader.acquire(NEVER);
    expect(await observer.leader()).toEqual({ epoch, identity: "the-leader", metadata: { name: "the-leader" } });
    await waitFor("the observer to hear of it", () => told.at(-1) === "the-leader");
    await server.query("select pg_terminate_backend($1)", [await holderOf(leader)]);
    await waitFor("the observer to hear of the crash", () => told.at(-1) === null);
    expect(await observer.leader()).toBeNull();
  });

  it("goes on observing after its session was terminated", async () => {
    const observer = seatOf(options(), `observe-${wait}`);
    const told: unknown[] = [];
    observer.watch(
      (one) => told.push(one?.epoch ?? null),
      () => undefined,
    );
    const leader = seatOf(options(), `observe-${wait}`);
    const first = await leader.acquire(NEVER);
    await waitFor("the first", () => told.at(-1) === first.epoch);
    await server.query(
      "select pg_terminate_backend(pid) from pg_stat_activity where application_name = 'tenure (observer)'",
    );
    await leader.release(first.epoch);
    const second = await leader.acquire(NEVER);
    await waitFor("the second", () => told.at(-1) === second.epoch);
  });

  it("leaves no session behind when it is closed", async () => {
    const name = `closed-${wait}`;
    const seat = makeSeat(options(), name);
    seat.watch(
      () => undefined,
      () => undefined,
    );
    await seat.acquire(NEVER);
    await seat.leader();
    await seat.close();
    await seat.close();
    await waitFor("the sessions to end", async () => (await sessionsAt(seat)).length === 0);
  });
});

describe("a seat whose sessions come from the user's pool", () => {
  it("leads with a client that it never gives back alive, and hears that its lock was taken away", async () => {
    const pool = new Pool({ connectionString: server.url(), max: 5 });
    const taken: PoolClient[] = [];
    const connect = async (): Promise<PoolClient> => {
      const client = await pool.connect();
      taken.push(client);
      return client;
    };
    try {
      const seat = seatOf({ connect }, "pooled");
      const { epoch } = await seat.acquire(NEVER);
      await seat.beat(epoch);
      expect(seat.lost).toEqual([]);
      await taken[0]?.query("select pg_advisory_unlock_all()");
      await refusal(seat.beat(epoch));
      expect(seat.lost).toEqual([{ epoch, reason: "unlocked" }]);
      await seat.release(epoch);
      await seat.close();
      await waitFor("the pool to have nothing of ours", () => pool.totalCount === 0);
    } finally {
      await pool.end();
    }
  });

  it("hears at once when that session is terminated", async () => {
    const pool = new Pool({ connectionString: server.url() });
    pool.on("error", () => undefined);
    try {
      const seat = seatOf({ connect: () => pool.connect() }, "pooled-end");
      const { epoch } = await seat.acquire(NEVER);
      await server.query("select pg_terminate_backend($1)", [await holderOf(seat)]);
      await waitFor("the loss", () => seat.lost.length > 0);
      expect(seat.lost).toEqual([{ epoch, reason: "session-ended" }]);
    } finally {
      await pool.end();
    }
  });
});

it("warns when the leader's heartbeat is older than epochStaleThresholdMs, once for each leader", async () => {
  const leader = seatOf({ url: server.url(), serverTimeoutMs: 20_000 }, "stale");
  const observer = seatOf({ url: server.url(), epochStaleThresholdMs: 300 }, "stale");
  const { epoch } = await leader.acquire(NEVER);
  observer.watch(
    () => undefined,
    () => undefined,
  );
  await waitFor("the warning", () => observer.logged.length > 0);
  expect(observer.logged[0]).toMatchObject({
    fields: { scope: "stale", epoch },
    message: expect.stringMatching(/heartbeat is old/),
  });
  await observer.leader();
  expect(observer.logged).toHaveLength(1);
});
