import { expect, test } from "vitest";
import { Complaints } from "./complaints.ts";
import { HandClock } from "../loops/test-clock.ts";

test("the same complaint is said once, and again only after a minute", () => {
  const clock = new HandClock();
  const complaints = new Complaints(clock);
  expect(complaints.worthSaying("acquire", "away")).toBe(true);
  clock.stop(59_999);
  expect(complaints.worthSaying("acquire", "away")).toBe(false);
  clock.stop(1);
  expect(complaints.worthSaying("acquire", "away")).toBe(true);
});

test("another complaint, and the same one after it was well, are said at once", () => {
  const complaints = new Complaints(new HandClock());
  expect(complaints.worthSaying("acquire", "away")).toBe(true);
  expect(complaints.worthSaying("acquire", "refused")).toBe(true);
  complaints.forget();
  expect(complaints.worthSaying("acquire", "refused")).toBe(true);
});

test("complaints about two things do not make each other new", () => {
  const complaints = new Complaints(new HandClock());
  const said = [1, 2, 3].map(() => [
    complaints.worthSaying("acquire", "away"),
    complaints.worthSaying("observe", "away"),
  ]);
  expect(said).toEqual([
    [true, true],
    [false, false],
    [false, false],
  ]);
});
