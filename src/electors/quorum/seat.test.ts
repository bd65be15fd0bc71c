import { describe, expect, it } from "vitest";
import { COORDINATOR_CALL_MS, RELEASED_AWAY_MS } from "../../controller/coordinators/limits.ts";
import { TenureError } from "../../core/kit/errors.ts";
import { seededRandom } from "../../core/kit/random.ts";
import { LEASE_TRUST_MS, LEASE_TTL_MS } from "../../core/lease/limits.ts";
import { trustMs } from "../../core/trust/window.ts";
import { settled } from "../../loops/test-clock.ts";
import type { Leader } from "../../ports/elector.ts";
import { ScopeElector } from "../elector.ts";
import { HandQuorum } from "./test-quorum.ts";

const never = new AbortController().signal;

/** How a promise is at this moment. */
async function stateOf(promise: Promise<unknown>): Promise<string> {
  let state = "pending";
  promise.then(
    () => (state = "resolved"),
    (error: unknown) => (state = TenureError.is(error) ? error.code : String(error)),
  );
  await settled();
  return state;
}

/** A seat that holds epoch 7, proved at the clock's beginning. */
async function holding(quorum: HandQuorum) {
  const sat = quorum.sit();
  const grant = sat.seat.acquire(never);
  quorum.lead(7);
  await grant;
  return sat;
}

describe("trap 44: trust starts when the requests left that proved it", () => {
  it("of a grant", async () => {
    const quorum = new HandQuorum();
    const { now: provedAt } = quorum.clock;
    const grant = quorum.sit().seat.acquire(never);
    quorum.clock.stop(300);
    quorum.held = { epoch: 7, provedAt };
    quorum.changed();
    expect(await grant).toEqual({ epoch: 7, sentAt: provedAt });
  });

  it("of a beat, which is answered when a later proof has come, however long that takes", async () => {
    const quorum = new HandQuorum();
    const { seat } = await holding(quorum);
    const beat = seat.beat(7);
    quorum.clock.stop(400);
    quorum.changed();
    expect(await stateOf(beat)).toBe("pending");
    const { now: provedAt } = quorum.clock;
    quorum.clock.stop(400);
    quorum.held = { epoch: 7, provedAt };
    quorum.changed();
    expect(await beat).toEqual({ sentAt: provedAt });
  });

  it("of a beat that asks after the proof", async () => {
    const quorum = new HandQuorum();
    const { seat } = await holding(quorum);
    quorum.clock.stop(400);
    quorum.lead(7);
    const { now: provedAt } = quorum.clock;
    quorum.clock.stop(400);
    expect(await seat.beat(7)).toEqual({ sentAt: provedAt });
    expect(await stateOf(seat.beat(7))).toBe("pending");
  });
});

describe("a gate over a proof that is old", () => {
  const elect = (quorum: HandQuorum) =>
    new ScopeElector(
      { scope: "tc", backend: quorum.backend, identity: "me", metadata: quorum.metadata },
      { clock: quorum.clock, random: seededRandom(1), uuid: () => "uuid", warn: () => {} },
    );

  it("closes when trust has passed since that proof, although the quorum still says that it is held (trap 34)", async () => {
    const quorum = new HandQuorum();
    const elector = elect(quorum);
    const acquired = elector.acquire();
    await quorum.clock.advance(0);
    quorum.lead(7);
    const term = await acquired;
    await quorum.clock.advance(LEASE_TRUST_MS - 1);
    quorum.changed();
    expect(term.check()).toBe(7);
    quorum.clock.stop(1);
    quorum.changed();
    expect(() => term.check()).toThrow("no heartbeat was answered in time");
    // A later proof opens it again, in the same term.
    quorum.lead(7);
    await quorum.clock.advance(1);
    expect(term.check()).toBe(7);
    await quorum.clock.advance(LEASE_TTL_MS + 1_000);
    expect(await term.ended).toBe("expired");
    expect(quorum.asked.at(-1)).toBe("unwant");
  });

  it("never opens where the trust was over before the elector heard of it: the hold is given up", async () => {
    const quorum = new HandQuorum();
    const elector = elect(quorum);
    void elector.acquire();
    await quorum.clock.advance(0);
    const { now: provedAt } = quorum.clock;
    quorum.clock.stop(LEASE_TRUST_MS);
    quorum.held = { epoch: 7, provedAt };
    quorum.changed();
    await settled();
    expect(elector.gate.isLeader).toBe(false);
    expect(quorum.asked).toEqual(["want", "unwant"]);
    expect(elector.stats().acquiredTotal).toBe(0);
  });

  it("trusts as long as the leader's own gate does", () => {
    const { timing } = new HandQuorum().backend;
    expect([timing.serverTimeoutMs, trustMs(timing)]).toEqual([LEASE_TTL_MS, LEASE_TRUST_MS]);
  });
});

describe("the end of a leadership", () => {
  it("is reported at once and once, and ends the beat that waits", async () => {
    const quorum = new HandQuorum();
    const { seat, losses } = await holding(quorum);
    const beat = seat.beat(7);
    quorum.lead(null);
    quorum.changed();
    expect(losses).toEqual([[7, "lease-gone"]]);
    expect(await stateOf(beat)).toBe("STALE_EPOCH");
    expect(await stateOf(seat.beat(7))).toBe("STALE_EPOCH");
    expect(await stateOf(seat.release(7))).toBe("STALE_EPOCH");
  });

  it("is found by a beat, too, and says that another leads where one does", async () => {
    const quorum = new HandQuorum();
    const { seat, losses } = await holding(quorum);
    quorum.held = null;
    quorum.leader = { epoch: 8, identity: "other", metadata: {}, untilMs: Infinity };
    expect(await stateOf(seat.beat(7))).toBe("STALE_EPOCH");
    expect(losses).toEqual([[7, "superseded"]]);
  });
});

describe("letting go", () => {
  it("is confirmed by a majority, or rejected", async () => {
    const quorum = new HandQuorum();
    const { seat, losses } = await holding(quorum);
    const beat = seat.beat(7);
    await seat.release(7);
    expect(quorum.asked).toEqual(["want", "release 7"]);
    expect(await stateOf(beat)).toBe("STALE_EPOCH");
    expect(losses).toEqual([]);
    quorum.isConfirmed = false;
    const again = seat.acquire(never);
    quorum.lead(8);
    await again;
    expect(await stateOf(seat.release(8))).toBe("BACKEND_UNAVAILABLE");
  });

  it("may take longer at the coordinator than each of its calls, and then lets others go first for as long as that does", () => {
    const { timing } = new HandQuorum().backend;
    expect(timing.releaseTimeoutMs).toBeGreaterThan(COORDINATOR_CALL_MS);
    expect(timing.holdBackMs).toBe(RELEASED_AWAY_MS);
  });

  it("of a campaign: what the coordinator wins afterwards is nobody's", async () => {
    const quorum = new HandQuorum();
    const { seat } = quorum.sit();
    const stop = new AbortController();
    const acquired = seat.acquire(stop.signal);
    stop.abort();
    seat.abandon();
    quorum.lead(7);
    expect(await stateOf(acquired)).toBe("BACKEND_UNAVAILABLE");
    expect(quorum.asked).toEqual(["want", "unwant"]);
    expect(await stateOf(seat.beat(7))).toBe("STALE_EPOCH");
    const next = seat.acquire(never);
    quorum.lead(8);
    expect((await next).epoch).toBe(8);
  });

  it("leaves nothing behind: abandon and close are safe twice, and nobody listens any more", async () => {
    const quorum = new HandQuorum();
    const { seat } = await holding(quorum);
    for (let times = 0; times < 2; times++) seat.abandon();
    await seat.close();
    await seat.close();
    expect([quorum.asked, quorum.listeners]).toEqual([["want", "unwant"], 0]);
    expect(await stateOf(seat.acquire(AbortSignal.abort()))).toBe("BACKEND_UNAVAILABLE");
    expect(quorum.asked).toEqual(["want", "unwant"]);
  });
});

describe("what a lease can't carry is refused", () => {
  const refused = (claim: Parameters<HandQuorum["sit"]>[0], why: string): void =>
    expect(() => new HandQuorum().sit(claim)).toThrow(
      expect.objectContaining({ code: "CONFIG_INVALID", message: expect.stringContaining(why) as string }),
    );

  it("another scope", () => refused({ scope: "payer" }, 'the coordinators have one scope, "tc"'));
  it("another identity than the node's", () => refused({ identity: "payer-1" }, 'known by its node id, "me"'));
  it("metadata that observers would not see", () => refused({ metadata: { zone: "1" } }, "carries no metadata"));

  it("two electors of one node: the second one is busy until the first has let go", async () => {
    const quorum = new HandQuorum();
    const { seat } = await holding(quorum);
    const other = quorum.sit().seat;
    expect(await stateOf(other.acquire(never))).toBe("ELECTOR_BUSY");
    other.abandon();
    expect(quorum.asked).toEqual(["want"]);
    await seat.release(7);
    expect(await stateOf(other.acquire(never))).toBe("pending");
  });
});

describe("an observer", () => {
  function watched(quorum: HandQuorum): { heard: (number | null)[]; stop: () => void } {
    const heard: (number | null)[] = [];
    const tell = (leader: Leader | null): void => void heard.push(leader?.epoch ?? null);
    return { heard, stop: quorum.sit().seat.watch(tell) };
  }

  it("learns the present leader, then each change, and none twice", async () => {
    const quorum = new HandQuorum();
    const { heard, stop } = watched(quorum);
    await settled();
    for (const epoch of [7, 7, null, 8, 9]) quorum.observe(epoch);
    expect(heard).toEqual([null, 7, null, 8, 9]);
    stop();
    quorum.observe(10);
    expect(heard).toEqual([null, 7, null, 8, 9]);
  });

  it("learns that a lease has ended by itself, and not before it was renewed for the last time", async () => {
    const quorum = new HandQuorum();
    const { nowMs } = quorum.clock;
    quorum.observe(7, nowMs + 3_000);
    const { heard } = watched(quorum);
    await settled();
    // Nobody reports a renewal: it changes nothing but the end.
    quorum.leader = { ...quorum.leader!, untilMs: nowMs + 4_000 };
    await quorum.clock.advance(3_999);
    expect(heard).toEqual([7]);
    await quorum.clock.advance(1);
    expect(heard).toEqual([7, null]);
    expect(await quorum.sit().seat.leader()).toBeNull();
  });
});
