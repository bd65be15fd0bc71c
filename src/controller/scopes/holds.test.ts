import { describe, expect, it } from "vitest";
import { TenureError } from "../../core/kit/errors.ts";
import { ManualClock } from "../../engine/test-engine.ts";
import { leading, stageOn } from "../../sim/controller/test-scopes-stage.ts";
import { advance, drain, watch } from "./test-scopes.ts";

const unwritten = new TenureError("UNCOMMITTED_LIMIT", "too much waits to be committed");

describe("leases", () => {
  it("a hold that is not renewed expires after its duration, and the first who waits gets it", async () => {
    const { stage, clock } = await leading();
    await stage.granted("a");
    const b = watch(stage.acquire("b", { waitMs: 60_000 }));
    await advance(clock, 9_999);
    expect(b.state).toBe("pending");
    await advance(clock, 1);
    expect(b.value).toMatchObject({ granted: true, epoch: 3 });
    expect(stage.service.history("s").map(({ reason, heldMs }) => [reason, heldMs])).toEqual([
      ["acquired", null],
      ["expired", 10_000],
      ["acquired", null],
    ]);
  });

  it("a renewal extends it, writes nothing, and says how long", async () => {
    const { stage, clock, store } = await leading();
    const epoch = await stage.granted("a");
    for (let beat = 0; beat < 5; beat++) {
      await advance(clock, 6_000);
      expect(await stage.service.renew("s", "a", epoch)).toEqual({ epoch, ttlMs: 10_000, resignRequested: false });
    }
    expect(store.feed.position).toBe(1);
    await advance(clock, 9_999);
    expect(stage.service.get("s")?.holder).not.toBeNull();
    await advance(clock, 1);
    expect(stage.service.get("s")?.holder).toBeNull();
  });

  it("on a copy that was restored paused no hold ends by time, and after its resumption each has its whole lease", async () => {
    const { stage, clock } = await leading();
    await stage.granted("a");
    stage.isPaused = true;
    await advance(clock, 3_600_000);
    expect(stage.service.get("s")?.holder).not.toBeNull();
    stage.isPaused = false;
    stage.state.resumed();
    await advance(clock, 9_999);
    expect(stage.service.get("s")?.holder, "its holder may have renewed elsewhere a moment ago").not.toBeNull();
    await advance(clock, 1);
    expect(stage.service.get("s")?.holder).toBeNull();
  });

  it("trap 44: a lease counts from when the renewal arrived, however late its answer leaves", async () => {
    const { stage, clock } = await leading();
    const epoch = await stage.granted("a");
    await advance(clock, 5_000);
    stage.consensus.holdReads = true;
    const renewal = watch(stage.service.renew("s", "a", epoch));
    await advance(clock, 4_000);
    stage.consensus.answerReads(1);
    await drain();
    expect(renewal.state).toBe("resolved");
    await advance(clock, 5_999);
    expect(stage.service.get("s")?.holder).not.toBeNull();
    await advance(clock, 1);
    expect(stage.service.get("s")?.holder).toBeNull();
  });

  it("a renewal is answered after a read that started after it arrived, and one read serves all that wait", async () => {
    const { stage } = await leading();
    const epochs = await Promise.all(["s1", "s2", "s3", "s4"].map((scope) => stage.granted("a", { scope })));
    stage.consensus.holdReads = true;
    const renewals = [1, 2].map((at) => watch(stage.service.renew(`s${at}`, "a", epochs[at - 1]!)));
    await drain();
    expect(stage.consensus.reads).toBe(1);
    const later = [3, 4].map((at) => watch(stage.service.renew(`s${at}`, "a", epochs[at - 1]!)));
    await drain();
    expect(stage.consensus.reads).toBe(1);
    stage.consensus.answerReads(9);
    await drain();
    expect(renewals.map(({ state }) => state)).toEqual(["resolved", "resolved"]);
    expect(later.map(({ state }) => state)).toEqual(["pending", "pending"]);
    expect(stage.consensus.reads).toBe(2);
    stage.consensus.answerReads(9);
    await drain();
    expect(later.map(({ state }) => state)).toEqual(["resolved", "resolved"]);
  });

  it("a renewal that no majority confirms is refused, retryably, by whom it may concern", async () => {
    const { stage } = await leading();
    const epoch = await stage.granted("a");
    stage.consensus.holdReads = true;
    const unconfirmed = watch(stage.service.renew("s", "a", epoch));
    await drain();
    stage.consensus.answerReads(null);
    await drain();
    expect(unconfirmed.code).toBe("ERR_NO_LEADER");
    const deposed = watch(stage.service.renew("s", "a", epoch));
    await drain();
    stage.consensus.depose();
    await drain();
    expect(deposed.code).toBe("NOT_LEADER");
  });

  it("a read that hangs in one leadership keeps nobody waiting in the next", async () => {
    const { stage } = await leading();
    const epoch = await stage.granted("a");
    stage.consensus.holdReads = true;
    const [asking, waiting] = [
      watch(stage.service.renew("s", "a", epoch)),
      watch(stage.service.renew("s", "a", epoch)),
    ];
    await drain();
    const later = watch(stage.service.renew("s", "a", epoch));
    stage.consensus.lead(2);
    await drain();
    expect([asking.code, waiting.code, later.code]).toEqual(Array(3).fill("NOT_LEADER"));
    stage.consensus.holdReads = false;
    expect(await stage.service.renew("s", "a", epoch)).toMatchObject({ epoch });
  });

  it("a leader that was deposed and does not know it calls no newer hold stale", async () => {
    const { stage } = await leading();
    await stage.granted("a");
    stage.consensus.holdReads = true;
    const newer = [watch(stage.service.renew("s", "b", 9)), watch(stage.service.resign("s", "b", 9))];
    await drain();
    expect(newer.map(({ state }) => state)).toEqual(["pending", "pending"]);
    stage.consensus.depose();
    await drain();
    expect(newer.map(({ code }) => code)).toEqual(["NOT_LEADER", "NOT_LEADER"]);
  });

  it("a renewal with another session or epoch is stale", async () => {
    const { stage } = await leading();
    const epoch = await stage.granted("a");
    for (const [session, wrong] of [
      ["b", epoch],
      ["a", epoch + 1],
    ] as const) {
      await expect(stage.service.renew("s", session, wrong)).rejects.toMatchObject({ code: "STALE_EPOCH" });
    }
    await expect(stage.service.renew("unknown", "a", 1)).rejects.toMatchObject({ code: "STALE_EPOCH" });
  });

  it("trap 56b: under a new leader whose wall clock is far ahead every lease restarts at its full duration", async () => {
    const { stage, clock, store } = await leading();
    const epoch = await stage.granted("a");
    await advance(clock, 9_000);
    stage.consensus.depose();
    const ahead = new ManualClock();
    ahead.nowMs = 1e9;
    const next = stageOn(store, ahead);
    await next.lead(5);
    await advance(ahead, 9_999);
    expect(next.service.get("s")?.holder?.epoch).toBe(epoch);
    await advance(ahead, 1);
    expect(next.service.get("s")?.holder).toBeNull();
  });

  it("trap 29: after a stall of the loop leases go on instead of ending all at once", async () => {
    const { stage, clock } = await leading();
    await stage.granted("a");
    await stage.granted("a", { scope: "t" });
    clock.nowMs += 60_000;
    while (clock.fireNext()) await drain();
    expect(stage.service.list(null, 9).map(({ holder }) => holder !== null)).toEqual([true, true]);
    await advance(clock, 9_999);
    expect(stage.service.get("s")?.holder).not.toBeNull();
    await advance(clock, 501);
    expect(stage.service.list(null, 9).map(({ holder }) => holder)).toEqual([null, null]);
  });

  it("a renewal that came while its hold was being ended extends it where that end is given up", async () => {
    const { stage, clock } = await leading();
    const epoch = await stage.granted("a");
    stage.log.isHolding = true;
    await advance(clock, 10_000);
    stage.consensus.holdReads = true;
    const renewal = watch(stage.service.renew("s", "a", epoch));
    await drain();
    stage.log.answer(unwritten);
    stage.consensus.holdReads = false;
    stage.consensus.answerReads(1);
    await drain();
    expect(renewal.value).toMatchObject({ epoch, ttlMs: 10_000 });
    // Else the expiry would be tried again in a moment, and the holder trusts for a whole duration.
    await advance(clock, 9_999);
    expect(stage.service.get("s")?.holder?.epoch).toBe(epoch);
    await advance(clock, 1_000);
    expect(stage.service.get("s")?.holder).toBeNull();
  });

  it("an expiry that the log refuses is tried again", async () => {
    const { stage, clock } = await leading();
    await stage.granted("a");
    stage.log.isHolding = true;
    await advance(clock, 10_000);
    stage.log.answer(unwritten);
    await drain();
    expect(stage.service.get("s")?.holder).not.toBeNull();
    await advance(clock, 1_000);
    expect(stage.service.get("s")?.holder).toBeNull();
  });
});

describe("resigning", () => {
  it("of a hold that is over already is no error, and of another's is stale", async () => {
    const { stage } = await leading();
    const epoch = await stage.granted("a");
    await expect(stage.service.resign("s", "b", epoch)).rejects.toMatchObject({ code: "STALE_EPOCH" });
    await expect(stage.service.resign("s", "a", epoch + 9)).rejects.toMatchObject({ code: "STALE_EPOCH" });
    await stage.service.resign("s", "a", epoch);
    await stage.service.resign("s", "a", epoch);
    expect(stage.service.get("s")).toEqual({ scope: "s", epoch, holder: null });
  });

  it("an operator asks: the holder hears it at its next renewal, and asking again writes nothing", async () => {
    const { stage, store } = await leading();
    expect(await stage.service.askResign("s", false)).toBeNull();
    const epoch = await stage.granted("a");
    expect(await stage.service.askResign("s", false)).toEqual({ epoch });
    expect(await stage.service.askResign("s", false)).toEqual({ epoch });
    expect(store.feed.position).toBe(2);
    expect(await stage.service.renew("s", "a", epoch)).toMatchObject({ resignRequested: true });
    expect(stage.service.get("s")?.holder?.resignRequested).toBe(true);
  });

  it("an operator forces: the scope goes to the first who waits, and the old holder is stale", async () => {
    const { stage } = await leading();
    const epoch = await stage.granted("a");
    const b = watch(stage.acquire("b", { waitMs: 60_000 }));
    expect(await stage.service.askResign("s", true)).toEqual({ epoch });
    await drain();
    expect(b.value).toMatchObject({ granted: true, epoch: 3 });
    await expect(stage.service.renew("s", "a", epoch)).rejects.toMatchObject({ code: "STALE_EPOCH" });
    expect(stage.service.history("s")[1]).toMatchObject({ reason: "forced", identity: "id-a" });
  });
});
