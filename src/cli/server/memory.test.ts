import { expect, test } from "vitest";
import { memoryFlags, type OwnProcess, restartEnvironment, TUNABLES, withLargePages } from "./memory.ts";

const own: OwnProcess = {
  platform: "linux",
  env: { PATH: "/bin", TENURE_URL: "x" },
  execPath: "/bin/node",
  execArgv: ["--no-warnings"],
  argv: ["/bin/node", "main.ts", "server", "start"],
  execve: () => undefined as never,
};

test("starts again once, with the same command line, one flag and one variable more", () => {
  const started: unknown[] = [];
  withLargePages({ ...own, execve: (...args) => void started.push(args) as never });
  expect(started).toEqual([
    [
      "/bin/node",
      ["/bin/node", "--max-semi-space-size=16", "--no-warnings", "main.ts", "server", "start"],
      { PATH: "/bin", TENURE_URL: "x", GLIBC_TUNABLES: TUNABLES },
    ],
  ]);
});

test("what it starts is not started again, and neither is one for which the operator has chosen", () => {
  expect(restartEnvironment({ ...own, env: restartEnvironment(own)! })).toBeNull();
  expect(restartEnvironment({ ...own, env: { GLIBC_TUNABLES: "" } })).toBeNull();
});

test("stays where it would gain nothing, where it can't, and where its parent holds a channel to it", () => {
  expect(restartEnvironment({ ...own, platform: "darwin" })).toBeNull();
  expect(restartEnvironment({ ...own, execve: undefined })).toBeNull();
  expect(restartEnvironment({ ...own, connected: true })).toBeNull();
});

test("the room for new objects is bounded, where the operator has not chosen its size", () => {
  expect(memoryFlags(own)).toEqual(["--max-semi-space-size=16"]);
  expect(memoryFlags(own, true)).toEqual([]);
  expect(memoryFlags({ ...own, execArgv: ["--max_semi_space_size=64"] })).toEqual([]);
  expect(memoryFlags({ ...own, env: { NODE_OPTIONS: "--trace-gc --max-semi-space-size=64" } })).toEqual([]);
});
