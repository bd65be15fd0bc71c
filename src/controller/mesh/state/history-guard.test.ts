// What retention may cut: what the saved state covers, and a replay where that is not enough.

import { expect, test } from "vitest";
import { TestDisk } from "../../../engine/test-disk.ts";
import { RECEIPTS } from "../../../logs/index.ts";
import type { Logger } from "../../../ports/logger.ts";
import type { MeshReplayed } from "../../../ports/mesh/views.ts";
import { filled, open, sealedEvents } from "../../../../test/archive/test-archive.ts";
import { HistoryGuard } from "./history-guard.ts";

const silent = { warn: () => undefined } as unknown as Logger;

async function guarded(
  saved: number | null,
  answer: (views: { savedThrough: number | null }) => MeshReplayed["outcome"],
) {
  const { archive: own } = await filled(new TestDisk(), sealedEvents(12));
  const { archive: receipts } = await open(new TestDisk(), { of: RECEIPTS });
  const views = { savedThrough: saved };
  const counts = { replays: 0 };
  const replay = async (): Promise<MeshReplayed> => {
    counts.replays++;
    return { atMs: 0, outcome: answer(views), events: 0, reason: null };
  };
  return { guard: new HistoryGuard({ archives: { own, receipts }, views, replay, logger: silent }), counts };
}

test("what the saved state covers may go, without a replay", async () => {
  const { guard, counts } = await guarded(7, () => "equal");
  expect(await guard.mayGo("own", 7)).toEqual({ through: 7, isStuck: false });
  expect(await guard.mayGo("receipts", 0)).toEqual({ through: 0, isStuck: false });
  expect(counts.replays).toBe(0);
});

test("what it does not cover waits for a replay, which saves what it finds equal", async () => {
  const { guard, counts } = await guarded(null, (views) => {
    views.savedThrough = 9;
    return "equal";
  });
  expect(await guard.mayGo("own", 8)).toEqual({ through: 8, isStuck: false });
  // What is shown may be fewer than what has arrived.
  expect(await guard.mayGo("own", 11)).toEqual({ through: 9, isStuck: false });
  expect(counts.replays).toBe(2);
});

test.each(["differs", "broken"] as const)(
  "nothing more may go where a replay is %s, and that is said",
  async (outcome) => {
    const { guard } = await guarded(3, () => outcome);
    expect(await guard.mayGo("own", 8)).toEqual({ through: 3, isStuck: true });
  },
);

test("nor where none can be made", async () => {
  const { guard } = await guarded(null, () => {
    throw new Error("no room");
  });
  expect(await guard.mayGo("own", 8)).toEqual({ through: 0, isStuck: true });
  // The end of the process ends a replay, and is no reason to let anything go.
  guard.close();
  expect(await guard.mayGo("own", 8)).toEqual({ through: 0, isStuck: false });
});
