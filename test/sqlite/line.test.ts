// Of which history the views are: the hash of the event at their position.

import { expect, test } from "vitest";
import { newJob, newPath, openAt } from "./test-jobs.ts";

test("the line is that of the position, kept where none is given, and outlives the process", async () => {
  const path = await newPath();
  const views = await openAt(path);
  expect(await views.line()).toBe(null);
  await views.put(1, [newJob(1)], [], [], { line: "aa" });
  await Promise.all([views.put(2, [newJob(2)], [], [], { line: "bb" }), views.put(2, [newJob(3)], [], [])]);
  expect([await views.reached(), await views.line()]).toEqual([2, "bb"]);
  // Below the position: nothing of it counts.
  await views.put(1, [], [], [], { line: "aa" });
  expect(await views.line()).toBe("bb");
  await views.close();
  const again = await openAt(path);
  expect([await again.reached(), await again.line()]).toEqual([2, "bb"]);
});

test("of another cluster's file nothing is left", async () => {
  const path = await newPath();
  const views = await openAt(path);
  await views.put(1, [newJob(1)], [], [], { line: "aa" });
  await views.close();
  const other = await openAt(path, { clusterId: "another" });
  expect([await other.position(), await other.line()]).toEqual([0, null]);
});
