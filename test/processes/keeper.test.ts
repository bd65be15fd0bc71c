// What a keeper does for an agent that can't do it itself any more.

import { spawn, spawnSync } from "node:child_process";
import { fileURLToPath } from "node:url";
import { describe, expect, it, onTestFinished } from "vitest";
import { findProgram } from "../servers/server-process.ts";
import { waitFor } from "../servers/index.ts";
import { isAlive } from "./living.ts";

const FILE = fileURLToPath(new URL("keeping.ts", import.meta.url));
const LIMIT_MS = 30_000;
const NOBODY = 65_534;
/** Longer than it would take, several times. */
const CALM_MS = 6_000;

interface Kept {
  readonly agent: number;
  readonly job: number;
  readonly keeper: number;
}

/** `under`: words of a program that starts it. */
async function keeping(how: string, under: readonly string[] = [], uid?: number): Promise<Kept & { parent: number }> {
  const [program, ...args] = [...under, process.execPath, "--no-warnings", FILE, how];
  const account = uid === undefined ? {} : { uid, gid: uid };
  const child = spawn(program, args, { stdio: ["ignore", "pipe", "inherit"], ...account });
  let said = "";
  child.stdout.setEncoding("utf8").on("data", (text: string) => (said += text));
  await waitFor("the agent's word", () => said.includes('"job"'), LIMIT_MS);
  const kept = JSON.parse(said.split("\n").find((line) => line.includes('"job"'))!) as Kept;
  onTestFinished(() => {
    for (const pid of [child.pid!, kept.agent, kept.keeper, kept.job]) if (isAlive(pid)) process.kill(pid, "SIGKILL");
  });
  return { ...kept, parent: child.pid! };
}

describe.runIf(process.platform === "linux")("trap 49: the keeper of an agent", () => {
  it("that hangs in a call, and is not stopped, kills its job", { timeout: LIMIT_MS }, async () => {
    const { agent, job } = await keeping("hang");
    await waitFor("the job to be gone", () => !isAlive(job), LIMIT_MS);
    expect(isAlive(agent)).toBe(true);
  });

  it("that has nothing to do for long leaves its job alone", { timeout: LIMIT_MS }, async () => {
    const { job } = await keeping("idle");
    await new Promise((resolve) => setTimeout(resolve, CALM_MS));
    expect(isAlive(job)).toBe(true);
  });

  it("that hangs, and whose supervisor is gone, kills the agent too", { timeout: LIMIT_MS }, async () => {
    const { agent, job, parent } = await keeping("orphan", ["sh", "-c", '"$@" & wait', "sh"]);
    process.kill(parent, "SIGKILL");
    await waitFor("both to be gone", () => !isAlive(agent) && !isAlive(job), LIMIT_MS);
  });

  // A limit of processes is none for root.
  it.runIf(process.getuid?.() === 0 && findProgram("prlimit") !== undefined && isForAll(FILE))(
    "kills the job of an agent that was killed also where no process can be started any more",
    { timeout: LIMIT_MS },
    async () => {
      const { agent, job, keeper } = await keeping("idle", [], NOBODY);
      const account = { uid: NOBODY, gid: NOBODY };
      expect(spawnSync("prlimit", ["--pid", String(keeper), "--nproc=0:0"], account).status).toBe(0);
      process.kill(agent, "SIGKILL");
      await waitFor("the job to be gone", () => !isAlive(job), LIMIT_MS);
    },
  );
});

/** May another user read it, and the program that runs it? */
function isForAll(file: string): boolean {
  const { status } = spawnSync(process.execPath, ["-e", `require("fs").accessSync(${JSON.stringify(file)})`], {
    uid: NOBODY,
    gid: NOBODY,
    stdio: "ignore",
  });
  return status === 0;
}
