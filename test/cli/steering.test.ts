// `tenure agent`, `queue`, `schedule` and `event` as processes, against three real servers: every verb, both kinds of output, and what
// is refused. A node that has a broken history is played: a real one repairs itself.

import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type Client, createClient } from "../../src/client/index.ts";
import { type Agent, createAgent } from "../../src/entry/agent.ts";
import { CALM_ELECTION, startTenureCluster, type TenureCluster, VIEWER_KEY, waitFor } from "../servers/index.ts";
import { documented, fieldsOf, flagsIn, linesOf, section } from "./test-document.ts";
import { atTheEnd, start, tenure, tenureJson } from "./test-tenure.ts";

const LIMIT_MS = 120_000;
const directory = mkdtempSync(join(tmpdir(), "tenure-steering-"));
atTheEnd(async () => rmSync(directory, { recursive: true, force: true }));

let cluster: TenureCluster;
let client: Client;
let access: string[];
let viewer: string[];
const agents: Agent[] = [];

beforeAll(async () => {
  cluster = await startTenureCluster({ election: CALM_ELECTION });
  client = createClient({ urls: cluster.urls, key: cluster.key });
  access = ["--url", cluster.urls.join(","), "--key", cluster.key];
  viewer = ["--url", cluster.urls.join(","), "--key", VIEWER_KEY];
}, LIMIT_MS);

afterAll(async () => {
  await Promise.all(agents.map((agent) => agent.stop()));
  await cluster.end();
});

/** An agent that holds every job until it is asked to stop. */
async function holdingAgent(name: string): Promise<Agent> {
  const agent = createAgent({
    urls: cluster.urls,
    key: cluster.key,
    name,
    labels: { zone: "a" },
    capacity: 2,
    handlers: {
      hold: async (_job, { signal }) => {
        await new Promise((resolve) => signal.addEventListener("abort", resolve, { once: true }));
        return null;
      },
    },
  });
  agents.push(agent);
  await agent.start();
  return agent;
}

async function refused(code: number, said: string | RegExp, ...args: readonly string[]): Promise<void> {
  const found = await tenure(...args);
  expect({ code: found.code, stdout: found.stdout }).toEqual({ code, stdout: "" });
  expect(found.stderr.trimEnd().split("\n")).toHaveLength(1);
  expect(found.stderr).toMatch(said);
}

describe("tenure agent", () => {
  it("lists and shows agents and what they hold, and takes it away from one", async () => {
    expect(await tenureJson("agent", "list", ...access)).toEqual({ code: 0, agents: [] });
    const { stdout: empty } = await tenure("agent", "list", ...access);
    expect(empty).toMatch(/^NAME +STATE +RUNS +PLATFORM +REGISTERED +KINDS +LABELS\n$/);
    const id = await client.submit({ kind: "hold" });
    await holdingAgent("a1");
    await waitFor("the agent to hold it", async () => (await client.job(id)).state === "assigned");

    const list = await tenureJson<{ agents: object[] }>("agent", "list", ...viewer);
    expect(list.agents).toMatchObject([
      { name: "a1", state: "online", kinds: ["hold"], labels: { zone: "a" }, capacity: 2, running: 1 },
    ]);
    expect(fieldsOf(list)).toEqual(documented("### `tenure agent list -o json`"));
    const { stdout: jsonl } = await tenure("agent", "list", ...viewer, "-o", "jsonl");
    expect(linesOf(jsonl)).toEqual(list.agents);
    expect((await tenure("agent", "list", ...viewer)).stdout).toMatch(/^a1 +online +1\/2 +\S+ +2\S+Z +hold +zone=a$/m);

    const show = await tenureJson<{ jobs: object[] }>("agent", "show", "a1", ...viewer);
    expect(show.jobs).toEqual([{ id, kind: "hold", state: "assigned" }]);
    expect(fieldsOf(show)).toEqual(documented("### `tenure agent show NAME -o json`"));
    expect((await tenure("agent", "show", "a1", ...viewer)).stdout).toMatch(
      new RegExp(`^job +${id} hold assigned$`, "m"),
    );

    await refused(69, /there is no agent "a2"; did you mean a1\?/, "agent", "show", "a2", ...viewer);
    await refused(69, /There is no agent nobody/, "agent", "remove", "nobody", ...access);
    await refused(64, /name must be a name/, "agent", "remove", "a b", ...access);
    await refused(77, /operator/, "agent", "remove", "a1", ...viewer);
    await refused(64, /-o takes table or json, not "jsonl"/, "agent", "show", "a1", ...viewer, "-o", "jsonl");

    expect(await tenureJson("agent", "remove", "a1", ...access)).toEqual({ code: 0, name: "a1" });
    const lost = await client.job(id, { consistency: "linearizable" });
    expect(lost).toMatchObject({ losses: 1, attempts: [{ agent: "a1", end: "lost" }] });
    expect(lost.state).toBe("pending");
  });

  it("says in words what remove has done", async () => {
    await holdingAgent("a7");
    await waitFor("the agent", async () => (await client.agents()).some(({ name }) => name === "a7"));
    const { code, stdout, stderr } = await tenure("agent", "remove", "a7", ...access);
    expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
    expect(stdout).toBe("a7 is removed; the jobs that it held are lost to it, and go to others\n");
  });
});

describe("tenure queue", () => {
  it("pauses, lists and resumes", async () => {
    const paused = { code: 0, name: "mail", paused: true };
    expect(await tenureJson("queue", "pause", "mail", ...access)).toEqual(paused);
    expect(await tenureJson("queue", "pause", "mail", ...access)).toEqual(paused);
    await client.submit({ kind: "send", queue: "mail" });
    const list = await tenureJson<{ queues: { name: string }[] }>("queue", "list", ...viewer);
    expect(list.queues).toContainEqual({ name: "mail", paused: true, pending: 1, running: 0 });
    expect(fieldsOf(list)).toEqual(documented("### `tenure queue list -o json`"));
    const { stdout: jsonl } = await tenure("queue", "list", ...viewer, "-o=jsonl");
    expect(linesOf(jsonl)).toEqual(list.queues);
    expect((await tenure("queue", "list", ...viewer)).stdout).toMatch(/^mail +paused +1 +0$/m);
    expect(await tenure("queue", "resume", "mail", ...access)).toEqual({
      code: 0,
      stdout: "mail goes on\n",
      stderr: "",
    });
    expect(await tenureJson("queue", "resume", "mail", ...access)).toEqual({ code: 0, name: "mail", paused: false });
    expect((await tenure("queue", "list", ...viewer)).stdout).toMatch(/^mail +open +1 +0$/m);
    expect(await tenure("queue", "pause", "other", ...access)).toEqual({
      code: 0,
      stdout: "other is paused\n",
      stderr: "tenure: warning: no job is in the queue other, and no schedule has it\n",
    });
    expect(await tenure("queue", "resume", "mial", ...access)).toMatchObject({
      code: 0,
      stderr: expect.stringMatching(/no job is in the queue mial; did you mean mail\?\n$/),
    });
  });

  it("refuses what is wrong", async () => {
    await refused(77, /operator/, "queue", "pause", "mail", ...viewer);
    await refused(64, /queue must be a name/, "queue", "pause", "a b", ...access);
    await refused(64, /pause needs a name/, "queue", "pause", ...access);
    await refused(69, /no node answers/, "queue", "list", "--url", "http://127.0.0.1:1");
  });
});

describe("tenure schedule", () => {
  const put = ["schedule", "put", "nightly", "--cron", "0 3 * * *", "--kind", "backup", "--concurrency", "db=1"];

  it("puts, lists, shows and deletes", async () => {
    const more = [
      "--time-zone",
      "Europe/Berlin",
      "--payload",
      '{"tableName":1}',
      "--label",
      "zone=a",
      "--timeout",
      "1h",
    ];
    expect(await tenure(...put, ...more, ...access)).toEqual({ code: 0, stdout: "nightly is put\n", stderr: "" });
    const show = await tenureJson<Record<string, unknown>>("schedule", "show", "nightly", ...viewer);
    expect(show).toMatchObject({
      name: "nightly",
      cron: "0 3 * * *",
      time_zone: "Europe/Berlin",
      overlap: "skip",
      catch_up: "last",
      paused: false,
      last_at: null,
      spec: { kind: "backup", payload: { tableName: 1 }, labels: { zone: "a" }, timeout_ms: 3_600_000 },
    });
    expect(show["next_at"]).toMatch(/^2\d{3}-.*T0[12]:00:00\.000Z$/);
    expect(fieldsOf(show)).toEqual(documented("### `tenure schedule show NAME -o json`"));
    const { code: _code, ...shown } = show;
    const list = await tenureJson<{ schedules: object[] }>("schedule", "list", ...viewer);
    expect(list.schedules).toEqual([shown]);
    expect(linesOf((await tenure("schedule", "list", ...viewer, "-o", "jsonl")).stdout)).toEqual([shown]);
    expect((await tenure("schedule", "list", ...viewer)).stdout).toMatch(
      /^nightly +0 3 \* \* \* +Europe\/Berlin +backup +on +2\S+Z +-$/m,
    );
    expect((await tenure("schedule", "show", "nightly", ...viewer)).stdout).toMatch(/^payload +\{"tableName":1\}$/m);

    // What was shown can be put again, under another name too.
    const file = join(directory, "nightly.json");
    writeFileSync(file, JSON.stringify({ ...shown, paused: true }));
    expect(await tenureJson("schedule", "put", "copy", "--file", file, ...access)).toEqual({ code: 0, name: "copy" });
    expect(await tenureJson("schedule", "show", "copy", ...viewer)).toEqual({
      ...show,
      name: "copy",
      paused: true,
      next_at: null,
    });
    expect(await tenureJson("schedule", "delete", "copy", ...access)).toEqual({ code: 0, name: "copy" });
    await refused(69, /There is no schedule copy/, "schedule", "delete", "copy", ...access);
    await refused(
      69,
      /there is no schedule "nightli"; did you mean nightly\?/,
      "schedule",
      "show",
      "nightli",
      ...viewer,
    );
  });

  it("takes a payload from a file, and a command behind --", async () => {
    const payload = join(directory, "payload.json");
    writeFileSync(payload, '{ "a": [1, 2] }');
    const cron = ["--cron", "*/5 * * * *", "--paused", ...access];
    expect(await tenure("schedule", "put", "p", ...cron, "--kind", "k", "--payload-file", payload)).toMatchObject({
      code: 0,
    });
    expect(await tenure("schedule", "put", "c", ...cron, "--cwd", "/srv", "--", "make", "-j")).toMatchObject({
      code: 0,
    });
    const of = async (name: string) =>
      (await client.schedules({ consistency: "linearizable" })).find((one) => one.name === name);
    expect((await of("p"))?.spec).toMatchObject({ kind: "k", payload: { a: [1, 2] } });
    expect((await of("c"))?.spec).toMatchObject({ kind: "exec", payload: { command: ["make", "-j"], cwd: "/srv" } });
    expect(await tenure("schedule", "delete", "p", ...access)).toEqual({
      code: 0,
      stdout: "p is deleted\n",
      stderr: "",
    });
  });

  it("refuses what is wrong, and passes on what the servers refuse", async () => {
    const bad = (cron: string, ...more: readonly string[]) => [
      "schedule",
      "put",
      "x",
      "--cron",
      cron,
      "--kind",
      "k",
      ...more,
    ];
    await refused(64, /cron/, ...bad("every day"), ...access);
    await refused(64, /Nowhere/, ...bad("0 3 * * *", "--time-zone", "Mars/Nowhere"), ...access);
    await refused(77, /submitter/, ...bad("0 3 * * *"), ...viewer);
    await refused(64, /put needs a kind/, "schedule", "put", "x", "--cron", "0 3 * * *", ...access);
    const missing = join(directory, "nothing.json");
    await refused(
      64,
      /--file .*nothing\.json can't be read: there is no such file/,
      "schedule",
      "put",
      "x",
      "--file",
      missing,
    );
    const broken = join(directory, "broken.json");
    writeFileSync(broken, "{");
    await refused(64, /--file .*broken\.json must be JSON/, "schedule", "put", "x", "--file", broken, ...access);
    // Nothing comes from stdin here.
    await refused(64, /--file - \(stdin\) must be JSON/, "schedule", "put", "x", "--file", "-", ...access);
    writeFileSync(broken, '{"cron": "0 3 * * *", "spec": {"kind": "k"}, "corn": 1}');
    await refused(64, /corn/, "schedule", "put", "x", "--file", broken, ...access);
    expect((await client.schedules({ consistency: "linearizable" })).some(({ name }) => name === "x")).toBe(false);
  });
});

interface Printed {
  readonly sequence: number;
  readonly event_type: string;
  readonly entity_id: string;
}

describe("tenure event tail", () => {
  it("prints what there is with --no-follow, whole or in lines, as far as it is asked for", async () => {
    const { lastSequence } = await client.stats({ consistency: "linearizable" });
    const all = linesOf((await tenure("event", "tail", "--no-follow", ...viewer, "-o", "jsonl")).stdout) as Printed[];
    expect(all.map(({ sequence }) => sequence).slice(0, lastSequence)).toEqual(
      Array.from({ length: lastSequence }, (_, at) => at + 1),
    );
    expect(fieldsOf(all[0])).toEqual(documented("### `tenure event tail -o jsonl`"));
    const queue = await tenure("event", "tail", "--no-follow", "--type", "queue:*", "--entity-id", "mail", ...viewer);
    expect(queue).toMatchObject({ code: 0, stderr: "" });
    expect(queue.stdout).toMatch(/^ +\d+ {2}2\S+Z {2}queue:paused +mail\n/);
    expect(queue.stdout.trimEnd().split("\n")).toHaveLength(4);
    const one = await tenure("event", "tail", "--no-follow", "--after", "2", "--limit", "1", ...viewer, "--json");
    expect(linesOf(one.stdout)).toEqual([all[2]]);
    await refused(64, /last event of this log is/, "event", "tail", "--no-follow", "--after", "99999999", ...viewer);
    await refused(64, /last event of this log is/, "event", "tail", "--after", "99999999", ...viewer);
    await refused(77, /key/, "event", "tail", "--after", "0", "--url", access[1]!, "--key", "guessed");
  });

  it("follows until it has enough, filtered by the servers, and until a signal", async () => {
    const few = start([
      "event",
      "tail",
      "--after",
      "0",
      "--type",
      "queue:paused",
      "--limit",
      "2",
      ...viewer,
      "-o",
      "json",
    ]);
    const { code, stdout } = await few.ended;
    expect(code).toBe(0);
    expect((linesOf(stdout) as Printed[]).map(({ event_type: type }) => type)).toEqual([
      "queue:paused",
      "queue:paused",
    ]);

    const { lastSequence } = await client.stats({ consistency: "linearizable" });
    const after = ["--after", String(lastSequence)];
    for (const [signal, exit] of [
      ["SIGINT", 130],
      ["SIGTERM", 143],
    ] as const) {
      const follow = start(["event", "tail", ...after, "--entity-id", "later", ...viewer]);
      await client.pauseQueue("later");
      await waitFor("the line", () => /queue:paused +later/.test(follow.said.stdout));
      follow.child.kill(signal);
      expect(await follow.ended).toMatchObject({ code: exit, stderr: "" });
    }
  });
});

/** A node that answers as this says; it is no member of anything else. */
async function playedNode(verdict: object): Promise<string> {
  const server: Server = createServer((request, response) => {
    const url = `http://${request.headers.host}`;
    const view = { node_id: "n9", role: "LEADER", members: [{ node_id: "n9", url }] };
    response.setHeader("content-type", "application/json");
    response.end(JSON.stringify(request.url === "/v1/cluster" ? view : verdict));
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  atTheEnd(async () => {
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  });
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

interface Verified {
  readonly whole: boolean;
  readonly agree: boolean | null;
  readonly nodes: readonly { readonly node_id: string | null; readonly events: number; readonly root: string }[];
}

describe("tenure event verify", () => {
  it("asks every node, also those that only the cluster names, and finds one history", async () => {
    const found = await tenureJson<Verified>("event", "verify", "--url", cluster.urls[0]!, "--key", VIEWER_KEY);
    expect(found).toMatchObject({ code: 0, whole: true, agree: true, problem: null });
    expect(found.nodes.map((node) => node.node_id ?? "?").toSorted()).toEqual(["n1", "n2", "n3"]);
    for (const node of found.nodes) expect(node.events).toBeGreaterThan(10);
    expect(fieldsOf(found)).toEqual(documented("### `tenure event verify -o json`"));
    const { code, stdout, stderr } = await tenure("event", "verify", ...viewer);
    expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
    expect(stdout).toMatch(/^n2 +whole +1…\d+ +[0-9a-f]{16} +[0-9a-f]{16}$/m);
    expect(stdout).toMatch(/\nthey are the same, as far as each goes\n$/);
  });

  it("ends with 74 and names the first broken sequence, and with 74 where two differ", async () => {
    const broken = await playedNode({ valid: false, firstSequence: 1, firstBrokenSequence: 4, reason: "another byte" });
    const one = await tenure("event", "verify", "--url", broken);
    expect(one.code).toBe(74);
    expect(one.stdout).toMatch(/^n9 +broken +1… +- +- +at sequence 4: another byte$/m);
    expect(one.stderr).toMatch(/^tenure: the history is broken: n9 at sequence 4: another byte\. .*\n$/);
    const hash = "0".repeat(64);
    const other = await playedNode({ valid: true, firstSequence: 1, throughSequence: 1, headHash: hash, root: hash });
    const two = await tenureJson<Verified>(
      "event",
      "verify",
      "--url",
      `${other},${cluster.urls[0]}`,
      "--key",
      VIEWER_KEY,
    );
    expect(two).toMatchObject({ code: 74, whole: false, agree: false });
  });

  it("goes on without a node that is down, says so, and has no verdict where nobody answers", async () => {
    const [first, ...others] = [cluster.node("n3"), cluster.node("n1"), cluster.node("n2")].map(({ url }) => url);
    // A reader that was at that node goes on at another, and misses nothing.
    const after = String((await client.stats({ consistency: "linearizable" })).lastSequence);
    const urls = ["--url", [first, ...others].join(","), "--key", VIEWER_KEY];
    const follow = start(["event", "tail", "--after", after, "--limit", "2", ...urls, "-o", "jsonl"]);
    await client.pauseQueue("before");
    await waitFor("the first event", () => follow.said.stdout.includes("before"));
    await cluster.kill("n3");
    await client.pauseQueue("behind");
    const followed = await follow.ended;
    expect(followed.code).toBe(0);
    const entities = (linesOf(followed.stdout) as Printed[]).map(({ entity_id: entity }) => entity);
    expect(entities).toEqual(["before", "behind"]);

    const found = await tenure("event", "verify", ...viewer, "-o", "json");
    expect(found.code).toBe(0);
    expect(JSON.parse(found.stdout)).toMatchObject({ whole: true, agree: true });
    expect(found.stderr).toMatch(/^tenure: without http:.*\n$/);
    cluster.start("n3");
    await cluster.steady();
    const none = await tenure("event", "verify", "--url", "http://127.0.0.1:1");
    expect(none.code).toBe(69);
    expect(none.stderr).toMatch(/no server answers/);
    const stranger = await tenure("event", "verify", "--url", access[1]!, "--key", "guessed");
    expect(stranger).toMatchObject({ code: 77, stdout: "" });
  });
});

it.each(["agent", "queue", "schedule", "event"])("the flags of %s are those of the document", async (command) => {
  const { stdout } = await tenure(command, "--help");
  expect(flagsIn(section(`## \`tenure ${command}\``))).toEqual(flagsIn(stdout));
});
