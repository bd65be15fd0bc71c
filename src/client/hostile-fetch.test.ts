// A `fetch` that the user gave (trap 80): whatever it throws, a call fails with a TenureError, within its own time.

import { describe, expect, it } from "vitest";
import { TenureError } from "../core/kit/errors.ts";
import { HOSTILE } from "../core/kit/test-hostile.ts";
import { createClient } from "./client.ts";
import type { ClientFetch } from "./exchange.ts";
import { virtualTime } from "../../test/virtual-time.ts";

virtualTime();

const TIME = { timeoutMs: 60, leaderWaitMs: 20 };
const urls = "http://127.0.0.1:1";

async function failsWithin(fetch: ClientFetch): Promise<void> {
  const startedMs = performance.now();
  const client = createClient({ urls, fetch, ...TIME });
  const submitted = client.submit({ kind: "work", payload: null });
  const failed = await Promise.all([submitted, client.leader()].map((call) => call.catch((error: unknown) => error)));
  expect(performance.now() - startedMs).toBeLessThanOrEqual(TIME.timeoutMs);
  for (const error of failed) {
    expect(TenureError.is(error), String(error)).toBe(true);
    expect(typeof (error as TenureError).message).toBe("string");
  }
}

describe("a fetch that", () => {
  it.each(Object.entries(HOSTILE))("throws, now or later: %s", async (_, make) => {
    await failsWithin(() => {
      throw make();
    });
    await failsWithin(async () => {
      await Promise.resolve();
      throw make();
    });
  });

  it("never settles, and does not know the signal: the call ends by its time, and by the caller's abort", async () => {
    const never: ClientFetch = () => new Promise(() => undefined);
    await failsWithin(never);
    const client = createClient({ urls, fetch: never, timeoutMs: 60_000, leaderWaitMs: 60_000 });
    const stop = new AbortController();
    const call = client.work.lease(
      {
        agent: { name: "a", session: "s", kinds: ["work"], labels: {}, platform: "any", capacity: 1 },
        renew: [],
        progress: [],
        logs: [],
        max: 1,
        waitMs: 1_000,
        ttlMs: 5_000,
      },
      { signal: stop.signal },
    );
    stop.abort(new Error("enough"));
    await expect(call).rejects.toThrow("enough");
  });
});

/** Headers come, and then nothing, whatever the signal says. */
function stalled(head: string, status = 200): Response {
  const start = (body: ReadableStreamDefaultController): void => body.enqueue(new TextEncoder().encode(head));
  return new Response(new ReadableStream({ start, cancel: () => new Promise(() => undefined) }), { status });
}

describe("a fetch whose body stalls, and does not know the signal", () => {
  const leads = { node_id: "n1", leader_id: "n1", leader_url: urls, leader_address: null, term: 1 };
  const fetchOf =
    (status: number): ClientFetch =>
    (url) =>
      Promise.resolve(url.endsWith("/leader") ? new Response(JSON.stringify(leads)) : stalled(`{"id":`, status));

  it.each([200, 503])("each call ends within its time (%i)", async (status) => {
    const startedMs = performance.now();
    const client = createClient({ urls, fetch: fetchOf(status), ...TIME });
    await expect(client.job("j")).rejects.toMatchObject({ code: "BACKEND_UNAVAILABLE" });
    await expect(client.submit({ kind: "k", payload: null })).rejects.toMatchObject({ code: "OUTCOME_UNKNOWN" });
    expect(performance.now() - startedMs).toBeLessThanOrEqual(2 * TIME.timeoutMs);
  });

  it("a stream ends when its reader says so", async () => {
    const client = createClient({ urls, fetch: () => Promise.resolve(stalled("retry: 1000\n\n")), ...TIME });
    const next = client.events({ signal: AbortSignal.timeout(100) }).next();
    await expect(next).rejects.toMatchObject({ name: "TimeoutError" });
  });
});
