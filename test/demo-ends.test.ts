// `npm start` whose servers do not come up, that is killed, or whose starter is gone (npm run test:long).

import { existsSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { waitFor } from "./servers/index.ts";
import { Demo, directoryOf, isAlive, LIMIT_MS } from "./test-demo.ts";

describe("npm start", () => {
  it("gives up when no server comes up, with the line that says why and an exit code", async () => {
    const crash = 'if (process.argv.includes("server")) throw new RangeError("no luck today");';
    const module = `data:text/javascript,${encodeURIComponent(crash)}`;
    const demo = new Demo([], { NODE_OPTIONS: `--import=${module}` });
    expect(await demo.ended).toBe(69);
    expect(demo.output).toMatch(/n1 has ended \(exit code 1\).*\n.* n\d said: RangeError: no luck today\n/);
    expect(demo.output).toMatch(
      /\nnpm start: no server has come up, and n\d has died 3 times.*RangeError: no luck today\n/,
    );
    expect(demo.output).not.toContain("said: Node.js");
    expect(demo.pids.filter(isAlive)).toEqual([]);
  });

  it("takes its servers and their files along when it is itself killed with -9", async () => {
    const demo = new Demo();
    const [, pid] = await demo.says(/kill -9 (\d+) kills the leader/);
    const directory = directoryOf(Number(pid));
    demo.child.kill("SIGKILL");
    await demo.ended;
    await waitFor("the servers to end", () => !demo.pids.some(isAlive), LIMIT_MS);
    expect(demo.pids).toHaveLength(3);
    await waitFor("their files to go", () => !existsSync(directory), LIMIT_MS);
  });

  it("ends in order when whoever started it is gone, as npm is that was told to end", async () => {
    const demo = new Demo([], {}, ["sh", "-c", `"$0" src/cli/main.ts dev & wait`, process.execPath]);
    await demo.says(/kill -9 (\d+) kills the leader/);
    demo.child.kill("SIGTERM");
    await demo.says(/ended; \d+ jobs were accepted/);
    await waitFor("the servers to end", () => !demo.pids.some(isAlive), LIMIT_MS);
  });
});
