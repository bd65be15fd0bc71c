// What the tests of history share: jobs that come and go all the time, and what a node has and says of its events.

import { createHash, randomUUID } from "node:crypto";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { expect } from "vitest";
import { type Agent, createAgent } from "../../src/entry/agent.ts";
import { type Client, createClient } from "../../src/entry/client.ts";
import { CALM_ELECTION, OPERATOR_KEY as key, type TenureNode, waitFor } from "../servers/index.ts";

/** Calm, and yet soon over: most of what is waited for is that one node, alone, elects itself. */
export const HISTORY_ELECTION = { ...CALM_ELECTION, election_timeout_min_ms: 800, election_timeout_max_ms: 1_200 };

/** For `node` itself. */
export const SMALL_SEGMENTS = ["--import", new URL("../servers/small-segments.ts", import.meta.url).href] as const;

/** Segments have 64 events (test/servers/small-segments.ts): some sixteen jobs. */
const PAYLOAD_CHARS = 1_024;
const PAUSE_MS = 5;
const PAGE_EVENTS = 500;
const VERIFY_MS_MAX = 60_000;

/** Jobs are submitted, run and completed one after the other, whatever happens to the nodes. */
export class Load {
  readonly ids: string[] = [];
  readonly client: Client;
  readonly #agent: Agent;
  readonly #kind = randomUUID();
  readonly #running: Promise<void>;
  #isStopped = false;
  #stopping: Promise<void> | null = null;

  constructor(urls: readonly string[]) {
    this.client = createClient({ urls, key, timeoutMs: 60_000 });
    const handlers = { [this.#kind]: async () => ({ done: true }) };
    this.#agent = createAgent({ client: this.client, name: `agent-${this.#kind}`, capacity: 4, handlers });
    this.#running = this.#run();
  }

  async #run(): Promise<void> {
    await this.#agent.start();
    while (!this.#isStopped) {
      const payload = { text: randomUUID().repeat(PAYLOAD_CHARS / 36) };
      this.ids.push(await this.client.submit({ kind: this.#kind, payload }));
      await sleep(PAUSE_MS);
    }
  }

  /** Resolves when so many more jobs were taken. */
  async more(jobs: number): Promise<void> {
    const until = this.ids.length + jobs;
    const failed = this.#running.then(() => this.ids.length);
    await Promise.race([waitFor(`${jobs} more jobs`, () => this.ids.length >= until, 180_000), failed]);
  }

  /** No more are submitted; resolves when all are completed. Twice is harmless. */
  stop(): Promise<void> {
    this.#stopping ??= this.#stop();
    return this.#stopping;
  }

  async #stop(): Promise<void> {
    this.#isStopped = true;
    await this.#running;
    const last = this.ids.slice(-20);
    await Promise.all(last.map((id) => this.client.wait(id, { signal: AbortSignal.timeout(60_000) })));
    await this.#agent.stop({ drainMs: 5_000 });
  }
}

export type Verified =
  | {
      readonly valid: true;
      readonly firstSequence: number;
      readonly throughSequence: number;
      readonly headHash: string;
    }
  | {
      readonly valid: false;
      readonly firstSequence: number;
      readonly firstBrokenSequence: number;
      readonly reason: string;
    };

export async function verified(node: TenureNode): Promise<Verified> {
  const { status, body } = await node.call<Verified>("/api/events/verify", { key, limitMs: VERIFY_MS_MAX });
  if (status !== 200) throw new Error(`${node.id} answers ${status}: ${JSON.stringify(body)}`);
  return body;
}

/** It has all events that its cluster keeps. */
export async function complete(node: TenureNode): Promise<void> {
  let said = "nothing";
  const isValid = async (): Promise<boolean> => {
    try {
      const verdict = await verified(node);
      said = JSON.stringify(verdict);
      return verdict.valid;
    } catch (error) {
      said = String(error);
      return false;
    }
  };
  await waitFor(`${node.id} to have all events`, isValid, 60_000).catch((error: unknown) => {
    throw new Error(`${(error as Error).message}: it says ${said}\n${node.log().slice(-3_000)}`);
  });
}

export interface History {
  readonly first: number;
  readonly last: number;
  /** Of all events from the first to the last, as the node tells them. */
  readonly sha256: string;
}

/** Everything after `after` that a node serves. */
export async function historyOf(node: TenureNode, after: number, through: number): Promise<History> {
  const hash = createHash("sha256");
  let at = after;
  while (at < through) {
    const path = `/api/events/since/${at}?limit=${Math.min(PAGE_EVENTS, through - at)}`;
    const { status, body } = await node.call<{ events: { sequence: number }[] }>(path, { key, limitMs: 30_000 });
    if (status !== 200 || body.events.length === 0) throw new Error(`${node.id}: ${status} ${JSON.stringify(body)}`);
    for (const event of body.events) {
      if (event.sequence !== ++at) throw new Error(`${node.id} has event ${event.sequence} where ${at} should be`);
      hash.update(JSON.stringify(event));
    }
  }
  return { first: after + 1, last: at, sha256: hash.digest("hex") };
}

/** The sequence of the last event that all of them have applied, when nothing more comes. */
export async function commonHead(nodes: readonly TenureNode[]): Promise<number> {
  const heads = async (): Promise<number[]> =>
    Promise.all(
      nodes.map(async (node) => {
        const { body } = await node.call<{ last_sequence: number }>("/v1/stats", { key });
        return body.last_sequence;
      }),
    );
  let seen: number[] = [];
  await waitFor("all to have applied the same", async () => {
    seen = await heads();
    return seen[0] !== undefined && seen[0] > 0 && new Set(seen).size === 1;
  });
  return seen[0]!;
}

/** They serve the same bytes from the event after `after` on, and find them valid. Returns the last one's sequence. */
export async function expectSameHistory(nodes: readonly TenureNode[], after: number): Promise<number> {
  const head = await commonHead(nodes);
  const histories = await Promise.all(nodes.map((node) => historyOf(node, after, head)));
  expect(new Set(histories.map(({ sha256 }) => sha256)).size).toBe(1);
  const verdicts = await Promise.all(nodes.map((node) => verified(node)));
  for (const verdict of verdicts) {
    expect(verdict).toMatchObject({ valid: true, firstSequence: after + 1, throughSequence: head });
    expect(verdict).toEqual(verdicts[0]);
  }
  return head;
}

/** The sealed segments in a node's directory, by name: all but the last file, which is open. */
export function sealedFiles(node: TenureNode): Map<string, string> {
  const sealed = segmentNames(node).slice(0, -1);
  return new Map(
    sealed.map((name) => [
      name,
      createHash("sha256")
        .update(readFileSync(join(node.dataDir, name)))
        .digest("hex"),
    ]),
  );
}

export function openFile(node: TenureNode): string {
  return join(node.dataDir, segmentNames(node).at(-1)!);
}

function segmentNames(node: TenureNode): string[] {
  return readdirSync(node.dataDir)
    .filter((name) => /^events-[0-9]{16}$/.test(name))
    .toSorted();
}

/** Its views have all events: when it starts again nobody reads the history but whoever is asked to. */
export async function viewed(node: TenureNode): Promise<void> {
  await waitFor("the views to have caught up", async () => {
    const { body } = await node.call<{ text: string }>("/metrics", { key });
    return /^tenure_views_lag_events 0$/m.test(body.text);
  });
}
