// Time for the client's tests that passes without waiting for it: whenever all is quiet, the clock moves on to the next timer. A pause
// or a limit of any length costs nothing, and a busy machine makes no difference.

import { afterEach, beforeEach, expect, vi } from "vitest";

/** As a test may take in real time: one that waits for longer than it should fails here as well. */
const TEST_MS_MAX = 10_000;

/** For all tests of a file. `isManual`: the clock moves only where the test moves it. */
export function virtualTime({ isManual = false } = {}): void {
  let startedMs = 0;

  beforeEach(() => {
    vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout", "performance"] });
    startedMs = performance.now();
    if (!isManual) vi.setTimerTickMode("nextTimerAsync");
    vi.spyOn(AbortSignal, "timeout").mockImplementation((ms) => {
      const limit = new AbortController();
      setTimeout(() => limit.abort(new DOMException("no answer in time", "TimeoutError")), ms);
      return limit.signal;
    });
  });

  afterEach(() => {
    const tookMs = performance.now() - startedMs;
    vi.restoreAllMocks();
    vi.useRealTimers();
    if (!isManual) expect(tookMs, "virtual milliseconds").toBeLessThan(TEST_MS_MAX);
  });
}
