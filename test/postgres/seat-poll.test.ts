// Many scopes on one connection (`wait: "poll"`).

import { afterAll, afterEach, beforeAll, expect, it } from "vitest";
import { createElector, type Transition } from "../../src/entry/index.ts";
import { postgres } from "../../src/entry/postgres.ts";
import { type PostgresServer, startPostgres, startProxy, type TcpProxy, waitFor } from "../servers/index.ts";
import { Candidate, led } from "./test-elector.ts";
import { connectTo, FAST, NEVER, seatOf, type TestSeat } from "./test-seat.ts";

const SCOPES = 200;

let server: PostgresServer;
let proxy: TcpProxy;
const closing: { close(): Promise<void> }[] = [];

beforeAll(async () => {
  server = await startPostgres({ settings: { fsync: "off", max_prepared_transactions: "5" } });
  proxy = await startProxy({ host: "127.0.0.1", port: server.port });
});
afterEach(async () => {
  await Promise.all(closing.splice(0).map((one) => one.close()));
});
afterAll(async () => {
  await proxy?.end();
  await server?.end();
});

const throughProxy = (): string => `postgres://postgres@127.0.0.1:${proxy.port}/postgres`;
const backendOf = (url: string): ReturnType<typeof postgres> => postgres({ ...FAST, url, wait: "poll" });

function seats(backend: ReturnType<typeof postgres>, prefix: string, count: number): TestSeat[] {
  const made = Array.from({ length: count }, (_, index) => seatOf(backend, `${prefix}-${index}`));
  closing.push(...made);
  return made;
}

const acquireAll = (all: readonly TestSeat[]): Promise<number[]> =>
  Promise.all(all.map(async (seat) => (await seat.acquire(NEVER)).epoch));

it(`leads ${SCOPES} scopes on one connection, loses all of them with it, and takes them over elsewhere`, async () => {
  const ours = seats(backendOf(throughProxy()), "many", SCOPES);
  const startMs = performance.now();
  const epochs = await acquireAll(ours);
  console.info(`${SCOPES} scopes acquired on one connection in ${(performance.now() - startMs).toFixed(0)} ms`);
  expect(proxy.connections).toBe(1);
  const beatMs = performance.now();
  await Promise.all(ours.map((seat, index) => seat.beat(epochs[index] ?? 0)));
  console.info(`${SCOPES} heartbeats on one connection in ${(performance.now() - beatMs).toFixed(0)} ms`);
  const theirs = seats(backendOf(server.url()), "many", SCOPES);
  const takeover = acquireAll(theirs);
  proxy.reset();
  await waitFor("every scope to be lost", () => ours.every((seat) => seat.lost.length === 1));
  expect(new Set(ours.map((seat) => seat.lost[0]?.reason))).toEqual(new Set(["session-ended"]));
  const later = await takeover;
  expect(later.every((epoch, index) => epoch > (epochs[index] ?? Infinity))).toBe(true);
});

it("trap 40: two electors of one scope on one backend exclude each other, and one unlock frees the scope", async () => {
  const backend = backendOf(server.url());
  const [a, b] = [seatOf(backend, "twins"), seatOf(backend, "twins")];
  closing.push(a, b);
  const first = await a.acquire(NEVER);
  let second: number | undefined;
  const waiting = b.acquire(NEVER).then(({ epoch }) => {
    second = epoch;
  });
  const stranger = seatOf(backendOf(server.url()), "twins-other");
  closing.push(stranger);
  // Long enough for several polls of b: another scope comes and goes on the same session meanwhile.
  for (let polls = 0; polls < 5; polls++) {
    const { epoch } = await stranger.acquire(NEVER);
    await stranger.release(epoch);
    await a.beat(first.epoch);
  }
  expect(second).toBeUndefined();
  await a.release(first.epoch);
  await waiting;
  expect(second).toBeGreaterThan(first.epoch);
  await b.release(second ?? 0);
  const other = await server.query("select from pg_locks where locktype = 'advisory' and granted");
  expect(other).toEqual([]);
});

it("abandons one scope without touching the others", async () => {
  const [one, two, three] = seats(backendOf(server.url()), "three", 3);
  const epochs = await acquireAll([one, two, three] as TestSeat[]);
  two?.abandon();
  const successor = seatOf(backendOf(server.url()), "three-1");
  closing.push(successor);
  expect((await successor.acquire(NEVER)).epoch).toBeGreaterThan(epochs[1] ?? Infinity);
  await one?.beat(epochs[0] ?? 0);
  await three?.beat(epochs[2] ?? 0);
  expect([one?.lost, two?.lost, three?.lost]).toEqual([[], [], []]);
});

/** Two that lead on one session, whose connection is silent for longer than a statement may take. */
async function stalled(prefix: string) {
  const patient = { ...FAST, serverTimeoutMs: 6_000, marginMs: 1_500, url: throughProxy(), wait: "poll" } as const;
  const [one, two] = seats(postgres(patient), prefix, 2) as [TestSeat, TestSeat];
  const [first = 0, second = 0] = await acquireAll([one, two]);
  proxy.cut();
  const beat = one.beat(first).then(
    () => "answered",
    () => "rejected",
  );
  const sinceMs = performance.now();
  await waitFor("the answer to be overdue", () => performance.now() - sinceMs > patient.serverTimeoutMs / 3 + 50);
  return { one, two, second, beat };
}

it("who is abandoned in the middle of a stall ends nobody else's term, and is free when the answer has come", async () => {
  const { one, two, second, beat } = await stalled("stall");
  one.abandon();
  expect(two.lost).toEqual([]);
  await proxy.heal("resume");
  expect(await beat).toBe("answered");
  const successor = seatOf(backendOf(server.url()), "stall-0");
  closing.push(successor);
  await successor.acquire(NEVER);
  await two.beat(second);
  expect(two.lost).toEqual([]);
});

it("trap 39: who is abandoned last in the middle of a stall destroys the session", async () => {
  const { one, two, beat } = await stalled("owing");
  const startMs = performance.now();
  one.abandon();
  two.abandon();
  expect(await beat).toBe("rejected");
  expect(performance.now() - startMs).toBeLessThan(1_000);
  expect(two.lost).toEqual([]);
  await proxy.heal("resume");
  await waitFor("the socket to be destroyed", () => proxy.connections === 0);
});

/** Electors on one session, that lead until they are closed; `gaps` are the moments when one could not act. */
function electorsOn(backend: ReturnType<typeof postgres>, scopes: readonly string[]) {
  const gaps: string[] = [];
  const electors = scopes.map((scope) => {
    const onTransition = ({ kind }: Transition): void => {
      if (kind === "suspended" || kind === "ended") gaps.push(`${scope} ${kind}`);
    };
    const elector = createElector({ scope, backend, onTransition });
    elector
      .lead(({ signal }) => new Promise<void>((resolve) => signal.addEventListener("abort", () => resolve())))
      .catch(() => undefined);
    closing.push(elector);
    return elector;
  });
  return { gaps, electors };
}

const spanOf = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

it("heartbeat rows that a stranger has locked hold up neither their own scopes nor those beside them", async () => {
  const blocked = Array.from({ length: 8 }, (_, index) => `row-${index}`);
  const { gaps, electors } = electorsOn(backendOf(server.url()), ["row-free", ...blocked]);
  await waitFor("all to lead", () => electors.every(({ gate }) => gate.isLeader));
  const blocker = await connectTo(server.url());
  try {
    await blocker.query("begin");
    const { rowCount } = await blocker.query(
      `select from tenure_heartbeat h join tenure_leader_state s using (scope_key)
         where s.scope = any($1) for update of h`,
      [blocked],
    );
    expect(rowCount).toBe(blocked.length);
    // A beat that waited would take a sixth of the server timeout: eight of them are more than trust lasts.
    await spanOf(3 * FAST.serverTimeoutMs);
    expect(gaps).toEqual([]);
    expect(electors.every(({ gate }) => gate.isLeader)).toBe(true);
    await blocker.query("rollback");
  } finally {
    await blocker.end();
  }
});

it("takeovers that wait for a held fence hold up a beat of another scope for one of them, not for all", async () => {
  const blocked = Array.from({ length: 6 }, (_, index) => `fence-${index}`);
  const timing = { ...FAST, serverTimeoutMs: 3_000, marginMs: 500 };
  const backend = postgres({ ...timing, url: server.url(), wait: "poll" });
  const { gaps, electors } = electorsOn(backend, ["fence-free"]);
  await waitFor("the free one to lead", () => electors.every(({ gate }) => gate.isLeader));
  // Prepared: nobody can end its session.
  const fences = blocked.map((scope) => `pg_advisory_xact_lock_shared(tenure_fence_key(${seatKey(backend, scope)}))`);
  await server.query(`begin; select ${fences.join(", ")}; prepare transaction 'fences'`);
  try {
    const waiting = electorsOn(backend, blocked);
    await spanOf(3 * timing.serverTimeoutMs);
    expect(waiting.electors.some(({ gate }) => gate.isLeader)).toBe(false);
    expect(gaps).toEqual([]);
  } finally {
    await server.query("rollback prepared 'fences'");
  }
});

function seatKey(backend: ReturnType<typeof postgres>, scope: string): string {
  const seat = seatOf(backend, scope);
  closing.push(seat);
  return String(seat.scopeKey);
}

it("is woken by NOTIFY long before its next poll", async () => {
  const slow = {
    ...FAST,
    url: server.url(),
    wait: "poll",
    serverTimeoutMs: 60_000,
    retryMinMs: 30_000,
    retryMaxMs: 30_000,
  } as const;
  const leader = seatOf(postgres(slow), "woken");
  const waiter = seatOf(postgres(slow), "woken");
  closing.push(leader, waiter);
  const { epoch } = await leader.acquire(NEVER);
  const waiting = waiter.acquire(NEVER);
  await waitFor("the waiter's first poll", async () => {
    const rows = await server.query(
      "select from pg_stat_activity where query like '%pg_try_advisory_lock%' and pid <> pg_backend_pid()",
    );
    return rows.length > 0;
  });
  const startMs = performance.now();
  await leader.release(epoch);
  expect((await waiting).epoch).toBeGreaterThan(epoch);
  expect(performance.now() - startMs).toBeLessThan(5_000);
});

it("an elector that resigned lets another go first, also in the same process", async () => {
  const options = { url: server.url(), wait: "poll" } as const;
  const candidates = [new Candidate("fair", options), new Candidate("fair", options)];
  closing.push(...candidates);
  const first = await led(candidates);
  await server.query("select tenure_ask_resign('fair', false)");
  const second = await led(candidates, first.epoch);
  expect(second.leader).not.toBe(first.leader);
  expect(first.leader.ends).toEqual(["asked"]);
});
