// docs/runbooks/txn-in-doubt.md, command by command as it is written, on three real islands: a home that is lost in the middle of a transaction and comes
// back, and one that never does. The alert that the page is about is raised, and ends.

import { readFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { certificateFetch } from "../../src/cli/connection/transport.ts";
import { createClient } from "../../src/entry/client.ts";
import { ISLANDS_MS_MAX, TestIslands } from "../coordinators/test-islands.ts";
import { OPERATOR_KEY, VIEWER_KEY, waitFor } from "../servers/index.ts";
import { runbookSteps } from "../servers/runbook.ts";

const STORY_MS_MAX = ISLANDS_MS_MAX * 4;
const ISLANDS = ["i1", "i2", "i3"] as const;
const ALERT = "txn_in_doubt";

interface Said {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

/** The commands of the page; each is taken once. */
const left = [...runbookSteps("docs/runbooks/txn-in-doubt.md")];
let islands: TestIslands;

beforeAll(async () => {
  islands = await TestIslands.start(...ISLANDS);
  for (const kind of ["--operator ada", "--tc mover"]) {
    const { code, stderr } = await islands.run(`tenure cert issue --dir ca --out people ${kind}`);
    expect(code, stderr).toBe(0);
  }
}, STORY_MS_MAX);
afterAll(() => islands?.end());

/** The first command of this section that was not run yet, at this island. */
async function run(section: RegExp, island: string, id = ""): Promise<Said> {
  const at = left.findIndex(({ heading }) => section.test(heading));
  const [step] = at < 0 ? [] : left.splice(at, 1);
  if (step === undefined) throw new Error(`the section ${String(section)} has no more commands`);
  return await say(step.command, island, id);
}

async function say(command: string, island: string, id = ""): Promise<Said> {
  const filled = command.replace(/\bURL\b/, islands.node(island).url).replace(/\bID\b/, id);
  return await islands.run(filled, {
    TENURE_SERVERS_CERT_FILE: "people/operator-ada.crt",
    TENURE_SERVERS_KEY_FILE: "people/operator-ada.key",
  });
}

function raised(island: string): Promise<void> {
  return waitFor(`${ALERT} of ${island}`, async () => (await islands.alerts(island)).includes(ALERT), ISLANDS_MS_MAX);
}

async function over(island: string): Promise<void> {
  const isOver = async (): Promise<boolean> => {
    const names = (await islands.node(island).view())?.alerts.map(({ name }) => name);
    return names !== undefined && !names.includes(ALERT);
  };
  await waitFor(`no ${ALERT} of ${island}`, isOver, ISLANDS_MS_MAX);
}

/** Someone else than this island leads the coordinators. */
async function leaderBesides(island: string): Promise<void> {
  const isOther = async (): Promise<boolean> => {
    const leader = await islands.leader();
    return leader !== undefined && leader !== island;
  };
  await waitFor(`a leader that is not ${island}`, isOther, ISLANDS_MS_MAX);
}

/**
 * A coordinator that remembers i1 as a home that did not answer asks it first, and then prepares nothing. After this, whoever leads has never asked i1
 * in vain.
 */
async function forgetSilence(): Promise<void> {
  const others = ["i2", "i3"].map((id) => islands.node(id));
  await Promise.all(others.map((node) => node.kill9()));
  for (const node of others) node.start();
  await waitFor(
    "i2 and i3",
    async () => (await islands.seen("i2")) !== null && (await islands.seen("i3")) !== null,
    ISLANDS_MS_MAX,
  );
  await islands.settled(...ISLANDS);
}

async function hashOf(island: string): Promise<string> {
  const said = await say("tenure tc leader -o json --url URL", island);
  return (JSON.parse(said.stdout) as { self: { backend_hash: string } }).self.backend_hash;
}

/** Its home is dead: both others prepare it, and nobody can decide. */
async function inDoubt(home: string): Promise<string> {
  const [first, second] = ISLANDS.filter((id) => id !== home) as [string, string];
  const hash = (id: string): string => hashes.get(id)!;
  const file = (name: string): Buffer => readFileSync(join(islands.directory, "people", name));
  const tls = { ca: file("ca.crt"), cert: file("tc-mover.crt"), key: file("tc-mover.key") };
  const pem = Object.fromEntries(Object.entries(tls).map(([name, bytes]) => [name, bytes.toString()]));
  const client = createClient({ urls: [islands.node(first).url], fetch: certificateFetch(pem) });
  const outcome = await client.transaction(
    (t) => {
      t.on(hash(first)).put(`moved/${home}`, 1);
      t.on(hash(second)).put(`moved/${home}`, 1);
    },
    { home: hash(home), lockMs: 1_000, timeoutMs: 15_000 },
  );
  expect(outcome.state).toBe("unknown");
  return outcome.id;
}

/** With a key of a viewer, as the dashboard and Prometheus have one. */
async function isShown(island: string, id: string): Promise<void> {
  const node = islands.node(island);
  const { body: metrics } = await node.call<{ text: string }>("/metrics", { key: VIEWER_KEY });
  expect(metrics.text).toMatch(/^tenure_txn_in_doubt 1$/m);
  expect(metrics.text).toMatch(/^tenure_txn_prepared 1$/m);
  expect(Number(/^tenure_txn_oldest_in_doubt_seconds ([\d.]+)$/m.exec(metrics.text)?.[1])).toBeGreaterThan(30);
  expect(metrics.text).toMatch(/^tenure_txn_coordinated_total\{outcome="unknown"\} \d+$/m);
  const { body: view } = await node.call<{ transactions: object }>("/v1/islands", { key: VIEWER_KEY });
  const waits_for = [hashes.get("i1")];
  expect(view.transactions).toMatchObject({ in_doubt: 1, waiting: [{ txn_id: id, phase: "prepared", waits_for }] });
}

const hashes = new Map<string, string>();

describe("the commands of txn-in-doubt.md", () => {
  it(
    "a home that is lost in the middle, and comes back",
    async () => {
      for (const id of ISLANDS) hashes.set(id, await hashOf(id));
      await islands.node("i1").kill9();
      await leaderBesides("i1");
      const id = await inDoubt("i1");
      await raised("i2");
      await raised("i3");
      await isShown("i2", id);

      const listed = await run(/^Transactions/, "i2");
      expect(listed.stdout).toContain(id);
      expect(listed.stdout).toContain("prepared");
      const registry = await run(/^Transactions/, "i2");
      expect(registry.stdout).toContain(islands.node("i1").url);
      expect(registry.stdout).toContain(hashes.get("i1"));

      islands.node("i1").start();
      await waitFor("home", async () => (await islands.seen("i1")) !== null, ISLANDS_MS_MAX);
      let said = await run(/^The other island/, "i2", id);
      await waitFor(
        "home's word",
        async () => {
          said = await say("tenure txn replay ID --url URL", "i2", id);
          return said.stdout.includes("rolled back");
        },
        ISLANDS_MS_MAX,
      );
      for (const island of ["i2", "i3"]) await over(island);
      expect((await say("tenure txn list --in-doubt --url URL -o json", "i3")).stdout).not.toContain(id);
    },
    STORY_MS_MAX,
  );

  it(
    "a home that is gone for good: an operator decides the same on every island",
    async () => {
      await forgetSilence();
      await islands.node("i1").kill9();
      await leaderBesides("i1");
      const id = await inDoubt("i1");
      expect((await run(/^The home island/, "i3", id)).stdout).toContain("prepared");
      expect((await run(/^The home island/, "i2", id)).stdout).toContain("rolled back");
      expect((await say("tenure txn replay ID --force rollback --yes --url URL", "i3", id)).stdout).toContain(
        "rolled back",
      );
      const put = await islands.run(`tenure value put moved/i1 2 --url ${islands.node("i3").url}`, {
        TENURE_API_KEY: OPERATOR_KEY,
      });
      expect(put.code, put.stderr).toBe(0);
      expect((await run(/^Jobs of/, "i2")).code).toBe(0);
      expect((await run(/^Outcomes/, "i2")).stdout).toContain("leader");
      expect((await run(/^Outcomes/, "i2")).code).toBe(0);
    },
    STORY_MS_MAX,
  );

  it("are all run", () => {
    expect(left.map(({ command }) => command)).toEqual([]);
  });
});
