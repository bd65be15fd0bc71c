// What a new leader of the coordinators does at the islands.

import { expect, it } from "vitest";
import { TXN_RECOVER_LOOK_MS, TXN_RECOVER_RETRY_MS_MAX } from "./limits.ts";
import { A, B, bodyOf, C, CALLER, D, FENCE, ID, TestIslands } from "./test-islands.ts";

const OLD = { ...FENCE, term: FENCE.term - 1 };
const idOf = (n: number): string => `019aa000-0000-7000-8000-${String(n).padStart(12, "0")}`;
const headerOf = (id: string, home: string, participants: readonly string[]) => ({
  id,
  home,
  participants,
  digest: "d",
  timeoutMs: 5_000,
  by: "payer",
});

function leading(islands: TestIslands) {
  const over = new AbortController();
  const decider = islands.decider();
  let isOver = false;
  const led = decider.lead(over.signal).then(() => void (isOver = true));
  return { decider, end: () => over.abort(), led, isOver: () => isOver };
}

it("raises the fence of its term at every registered island, its own too, until the term is over", async () => {
  const islands = new TestIslands();
  const { end, led, isOver } = leading(islands);
  await islands.clock.advance(10);
  expect(islands.kinds("recover").toSorted()).toEqual([A, B, C]);
  expect([A, B, C, D].map((hash) => islands.at(hash).fence)).toEqual([FENCE, FENCE, FENCE, null]);
  await islands.clock.advance(60_000);
  expect([islands.sent.length, isOver()]).toEqual([3, false]);
  end();
  await led;
  expect(islands.clock.pending).toBe(0);
});

it("asks again where nobody answers, and less and less often; an island that is registered later is asked too", async () => {
  const islands = new TestIslands();
  islands.fate = ({ target }) => (target === C ? { isLost: true } : {});
  const { end } = leading(islands);
  await islands.clock.advance(60_000);
  const tries = islands.kinds("recover").filter((target) => target === C).length;
  expect(tries).toBeGreaterThan(60_000 / (TXN_RECOVER_RETRY_MS_MAX + 2_000) - 1);
  expect(tries).toBeLessThan(40);
  islands.fate = () => ({});
  islands.registered = [A, B, C, D];
  await islands.clock.advance(TXN_RECOVER_LOOK_MS + TXN_RECOVER_RETRY_MS_MAX + 2_000);
  expect([C, D].map((hash) => islands.at(hash).fence)).toEqual([FENCE, FENCE]);
  end();
});

it("asks an island no more that is not registered any more, and anew when it is again", async () => {
  const islands = new TestIslands();
  islands.fate = ({ target }) => (target === C ? { isLost: true } : {});
  const { end } = leading(islands);
  await islands.clock.advance(5_000);
  islands.registered = [A, B];
  await islands.clock.advance(10_000);
  const before = islands.sent.length;
  await islands.clock.advance(60_000);
  expect(islands.sent.length).toBe(before);
  islands.fate = () => ({});
  islands.registered = [A, B, C];
  await islands.clock.advance(2 * TXN_RECOVER_LOOK_MS);
  expect(islands.at(C).fence).toEqual(FENCE);
  end();
});

it("has what is prepared ask its home, page by page, and each once", async () => {
  const islands = new TestIslands();
  for (let n = 0; n < 5; n++) {
    const header = headerOf(idOf(n), A, [A, B]);
    islands.at(B).answer({ kind: "prepare", header, operations: [], fence: OLD });
    if (n % 2 === 0) islands.at(A).answer({ kind: "commit", header, operations: [], require: [], fence: OLD });
  }
  const { end } = leading(islands);
  await islands.clock.advance(5_000);
  const phases = Array.from({ length: 5 }, (_, n) => islands.at(B).phase(idOf(n)));
  expect(phases).toEqual(["committed", "rolled-back", "committed", "rolled-back", "committed"]);
  const hints = islands.sent.filter(({ request }) => request.kind === "rollback");
  expect(hints.map(({ target }) => target)).toEqual([B, B, B, B, B]);
  expect(islands.sent.length).toBeLessThan(20);
  end();
});

it("has those ask that a commit waits for; never does it send home what would be a decision there", async () => {
  const islands = new TestIslands();
  const header = headerOf(ID, A, [A, B, C]);
  for (const target of [B, C]) islands.at(target).answer({ kind: "prepare", header, operations: [], fence: OLD });
  islands.at(A).answer({ kind: "commit", header, operations: [], require: [], fence: OLD });
  // What is prepared there is not listed: its page is lost for now.
  islands.fate = ({ target, request }) => (request.kind === "recover" && target !== A ? { isLost: true } : {});
  const { end } = leading(islands);
  await islands.clock.advance(1_000);
  expect(islands.kinds("rollback")).toEqual([B, C]);
  expect(islands.phases()).toBe("committed committed committed");
  end();
});

it("leaves alone what runs here", async () => {
  const islands = new TestIslands();
  islands.fate = ({ target, request }) => (target === A && request.kind === "commit" ? { isLost: true } : {});
  const { decider, end } = leading(islands);
  const running = islands.endOf(decider.run(bodyOf([A, B]), CALLER));
  await islands.clock.advance(1_000);
  expect(islands.at(B).phase()).toBe("prepared");
  expect(islands.kinds("rollback")).toEqual([]);
  expect(await running).toBe("OUTCOME_UNKNOWN");
  end();
});

it("says once why an island does not take its term, and goes on asking", async () => {
  const islands = new TestIslands();
  islands.at(B).fence = { ...FENCE, term: FENCE.term + 1 };
  const { end } = leading(islands);
  await islands.clock.advance(30_000);
  expect(islands.warnings).toEqual([expect.stringContaining("because of tc_term_stale")]);
  expect(islands.kinds("recover").filter((target) => target === B).length).toBeGreaterThan(3);
  end();
});

it.each(["before it begins", "while it is heard", "before the hints"])(
  "does nothing more when the term ends %s",
  async (when) => {
    const islands = new TestIslands();
    const header = headerOf(ID, A, [A, B]);
    islands.at(B).answer({ kind: "prepare", header, operations: [], fence: OLD });
    if (when === "before it begins") islands.fence = null;
    const { end, led } = leading(islands);
    islands.onAnswer = () => {
      if (when === "before the hints") islands.fence = null;
    };
    if (when !== "before the hints") end();
    await islands.clock.advance(1_000);
    expect(islands.kinds("rollback")).toEqual([]);
    expect(islands.forbidden).toEqual([]);
    end();
    await led;
    await islands.clock.advance(10_000);
    expect(islands.clock.pending).toBe(0);
  },
);

it("begins as soon as the gate is open, where the work begins a moment earlier", async () => {
  const islands = new TestIslands();
  islands.fence = null;
  const { end } = leading(islands);
  await islands.clock.advance(500);
  islands.fence = FENCE;
  await islands.clock.advance(500);
  expect(islands.at(A).fence).toEqual(FENCE);
  end();
});
