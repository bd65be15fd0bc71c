// The merged state of all sites, and arrivals, at real sites: what each shows, that it is the same, and that it comes back when its file is lost.

import { readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { OPERATOR_KEY, startProxy, type TcpProxy, type TenureNode, waitFor } from "../servers/index.ts";
import { Stranger } from "./test-hostile.ts";
import { haveTheSame, SITES_START_MS, SPREAD_MS, TestSite } from "./test-sites.ts";

interface State {
  readonly arrival: number;
  readonly through: number;
  readonly hash: string;
  readonly rows: number;
  readonly missing: number;
  readonly replay: { readonly outcome: string } | null;
}

interface Job {
  readonly id: string;
  readonly site: string;
  readonly claims: number;
}

interface Since {
  readonly events: readonly Record<string, unknown>[];
  readonly throughSequence: number;
  readonly withheld: number;
  readonly logId: string;
}

const stateAt = (site: TestSite, node?: TenureNode): Promise<State> => site.get<State>("/v1/mesh/state", node);

/** All of these show everything that has arrived, and show the same. */
async function showTheSame(sites: readonly TestSite[]): Promise<State> {
  let states: State[] = [];
  const isSame = async (): Promise<boolean> => {
    states = await Promise.all(sites.map((site) => stateAt(site)));
    const [first] = states;
    return states.every(({ arrival, through, hash }) => arrival === through && hash === first!.hash);
  };
  await waitFor("all sites to show the same", isSame, SPREAD_MS).catch((error: unknown) => {
    throw new Error(`${(error as Error).message}\n${JSON.stringify(states, null, 1)}`);
  });
  return states[0]!;
}

async function jobsAt(site: TestSite): Promise<readonly Job[]> {
  const jobs: Job[] = [];
  for (let next: string | null = ""; next !== null;) {
    const query: string = next === "" ? "" : `?cursor=${next}`;
    const page: { jobs: readonly Job[]; next: string | null } = await site.get(`/v1/mesh/jobs${query}`);
    jobs.push(...page.jobs);
    next = page.next;
  }
  return jobs;
}

describe("three sites", () => {
  let hub: TestSite;
  let left: TestSite;
  let right: TestSite;
  let proxy: TcpProxy;
  const sites = (): readonly TestSite[] => [hub, left, right];

  beforeAll(async () => {
    hub = await TestSite.start({ id: "hub", children: ["left", "right", "twin"] });
    const { hostname, port } = new URL(hub.url);
    proxy = await startProxy({ host: hostname, port: Number(port) });
    left = await TestSite.start({ id: "left", parents: [hub.url] });
    right = await TestSite.start({ id: "right", parents: [`http://127.0.0.1:${proxy.port}`] });
  }, SITES_START_MS);

  afterAll(async () => {
    await Promise.all(sites().map((site) => site?.end()));
    await proxy?.end();
  }, 60_000);

  it(
    "each shows the jobs of all, with their sites, and the same hash over them",
    async () => {
      await Promise.all(sites().map((site) => site.submit(10)));
      await haveTheSame(sites());
      const { missing } = await showTheSame(sites());
      expect(missing).toBe(0);
      const byId = (a: Job, b: Job): number => (a.id < b.id ? -1 : 1);
      const shown = await Promise.all(sites().map(async (site) => (await jobsAt(site)).toSorted(byId)));
      for (const jobs of shown) {
        expect(jobs.map(({ id, site }) => [id, site])).toEqual(shown[0]!.map(({ id, site }) => [id, site]));
        for (const { id } of sites()) expect(jobs.filter(({ site }) => site === id)).toHaveLength(10);
      }
    },
    2 * SPREAD_MS,
  );

  it(
    "a job id that two sites took while one was cut off is shown as the first of both, everywhere",
    async () => {
      proxy.cut();
      await waitFor("the site to notice", async () => !(await right.isLinked()), SPREAD_MS);
      await right.submit(1);
      const [job] = await right.get<{ jobs: readonly Job[] }>("/v1/jobs?limit=1").then(({ jobs }) => jobs);
      const { timestamp } = (await right.get<Since>("/api/events/since/0?line=own")).events.find(
        ({ entityId }) => entityId === job!.id,
      ) as { timestamp: number };
      // Sites choose the ids of jobs by themselves: only one that is scripted takes another's.
      const twin = new Stranger("twin", hub.node);
      expect((await twin.register("hub")).status).toBe(200);
      const payload = { spec: { kind: "echo", queue: "default" }, by: "twin" };
      twin.line.write({ eventType: "build:submitted", entityId: job!.id, payload, timestamp: timestamp - 60_000 });
      expect(await twin.send(twin.line.page(0, 1))).toMatchObject([{ accepted: 1 }]);
      expect((await jobsAt(right)).find(({ id }) => id === job!.id)).toMatchObject({ site: "right", claims: 1 });
      await proxy.heal();
      await haveTheSame(sites());
      await showTheSame(sites());
      for (const site of sites()) {
        const found = (await jobsAt(site)).filter(({ id }) => id === job!.id);
        expect(found, site.id).toMatchObject([{ site: "twin", claims: 2 }]);
      }
    },
    2 * SPREAD_MS,
  );

  it(
    "arrivals are numbered without gaps, each with its line; own events alone by their own sequence",
    async () => {
      const { events, throughSequence, logId } = await left.get<Since>("/api/events/since/0");
      expect(events.map(({ sequence }) => sequence)).toEqual(events.map((_, at) => at + 1));
      expect(throughSequence).toBe(events.length);
      expect(logId).toBe(await left.ownLine());
      const lines = new Set(events.map(({ line }) => line));
      for (const site of sites()) expect(lines).toContain(await site.ownLine());
      const own = await left.get<Since>("/api/events/since/0?line=own");
      expect(Object.keys(own)).toEqual(["events", "throughSequence"]);
      expect(own.events.map(({ eventHash }) => eventHash)).toEqual(
        events.filter(({ line }) => line === logId).map(({ eventHash }) => eventHash),
      );
      expect(await left.get("/api/events/verify")).toMatchObject({ valid: true, throughSequence });
    },
    SPREAD_MS,
  );

  it(
    "a replay finds what is shown; a file that was deleted is built anew, equal",
    async () => {
      const replay = await left.node.call<{ outcome: string }>("/v1/mesh/replay", { body: {}, key: OPERATOR_KEY });
      expect(replay.body).toMatchObject({ outcome: "equal" });
      const before = await stateAt(left);
      await left.node.kill9();
      for (const file of meshFiles(left.node)) rmSync(file);
      left.node.start();
      await waitFor("the site to be back", async () => (await left.heads().catch(() => null)) !== null, SPREAD_MS);
      await haveTheSame(sites());
      await showTheSame(sites());
      expect((await stateAt(left)).rows).toBe(before.rows);
    },
    2 * SPREAD_MS,
  );

  it(
    "a byte that was changed in the receipts is named by arrival, line and place in it",
    async () => {
      const hubLine = await hub.ownLine();
      const { events } = await right.get<Since>("/api/events/since/0");
      const [file] = receiptFiles(right.node);
      const bytes = readFileSync(file!);
      const at = bytes.lastIndexOf('"from":"hub"');
      expect(at).toBeGreaterThan(0);
      bytes[at + 9]! ^= 1;
      writeFileSync(file!, bytes);
      const verdict = await right.get<Record<string, unknown>>("/api/events/verify");
      expect(verdict).toMatchObject({ valid: false, line: hubLine });
      const named = events[(verdict["firstBrokenSequence"] as number) - 1];
      expect(named).toMatchObject({ line: hubLine, lineSequence: verdict["lineSequence"] });
    },
    SPREAD_MS,
  );
});

describe("a site of three nodes", () => {
  let parent: TestSite;
  let child: TestSite;

  beforeAll(async () => {
    parent = await TestSite.start({ id: "parent", children: ["child"], nodes: 3 });
    child = await TestSite.start({ id: "child", parents: parent.cluster.urls });
  }, SITES_START_MS);

  afterAll(async () => {
    await Promise.all([parent?.end(), child?.end()]);
  }, 60_000);

  it(
    "has the same arrivals on all nodes, and shows the same",
    async () => {
      await Promise.all([parent.submit(10), child.submit(10)]);
      const nodes = parent.cluster.nodes.map((node) => parent.at(node));
      await haveTheSame([child, ...nodes]);
      await showTheSame([child, ...nodes]);
      const arrived = await Promise.all(nodes.map((node) => node.get<Since>("/api/events/since/0")));
      for (const page of arrived) expect(page).toEqual(arrived[0]);
      const verdicts = await Promise.all(nodes.map((node) => node.get("/api/events/verify")));
      for (const verdict of verdicts)
        expect(verdict).toMatchObject({ valid: true, throughSequence: arrived[0]!.throughSequence });
    },
    2 * SPREAD_MS,
  );
});

function filesOf(node: TenureNode, prefix: string): string[] {
  const all = readdirSync(node.home, { recursive: true }) as string[];
  return all.filter((name) => (name.split("/").at(-1) ?? "").startsWith(prefix)).map((name) => join(node.home, name));
}

const meshFiles = (node: TenureNode): string[] => filesOf(node, "mesh.sqlite");
const receiptFiles = (node: TenureNode): string[] =>
  filesOf(node, "receipts-").filter((name) => !name.endsWith(".json"));
