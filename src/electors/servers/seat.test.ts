import { describe, expect, it } from "vitest";
import { settled } from "../../loops/test-clock.ts";
import { ok, refusal, SILENCE, sit, TestServers, unreachable } from "./test-wire.ts";

const never = new AbortController().signal;
const FREE = ok({ scope: "s", epoch: 42, holder: null });
const NOT_YET = ok({ granted: false, holder: null });
const GRANTED = ok({ granted: true, epoch: 42, ttl_ms: 6_000 });

function bodies(servers: TestServers, name: string): Record<string, unknown>[] {
  return servers.questions.filter(({ path }) => path.endsWith(name)).map(({ body }) => body as Record<string, unknown>);
}

function held(identity: string, epoch = 42): object {
  return { epoch, identity, metadata: {}, ttl_ms: 6_000, acquired_at_ms: 1, resign_requested: false };
}

describe("trap 44: trust starts when a request left", () => {
  it("that was answered with the grant at once", async () => {
    const servers = new TestServers();
    const { seat } = sit(servers);
    expect(await seat.acquire(never)).toEqual({ epoch: 42, sentAt: servers.clock.now });
    expect(servers.posts).toEqual(["n1 POST acquire"]);
  });

  it("that renewed a grant which was waited for", async () => {
    const servers = new TestServers();
    const granted = Promise.withResolvers<void>();
    servers.says["acquire"] = async () => {
      await granted.promise;
      return GRANTED;
    };
    const grant = sit(servers).seat.acquire(never);
    await servers.clock.advance(2_900);
    granted.resolve();
    expect((await grant).sentAt).toEqual(servers.clock.now);
    expect(servers.posts).toEqual(["n1 POST acquire", "n1 POST renew"]);
  });

  it("that renewed a grant which an unanswered request may have caused, with the same session", async () => {
    const servers = new TestServers();
    const answers = [unreachable(false), GRANTED];
    servers.says["acquire"] = () => answers.shift() ?? SILENCE;
    const grant = sit(servers).seat.acquire(never);
    await servers.clock.advance(200);
    await grant;
    expect(servers.posts).toEqual(["n1 POST acquire", "n1 POST acquire", "n1 POST renew"]);
    expect(new Set(bodies(servers, "/acquire").map(({ session }) => session))).toEqual(new Set(["session-1"]));
  });

  it("and a grant that is over before it could be renewed is none: the next campaign has a new session", async () => {
    const servers = new TestServers();
    const answers = [unreachable(false), GRANTED, GRANTED];
    servers.says["acquire"] = () => answers.shift() ?? SILENCE;
    servers.says["renew"] = () => refusal(409, "STALE_EPOCH");
    servers.says["scope"] = () => FREE;
    const grant = sit(servers).seat.acquire(never);
    await servers.clock.advance(1_000);
    await grant;
    expect(bodies(servers, "/acquire").map(({ session }) => session)).toEqual(["session-1", "session-1", "session-2"]);
  });
});

describe("a campaign", () => {
  it("asks again and again with one session, and not faster where the server does not wait", async () => {
    const servers = new TestServers();
    servers.says["acquire"] = () => NOT_YET;
    const { seat } = sit(servers);
    void seat.acquire(never).catch(() => undefined);
    await servers.clock.advance(2_000);
    const asked = bodies(servers, "/acquire");
    expect(asked.length).toBeGreaterThan(7);
    expect(asked.length).toBeLessThan(18);
    expect(new Set(asked.map(({ session }) => session)).size).toBe(1);
    expect(asked[0]).toEqual({ session: "session-1", identity: "me", metadata: {}, ttl_ms: 6_000, wait_ms: 3_000 });
    seat.abandon();
  });

  it("that is abandoned resigns what it may have been granted, and only with its own session", async () => {
    const servers = new TestServers();
    servers.says["acquire"] = () => SILENCE;
    servers.says["scope"] = () => ok({ scope: "s", epoch: 43, holder: held("me", 43) });
    const { seat } = sit(servers);
    const grant = seat.acquire(never).catch((error: unknown) => error);
    await settled();
    seat.abandon();
    expect(await grant).toMatchObject({ code: "BACKEND_UNAVAILABLE" });
    await settled();
    expect(bodies(servers, "/resign")).toEqual([{ session: "session-1", epoch: 43 }]);
  });

  it("that is abandoned while another leads resigns nothing", async () => {
    const servers = new TestServers();
    servers.says["acquire"] = () => SILENCE;
    servers.says["scope"] = () => ok({ scope: "s", epoch: 43, holder: held("another", 43) });
    const { seat } = sit(servers);
    void seat.acquire(never).catch(() => undefined);
    await settled();
    seat.abandon();
    await settled();
    expect(bodies(servers, "/resign")).toEqual([]);
  });

  it("begins only when what an earlier one may hold is resigned: we never wait for ourselves", async () => {
    const servers = new TestServers();
    const { seat } = sit(servers);
    await seat.acquire(never);
    servers.says["resign"] = () => unreachable(false);
    seat.abandon();
    await servers.clock.advance(5_000);
    const second = seat.acquire(never).catch((error: unknown) => error);
    await servers.clock.advance(5_000);
    expect(await second).toMatchObject({ code: "BACKEND_UNAVAILABLE" });
    expect(bodies(servers, "/acquire")).toHaveLength(1);
    servers.says["resign"] = () => ok({});
    await seat.acquire(never);
    expect(bodies(servers, "/acquire").map(({ session }) => session)).toEqual(["session-1", "session-2"]);
  });

  it("that is granted a shorter lease than it asked for is refused: it would trust itself too long", async () => {
    const servers = new TestServers();
    servers.says["acquire"] = () => ok({ granted: true, epoch: 42, ttl_ms: 5_999 });
    await expect(sit(servers).seat.acquire(never)).rejects.toMatchObject({ code: "BACKEND_UNSUPPORTED" });
  });

  it("that worked before does not give up for a key that is refused now, but for another cluster", async () => {
    const servers = new TestServers();
    const { seat } = sit(servers);
    const { epoch } = await seat.acquire(never);
    await seat.release(epoch);
    for (const node of ["n1", "n2", "n3"])
      servers.says[`${node} *`] = () => refusal(401, "UNAUTHENTICATED", { role: "LEADER" });
    for (const key of ["acquire", "resign"]) delete servers.says[key];
    await expect(seat.acquire(never)).rejects.toMatchObject({ code: "BACKEND_UNAVAILABLE", retryable: true });
    const other = { cluster_id: "c2", node_id: "n1", term: 1, leader: null, members: [] };
    for (const node of ["n1", "n2", "n3"]) servers.says[`${node} *`] = () => ({ ...ok(other), clusterId: "c2" });
    const refused = seat.acquire(never).catch((error: unknown) => error);
    await servers.clock.advance(100);
    expect(await refused).toMatchObject({ code: "CLUSTER_MISMATCH", retryable: false });
  });
});

describe("a hold", () => {
  it("is renewed by a beat, which tells what an operator wants", async () => {
    const servers = new TestServers();
    const { seat } = sit(servers);
    await seat.acquire(never);
    servers.says["renew"] = () => ok({ epoch: 42, ttl_ms: 6_000, resign_requested: true });
    await servers.clock.advance(1_000);
    expect(await seat.beat(42)).toEqual({ sentAt: servers.clock.now, resignRequested: true });
    expect(bodies(servers, "/renew")).toEqual([{ session: "session-1", epoch: 42 }]);
  });

  it("that the server says is over is lost at once, and the beat rejects", async () => {
    const servers = new TestServers();
    const { seat, losses } = sit(servers);
    await seat.acquire(never);
    servers.says["renew"] = () => refusal(409, "STALE_EPOCH");
    await expect(seat.beat(42)).rejects.toMatchObject({ code: "STALE_EPOCH" });
    expect(losses).toEqual([[42, "lease-gone"]]);
  });

  it.each([
    ["another leads", ok({ scope: "s", epoch: 43, holder: held("another", 43) }), "superseded"],
    ["nobody leads", FREE, "lease-gone"],
  ])("is lost between beats where %s", async (_what, state, reason) => {
    const servers = new TestServers();
    servers.says["scope"] = () => state;
    const { seat, losses } = sit(servers);
    await seat.acquire(never);
    await settled();
    expect(losses).toEqual([[42, reason]]);
  });

  it("is not lost because a node that is behind has not heard of it", async () => {
    const servers = new TestServers();
    servers.says["scope"] = () => ok({ scope: "s", epoch: 41, holder: null });
    const { seat, losses } = sit(servers);
    await seat.acquire(never);
    await servers.clock.advance(2_000);
    expect(losses).toEqual([]);
  });

  it("of another epoch than this is neither renewed nor resigned", async () => {
    const servers = new TestServers();
    const { seat } = sit(servers);
    await seat.acquire(never);
    await expect(seat.beat(41)).rejects.toMatchObject({ code: "STALE_EPOCH" });
    await expect(seat.release(41)).rejects.toMatchObject({ code: "STALE_EPOCH" });
  });
});

it.each([".", "..", "\ud800"])(
  "the scope %j, which no path can carry, is refused before anything is asked",
  (scope) => {
    const servers = new TestServers();
    expect(() => sit(servers, {}, scope)).toThrow(expect.objectContaining({ code: "CONFIG_INVALID" }));
    expect(servers.asked).toEqual([]);
  },
);

describe("an observer", () => {
  it("is told the present leader and each change, none twice, and never of the past", async () => {
    const servers = new TestServers();
    const states = [
      ok({ scope: "s", epoch: 42, holder: held("a") }),
      ok({ scope: "s", epoch: 42, holder: held("a") }),
      FREE,
      ok({ scope: "s", epoch: 41, holder: held("old", 41) }),
      ok({ scope: "s", epoch: 44, holder: held("b", 44) }),
    ];
    servers.says["scope"] = () => states.shift() ?? SILENCE;
    const told: (string | null)[] = [];
    const stop = sit(servers).seat.watch(
      (leader) => told.push(leader === null ? null : `${leader.identity} ${leader.epoch}`),
      () => undefined,
    );
    await servers.clock.advance(2_000);
    stop();
    expect(told).toEqual(["a 42", null, "b 44"]);
  });

  it("of a scope that the cluster has forgotten hears that nobody leads, and waits for the next leader without haste", async () => {
    const servers = new TestServers();
    const states = [
      ok({ scope: "s", epoch: 42, holder: held("a") }),
      refusal(404, "NOT_FOUND"),
      refusal(404, "NOT_FOUND"),
      ok({ scope: "s", epoch: 44, holder: held("b", 44) }),
    ];
    servers.says["scope"] = () => states.shift() ?? SILENCE;
    const told: unknown[] = [];
    const stop = sit(servers).seat.watch(
      (leader) => told.push(leader?.epoch ?? null),
      () => undefined,
    );
    await servers.clock.advance(2_000);
    stop();
    expect(told).toEqual([42, null, 44]);
    // As the servers see it: otherwise each question would be answered at once.
    expect(
      servers.questions.map(({ path }) => path).filter((path) => path.includes("epoch=0&held=false")),
    ).toHaveLength(2);
  });

  it("of a scope that nobody ever led hears null, and goes on over failures", async () => {
    const servers = new TestServers();
    const states = [
      refusal(404, "NOT_FOUND"),
      refusal(500, "INTERNAL"),
      ok({ scope: "s", epoch: 44, holder: held("b", 44) }),
    ];
    servers.says["scope"] = () => states.shift() ?? SILENCE;
    const told: unknown[] = [];
    const stop = sit(servers).seat.watch(
      (leader) => told.push(leader?.epoch ?? null),
      () => undefined,
    );
    await servers.clock.advance(2_000);
    stop();
    expect(told).toEqual([null, 44]);
  });
});
