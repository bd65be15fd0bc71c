import { describe, expect, test } from "vitest";
import { DRAIN_MS } from "../core/kit/limits.ts";
import type { Leader } from "../ports/elector.ts";
import { settled } from "../loops/test-clock.ts";
import { rig } from "./test-seat.ts";

describe("an elector", () => {
  test("has an identity of its own, made of scope, host and something unique", () => {
    expect(rig().elector.identity).toBe("payer-host-1-uuid");
    expect(rig({ identity: "me" }).elector.identity).toBe("me");
  });

  test("leads once at a time", async () => {
    const { elector, seat } = rig();
    const first = elector.acquire();
    await expect(elector.acquire()).rejects.toMatchObject({ code: "ELECTOR_BUSY" });
    await expect(elector.lead(() => 1)).rejects.toMatchObject({ code: "ELECTOR_BUSY" });
    await seat.grant(7);
    const term = await first;
    await expect(elector.acquire()).rejects.toMatchObject({ code: "ELECTOR_BUSY" });
    const resigned = term.resign();
    await seat.released();
    await resigned;
    const again = elector.acquire({ signal: AbortSignal.abort(new Error("no")) });
    await expect(again).rejects.toThrow("no");
  });

  test("is free again when a term is lost in the very moment that it was granted", async () => {
    const { elector, seat, clock, story } = rig();
    const first = elector.acquire();
    seat.acquires[0]!.resolve({ epoch: 7, sentAt: clock.now });
    // After the answer, and before whoever awaits the term.
    void Promise.resolve().then(() => seat.claim.lost(7, "session-ended"));
    const term = await first;
    expect(await term.ended).toBe("session-ended");
    expect(story()).toEqual(["campaigning", "leading", "ended session-ended"]);
    const again = elector.acquire();
    await seat.grant(8);
    expect((await again).epoch).toBe(8);
  });

  test("an operator asks: whoever acquired a term by hand and does not resign has DRAIN_MS, then it is done for them", async () => {
    const { elector, seat, clock } = rig();
    const acquired = elector.acquire();
    await seat.grant(7);
    const term = await acquired;
    let answered = 0;
    const pass = async (forMs: number): Promise<void> => {
      for (let passedMs = 0; passedMs < forMs; passedMs += 100) {
        await clock.advance(100);
        for (const beat of seat.beats.slice(answered)) beat.resolve({ sentAt: beat.sentAt, resignRequested: true });
        answered = seat.beats.length;
        await settled();
      }
    };
    while (!term.signal.aborted) await pass(100);
    await pass(DRAIN_MS - 100);
    expect(seat.log).not.toContain("release");
    await pass(100);
    expect(seat.log.at(-1)).toBe("release");
    await seat.released();
    expect(await term.ended).toBe("asked");
  });

  test("a backend that refuses for good rejects the campaign, one that is away is asked again", async () => {
    const { elector, seat, clock, logged } = rig();
    const term = elector.acquire();
    const refused = expect(term).rejects.toMatchObject({ code: "PERMISSION_DENIED" });
    await seat.refuse("BACKEND_UNAVAILABLE");
    expect(seat.log).toEqual(["acquire", "abandon"]);
    expect(logged).toEqual(["warn could not acquire the scope: refused"]);
    await clock.advance(200);
    await seat.refuse("PERMISSION_DENIED");
    await refused;
    expect(seat.log).toEqual(["acquire", "abandon", "acquire", "abandon"]);
  });

  test("a grant that nobody waits for any more is not taken", async () => {
    const { elector, seat, story } = rig();
    const stop = new AbortController();
    const stopped = expect(elector.acquire({ signal: stop.signal })).rejects.toThrow("enough");
    stop.abort(new Error("enough"));
    await seat.grant(7);
    await stopped;
    expect(story()).toEqual(["campaigning"]);
    expect(elector.gate.isLeader).toBe(false);
  });

  test("that is not enabled follows: it never asks, and waits until it is stopped", async () => {
    const { elector, seat } = rig({ enabled: false });
    const led = elector.lead(() => 1);
    await settled();
    expect(seat.log).toEqual([]);
    void elector.close();
    await expect(led).rejects.toMatchObject({ code: "ELECTOR_CLOSED" });
  });

  test("whatever a callback throws changes nothing, and is logged", async () => {
    const { elector, seat, logged } = rig({
      onTransition: () => {
        throw new Error("the user's mistake");
      },
    });
    const term = elector.acquire();
    await seat.grant(7);
    expect((await term).epoch).toBe(7);
    expect(logged).toEqual(Array(2).fill("error onTransition failed; leadership is not affected"));
  });

  test("a callback that rejects later is logged too, and a logger that throws changes nothing", async () => {
    const seen: string[] = [];
    const { elector, seat } = rig({
      onTransition: (): unknown => Promise.reject(new Error("later")),
      logger: {
        info: () => {
          throw new Error("the disk is full");
        },
        warn: () => {},
        error: (_fields, message) => void seen.push(message),
      },
    });
    const acquired = elector.acquire();
    await seat.grant(7);
    const term = await acquired;
    seat.claim.lost(7, "session-ended");
    expect(await term.ended).toBe("session-ended");
    expect(term.signal.aborted).toBe(true);
    expect(seat.log.at(-1)).toBe("abandon");
    await settled();
    expect(seen).toHaveLength(3);
  });

  test("close waits for a resignation that nobody awaited", async () => {
    const { elector, seat } = rig();
    const acquired = elector.acquire();
    await seat.grant(7);
    void (await acquired).resign();
    const closed = elector.close();
    await settled();
    expect(seat.log).not.toContain("close");
    await seat.released();
    await closed;
    expect(seat.log).toContain("close");
  });

  test("a resignation from inside a transition is done in order", async () => {
    const late: (() => void)[] = [];
    const { elector, seat, clock, transitions, story } = rig({
      onTransition: (transition) => {
        transitions.push(transition);
        if (transition.kind === "suspended") late.shift()?.();
      },
    });
    const acquired = elector.acquire();
    await seat.grant(7);
    const term = await acquired;
    let resigned = false;
    late.push(() => void term.resign().then(() => (resigned = true)));
    await clock.advance(4_500);
    expect(story()).toEqual(["campaigning", "leading", "suspended", "ended resigned"]);
    expect(resigned).toBe(false);
    await seat.released();
    expect(resigned).toBe(true);
  });

  test("close ends a term, frees the seat, and is safe to call twice; afterwards all is refused", async () => {
    const { elector, seat, clock, story } = rig();
    const term = elector.acquire();
    await seat.grant(7);
    await term;
    const closed = elector.close();
    expect(elector.close()).toBe(closed);
    await settled();
    await seat.released();
    await closed;
    expect(seat.log).toEqual(["acquire", "release", "close"]);
    expect(story().at(-1)).toBe("ended resigned");
    expect(clock.pending).toBe(0);
    await expect(elector.acquire()).rejects.toMatchObject({ code: "ELECTOR_CLOSED" });
    await expect(elector.leader()).rejects.toMatchObject({ code: "ELECTOR_CLOSED" });
    expect(() => elector.observe()).toThrow(/closed/);
  });

  test("close winds up the work of lead before it lets go", async () => {
    const { elector, seat } = rig();
    const done = Promise.withResolvers<void>();
    const led = elector.lead(() => done.promise);
    led.catch(() => {});
    await seat.grant(7);
    const closed = elector.close();
    await settled();
    expect(seat.log).toEqual(["acquire"]);
    done.resolve();
    await settled();
    await seat.released();
    await closed;
    await expect(led).rejects.toMatchObject({ code: "ELECTOR_CLOSED" });
  });

  test("says of its own last term that it is over, though the last leader it has heard of is itself", async () => {
    const { elector, seat } = rig();
    const heard = elector.observe()[Symbol.asyncIterator]().next();
    const acquired = elector.acquire();
    await seat.grant(4);
    const term = await acquired;
    seat.told[0]!({ epoch: 4, identity: elector.identity, metadata: {} });
    await heard;
    seat.claim.lost(4, "session-ended");
    await term.ended;
    expect(() => term.check()).toThrow(
      expect.objectContaining({
        message: expect.stringContaining("this instance's term of epoch 4 is over. "),
        leader: null,
      }),
    );
  });

  test("tells who leads, in its gate's refusals too, once it has heard", async () => {
    const { elector, seat } = rig();
    const seen: (Leader | null)[] = [];
    const observing = (async () => {
      for await (const leader of elector.observe()) seen.push(leader);
    })();
    await settled();
    const other = { epoch: 4, identity: "b", metadata: {} };
    seat.told[0]!(other);
    await settled();
    expect(() => elector.gate.requireLeader()).toThrow(/b leads in epoch 4/);
    expect((await elector.leader())?.identity).toBe("other");
    await elector.close();
    await observing;
    expect(seen).toEqual([other]);
    expect(seat.told).toEqual([]);
  });

  test("counts what happened", async () => {
    const { elector, seat, clock } = rig();
    const term = elector.acquire();
    clock.stop(40);
    await seat.grant(7);
    await term;
    await clock.advance(1_200);
    clock.stop(30);
    seat.beats[0]!.resolve({ sentAt: seat.beats[0]!.sentAt });
    await settled();
    clock.stop(5_000);
    expect(() => elector.gate.requireLeader({ effect: "pay" })).toThrow(/not allowed/);
    const stats = elector.stats();
    expect(stats).toMatchObject({ epoch: 7, isLeader: false, acquiredTotal: 1, acquireAttemptsTotal: 1 });
    expect(stats.effectsBlockedTotal).toEqual({ pay: 1 });
    expect(stats.acquireLatencyMs).toMatchObject({ count: 1, sum: 40 });
    expect(stats.heartbeatUpdateMs.count).toBe(1);
    expect(stats.deadlineSlackMs.count).toBe(1);
    expect(stats.heartbeatAgeMs).toBeGreaterThan(5_000);
    seat.claim.lost(7, "unlocked");
    expect(elector.stats()).toMatchObject({ lostTotal: { unlocked: 1 }, heartbeatAgeMs: null, epoch: 0 });
  });
});
