import { expect, test } from "vitest";
import { newJobId } from "./ids.ts";

test("an id of a job is a UUID of version 7 with the time in front, and no two are the same", () => {
  const before = Date.now();
  const ids = Array.from({ length: 1_000 }, () => newJobId());
  for (const id of ids) {
    expect(id).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/);
    const atMs = Number.parseInt(id.slice(0, 8) + id.slice(9, 13), 16);
    expect(atMs).toBeGreaterThanOrEqual(before);
    expect(atMs).toBeLessThanOrEqual(Date.now());
  }
  expect(new Set(ids).size).toBe(ids.length);
});
