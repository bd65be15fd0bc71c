// docs/runbooks/tc-coordinators.md, command by command as it is written, on real islands: a majority of the voters is lost, a cluster is founded by
// hand, two clusters meet, a disk is given up. The alerts that the page is about are raised, and end.

import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { ISLANDS_MS_MAX, TestIslands } from "../coordinators/test-islands.ts";
import { freePort, waitFor } from "../servers/index.ts";
import { runbookSteps } from "../servers/runbook.ts";

const NOBODY_LEADS = 69;
const STORY_MS_MAX = ISLANDS_MS_MAX * 4;
const ISLANDS = ["i1", "i2", "i3"] as const;

interface Said {
  readonly code: number;
  readonly stdout: string;
}

/** The commands of the page; each is taken once. */
const left = [...runbookSteps("docs/runbooks/tc-coordinators.md")];
let islands: TestIslands;

beforeAll(async () => {
  islands = await TestIslands.start(...ISLANDS);
}, STORY_MS_MAX);
afterAll(() => islands?.end());

/** The first command of this section that was not run yet, on this island. */
async function run(section: RegExp, id: string): Promise<Said> {
  const at = left.findIndex(({ heading }) => section.test(heading));
  const [step] = at < 0 ? [] : left.splice(at, 1);
  if (step === undefined) throw new Error(`the section ${String(section)} has no more commands`);
  if (!step.command.startsWith("tenure server start ")) return await say(step.command, id);
  islands.node(id).start();
  return { code: 0, stdout: "" };
}

async function say(command: string, id: string): Promise<Said> {
  const { url, configFile } = islands.node(id);
  return await islands.run(command.replace("URL", url).replace("tenure.toml", configFile));
}

function raised(id: string, alert: string): Promise<void> {
  return waitFor(`${alert} of ${id}`, async () => (await islands.alerts(id)).includes(alert), ISLANDS_MS_MAX);
}

async function over(id: string): Promise<void> {
  const isOver = async (): Promise<boolean> => {
    const names = (await islands.node(id).view())?.alerts.map(({ name }) => name);
    return names !== undefined && !names.some((name) => name.startsWith("tc_"));
  };
  await waitFor(`no alert of ${id} about coordinators`, isOver, ISLANDS_MS_MAX);
}

const votersOf = async (id: string) => (await islands.seen(id))?.voters ?? [];

describe("the commands of tc-coordinators.md", () => {
  it(
    "a silent voter, then a majority that is gone for good: the one that is left goes on, and the others come back",
    async () => {
      const leader = (await islands.leader())!;
      const [gone, last] = ISLANDS.filter((id) => id !== leader) as [string, string];
      expect((await run(/^Transaction/, gone)).stdout).toContain(`${leader}@`);
      expect((await run(/^Transaction/, leader)).stdout).toContain("a leader needs 2 of 3 voters");
      await islands.node(gone).kill9();
      await raised(leader, "tc_voter_missing");
      expect((await run(/^A voter/, leader)).stdout).toContain(islands.node(gone).url);
      await islands.node(last).kill9();
      await raised(leader, "tc_no_leader");
      expect(await say("tenure tc leader --url URL", leader)).toMatchObject({ code: NOBODY_LEADS });

      await islands.node(leader).term();
      expect((await run(/^Nobody leads/, leader)).stdout).toContain("is now the only voter");
      await run(/^Nobody leads/, leader);
      await islands.settled(leader);
      for (const id of [gone, last]) islands.node(id).start();
      await islands.settled(...ISLANDS);
      await over(leader);
    },
    STORY_MS_MAX,
  );

  it(
    "a cluster that is founded by hand, two clusters that meet, and a disk that is given up",
    async () => {
      const { url } = await islands.make("i4");
      islands.begin("i4", [url, `https://127.0.0.1:${await freePort()}`]);
      await waitFor("the fourth island", async () => (await islands.seen("i4")) !== null, ISLANDS_MS_MAX);
      expect((await islands.seen("i4"))?.leader).toBeNull();
      await islands.node("i4").term();
      expect((await run(/^Nobody leads/, "i4")).stdout).toContain("has founded the cluster");
      // Now with the address of the others: it meets them.
      islands.node("i4").configure({ tc: { join: [url, ...ISLANDS.map((id) => islands.node(id).url)] } });
      islands.node("i4").start();
      await raised("i4", "tc_cluster_mismatch");
      await raised((await islands.leader())!, "tc_cluster_mismatch");

      await islands.node("i4").term();
      expect((await run(/^Two clusters/, "i4")).stdout).toContain("is given up");
      islands.node("i4").start();
      await islands.settled(...ISLANDS, "i4");

      const [before] = (await votersOf("i1")).filter(({ identity }) => identity === "i4");
      await islands.node("i4").term();
      expect((await run(/^Two processes/, "i4")).code).toBe(0);
      islands.node("i4").start();
      await islands.settled(...ISLANDS, "i4");
      const [after] = (await votersOf("i1")).filter(({ identity }) => identity === "i4");
      expect(after?.incarnation).not.toBe(before?.incarnation);
      for (const id of [...ISLANDS, "i4"]) await over(id);
    },
    STORY_MS_MAX,
  );

  it("are all run", () => {
    expect(left.map(({ command }) => command)).toEqual([]);
  });
});
