import { describe, expect, test } from "vitest";
import type { Leader } from "../ports/elector.ts";
import { observeLeader } from "./observe.ts";
import { settled } from "../loops/test-clock.ts";

const leader = (epoch: number): Leader => ({ epoch, identity: `i${epoch}`, metadata: {} });

function watched(...signals: AbortSignal[]) {
  let tell: (leader: Leader | null) => void = () => {};
  let stops = 0;
  const observed = observeLeader((told) => {
    tell = told;
    return () => void stops++;
  }, signals);
  return { observed, tell: (one: Leader | null) => tell(one), stops: () => stops };
}

describe("observing", () => {
  test("gives the present leader, then each change", async () => {
    const { observed, tell } = watched();
    const first = observed.next();
    tell(null);
    expect(await first).toEqual({ done: false, value: null });
    const second = observed.next();
    await settled();
    tell(leader(1));
    expect((await second).value).toEqual(leader(1));
  });

  test("a slow reader misses what was superseded meanwhile, never the latest", async () => {
    const { observed, tell } = watched();
    const first = observed.next();
    tell(leader(1));
    await first;
    for (const epoch of [2, 3, 4]) tell(leader(epoch));
    expect((await observed.next()).value).toEqual(leader(4));
  });

  test("ends when a signal aborts, also while it waits, and stops the watch once", async () => {
    const stop = new AbortController();
    const { observed, stops } = watched(new AbortController().signal, stop.signal);
    const waiting = observed.next();
    await settled();
    stop.abort();
    expect(await waiting).toEqual({ done: true, value: undefined });
    expect(stops()).toBe(1);
  });

  test("ends at once when a signal has aborted before", async () => {
    const { observed, stops } = watched(AbortSignal.abort());
    expect((await observed.next()).done).toBe(true);
    expect(stops()).toBe(1);
  });

  test("stops the watch when its reader leaves the loop", async () => {
    const { observed, tell, stops } = watched();
    const first = observed.next();
    tell(leader(1));
    await first;
    await observed.return();
    expect(stops()).toBe(1);
  });
});
