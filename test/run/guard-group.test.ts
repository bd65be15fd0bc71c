// Whether anybody in a process group lives, asked of real processes that are hard to see.

import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { describe, expect, it, onTestFinished } from "vitest";
import { childrenOf, livingMembers } from "../../src/drivers/processes/index.ts";
import { waitFor } from "../servers/index.ts";

/** A single scan misses a relay in most tries; the more there are, the surer a wrong answer is seen. */
const LOOKS = 100;

/** A command in a group of its own, whose number is given. */
function startGroup(command: string, args: readonly string[], environment: Record<string, string> = {}): number {
  const child: ChildProcess = spawn(command, args, {
    stdio: "ignore",
    detached: true,
    env: { ...process.env, ...environment },
  });
  const group = child.pid!;
  onTestFinished(() => {
    try {
      process.kill(-group, "SIGKILL");
    } catch {
      // It has ended.
    }
  });
  return group;
}

const hasPython = spawnSync("python3", ["-c", "import ctypes, threading"]).status === 0;

describe.runIf(process.platform === "linux")("the members of a group", () => {
  it("trap 48: are not overlooked because each lives for a moment only and leaves a child behind", async () => {
    // Each shell starts the next one and ends: at every moment one of them lives.
    const group = startGroup("sh", ["-c", 'sh -c "$RELAY" & exit 0'], { RELAY: 'sh -c "$RELAY" & exit 0' });
    await waitFor("the first shell to be gone", () => !childrenOf(process.pid).includes(group));
    const answers = Array.from({ length: LOOKS }, () => livingMembers(group));
    expect(answers.filter((living) => living === 0)).toEqual([]);
    process.kill(-group, "SIGKILL");
    await waitFor("all to be dead", () => livingMembers(group) === 0);
  });

  it.runIf(hasPython)("trap 48: live on when their main thread has ended and others have not", async () => {
    const program = [
      "import ctypes, threading, time",
      "threading.Thread(target=lambda: time.sleep(600)).start()",
      "ctypes.CDLL(None).pthread_exit(None)",
    ];
    const group = startGroup("python3", ["-c", program.join("\n")]);
    await waitFor("the main thread to end", () => / Z /.test(readFileSync(`/proc/${group}/stat`, "latin1")));
    expect(livingMembers(group)).toBe(1);
    process.kill(-group, "SIGKILL");
    await waitFor("all to be dead", () => livingMembers(group) === 0);
  });

  it("are let go on after they were counted", async () => {
    const group = startGroup("sleep", ["600"]);
    expect(livingMembers(group)).toBe(1);
    expect(readFileSync(`/proc/${group}/stat`, "latin1")).not.toMatch(/\) T /);
    expect(childrenOf(process.pid)).toContain(group);
  });
});
