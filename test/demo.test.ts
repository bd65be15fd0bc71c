// `npm start` as a user runs it: real servers under a process of its own, its output, its end, and what it leaves behind.

import { spawnSync } from "node:child_process";
import { existsSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { Demo, directoryOf, isAlive } from "./test-demo.ts";

describe("npm start", () => {
  it("says something at once, survives a kill -9 of its leader, and ends with Ctrl-C without leaving anything", async () => {
    const startedMs = performance.now();
    const demo = new Demo();
    await demo.says(/starting three nodes/);
    expect(performance.now() - startedMs).toBeLessThan(2_000);
    const [, leader, pid] = await demo.says(/(n\d) leads, epoch \d+.*\n.*kill -9 (\d+) kills the leader/);
    await demo.says(/n2 is a voter/);
    await demo.says(/n3 is a voter/);
    await demo.says(/[1-9]\d* jobs\/s/);
    const directory = directoryOf(Number(pid));
    expect(existsSync(directory)).toBe(true);
    process.kill(Number(pid), "SIGKILL");
    await demo.says(new RegExp(`${leader} has ended \\(SIGKILL\\), and is started again in 3.0s`));
    await demo.says(new RegExp(`n(?!${leader?.slice(1)})\\d leads, epoch \\d+, elected in .* yes, n\\d yes`));
    await demo.says(new RegExp(`jobs went on \\d+ms after the end of ${leader}`));
    await demo.says(new RegExp(`(${leader} runs as process \\d+[^]*){2}`));
    demo.child.kill("SIGINT");
    expect(await demo.ended).toBe(130);
    expect(demo.pids).toHaveLength(4);
    expect(demo.pids.filter(isAlive)).toEqual([]);
    expect(existsSync(directory)).toBe(false);
    // oxlint-disable-next-line no-control-regex
    expect(demo.output).not.toMatch(/\u001B|\r/);
  });

  it("ends by itself after --for, before anybody could lead, and the exit code says so", async () => {
    const demo = new Demo(["--for", "500ms"]);
    expect(await demo.ended).toBe(69);
    expect(demo.output).toContain("ended; 0 jobs were accepted");
    expect(demo.pids.filter(isAlive)).toEqual([]);
  });
});

describe("the flags of npm start", () => {
  it.each([
    [["--fro", "7s"], "there is no --fro; did you mean --for?"],
    [["--for"], "--for takes a value"],
    [["--for", "soon"], '--for takes a duration such as 500ms, 2s or 1m, not "soon"'],
    [["--for", "0s"], "--for takes a duration such as 30s, not 0"],
    [["now"], '"now" belongs to no flag'],
  ])("%j is refused with 64", (flags, message) => {
    const { status, stderr, stdout } = spawnSync(process.execPath, ["src/cli/main.ts", "dev", ...flags], {
      encoding: "utf8",
    });
    expect(stderr).toContain(message);
    expect({ status, stdout }).toEqual({ status: 64, stdout: "" });
  });
});
