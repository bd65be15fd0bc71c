// A hole in the archive of receipts of one node: it is fetched from another node of the site. One that no node has is an alert that names it, until a copy is
// put back on any of them. Real servers; the steps build on each other.

import { existsSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, expect, it } from "vitest";
import { SMALL_SEGMENTS } from "../server/test-history.ts";
import { SEGMENT_EVENTS } from "../servers/small-segments.ts";
import { CALM_ELECTION, OPERATOR_KEY, type TenureNode, waitFor } from "../servers/index.ts";
import { Stranger } from "./test-hostile.ts";
import { SITES_START_MS, SPREAD_MS, TestSite } from "./test-sites.ts";

const FIRST = "receipts-0000000000000001";
/** As many as a request takes. */
const PAGES = 16;

let hub: TestSite;
let whole: Buffer;

const fileOf = (node: TenureNode): string => join(node.dataDir, FIRST);

beforeAll(async () => {
  hub = await TestSite.start({
    id: "hub",
    children: ["far"],
    nodes: 3,
    election: CALM_ELECTION,
    prepare: (node) => (node.nodeFlags = SMALL_SEGMENTS),
  });
  await waitFor("the hub to have a line", async () => (await hub.ownLine()) !== "", SPREAD_MS);
  const far = new Stranger("far", await hub.leader());
  expect((await far.register("hub")).status).toBe(200);
  // Each page is a receipt.
  far.line.writeMany(SEGMENT_EVENTS + 2 * PAGES);
  for (let after = 0; after < far.line.size; after += PAGES) {
    const pages = Array.from({ length: PAGES }, (_, at) => far.line.page(after + at, after + at + 1));
    expect(await far.send(...pages)).toHaveLength(PAGES);
  }
  await waitFor(
    "a sealed segment on every node",
    () => Promise.resolve(hub.cluster.nodes.every((node) => receiptsOn(node).length > 1)),
    SPREAD_MS,
  );
}, SITES_START_MS);

afterAll(() => hub?.end(), 60_000);

function receiptsOn(node: TenureNode): readonly string[] {
  return readdirSync(node.dataDir).filter((name) => /^receipts-[0-9]/.test(name));
}

async function lostAlert(): Promise<string> {
  interface View {
    readonly alerts: readonly { readonly name: string; readonly message: string }[];
  }
  for (const node of hub.cluster.nodes) {
    const answer = await node.call<View>("/v1/cluster", { key: OPERATOR_KEY }).catch(() => null);
    const found = answer?.body.alerts?.find(({ name }) => name === "history_lost");
    if (found !== undefined) return found.message;
  }
  return "";
}

it(
  "is filled from another node",
  async () => {
    const leader = await hub.leader();
    const node = hub.cluster.nodes.find(({ id }) => id !== leader.id)!;
    await node.term();
    whole = readFileSync(fileOf(node));
    rmSync(fileOf(node));
    node.start();
    await waitFor("the segment to be back", () => Promise.resolve(existsSync(fileOf(node))), SPREAD_MS);
    await waitFor("it to be whole", () => Promise.resolve(readFileSync(fileOf(node)).equals(whole)), SPREAD_MS);
  },
  2 * SPREAD_MS,
);

it(
  "that no node can fill is an alert, until somebody puts a copy back",
  async () => {
    for (const node of hub.cluster.nodes) {
      await node.term();
      rmSync(fileOf(node));
    }
    for (const node of hub.cluster.nodes) node.start();
    await hub.cluster.steady(SPREAD_MS);
    await waitFor("the alert", async () => (await lostAlert()) !== "", SPREAD_MS);
    expect(await lostAlert()).toContain(`receipts of other sites' events 1 to ${SEGMENT_EVENTS} are lost`);
    await hub.submit(1);
    const [node] = hub.cluster.nodes;
    await node!.term();
    writeFileSync(fileOf(node!), whole);
    node!.start();
    await waitFor(
      "every node to have it",
      () => Promise.resolve(hub.cluster.nodes.every((one) => existsSync(fileOf(one)))),
      SPREAD_MS,
    );
    await waitFor("the alert to end", async () => (await lostAlert()) === "", SPREAD_MS);
  },
  4 * SPREAD_MS,
);
