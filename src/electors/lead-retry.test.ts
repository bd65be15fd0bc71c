// `lead(work, { onError: "retry" })`, and work that waits for itself, on a seat that the test plays by hand.

import { describe, expect, test } from "vitest";
import { TenureError } from "../core/kit/errors.ts";
import type { LeadOptions, Term } from "../ports/elector.ts";
import { settled } from "../loops/test-clock.ts";
import { type Rig, rig } from "./test-seat.ts";

const RETRY: LeadOptions = { onError: "retry" };
/** The seat's own: after a resignation another goes first. */
const HOLD_BACK_MS = 500;

interface Run {
  readonly epoch: number;
  readonly args: readonly unknown[];
}

/** Leads with work that throws these, one after the other, and then returns. */
function failing(rigged: Rig, errors: readonly unknown[], options: LeadOptions = RETRY) {
  const runs: Run[] = [];
  const fate: { outcome?: unknown } = {};
  const work = (...args: unknown[]): Promise<string> => {
    const [term] = args as [Term];
    runs.push({ epoch: term.epoch, args: args.slice(1) });
    const error = errors[runs.length - 1];
    return error === undefined ? Promise.resolve("done") : Promise.reject(error);
  };
  rigged.elector.lead(work, options).then(
    (value) => (fate.outcome = value),
    (error: unknown) => (fate.outcome = error),
  );
  return { runs, fate };
}

const away = (): TenureError => new TenureError("BACKEND_UNAVAILABLE", "the database went away");
const unknown = (): TenureError => new TenureError("OUTCOME_UNKNOWN", "written or not");

async function freed(rigged: Rig): Promise<void> {
  await settled();
  await rigged.seat.released();
}

async function beating(rigged: Rig, seconds: number): Promise<void> {
  for (let second = 0; second < seconds * 2; second++) {
    await rigged.clock.advance(500);
    rigged.seat.beats.at(-1)?.resolve({ sentAt: rigged.clock.now });
    await settled();
  }
}

/** How long it takes, to 100 ms. */
async function untilCampaign(rigged: Rig): Promise<number> {
  const before = rigged.seat.acquires.length;
  for (let passedMs = 0; passedMs <= 10_000; passedMs += 100) {
    if (rigged.seat.acquires.length > before) return passedMs;
    await rigged.clock.advance(100);
    await settled();
  }
  throw new Error("it did not campaign again within 10 s");
}

describe('lead with onError "retry"', () => {
  test("work throws what a retry may repair: it resigns, waits, and runs again in a new epoch, told what it threw", async () => {
    const rigged = rig();
    const error = unknown();
    const { runs, fate } = failing(rigged, [error]);
    await rigged.seat.grant(7);
    expect(rigged.seat.log).toEqual(["acquire", "release"]);
    await freed(rigged);
    expect(fate.outcome).toBeUndefined();
    await rigged.clock.advance(HOLD_BACK_MS);
    await rigged.seat.grant(8);
    await freed(rigged);
    expect(fate.outcome).toBe("done");
    expect(runs).toEqual([
      { epoch: 7, args: [undefined] },
      { epoch: 8, args: [error] },
    ]);
    expect(rigged.logged).toEqual(["warn work failed and is run again: written or not"]);
  });

  test.each([new TypeError("a bug"), new TenureError("TX_MISUSED", "a bug"), "a bug", undefined])(
    "work throws %s, which a retry would only repeat: it resigns and rejects with that",
    async (bug) => {
      const rigged = rig();
      const work = async (): Promise<never> => {
        throw bug;
      };
      const rejected = rigged.elector.lead(work, RETRY).then(
        () => "resolved",
        (thrown: unknown) => [thrown],
      );
      await rigged.seat.grant(7);
      await freed(rigged);
      expect(await rejected).toEqual([bug]);
    },
  );

  test("pauses for longer after each failure, 5 s at most, and from 100 ms again after a run of 10 s", async () => {
    const rigged = rig();
    const works: PromiseWithResolvers<never>[] = [];
    void rigged.elector
      .lead(() => {
        const work = Promise.withResolvers<never>();
        works.push(work);
        return work.promise;
      }, RETRY)
      .catch(() => undefined);
    const pauses: number[] = [];
    for (let run = 1; run <= 9; run++) {
      await rigged.seat.grant(run);
      if (run === 9) await beating(rigged, 10);
      works.at(-1)!.reject(away());
      await freed(rigged);
      pauses.push(await untilCampaign(rigged));
    }
    // What the seat holds back after a resignation is longer than the first pauses.
    expect(pauses).toEqual([500, 500, 500, 800, 1_600, 3_200, 5_000, 5_000, 500]);
  });

  test("a term that was lost is no failure: no pause, and the next work is given what the last one threw", async () => {
    const rigged = rig();
    const error = unknown();
    const seen: unknown[] = [];
    void rigged.elector
      .lead(async (term, lastError) => {
        seen.push(lastError);
        await new Promise((resolve) => term.signal.addEventListener("abort", resolve));
        throw error;
      }, RETRY)
      .catch(() => undefined);
    await rigged.seat.grant(7);
    rigged.seat.claim.lost(7, "session-ended");
    await settled();
    expect(rigged.seat.log.at(-1)).toBe("acquire");
    await rigged.seat.grant(8);
    expect(seen).toEqual([undefined, error]);
    expect(rigged.logged).toEqual([]);
  });

  test.each(["signal", "close"] as const)("%s in the pause ends it at once", async (how) => {
    const rigged = rig();
    const stop = new AbortController();
    const { fate } = failing(rigged, [away()], { ...RETRY, signal: stop.signal });
    await rigged.seat.grant(7);
    await freed(rigged);
    const reason = new Error("enough");
    const closed = how === "close" ? rigged.elector.close() : stop.abort(reason);
    await settled();
    await closed;
    expect(fate.outcome).toEqual(how === "close" ? expect.objectContaining({ code: "ELECTOR_CLOSED" }) : reason);
    expect(rigged.seat.acquires).toHaveLength(1);
  });

  test("without it work has one argument, as ever, and an error rejects", async () => {
    const rigged = rig();
    const error = away();
    const { runs, fate } = failing(rigged, [error], {});
    await rigged.seat.grant(7);
    await freed(rigged);
    expect(fate.outcome).toBe(error);
    expect(runs).toEqual([{ epoch: 7, args: [] }]);
  });

  test("any other word is refused before anything is asked for", async () => {
    const rigged = rig();
    await expect(rigged.elector.lead(() => 1, { onError: "Retry" as never })).rejects.toMatchObject({
      code: "CONFIG_INVALID",
      message: 'lead: onError is "Retry"; it must be "throw" or "retry".',
    });
    expect(rigged.seat.log).toEqual([]);
  });
});

describe("work that awaits the end of its own term", () => {
  const STOP = new Error("enough");

  async function stopped(work: (term: Term) => Promise<unknown>) {
    const rigged = rig();
    const stop = new AbortController();
    const led = rigged.elector.lead(work, { signal: stop.signal, drainMs: 4_000 }).catch((error: unknown) => error);
    await rigged.seat.grant(7);
    stop.abort(STOP);
    await rigged.clock.advance(1_000);
    return { rigged, led };
  }

  test("is reported after a second, and named by the TERM_OVERRUN", async () => {
    const { rigged, led } = await stopped(async ({ ended }) => await ended);
    expect(rigged.logged).toEqual([expect.stringMatching(/^warn work does not stop: .*term\.ended is being awaited/)]);
    await rigged.clock.advance(3_000);
    await rigged.seat.released();
    expect(await led).toMatchObject({
      code: "TERM_OVERRUN",
      message: expect.stringContaining("term.ended is being awaited"),
    });
  });

  test.each<[string, (term: Term) => unknown]>([
    ["then", ({ ended }) => void ended.then(() => undefined)],
    ["finally", ({ ended }) => void ended.finally(() => undefined)],
    ["reading it alone", ({ ended }) => void ended],
  ])("is not what %s means, however long the work takes to stop", async (_name, use) => {
    const { rigged, led } = await stopped(async (term) => {
      use(term);
      await new Promise(() => undefined);
    });
    await rigged.clock.advance(3_000);
    await rigged.seat.released();
    expect(rigged.logged).toEqual([]);
    expect(await led).toMatchObject({ message: expect.not.stringContaining("term.ended") });
  });

  test("is not reported where work stops in time", async () => {
    const { rigged, led } = await stopped(async (term) => {
      void (async () => await term.ended)();
      await new Promise((resolve) => term.signal.addEventListener("abort", resolve));
    });
    await rigged.seat.released();
    expect(await led).toBe(STOP);
    expect(rigged.logged).toEqual([]);
  });
});
