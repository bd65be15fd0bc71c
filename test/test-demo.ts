// `npm start` as a process of its own, with its output and what it leaves behind.

import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { afterAll } from "vitest";
import { waitFor } from "./servers/index.ts";

export const LIMIT_MS = 60_000;

export class Demo {
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

export function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}

/** Where a server has its files: the folder of the configuration that its command line names. */
export function directoryOf(pid: number): string {
  const { stdout } = spawnSync("ps", ["-o", "args=", "-p", String(pid)], { encoding: "utf8" });
  const directory = /--config (\S+)\/n\d\.json/.exec(stdout)?.[1];
  if (directory === undefined) throw new Error(`no server runs as ${pid}: ${stdout}`);
  return directory;
}
