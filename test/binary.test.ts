// The single executable (`npm run build:binary`) on a machine without Node: it unpacks itself once, and the supervisor with its
// children, an agent, a job and `tenure run` with its guard all work from it.

import { execFile, execFileSync, spawnSync, type SpawnSyncReturns } from "node:child_process";
import { chmodSync, existsSync, mkdirSync, readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, expect, it } from "vitest";
import { removeDirectory, temporaryDirectory } from "./servers/directories.ts";
import { freePort, waitFor } from "./servers/index.ts";
import { ServerProcess } from "./servers/server-process.ts";

const run = promisify(execFile);
/** Of the operating system's own commands; no Node among them. */
const BARE_PATH = "/usr/bin:/bin";

const processes: ServerProcess[] = [];
let directory: string;
let binary: string;

beforeAll(async () => {
  directory = await temporaryDirectory("binary", undefined);
  binary = join(directory, "tenure");
  execFileSync(process.execPath, ["scripts/build-binary.ts", "--out", binary], { stdio: "ignore" });
}, 180_000);

afterAll(async () => {
  await Promise.all(processes.map((one) => one.end("SIGKILL")));
  await removeDirectory(directory);
});

/** Each with files of its own. */
function environment(
  name: string,
): Record<string, string> & { readonly XDG_CACHE_HOME: string; readonly TMPDIR: string } {
  const [cache, temporary] = [join(directory, name, "cache"), join(directory, name, "tmp")];
  for (const folder of [cache, temporary]) mkdirSync(folder, { recursive: true });
  return { PATH: BARE_PATH, HOME: directory, XDG_CACHE_HOME: cache, TMPDIR: temporary };
}

it("unpacks itself whole, once, also when three begin at the same moment, and says nothing of it", async () => {
  const env = environment("three");
  const said = await Promise.all([1, 2, 3].map(() => run(binary, ["version"], { env })));
  for (const one of said)
    expect(one).toEqual({ stdout: expect.stringMatching(/^\d+\.\d+\.\d+\n$/) as string, stderr: "" });
  expect(readdirSync(join(env.XDG_CACHE_HOME, "tenure"))).toHaveLength(1);
  expect(readdirSync(env.TMPDIR)).toEqual([]);
});

it("runs nothing from a directory that others may write to", async () => {
  const env = environment("open");
  const open = join(env.XDG_CACHE_HOME, "tenure");
  mkdirSync(open);
  chmodSync(open, 0o777);
  expect((await run(binary, ["version"], { env })).stderr).toBe("");
  expect(readdirSync(open)).toEqual([]);
  const [other = ""] = readdirSync(env.TMPDIR);
  expect(other).toBe(`tenure-${process.getuid?.()}`);
  chmodSync(join(env.TMPDIR, other), 0o777);
  const refused = spawnSync(binary, ["version"], { env, encoding: "utf8" });
  expect(refused).toMatchObject({
    status: 78,
    stdout: "",
    stderr: expect.stringContaining("others may write to it") as string,
  });
});

it("takes a file of somebody else for a word, not for a program", () => {
  const file = join(directory, "theirs.js");
  writeFileSync(file, "console.log('this ran')");
  const said = spawnSync(binary, [file], { env: environment("word"), encoding: "utf8" });
  expect(said).toMatchObject({ status: 64, stdout: "" });
});

it("is a whole cluster: a supervised node, an agent, a job, and a command that runs while it leads", async () => {
  const home = join(directory, "whole");
  const url = `http://127.0.0.1:${await freePort()}`;
  const env = { ...environment("whole"), TENURE_URL: url };
  const config = {
    node_id: "n1",
    data_dir: "./n1",
    peer: { listen: `127.0.0.1:${await freePort()}` },
    api: { listen: url.slice("http://".length) },
  };
  writeFileSync(join(home, "n1.json"), JSON.stringify(config));
  const tenure = (...args: string[]): SpawnSyncReturns<string> =>
    spawnSync(binary, args, { env, cwd: home, encoding: "utf8", timeout: 60_000 });
  const start = (...args: string[]): ServerProcess => {
    const one = new ServerProcess({ command: binary, args, directory: home, env, lastSignal: "SIGKILL" });
    processes.push(one);
    return one;
  };

  const server = start("server", "start", "--config", "n1.json", "--bootstrap");
  await waitFor("a leader", () => tenure("cluster", "status").status === 0);
  const agent = start("agent", "start", "--name", "a1");
  const job = tenure("job", "submit", "--", "sh", "-c", "echo a job ran");
  expect(job, `${job.stderr}\n${agent.log}\n${server.log}`).toMatchObject({ status: 0, stdout: "a job ran\n" });
  // A list comes from the views, which threads of their own write and read.
  await waitFor("the list", () => tenure("job", "list").stdout.includes("completed"));
  const led = tenure("run", "--once", "--scope", "s", "--backend", url, "--", "sh", "-c", 'echo "epoch $TENURE_EPOCH"');
  expect(led, led.stderr).toMatchObject({ status: 0, stdout: "epoch 1\n" });
  for (const one of [agent, server]) {
    await one.end("SIGTERM");
    expect(one.exitCode, one.log).toBe(0);
  }
  expect(existsSync(join(home, "n1"))).toBe(true);
});
