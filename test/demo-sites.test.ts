// `npm start -- --sites 3 --for … --json`: three sites that share their histories; one is cut off and healed, and in the end all are equal.

import { execFile, spawnSync } from "node:child_process";
import { expect, it } from "vitest";

interface Summary {
  readonly sites: readonly { readonly id: string; readonly events: number }[];
  readonly cut: string;
  readonly equal: boolean;
  readonly heal_ms: number;
}

it("cuts a site off, heals it, and reports that the histories are equal", { timeout: 240_000 }, async () => {
  const { stdout, stderr } = await new Promise<{ stdout: string; stderr: string }>((resolve, reject) => {
    const args = ["src/cli/main.ts", "dev", "--sites", "3", "--for", "9s", "--json"];
    execFile(process.execPath, args, (error, out, told) =>
      error === null ? resolve({ stdout: out, stderr: told }) : reject(new Error(`${error.message}\n${told}`)),
    );
  });
  const summary = JSON.parse(stdout) as Summary;
  expect(Object.keys(summary)).toEqual(["sites", "cut", "equal", "heal_ms"]);
  expect(summary).toMatchObject({ cut: "west", equal: true });
  expect(summary.heal_ms).toBeGreaterThanOrEqual(0);
  expect(summary.sites.map(({ id }) => id)).toEqual(["hub", "east", "west"]);
  const [first] = summary.sites;
  for (const { id, events } of summary.sites) expect(events, id).toBe(first?.events);
  expect(first?.events).toBeGreaterThan(10);
  for (const text of ["the page of east: http://127.0.0.1:", "mesh sites", "mesh audit", "west is cut off"]) {
    expect(stderr).toContain(text);
  }
  expect(stderr).toMatch(/west \(cut off\) has/);
  // Nothing is left behind.
  const pids = [...stderr.matchAll(/(?:hub|east|west) runs as process (\d+)/g)].map(([, pid]) => Number(pid));
  expect(pids).toHaveLength(3);
  for (const pid of pids) expect(() => process.kill(pid, 0)).toThrow("ESRCH");
});

it("takes three sites and no other number", () => {
  const args = ["src/cli/main.ts", "dev", "--sites", "4"];
  const { status, stderr, stdout } = spawnSync(process.execPath, args, { encoding: "utf8" });
  expect(stderr).toContain('--sites takes 3, not "4"');
  expect({ status, stdout }).toEqual({ status: 64, stdout: "" });
});
