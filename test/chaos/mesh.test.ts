// A short run of `chaos mesh`: every kind of fault once, one fork. And the same with known mistakes, which it must report.

import { expect, test } from "vitest";
import { MESH_PLANTS } from "./mesh-plants.ts";
import { runMesh } from "./mesh-run.ts";

const LIMIT_MS = 1_200_000;
const QUIET = { minutes: 0, forks: 1, seed: 7, signal: new AbortController().signal, log: () => undefined };

test(
  "nothing is lost, all sites agree, bad pages are refused and the fork is found",
  { timeout: LIMIT_MS },
  async () => {
    const run = await runMesh(QUIET);
    expect(run.failed).toEqual([]);
    expect(run).toMatchObject({ lost: 0, diverged: 0, forks: { planted: 1, found: 1, false: 0 } });
    expect(run.bad_pages.refused).toBe(run.bad_pages.sent);
  },
);

test.each(Object.entries(MESH_PLANTS))("%s is reported", { timeout: LIMIT_MS }, async (_name, edits) => {
  expect((await runMesh({ ...QUIET, edits })).failed).not.toEqual([]);
});
