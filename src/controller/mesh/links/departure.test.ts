import { expect, it } from "vitest";
import { LEAVE_WAIT_MS } from "../limits.ts";
import { Departure } from "./departure.ts";

function stage(leftAt: number | null = null) {
  const world = { nowMs: 0, leftAt, heard: [] as string[], linked: ["berlin", "oslo"], dialled: 0, ended: 0 };
  let dialling: AbortSignal | null = null;
  const departure = new Departure({
    clock: { monotonicMs: () => world.nowMs },
    leftAt: () => world.leftAt,
    heardBy: () => ({ heard: world.heard, isAll: world.linked.every((site) => world.heard.includes(site)) }),
    dial: (signal) => {
      dialling = signal;
      world.dialled++;
    },
    endAll: () => {
      world.ended++;
      world.linked = [];
    },
  });
  departure.review();
  return { world, departure, isDialling: () => dialling?.aborted === false };
}

it("links end when every linked site has the word, and not before", async () => {
  const { world, departure, isDialling } = stage();
  expect(isDialling()).toBe(true);
  world.leftAt = 7;
  world.heard = ["berlin"];
  departure.review();
  expect([world.ended, isDialling()]).toEqual([0, true]);
  world.heard = ["berlin", "oslo"];
  departure.review();
  expect([world.ended, isDialling()]).toEqual([1, false]);
  expect(await departure.done).toEqual(["berlin", "oslo"]);
});

it("a site that does not answer is waited for so long and no longer", async () => {
  const { world, departure } = stage();
  world.leftAt = 7;
  world.heard = ["berlin"];
  departure.review();
  world.nowMs = LEAVE_WAIT_MS - 1;
  departure.review();
  expect(world.ended).toBe(0);
  world.nowMs = LEAVE_WAIT_MS;
  departure.review();
  expect(world.ended).toBe(1);
  expect(await departure.done).toEqual(["berlin"]);
});

it("a leader that begins after its site has left dials nobody, until the site joins again", () => {
  const { world, departure, isDialling } = stage(7);
  world.nowMs = LEAVE_WAIT_MS;
  departure.review();
  expect(world.dialled).toBe(0);
  world.leftAt = null;
  departure.review();
  departure.review();
  expect([world.dialled, isDialling()]).toEqual([1, true]);
});

it("may leave a second time", async () => {
  const { world, departure } = stage();
  world.leftAt = 7;
  world.linked = [];
  departure.review();
  expect(await departure.done).toEqual([]);
  world.leftAt = null;
  departure.review();
  world.leftAt = 9;
  world.linked = world.heard = ["berlin"];
  departure.review();
  expect([world.dialled, world.ended]).toEqual([2, 2]);
  expect(await departure.done).toEqual(["berlin"]);
});

it("nobody waits for the end of a leadership that is over", async () => {
  const { world, departure, isDialling } = stage();
  world.leftAt = 7;
  departure.review();
  departure.end();
  expect(await departure.done).toEqual([]);
  expect(isDialling()).toBe(false);
});

it("who joins before its links have ended has not left, and is given all the time the next time", async () => {
  const { world, departure, isDialling } = stage();
  world.leftAt = 7;
  departure.review();
  const first = departure.done;
  world.leftAt = null;
  departure.review();
  expect(await first).toEqual([]);
  expect([world.dialled, world.ended, isDialling()]).toEqual([1, 0, true]);
  world.nowMs = 5 * LEAVE_WAIT_MS;
  world.leftAt = 9;
  world.heard = ["berlin"];
  departure.review();
  expect(world.ended, "oslo does not have the word, and its time is not up").toBe(0);
  world.nowMs += LEAVE_WAIT_MS;
  departure.review();
  expect([world.ended, await departure.done]).toEqual([1, ["berlin"]]);
});
