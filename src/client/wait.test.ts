// wait() goes on for as long as its looks are answered, whatever becomes of its streams.

import { describe, expect, it, vi } from "vitest";
import { createClient } from "./client.ts";
import { Network, type Node, type Reply } from "./test-network.ts";
import { virtualTime } from "../../test/virtual-time.ts";

const N1 = "http://127.0.0.1:1";
const MINUTE = 60_000;

virtualTime({ isManual: true });

function refused(status: number, error: string): Reply {
  return [status, { error, message: error }];
}

/** The job is completed by that time. */
async function waitsFor(events: Node, completedAtMs: number, untilMs: number): Promise<unknown> {
  const network = new Network();
  const startMs = performance.now();
  network.nodes.set(N1, (path, sent) => {
    if (path === "/v1/cluster") return [200, { members: [] }];
    if (path.startsWith("/v1/events")) return events(path, sent);
    return [200, { id: "j", state: performance.now() - startMs >= completedAtMs ? "completed" : "running" }];
  });
  const result = createClient({ urls: N1, fetch: network.fetch })
    .wait("j")
    .then(
      ({ state }) => state,
      (error: unknown) => error,
    );
  await vi.advanceTimersByTimeAsync(untilMs);
  return await Promise.race([result, Promise.resolve("still waiting")]);
}

const OPEN: Reply = [200, `id: 10\npoint: 10:${"a".repeat(64)}\n\n`];

describe("wait()", () => {
  it.each(["LOG_COMPACTED", "EVENTS_LOST"])(
    "whose stream breaks, and can't be resumed (%s), goes on from now",
    async (code) => {
      const events: Node = (_path, { lastEventId }) => (lastEventId === undefined ? OPEN : refused(410, code));
      expect(await waitsFor(events, 2_000, MINUTE)).toBe("completed");
    },
  );

  it.each<[string, Node]>([
    ["all are taken", () => refused(503, "OVERLOADED")],
    ["each is cut at once", () => OPEN],
  ])("finds the end of a job after longer than any outage, though no stream can be had: %s", async (_what, events) => {
    expect(await waitsFor(events, 10.5 * MINUTE, 11 * MINUTE)).toBe("completed");
  });

  it("pauses before it opens a stream anew, where each one opens and then fails for good", async () => {
    let opened = 0;
    const events: Node = (_path, { lastEventId }) => {
      if (lastEventId !== undefined) return refused(410, "LOG_COMPACTED");
      opened++;
      return OPEN;
    };
    expect(await waitsFor(events, MINUTE - 1_000, MINUTE)).toBe("completed");
    expect(opened).toBeGreaterThan(10);
    expect(opened).toBeLessThan(300);
  });

  it("fails with what refuses every stream", async () => {
    expect(await waitsFor(() => refused(403, "PERMISSION_DENIED"), MINUTE, MINUTE)).toMatchObject({
      code: "PERMISSION_DENIED",
    });
  });
});
