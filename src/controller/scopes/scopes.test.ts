import { describe, expect, it } from "vitest";
import { SCOPE_WAITERS_MAX } from "../../core/kit/limits.ts";
import { ManualClock } from "../../engine/test-engine.ts";
import { MemoryStore } from "../../logs/index.ts";
import { leading, stageOn } from "../../sim/controller/test-scopes-stage.ts";
import { advance, drain, watch } from "./test-scopes.ts";

describe("leading", () => {
  it("refuses on a node that does not lead; while it takes over, requests wait", async () => {
    const stage = stageOn();
    await expect(stage.acquire("a")).rejects.toMatchObject({ code: "NOT_LEADER", retryable: true });
    await expect(stage.service.renew("s", "a", 1)).rejects.toMatchObject({ code: "NOT_LEADER" });
    stage.consensus.lead(1);
    expect(await stage.granted("a")).toBe(1);
  });

  it("while leadership is handed over requests wait for the outcome, and are told once", async () => {
    const { stage } = await leading();
    for (const [success, ending] of [
      [false, "resolved"],
      [true, "rejected"],
    ] as const) {
      stage.consensus.transfer = "handing-over";
      const early = watch(stage.acquire(`a-${ending}`, { scope: ending }));
      await drain();
      stage.consensus.transfer = "awaiting";
      const late = watch(stage.service.askResign("nobody's", false));
      await drain();
      expect([early.state, late.state]).toEqual(["pending", "pending"]);
      stage.consensus.endTransfer(success);
      await drain();
      expect([early.state, late.state]).toEqual([ending, ending]);
      if (success) expect([early.code, late.code]).toEqual(["NOT_LEADER", "NOT_LEADER"]);
    }
  });

  it("nobody waits for ever for a leader that does not get to serve, nor for a node that ends", async () => {
    const clock = new ManualClock();
    const stage = stageOn(new MemoryStore(), clock);
    stage.consensus.role = "leader";
    const early = watch(stage.acquire("a"));
    await advance(clock, 2_000);
    expect(early).toMatchObject({ state: "rejected", code: "NOT_LEADER" });
    const late = watch(stage.acquire("a"));
    await drain();
    expect(late.state).toBe("pending");
    stage.state.close();
    await drain();
    expect(late).toMatchObject({ state: "rejected", code: "NOT_LEADER" });
  });

  it("serves at once where it was made after this node was elected", async () => {
    const store = new MemoryStore();
    const first = stageOn(store);
    first.consensus.lead(3);
    await drain();
    expect(await first.granted("a")).toBe(1);
    expect(store.epoch).toBe(3);
  });

  it("opens again a little later when the log would not be opened", async () => {
    const clock = new ManualClock();
    const stage = stageOn(new MemoryStore(), clock);
    stage.log.refuseOpen = true;
    await stage.lead(1);
    const granted = watch(stage.granted("a"));
    await drain();
    expect([stage.log.opens, granted.state]).toEqual([1, "pending"]);
    await advance(clock, 100);
    expect(stage.log.opens).toBe(2);
    expect(granted).toMatchObject({ state: "resolved", value: 1 });
  });

  it("stops opening when it was deposed meanwhile", async () => {
    const clock = new ManualClock();
    const stage = stageOn(new MemoryStore(), clock);
    stage.log.refuseOpen = true;
    await stage.lead(1);
    stage.consensus.depose();
    await advance(clock, 1_000);
    expect(stage.log.opens).toBe(1);
  });

  it("a log that says fenced, or unknown, is opened again where this node still leads", async () => {
    const { stage } = await leading();
    stage.log.isHolding = true;
    const lost = watch(stage.acquire("a"));
    stage.log.answer({ outcome: "unknown" });
    await drain();
    expect(lost.code).toBe("OUTCOME_UNKNOWN");
    expect(stage.log.opens).toBe(2);
    expect(await stage.granted("b")).toBe(1);
  });
});

describe("acquiring", () => {
  it("grants a free scope, with the place of the record in the log as its epoch", async () => {
    const { stage } = await leading();
    expect(await stage.acquire("a", { ttlMs: 5_000 })).toEqual({ granted: true, epoch: 1, ttlMs: 5_000 });
    expect(await stage.granted("b", { scope: "other" })).toBe(2);
    expect(stage.service.list(null, 9).map(({ scope, epoch }) => [scope, epoch])).toEqual([
      ["other", 2],
      ["s", 1],
    ]);
  });

  it("the same session may hold two scopes", async () => {
    const { stage } = await leading();
    expect(await stage.granted("a")).toBe(1);
    expect(await stage.granted("a", { scope: "t" })).toBe(2);
  });

  it("tells who holds it when it can't be had at once", async () => {
    const { stage } = await leading();
    await stage.granted("a", { metadata: { zone: "x" } });
    expect(await stage.acquire("b")).toEqual({
      granted: false,
      holder: { epoch: 1, identity: "id-a", metadata: { zone: "x" } },
    });
  });

  it("trap 65: a request that is sent again after a lost answer gets the same grant, and writes nothing", async () => {
    const { stage, store } = await leading();
    const epoch = await stage.granted("a");
    expect(await stage.granted("a")).toBe(epoch);
    expect(store.feed.position).toBe(1);
  });

  it("a grant that is told again is told by a confirmed leader only", async () => {
    const { stage } = await leading();
    await stage.granted("a");
    stage.consensus.holdReads = true;
    const again = watch(stage.acquire("a"));
    await drain();
    expect(again.state).toBe("pending");
    stage.consensus.answerReads(7);
    await drain();
    expect(again.value).toEqual({ granted: true, epoch: 1, ttlMs: 10_000 });
  });

  it("a grant that is told again restarts the lease", async () => {
    const { stage, clock } = await leading();
    await stage.granted("a");
    await advance(clock, 9_000);
    await stage.granted("a");
    await advance(clock, 9_000);
    expect(stage.service.get("s")?.holder?.identity).toBe("id-a");
    await advance(clock, 1_001);
    expect(stage.service.get("s")?.holder).toBeNull();
  });

  it("waits in turn, and whoever resigns and asks again goes behind those who wait", async () => {
    const { stage } = await leading();
    const epoch = await stage.granted("a");
    const [b, c] = [watch(stage.acquire("b", { waitMs: 60_000 })), watch(stage.acquire("c", { waitMs: 60_000 }))];
    await stage.service.resign("s", "a", epoch);
    const again = watch(stage.acquire("a", { waitMs: 60_000 }));
    await drain();
    expect(b.value).toMatchObject({ granted: true, epoch: 3 });
    await stage.service.resign("s", "b", 3);
    await drain();
    expect(c.value).toMatchObject({ granted: true, epoch: 5 });
    expect(again.state).toBe("pending");
    await stage.service.resign("s", "c", 5);
    await drain();
    expect(again.value).toMatchObject({ granted: true, epoch: 7 });
  });

  it("frees and grants in one append, so nobody comes between", async () => {
    const { stage } = await leading();
    const epoch = await stage.granted("a");
    const b = watch(stage.acquire("b", { waitMs: 60_000 }));
    stage.log.isHolding = true;
    const resigned = watch(stage.service.resign("s", "a", epoch));
    const barging = watch(stage.acquire("x"));
    expect(stage.log.waiting).toBe(1);
    stage.log.release();
    await drain();
    expect([resigned.state, b.value?.granted, barging.value?.granted]).toEqual(["resolved", true, false]);
  });

  it("says so when the time to wait is over, and grants to the next", async () => {
    const { stage, clock } = await leading();
    const epoch = await stage.granted("a");
    const b = watch(stage.acquire("b", { waitMs: 1_000 }));
    const c = watch(stage.acquire("c", { waitMs: 5_000 }));
    await advance(clock, 1_000);
    expect(b.value).toMatchObject({ granted: false, holder: { identity: "id-a" } });
    await stage.service.resign("s", "a", epoch);
    await drain();
    expect(c.value).toMatchObject({ granted: true });
  });

  it("a waiter whose signal aborts leaves at once, and is never granted", async () => {
    const { stage, store } = await leading();
    const epoch = await stage.granted("a");
    const leaving = new AbortController();
    const b = watch(stage.acquire("b", { waitMs: 60_000 }, leaving.signal));
    leaving.abort();
    await drain();
    expect(b.value?.granted).toBe(false);
    expect(stage.service.stats.waiting).toBe(0);
    await stage.service.resign("s", "a", epoch);
    expect(store.feed.position).toBe(2);
  });

  it("a grant whose waiter has gone meanwhile is resigned at once, and the next one gets it", async () => {
    const { stage } = await leading();
    stage.log.isHolding = true;
    const leaving = new AbortController();
    const a = watch(stage.acquire("a", {}, leaving.signal));
    const b = watch(stage.acquire("b", { waitMs: 60_000 }));
    leaving.abort();
    stage.log.release();
    await drain();
    expect(a.code).toBe("OUTCOME_UNKNOWN");
    expect(b.value).toMatchObject({ granted: true, epoch: 3 });
    expect(stage.service.history("s").map(({ reason }) => reason)).toEqual(["acquired", "resigned", "acquired"]);
  });

  it("trap 66: a request that is given up while its grant is written is no refusal: the grant may be in force", async () => {
    const { stage, store } = await leading();
    stage.log.isHolding = true;
    const stopping = new AbortController();
    const a = watch(stage.acquire("a", { waitMs: 60_000 }, stopping.signal));
    stopping.abort();
    await drain();
    expect(a).toEqual({ state: "rejected", code: "OUTCOME_UNKNOWN" });
    stage.log.release();
    await drain();
    expect(store.feed.position).toBeGreaterThan(0);
  });

  it("trap 65: a grant whose first request has gone is kept for the second request of the same session", async () => {
    const { stage } = await leading();
    stage.log.isHolding = true;
    const leaving = new AbortController();
    const first = watch(stage.acquire("a", {}, leaving.signal));
    const second = watch(stage.acquire("a"));
    leaving.abort();
    stage.log.release();
    await drain();
    expect(first.code).toBe("OUTCOME_UNKNOWN");
    expect(second.value).toMatchObject({ granted: true, epoch: 1 });
    expect(stage.service.get("s")?.holder?.identity).toBe("id-a");
  });

  it("two requests of one session wait in one place, and both are answered", async () => {
    const { stage } = await leading();
    const epoch = await stage.granted("a");
    const first = watch(stage.acquire("b", { waitMs: 60_000 }));
    const second = watch(stage.acquire("b", { waitMs: 60_000 }));
    expect(stage.service.stats.waiting).toBe(1);
    await stage.service.resign("s", "a", epoch);
    await drain();
    expect([first.value, second.value]).toMatchObject([
      { granted: true, epoch: 3 },
      { granted: true, epoch: 3 },
    ]);
  });

  it("refuses one waiter too many, and says so", async () => {
    const { stage } = await leading();
    await stage.granted("a");
    for (let at = 0; at < SCOPE_WAITERS_MAX; at++) void stage.acquire(`w${at}`, { waitMs: 60_000 });
    await expect(stage.acquire("late", { waitMs: 60_000 })).rejects.toMatchObject({ code: "OVERLOADED" });
    expect(stage.service.stats.waiting).toBe(SCOPE_WAITERS_MAX);
  });

  it("refuses a scope too many while all are held, and takes the place of one that is free", async () => {
    const stage = stageOn(new MemoryStore(), new ManualClock(), 2);
    await stage.lead(1);
    const epoch = await stage.granted("a", { scope: "s1" });
    await stage.granted("a", { scope: "s2" });
    await expect(stage.acquire("a", { scope: "s3" })).rejects.toMatchObject({
      code: "OVERLOADED",
      message: expect.stringContaining("2 scopes are held, as many as a cluster has room for"),
    });
    await stage.service.resign("s1", "a", epoch);
    expect(await stage.granted("a", { scope: "s3" })).toBe(4);
    expect(stage.service.list(null, 9).map(({ scope }) => scope)).toEqual(["s2", "s3"]);
  });

  it.each([
    ["scope", { scope: "" }],
    ["scope", { scope: "x".repeat(257) }],
    ["scope", { scope: "\uD800" }],
    ["scope", { scope: "." }],
    ["scope", { scope: ".." }],
    ["session", { session: "" }],
    ["identity", { identity: "\0" }],
    ["ttl_ms", { ttlMs: 999 }],
    ["ttl_ms", { ttlMs: 1_000.5 }],
    ["wait_ms", { waitMs: -1 }],
    ["wait_ms", { waitMs: 60_001 }],
    ["metadata", { metadata: { key: "x".repeat(4_096) } }],
  ])("trap 63: refuses a wrong %s and names it", async (name, wrong) => {
    const { stage, store } = await leading();
    const refusal = stage.acquire("a", wrong);
    await expect(refusal).rejects.toMatchObject({
      code: "BAD_REQUEST",
      message: expect.stringContaining(name) as string,
    });
    expect(store.feed.position).toBe(0);
  });
});
