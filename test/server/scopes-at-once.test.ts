// Ten thousand scopes whose holders are gone, on three processes. A new leader counts every lease from its first moment on, so
// that all of them end in the same one. The leader stays, all scopes are free soon after, and who waits for one gets it in turn.

import { readFileSync } from "node:fs";
import { afterAll, beforeAll, expect, test } from "vitest";
import { SCOPES_PER_PAGE_MAX } from "../../src/contract/index.ts";
import { SCOPES_MAX } from "../../src/core/kit/limits.ts";
import {
  CALM_ELECTION,
  CLIENT_KEY,
  OPERATOR_KEY,
  startTenureCluster,
  type TenureCluster,
  type TenureNode,
  waitFor,
} from "../servers/index.ts";

/** Longer where the machine is so busy that the first would be over before the last is held. */
const TTL_MS_MIN = 20_000;
const TTL_MS_MAX = 240_000;
const SAMPLES = 400;
/** From when they are due: a second on a machine that has nothing else to do. */
const FREE_MS_MAX = 30_000;
const AT_ONCE = 48;
const CONTESTED = 200;
const GROWTH_BYTES_MAX = 256 * 1024 * 1024;

let cluster: TenureCluster;

beforeAll(async () => {
  cluster = await startTenureCluster({ election: CALM_ELECTION });
}, 240_000);

afterAll(() => cluster?.end());

interface Granted {
  readonly granted: boolean;
  readonly epoch?: number;
}

const nameOf = (at: number): string => `scope-${at}`;

/** On a connection that is kept, as programs do it. Null: to be asked again. */
async function acquire(node: TenureNode, at: number, session: string, ttlMs: number, waitMs: number) {
  const response = await fetch(`${node.url}/v1/scopes/${nameOf(at)}/acquire`, {
    method: "POST",
    // Two callers: neither has more campaigns in ten seconds than one may.
    headers: { "content-type": "application/json", "x-api-key": at % 2 === 0 ? CLIENT_KEY : OPERATOR_KEY },
    body: JSON.stringify({ session, identity: session, ttl_ms: ttlMs, wait_ms: waitMs }),
  });
  const body = (await response.json()) as Granted;
  return response.status === 200 ? body : null;
}

/** The same session asks again where it holds a scope already, and its lease begins anew. */
async function holdAll(node: TenureNode, count: number, ttlMs: number): Promise<void> {
  let next = 0;
  const one = async (): Promise<void> => {
    for (let at = next++; at < count; at = next++) {
      await waitFor(
        `${nameOf(at)} to be held`,
        async () => (await acquire(node, at, "gone", ttlMs, 0))?.granted === true,
      );
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, one));
}

/** A lease that lasts for about twice as long as it takes to hold all. */
async function ttlFor(node: TenureNode): Promise<number> {
  const beganMs = performance.now();
  await holdAll(node, SAMPLES, 1_000);
  const allMs = (performance.now() - beganMs) * (SCOPES_MAX / SAMPLES);
  await waitFor("the samples to be over", async () => (await held(node)) === 0);
  return Math.min(TTL_MS_MAX, Math.max(TTL_MS_MIN, Math.ceil(2 * allMs)));
}

interface Page {
  readonly scopes: readonly { readonly holder: object | null }[];
  readonly next: string | null;
}

async function held(node: TenureNode): Promise<number> {
  let count = 0;
  for (let after = ""; ;) {
    const path = `/v1/scopes?limit=${SCOPES_PER_PAGE_MAX}${after}`;
    const response = await fetch(`${node.url}${path}`, { headers: { "x-api-key": CLIENT_KEY } });
    const page = (await response.json()) as Page;
    if (response.status !== 200) throw new Error(`${response.status} for ${path}: ${JSON.stringify(page)}`);
    count += page.scopes.filter(({ holder }) => holder !== null).length;
    if (page.next === null) return count;
    after = `&after=${encodeURIComponent(page.next)}`;
  }
}

async function metric(node: TenureNode, name: string): Promise<number> {
  const { body } = await node.call<{ text: string }>("/metrics", { key: CLIENT_KEY });
  return Number(new RegExp(`^${name} (.*)$`, "m").exec(body.text)?.[1]);
}

function residentBytes({ pid }: TenureNode): number {
  return 1_024 * Number(/^VmRSS:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1]);
}

async function leading(): Promise<TenureNode> {
  return cluster.node(await cluster.leader());
}

test.skipIf(process.platform !== "linux")(
  "10,000 scopes that expire at once are free soon, their leader stays, and those who wait are granted in turn",
  { timeout: 600_000 },
  async () => {
    const before = await leading();
    const ttlMs = await ttlFor(before);
    await holdAll(before, SCOPES_MAX, ttlMs);
    expect(await held(before)).toBe(SCOPES_MAX);
    const transferred = await before.call("/v1/admin/transfer", { key: OPERATOR_KEY, body: {}, limitMs: 60_000 });
    expect(transferred.status).toBe(200);
    const node = cluster.node(await cluster.waitForLeader(before.id));
    const { term } = (await node.view())!;
    const countedMs = performance.now();
    const bytes = residentBytes(node);

    const answers: Record<"first" | "second", (Granted | null)[]> = { first: [], second: [] };
    const contest = async (who: "first" | "second", waiting: number): Promise<Promise<void>[]> => {
      const all = Array.from({ length: CONTESTED }, async (_, at) => {
        let answer: Granted | null = null;
        while (answer?.granted !== true) answer = await acquire(node, at, who, 600_000, 60_000);
        answers[who].push(answer);
      });
      await waitFor(`${who} to wait`, async () => (await metric(node, "tenure_http_requests_in_flight")) > waiting);
      return all;
    };
    const first = await contest("first", CONTESTED);
    const second = await contest("second", 2 * CONTESTED);
    expect(await held(node)).toBe(SCOPES_MAX);

    let firstSeenMs = Infinity;
    await waitFor(
      "all to be free but those that somebody waited for",
      async () => {
        const count = await held(node);
        if (count < SCOPES_MAX) firstSeenMs = Math.min(firstSeenMs, performance.now());
        return count === CONTESTED;
      },
      ttlMs + FREE_MS_MAX,
    );
    const freeMs = performance.now();
    await Promise.all(first);
    expect(answers.first).toHaveLength(CONTESTED);
    expect(answers.second).toEqual([]);
    expect(await node.view()).toMatchObject({ role: "LEADER", term });
    expect(residentBytes(node) - bytes).toBeLessThan(GROWTH_BYTES_MAX);
    const turnS = await metric(node, String.raw`tenure_loop_turn_seconds\{quantile="1"\}`);
    console.log(
      `free ${Math.round(freeMs - countedMs - ttlMs)} ms after they were due (${Math.round(freeMs - firstSeenMs)} ms after the first was seen), longest turn ${Math.round(1_000 * turnS)} ms, ${Math.round((residentBytes(node) - bytes) / 1_048_576)} MiB more`,
    );

    for (let at = 0; at < CONTESTED; at++) {
      const body = { force: true };
      const path = `/v1/admin/scopes/${nameOf(at)}/resign`;
      await waitFor(
        `${nameOf(at)} to be taken`,
        async () => (await node.call(path, { key: OPERATOR_KEY, body })).status === 200,
      );
    }
    await Promise.all(second);
    expect(answers.second).toHaveLength(CONTESTED);
  },
);
