// The loop between machine and seat: what it passes on, and what it bears.

import { describe, expect, test } from "vitest";
import { settled } from "../loops/test-clock.ts";
import { rig } from "./test-seat.ts";

async function held() {
  const rigged = rig();
  const acquired = rigged.elector.acquire();
  await rigged.seat.grant(7);
  return { ...rigged, term: await acquired };
}

describe("the seat loop", () => {
  test("trap 44: passes on when a request was sent, not when its answer came", async () => {
    const { clock, seat, elector } = await held();
    await clock.advance(1_200);
    const { sentAt, resolve } = seat.beats[0]!;
    clock.stop(3_000);
    resolve({ sentAt });
    await settled();
    expect(elector.gate.remainingMs).toBeCloseTo(sentAt.monotonicMs + 4_500 - clock.now.monotonicMs, 3);
  });

  test("trap 42: a beat that fails is complained about once, and sent again", async () => {
    const { clock, seat, elector, logged } = await held();
    for (let attempt = 0; attempt < 5; attempt++) {
      await clock.advance(attempt === 0 ? 1_200 : 250);
      seat.beats.at(-1)!.reject(new Error("timeout"));
      await settled();
      expect(elector.gate.isLeader).toBe(true);
    }
    expect(seat.beats.length).toBe(5);
    expect(logged).toEqual(["warn a heartbeat was not answered: timeout"]);
  });

  test("a beat that hangs for ever is abandoned with its term", async () => {
    const { clock, seat, story } = await held();
    await clock.advance(6_500);
    expect(seat.beats.length).toBe(1);
    expect(story()).toEqual(["campaigning", "leading", "suspended", "ended expired"]);
    expect(seat.log.at(-1)).toBe("abandon");
    expect(clock.pending).toBe(0);
  });

  test("a release that fails is complained about, and the session dropped", async () => {
    const { seat, term, logged } = await held();
    const resigned = term.resign();
    seat.releases[0]!.reject(new Error("gone"));
    await resigned;
    expect(seat.log.slice(-2)).toEqual(["release", "abandon"]);
    expect(logged[0]).toMatch(/letting go of the scope was not confirmed; .*: gone/);
  });

  test("a release that hangs is dropped after its timeout, and the resignation ends", async () => {
    const { clock, seat, term } = await held();
    let resigned = false;
    void term.resign().then(() => (resigned = true));
    void term.resign();
    await clock.advance(999);
    expect(resigned).toBe(false);
    await clock.advance(1);
    await settled();
    expect(resigned).toBe(true);
    expect(seat.log.filter((call) => call === "release")).toHaveLength(1);
    expect(seat.log.at(-1)).toBe("abandon");
  });

  test("an operator's request comes with a beat; a term held by hand has ten seconds to wind up", async () => {
    const { clock, seat, story, elector } = await held();
    await clock.advance(1_200);
    seat.beats[0]!.resolve({ sentAt: seat.beats[0]!.sentAt, resignRequested: true });
    await settled();
    expect(story().at(-1)).toBe("leading");
    expect(elector.gate.isLeader).toBe(true);
    for (let beat = 1; beat <= 10; beat++) {
      await clock.advance(1_000);
      seat.beats.at(-1)!.resolve({ sentAt: seat.beats.at(-1)!.sentAt, resignRequested: true });
      await settled();
    }
    expect(story().at(-1)).toBe("ended asked");
    expect(seat.log.at(-1)).toBe("release");
  });

  test("a late answer to a beat of the last term does nothing to the next one", async () => {
    const { clock, seat, elector, story } = await held();
    await clock.advance(1_200);
    seat.claim.lost(7, "lease-gone");
    const next = elector.acquire();
    await seat.grant(8);
    await next;
    seat.beats[0]!.resolve({ sentAt: clock.now, resignRequested: true });
    await settled();
    expect(elector.gate.requireLeader()).toBe(8);
    expect(story().at(-1)).toBe("leading");
  });
});
