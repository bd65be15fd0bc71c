// Each sentence of what `lead` promises (docs in ports/elector.ts), on a seat that the test plays by hand.

import { describe, expect, test } from "vitest";
import { NotLeaderError, TenureError } from "../core/kit/errors.ts";
import type { Term } from "../ports/elector.ts";
import { settled } from "../loops/test-clock.ts";
import { type Rig, rig } from "./test-seat.ts";

/** Work that ends when the test says so. */
function byHand() {
  const terms: Term[] = [];
  const works: PromiseWithResolvers<string>[] = [];
  const work = (term: Term): Promise<string> => {
    terms.push(term);
    const one = Promise.withResolvers<string>();
    works.push(one);
    return one.promise;
  };
  return { work, works, terms };
}

/** What a promise came to, without waiting for it. */
function fateOf(promise: Promise<unknown>): { outcome: unknown; settled: boolean } {
  const fate: { outcome: unknown; settled: boolean } = { outcome: undefined, settled: false };
  promise.then(
    (value: unknown) => Object.assign(fate, { outcome: value, settled: true }),
    (error: unknown) => Object.assign(fate, { outcome: error, settled: true }),
  );
  return fate;
}

async function leading(rigged: Rig, options?: Parameters<Rig["elector"]["lead"]>[1], epoch = 7) {
  const hand = byHand();
  const fate = fateOf(rigged.elector.lead(hand.work, options));
  await rigged.seat.grant(epoch);
  return { ...hand, fate };
}

describe("lead", () => {
  test("work returns while its term holds: it resigns, then resolves", async () => {
    const rigged = rig();
    const { works, fate, terms } = await leading(rigged);
    works[0]!.resolve("done");
    await settled();
    expect(rigged.seat.log).toEqual(["acquire", "release"]);
    expect(fate.settled).toBe(false);
    await rigged.seat.released();
    expect(fate).toEqual({ outcome: "done", settled: true });
    expect(await terms[0]!.ended).toBe("resigned");
    expect(rigged.story()).toEqual(["campaigning", "leading", "ended resigned"]);
  });

  test("work throws, also at once: it resigns, then rejects with that", async () => {
    const rigged = rig();
    const error = new Error("broken");
    const fate = fateOf(
      rigged.elector.lead(() => {
        throw error;
      }),
    );
    await rigged.seat.grant(7);
    expect(rigged.seat.log).toEqual(["acquire", "release"]);
    await rigged.seat.released();
    expect(fate.outcome).toBe(error);
  });

  test("work that resigns by itself and returns is done: its outcome is what lead resolves with", async () => {
    const rigged = rig();
    const fate = fateOf(
      rigged.elector.lead(async (term) => {
        await term.resign();
        return "done";
      }),
    );
    await rigged.seat.grant(7);
    await rigged.seat.released();
    expect(fate).toEqual({ outcome: "done", settled: true });
    expect(rigged.story()).toEqual(["campaigning", "leading", "ended resigned"]);
  });

  test("its term ends first: the signal aborts once, the outcome is dropped, and it campaigns again", async () => {
    const rigged = rig();
    const { works, terms, fate } = await leading(rigged);
    let aborts = 0;
    terms[0]!.signal.addEventListener("abort", () => aborts++);
    rigged.seat.claim.lost(7, "session-ended");
    await settled();
    expect([aborts, terms[0]!.signal.aborted]).toEqual([1, true]);
    works[0]!.resolve("late");
    await settled();
    expect(fate.settled).toBe(false);
    await rigged.seat.grant(8);
    expect(terms.map(({ epoch }) => epoch)).toEqual([7, 8]);
    expect(rigged.story()).toEqual(["campaigning", "leading", "ended session-ended", "campaigning", "leading"]);
    expect(aborts).toBe(1);
  });

  test("its term ends first with onLost throw: it rejects once the work has settled", async () => {
    const rigged = rig();
    const { works, fate } = await leading(rigged, { onLost: "throw" });
    rigged.seat.claim.lost(7, "superseded");
    await settled();
    expect(fate.settled).toBe(false);
    works[0]!.reject(new Error("dropped"));
    await settled();
    expect(NotLeaderError.is(fate.outcome)).toBe(true);
    expect(String(fate.outcome)).toMatch(/epoch 7 .* was lost \(superseded\)/);
  });

  test("never two works at once: no campaign before the previous work settled", async () => {
    const rigged = rig();
    const { works } = await leading(rigged);
    rigged.seat.claim.lost(7, "session-ended");
    await rigged.clock.advance(9_999);
    expect(rigged.seat.log).toEqual(["acquire", "abandon"]);
    works[0]!.resolve("");
    await settled();
    expect(rigged.seat.log.at(-1)).toBe("acquire");
  });

  test("work that goes on for longer than drainMs: TERM_OVERRUN, and the elector stays busy until it settles", async () => {
    const rigged = rig();
    const { works, fate } = await leading(rigged, { drainMs: 300 });
    rigged.seat.claim.lost(7, "session-ended");
    await rigged.clock.advance(299);
    expect(fate.settled).toBe(false);
    await rigged.clock.advance(1);
    expect(fate.outcome).toMatchObject({ code: "TERM_OVERRUN" });
    await expect(rigged.elector.lead(() => 1)).rejects.toMatchObject({ code: "ELECTOR_BUSY" });
    works[0]!.resolve("");
    await settled();
    const again = fateOf(rigged.elector.lead(() => "again"));
    await rigged.seat.grant(8);
    await rigged.seat.released();
    expect(again.outcome).toBe("again");
  });

  test("its signal aborts in a campaign: what is under way is abandoned, and it rejects with the reason", async () => {
    const rigged = rig();
    const stop = new AbortController();
    const fate = fateOf(rigged.elector.lead(() => 1, { signal: stop.signal }));
    const reason = new Error("enough");
    stop.abort(reason);
    await settled();
    expect(fate.outcome).toBe(reason);
    expect(rigged.seat.log).toEqual(["acquire", "abandon"]);
    expect(rigged.seat.acquires[0]!.signal!.aborted).toBe(true);
    await expect(rigged.elector.lead(() => 1, { signal: stop.signal })).rejects.toBe(reason);
    expect(rigged.seat.log).toEqual(["acquire", "abandon"]);
  });

  test("its signal aborts in a term: the work winds up with the gate open, and only then is the scope let go", async () => {
    const rigged = rig();
    const stop = new AbortController();
    const { works, terms, fate } = await leading(rigged, { signal: stop.signal });
    const reason = new Error("enough");
    stop.abort(reason);
    await settled();
    expect(terms[0]!.signal.reason).toBe(reason);
    expect(rigged.elector.gate.requireLeader()).toBe(7);
    expect(rigged.seat.log).not.toContain("release");
    works[0]!.resolve("");
    await settled();
    expect(rigged.elector.gate.isLeader).toBe(false);
    await rigged.seat.released();
    expect(fate.outcome).toBe(reason);
  });

  test("trap 48: an operator asks: the work winds up, only then is the scope let go, and it campaigns again", async () => {
    const rigged = rig();
    const { works, terms, fate } = await leading(rigged);
    await rigged.clock.advance(1_200);
    const [beat] = rigged.seat.beats;
    beat!.resolve({ sentAt: beat!.sentAt, resignRequested: true });
    await settled();
    expect(terms[0]!.signal.aborted).toBe(true);
    expect(rigged.elector.gate.requireLeader()).toBe(7);
    expect(rigged.seat.log).not.toContain("release");
    works[0]!.resolve("");
    await settled();
    expect(rigged.seat.log.at(-1)).toBe("release");
    await rigged.seat.released();
    expect(rigged.story().slice(-2)).toEqual(["ended asked", "campaigning"]);
    expect(fate.settled).toBe(false);
  });

  test("a work that does not wind up in time loses its scope after drainMs", async () => {
    const rigged = rig();
    const stop = new AbortController();
    const { fate } = await leading(rigged, { signal: stop.signal, drainMs: 300 });
    stop.abort(new Error("enough"));
    await rigged.clock.advance(299);
    expect(rigged.seat.log).not.toContain("release");
    await rigged.clock.advance(1);
    await settled();
    expect(rigged.seat.log).toContain("release");
    await rigged.seat.released();
    expect(TenureError.is(fate.outcome) && fate.outcome.code).toBe("TERM_OVERRUN");
  });

  test("work that a closed gate refused runs again in the same term when it opens", async () => {
    const rigged = rig();
    const runs: number[] = [];
    const fate = fateOf(
      rigged.elector.lead(async (term) => {
        runs.push(term.epoch);
        if (runs.length === 1) rigged.clock.stop(5_000);
        return term.check();
      }),
    );
    await rigged.seat.grant(7);
    await settled();
    expect(fate.settled).toBe(false);
    await rigged.clock.advance(1);
    const beat = rigged.seat.beats.at(-1);
    beat!.resolve({ sentAt: beat!.sentAt });
    await settled();
    await rigged.clock.advance(20);
    await settled();
    await rigged.seat.released();
    expect(runs).toEqual([7, 7]);
    expect(fate).toEqual({ outcome: 7, settled: true });
  });

  test("work that throws behind a closed gate is dropped if its term was over", async () => {
    const rigged = rig();
    const fate = fateOf(
      rigged.elector.lead(async () => {
        rigged.clock.stop(10_000);
        throw new Error("the connection was gone");
      }),
    );
    await rigged.seat.grant(7);
    await settled();
    rigged.seat.claim.lost(7, "session-ended");
    await rigged.clock.advance(20);
    await settled();
    expect(fate.settled).toBe(false);
    expect(rigged.story().slice(-2)).toEqual(["ended session-ended", "campaigning"]);
  });

  test("after a resignation another goes first", async () => {
    const rigged = rig();
    const { works } = await leading(rigged);
    works[0]!.resolve("");
    await settled();
    await rigged.seat.released();
    void rigged.elector.lead(() => 1).catch(() => {});
    await rigged.clock.advance(499);
    expect(rigged.seat.log).toEqual(["acquire", "release"]);
    await rigged.clock.advance(1);
    expect(rigged.seat.log.at(-1)).toBe("acquire");
  });

  test("the gate may close and open again inside a term, and the signal does not abort for it", async () => {
    const rigged = rig();
    const { terms } = await leading(rigged);
    rigged.clock.stop(5_000);
    expect(rigged.elector.gate.isLeader).toBe(false);
    await rigged.clock.advance(0);
    expect(terms[0]!.signal.aborted).toBe(false);
    rigged.seat.beats.at(-1)!.resolve({ sentAt: rigged.clock.now });
    await settled();
    expect(rigged.elector.gate.requireLeader()).toBe(7);
    expect(rigged.story()).toEqual(["campaigning", "leading", "suspended", "resumed"]);
  });

  test("work that another elector's closed gate refuses runs again after a pause, and can be stopped", async () => {
    const rigged = rig();
    const caller = new AbortController();
    let runs = 0;
    const fate = fateOf(
      rigged.elector.lead(
        () => {
          // Without a pause the event loop would never turn again.
          if (++runs === 100) return;
          throw new NotLeaderError("suspended", "another elector's gate is closed");
        },
        { signal: caller.signal },
      ),
    );
    await rigged.seat.grant(7);
    expect(runs).toBe(1);
    await rigged.clock.advance(20);
    await settled();
    expect(runs).toBe(2);
    caller.abort("stopped");
    await rigged.clock.advance(20);
    await rigged.seat.released();
    expect([fate.outcome, runs]).toEqual(["stopped", 2]);
  });

  test("a fence that refused the epoch ends the term", async () => {
    const rigged = rig();
    const fenced: (() => void)[] = [];
    void rigged.elector.lead((term) => {
      fenced.push(() => term.fenced("superseded"));
      return new Promise(() => {});
    });
    await rigged.seat.grant(7);
    fenced[0]!();
    expect(rigged.elector.gate.isLeader).toBe(false);
    expect(rigged.story().at(-1)).toBe("ended superseded");
  });
});
