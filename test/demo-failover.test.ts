// `npm start -- --for … --json`, as the README says it: kills its own leader twice, loses nothing, and says so.

import { execFile } from "node:child_process";
import { expect, it } from "vitest";

it("kills the leader twice by itself, and reports it", { timeout: 180_000 }, async () => {
  const { stdout, stderr } = await new Promise<{ stdout: string; stderr: string }>((resolve, reject) => {
    const args = ["src/cli/main.ts", "dev", "--for", "15s", "--json"];
    execFile(process.execPath, args, (error, out, told) =>
      error === null ? resolve({ stdout: out, stderr: told }) : reject(new Error(`${error.message}\n${told}`)),
    );
  });
  const summary = JSON.parse(stdout) as { failovers: { cause: string; ms: number }[]; jobs: number; lost: number };
  expect(Object.keys(summary)).toEqual(["failovers", "jobs", "lost", "leader", "epoch"]);
  expect(summary).toMatchObject({ failovers: [{ cause: "kill" }, { cause: "kill" }], lost: 0 });
  expect(summary.jobs).toBeGreaterThan(10);
  expect(stderr.match(/kill -9 n\d\n/g)).toHaveLength(2);
});
