// `npm start` as a user runs it: real servers under a process of its own, its output, its end, and what it leaves behind.

import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { existsSync } from "node:fs";
import { afterAll, describe, expect, it } from "vitest";
import { waitFor } from "./servers/index.ts";

const LIMIT_MS = 60_000;

class Demo {
  output = "";
  readonly child: ChildProcess;
  readonly ended: Promise<number | null>;

  constructor(
    flags: readonly string[] = [],
    environment: NodeJS.ProcessEnv = {},
    [program, ...args]: readonly [string, ...string[]] = [process.execPath, "src/cli/main.ts", "dev", ...flags],
  ) {
    this.child = spawn(program, args, {
      stdio: ["ignore", "pipe", "pipe"],
      env: { ...process.env, ...environment },
    });
    for (const stream of [this.child.stdout, this.child.stderr]) {
      stream?.setEncoding("utf8").on("data", (text: string) => (this.output += text));
    }
    this.ended = new Promise((resolve) => this.child.once("close", (code) => resolve(code)));
    demos.push(this);
  }

  async says(pattern: RegExp): Promise<RegExpExecArray> {
    try {
      await waitFor(`${pattern}`, () => pattern.test(this.output), LIMIT_MS);
    } catch (error) {
      throw new Error(`it never said ${pattern}; it said:\n${this.output}`, { cause: error });
    }
    return pattern.exec(this.output)!;
  }

  get pids(): number[] {
    return [...this.output.matchAll(/n\d runs as process (\d+)/g)].map(([, pid]) => Number(pid));
  }
}

const demos: Demo[] = [];
afterAll(() => {
  for (const { child } of demos) child.kill("SIGKILL");
});

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}

/** Where a server has its files: the folder of the configuration that its command line names. */
function directoryOf(pid: number): string {
  const { stdout } = spawnSync("ps", ["-o", "args=", "-p", String(pid)], { encoding: "utf8" });
  const directory = /--config (\S+)\/n\d\.json/.exec(stdout)?.[1];
  if (directory === undefined) throw new Error(`no server runs as ${pid}: ${stdout}`);
  return directory;
}

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
