// What `history.keep_days` means for a mesh, at real sites: a site whose oldest events are gone shows all jobs again after its file was lost, its
// replays go on comparing, and a site that joins later gets the line from one that still has all of it.

import { readdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { OPERATOR_KEY, type TenureNode, waitFor } from "../servers/index.ts";
import { SEGMENT_EVENTS } from "../servers/small-segments.ts";
import { haveTheSame, SITES_START_MS, SPREAD_MS, TestSite } from "./test-sites.ts";

const SMALL_SEGMENTS = fileURLToPath(new URL("../servers/small-segments.ts", import.meta.url));
const KEEP_MS = 2_000;
const DAY_MS = 86_400_000;
/** One event each: two sealed segments, and a little more. */
const JOBS = 2 * SEGMENT_EVENTS + 12;

interface State {
  readonly arrival: number;
  readonly through: number;
  readonly hash: string;
  readonly rows: number;
  readonly missing: number;
}

const stateAt = (site: TestSite): Promise<State> => site.get<State>("/v1/mesh/state");

/** Everything that has arrived is shown. */
async function shownAt(site: TestSite): Promise<State> {
  let state: State | null = null;
  const isShown = async (): Promise<boolean> => {
    state = await stateAt(site).catch(() => null);
    return state !== null && state.arrival > 0 && state.arrival === state.through;
  };
  await waitFor(`${site.id} to show what it has`, isShown, SPREAD_MS);
  return state!;
}

async function post(node: TenureNode, path: string): Promise<Record<string, unknown>> {
  const { status, body } = await node.call(path, { body: {}, key: OPERATOR_KEY });
  if (status !== 200) throw new Error(`${path}: ${status} ${JSON.stringify(body)}`);
  return body;
}

/** 0: it does not answer yet. */
async function pageStatus({ node }: TestSite, line: string, after: number): Promise<number> {
  const asked = node.call(`/v1/mesh/pages?line=${line}&after=${after}`, { key: OPERATOR_KEY });
  return (await asked.catch(() => null))?.status ?? 0;
}

describe("a site whose oldest events are not kept any more", () => {
  let hub: TestSite;
  let left: TestSite;
  let late: TestSite | undefined;

  beforeAll(async () => {
    const history = { keep_days: KEEP_MS / DAY_MS };
    const prepare = (node: TenureNode): void => {
      node.nodeFlags = ["--import", SMALL_SEGMENTS];
      node.configure({ history });
    };
    hub = await TestSite.start({ id: "hub", children: ["left", "late"], prepare });
    left = await TestSite.start({ id: "left", parents: [hub.url], children: ["late"] });
    await left.submit(3);
    await hub.submit(JOBS);
    await haveTheSame([hub, left]);
    await post(hub.node, "/v1/admin/snapshot");
    const beganMs = Date.now();
    await waitFor("that to be old", () => Date.now() > beganMs + KEEP_MS);
    await hub.submit(1);
    await haveTheSame([hub, left]);
    await shownAt(hub);
    await hub.node.term();
    hub.node.start();
    const line = await left.heads().then((heads) => [...heads.keys()].find((name) => name.startsWith("hub."))!);
    await waitFor("the oldest to be gone", async () => (await pageStatus(hub, line, 0)) === 410, SPREAD_MS);
  }, SITES_START_MS);

  afterAll(async () => {
    await Promise.all([hub?.end(), left?.end(), late?.end()]);
  }, 60_000);

  it(
    "its replay compares: what is shown with what is kept, from the saved state on",
    async () => {
      await haveTheSame([hub, left]);
      await shownAt(hub);
      expect(await post(hub.node, "/v1/mesh/replay")).toMatchObject({ outcome: "equal" });
    },
    SPREAD_MS,
  );

  it(
    "shows every row again after its file was lost, and the same as the other site",
    async () => {
      await haveTheSame([hub, left]);
      const before = await shownAt(hub);
      await hub.node.kill9();
      for (const file of readdirSync(hub.node.dataDir))
        if (/^mesh\.sqlite(-wal|-shm)?$/.test(file)) rmSync(join(hub.node.dataDir, file));
      hub.node.start();
      await waitFor("the site to be back", async () => (await hub.heads().catch(() => null)) !== null, SPREAD_MS);
      await haveTheSame([hub, left]);
      const after = await shownAt(hub);
      expect(after).toMatchObject({ rows: before.rows, missing: 0 });
      await waitFor("both to show the same", async () => (await shownAt(hub)).hash === (await shownAt(left)).hash);
    },
    2 * SPREAD_MS,
  );

  it(
    "a site that joins empty gets the line from a site that has all of it",
    async () => {
      late = await TestSite.start({ id: "late", parents: [hub.url, left.url] });
      await haveTheSame([hub, left, late]);
      const { hash } = await shownAt(left);
      await waitFor("it to show the same", async () => (await shownAt(late!)).hash === hash, SPREAD_MS);
    },
    SITES_START_MS + SPREAD_MS,
  );
});
