// Data directories of each release, started with the code of today: they serve what they served when they were written. The
// nodes believe that it is the day on which that was, or everything in them would be over by now.

import { readdirSync, readFileSync } from "node:fs";
import { gunzipSync } from "node:zlib";
import { expect, it, onTestFinished } from "vitest";
import {
  CALM_ELECTION,
  OPERATOR_KEY as key,
  startTenureCluster,
  type TenureCluster,
  waitFor,
} from "../servers/index.ts";
import { answersOf, type Recorded } from "./answers.ts";
import { SMALL_SEGMENTS, unpack } from "./directories.ts";

const LIMIT_MS = 120_000;
const here = new URL("./", import.meta.url);
const releases = readdirSync(here, { withFileTypes: true })
  .filter((entry) => entry.isDirectory())
  .map(({ name }) => name);

it.each(releases)(
  "%s: three nodes start from what it left, and serve the same events, jobs, scopes, agents, queues, schedules and keys",
  async (release) => {
    const at = (file: string): URL => new URL(`${release}/${file}`, here);
    const recorded = JSON.parse(gunzipSync(readFileSync(at("answers.json.gz"))).toString()) as Recorded;
    const cluster = await restored(readFileSync(at("nodes.json.gz")), recorded.atMs);
    onTestFinished(() => cluster.end());
    for (const node of cluster.nodes) {
      await waitFor(`${node.id} to have read all`, async () => {
        const { body } = await node.call<{ last_sequence: number }>("/v1/stats", { key });
        return body.last_sequence >= recorded.events.length;
      });
      const { events, bodies, headHash } = await answersOf(node);
      expect(events, node.id).toEqual(recorded.events);
      expect(headHash, node.id).toBe(recorded.headHash);
      expect(bodies, node.id).toEqual(recorded.bodies);
      const { body } = await node.call("/api/events/verify", { key });
      expect(body, node.id).toMatchObject({ valid: true, headHash, throughSequence: recorded.events.length });
    }
    await goesOn(cluster, recorded.events.length);
  },
  2 * LIMIT_MS,
);

async function restored(packed: Uint8Array, atMs: number): Promise<TenureCluster> {
  const shiftMs = atMs - Date.now();
  const calendar = `const real = Date.now; Date.now = () => real() + ${shiftMs};`;
  const directories = new Map<string, string>();
  let isUnpacked = false;
  return await startTenureCluster({
    election: CALM_ELECTION,
    prepare: (node) => {
      node.nodeFlags = [...SMALL_SEGMENTS, "--import", `data:text/javascript,${encodeURIComponent(calendar)}`];
      directories.set(node.id, node.dataDir);
      if (isUnpacked || directories.size < 3) return;
      isUnpacked = true;
      unpack(packed, (id) => directories.get(id) ?? "");
    },
  });
}

/** New events are chained after the old ones, and a key that was used before is remembered. */
async function goesOn(cluster: TenureCluster, last: number): Promise<void> {
  const leader = cluster.node(await cluster.leader());
  const { status } = await leader.call("/v1/jobs", { key, body: { kind: "of-today" } });
  expect(status).toBe(200);
  const { body } = await leader.call<{ events: readonly { sequence: number; previousHash: string }[] }>(
    `/api/events/since/${last}`,
    { key },
  );
  expect(body.events[0]).toMatchObject({ sequence: last + 1, eventType: "build:submitted" });
  const { body: verdict } = await leader.call("/api/events/verify", { key });
  expect(verdict).toMatchObject({ valid: true });
}
