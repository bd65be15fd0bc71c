import { expect, test } from "vitest";
import { TenureError } from "../core/kit/errors.ts";
import { ManualClock } from "../engine/test-engine.ts";
import { advance, drain, watch } from "./scopes/test-scopes.ts";
import { untilThere } from "./until-there.ts";

const away = (): Promise<never> => Promise.reject(new TenureError("BACKEND_UNAVAILABLE", "away"));

test("asks again until the backend is there", async () => {
  const clock = new ManualClock();
  let asked = 0;
  const answer = untilThere(() => (++asked < 4 ? away() : Promise.resolve("here")), clock);
  await drain();
  await advance(clock, 600);
  expect([await answer, asked]).toEqual(["here", 4]);
});

test("goes on with everything else that is wrong, at once", async () => {
  const asked = untilThere(() => Promise.reject(new TenureError("DISK_DAMAGED", "broken")), new ManualClock());
  await expect(asked).rejects.toMatchObject({ code: "DISK_DAMAGED" });
});

test("ends when it is told to stop", async () => {
  const clock = new ManualClock();
  const stop = new AbortController();
  const asked = watch(untilThere(away, clock, stop.signal));
  await drain();
  await advance(clock, 200);
  expect(asked.state).toBe("pending");
  stop.abort();
  await advance(clock, 200);
  expect(asked).toMatchObject({ state: "rejected", code: "BACKEND_UNAVAILABLE" });
});
