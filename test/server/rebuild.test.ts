// A node whose views are gone, or whose whole disk is, builds them again from the history, which takes a while. Whoever reads or waits
// meanwhile is answered with what is so, or asked to come again; never with what was so once.

import { rmSync } from "node:fs";
import { join } from "node:path";
import { afterEach, describe, expect, test } from "vitest";
import { createAgent } from "../../src/entry/agent.ts";
import { type Client, createClient } from "../../src/entry/client.ts";
import {
  OPERATOR_KEY as key,
  startTenureCluster,
  type TenureCluster,
  type TenureAnswer,
  type TenureNode,
  waitFor,
} from "../servers/index.ts";
import { HISTORY_ELECTION } from "./test-history.ts";

const SMALL_BOOK = ["--import", new URL("../servers/small-book.ts", import.meta.url).href];
const JOBS = 3_000;
const BATCH = 1_000;
/** A rebuild that nobody saw shows nothing: then it is done once more. */
const ROUNDS_MAX = 5;
const PATIENT_MS = 60_000;

let cluster: TenureCluster | undefined;

afterEach(() => cluster?.end());

interface Seen {
  /** Answers that were neither right nor a request to come again. */
  readonly wrong: string[];
  right: number;
  tooStale: number;
  /** How often the views were seen on their way. */
  lagging: number;
}

async function startWith(nodes: number): Promise<TenureCluster> {
  cluster = await startTenureCluster({
    nodes,
    election: HISTORY_ELECTION,
    // The log is short: what the views have missed is in the history alone.
    snapshots: { after_entries: 50, keep_entries: 10 },
    prepare: (node) => (node.nodeFlags = SMALL_BOOK),
  });
  return cluster;
}

/** Submitted before the first of them begins, and all completed. */
async function completed(client: Client): Promise<readonly string[]> {
  const ids: string[] = [];
  while (ids.length < JOBS) {
    ids.push(...(await client.submitMany(Array.from({ length: BATCH }, () => ({ kind: "small" })))));
  }
  const agent = createAgent({ client, name: "one", capacity: 200, handlers: { small: async () => ({ done: true }) } });
  await agent.start();
  await waitFor("all jobs to be completed", async () => (await client.stats()).finished >= JOBS, 180_000);
  await agent.stop({ drainMs: 5_000 });
  return ids;
}

/** What this node says of these jobs, again and again, until its views are whole. */
async function readAll(node: TenureNode, ids: readonly string[]): Promise<Seen> {
  const seen: Seen = { wrong: [], right: 0, tooStale: 0, lagging: 0 };
  const whole = new AbortController();
  /** It has applied everything: from then on its local reads are as good. */
  let isCaughtUp = false;
  const asked = async (path: string, isRight: (body: Said) => boolean): Promise<void> => {
    const isJudged = isCaughtUp || path.includes("linearizable");
    const { status, body, headers } = await said(node, path);
    if (status === 503 && body.error === "TOO_STALE" && headers["retry-after"] !== undefined) seen.tooStale++;
    else if (status === 200 && isRight(body)) seen.right++;
    else if (status === 0 || body.error === "ERR_NO_LEADER" || !isJudged) return;
    else seen.wrong.push(`${path}: ${status} ${body.state ?? body.error}`);
    if (path.includes("linearizable")) isCaughtUp = true;
  };
  const reader = async (at: number): Promise<void> => {
    const query = at % 2 === 0 ? "" : "?consistency=linearizable";
    for (let next = at; !whole.signal.aborted; next += 7) {
      await asked(`/v1/jobs/${ids[next % ids.length]}${query}`, ({ state }) => state === "completed");
    }
  };
  const lister = async (): Promise<void> => {
    const path = "/v1/jobs?consistency=linearizable&state=pending,assigned,building";
    while (!whole.signal.aborted) await asked(path, ({ jobs }) => jobs?.length === 0);
  };
  const watching = waitFor(
    "the views to be whole",
    async () => {
      const lag = /^tenure_views_lag_events (\d+)$/m.exec((await said(node, "/metrics")).body.text ?? "")?.[1];
      if (Number(lag ?? 0) > 0) seen.lagging++;
      return lag === "0" && seen.right > 0;
    },
    120_000,
  ).finally(() => whole.abort());
  await Promise.all([watching, lister(), ...Array.from({ length: 8 }, (_, at) => reader(at))]);
  return seen;
}

interface Said {
  readonly state?: string;
  readonly error?: string;
  readonly text?: string;
  readonly jobs?: readonly object[];
}

/** Status 0: nothing, because it is not up. */
function said(node: TenureNode, path: string): Promise<Pick<TenureAnswer<Said>, "status" | "headers" | "body">> {
  return node.call<Said>(path, { key, limitMs: 30_000 }).catch(() => ({ status: 0, headers: {}, body: {} }));
}

async function rounds(
  node: TenureNode,
  ids: readonly string[],
  lose: () => void,
): Promise<{ readonly waited: readonly string[] }> {
  const client = createClient({ urls: [node.url], key, timeoutMs: PATIENT_MS });
  for (let round = 1; ; round++) {
    await node.term();
    lose();
    node.start();
    const sample = ids.filter((_, at) => at % 151 === 0);
    const [seen, ...waited] = await Promise.all([
      readAll(node, sample),
      ...sample.slice(0, 5).map((id) => client.wait(id, { signal: AbortSignal.timeout(PATIENT_MS) })),
    ]);
    const { wrong, ...counts } = seen;
    expect(wrong.slice(0, 5), `${wrong.length} wrong, ${JSON.stringify(counts)}`).toEqual([]);
    if (seen.lagging > 0) return { waited: waited.map(({ state }) => state) };
    expect(round, "a rebuild that somebody sees").toBeLessThan(ROUNDS_MAX);
  }
}

describe("while a node builds its views again", () => {
  test("no read, on the only node, says that a completed job is pending or does not exist, and wait returns", async () => {
    const { nodes, urls } = await startWith(1);
    const node = nodes[0]!;
    const ids = await completed(createClient({ urls, key, timeoutMs: PATIENT_MS }));
    const { waited } = await rounds(node, ids, () => {
      for (const suffix of ["", "-wal", "-shm"]) rmSync(join(node.dataDir, `views.sqlite${suffix}`), { force: true });
    });
    expect(waited).toEqual(waited.map(() => "completed"));
  }, 400_000);

  test("no read of a wiped node among three says so either, and wait returns there", async () => {
    const three = await startWith(3);
    const ids = await completed(createClient({ urls: three.urls, key, timeoutMs: PATIENT_MS }));
    const leader = await three.leader();
    const node = three.nodes.find(({ id }) => id !== leader)!;
    const { waited } = await rounds(node, ids, () => node.wipe());
    expect(waited).toEqual(waited.map(() => "completed"));
  }, 400_000);
});
