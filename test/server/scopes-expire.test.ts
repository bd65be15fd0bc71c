// All scopes that a cluster has room for, on three real servers: one client acquires them over HTTP and renews none, and their leases
// end at one moment. A bystander renews a scope of its own all the time.

import { Agent, request } from "node:http";
import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, beforeAll, expect, it } from "vitest";
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

const LIMIT_MS = 600_000;
const PARALLEL = 64;
/** The bystander's scope takes one place: for one more than SCOPES_MAX the answer is OVERLOADED for as long as all are held. */
const EXPIRING = SCOPES_MAX - 1;
/** From the first acquisition to the end of all leases. A machine that acquires more slowly is given twice as long the next time. */
const WINDOW_MS = 30_000;
const TTL_MS_MIN = 1_000;
const RENEW_EVERY_MS = 200;

interface Answer {
  readonly status: number;
  readonly body: Readonly<Record<string, unknown>>;
}

interface Transition {
  readonly at_ms: number;
  readonly reason: string;
}

let cluster: TenureCluster;
let leader: TenureNode;
const agent = new Agent({ keepAlive: true, maxSockets: PARALLEL });
const names = Array.from({ length: EXPIRING }, (_, at) => `s${at}`);

beforeAll(async () => {
  cluster = await startTenureCluster({ election: CALM_ELECTION });
  leader = cluster.node(await cluster.leader());
}, LIMIT_MS);

afterAll(async () => {
  agent.destroy();
  await cluster?.end();
});

/** On a connection that is kept. */
function call(path: string, body?: object): Promise<Answer> {
  const method = body === undefined ? "GET" : "POST";
  const headers = { "x-api-key": CLIENT_KEY, ...(body === undefined ? {} : { "content-type": "application/json" }) };
  return new Promise((resolve, reject) => {
    const sent = request(`${leader.url}${path}`, { method, agent, headers }, (response) => {
      let text = "";
      response.setEncoding("utf8").on("data", (chunk: string) => void (text += chunk));
      response.on("error", reject);
      response.on("end", () => resolve({ status: response.statusCode ?? 0, body: JSON.parse(text) as Answer["body"] }));
    });
    sent.on("error", reject);
    sent.end(body === undefined ? undefined : JSON.stringify(body));
  });
}

async function forEach(ask: (scope: string) => Promise<void>): Promise<void> {
  const rest = names.values();
  const client = async (): Promise<void> => {
    for (const scope of rest) await ask(scope);
  };
  await Promise.all(Array.from({ length: PARALLEL }, client));
}

/** With leases that end at the same moment. */
async function acquireAll(windowMs: number): Promise<void> {
  const endAtMs = performance.now() + windowMs;
  await forEach(async (scope) => {
    const ttl = Math.max(TTL_MS_MIN, Math.ceil(endAtMs - performance.now()));
    const body = { session: `of-${scope}-for-${windowMs}`, identity: scope, ttl_ms: ttl, wait_ms: 0 };
    expect(await call(`/v1/scopes/${scope}/acquire`, body)).toMatchObject({ status: 200, body: { granted: true } });
  });
}

async function heldNow(): Promise<string[]> {
  const held: string[] = [];
  for (let after: string | null = ""; after !== null;) {
    const { body }: Answer = await call(`/v1/scopes${after === "" ? "" : `?after=${after}`}`);
    const scopes = body["scopes"] as { readonly scope: string; readonly holder: object | null }[];
    held.push(...scopes.filter(({ holder }) => holder !== null).map(({ scope }) => scope));
    after = body["next"] as string | null;
  }
  return held;
}

/** Whether all were held at one time, by the clock of the leader. */
async function wereHeldAtOnce(): Promise<boolean> {
  const [acquired, expired]: [number[], number[]] = [[], []];
  await forEach(async (scope) => {
    const { body } = await call(`/v1/scopes/${scope}/history`);
    const [last, before] = body["transitions"] as readonly Transition[];
    expect([last?.reason, before?.reason]).toEqual(["expired", "acquired"]);
    expired.push(last!.at_ms);
    acquired.push(before!.at_ms);
  });
  return Math.max(...acquired) < Math.min(...expired);
}

/** Renews a scope of its own until it is stopped. */
class Bystander {
  readonly failures: unknown[] = [];
  renewed = 0;
  #isStopped = false;

  async run(): Promise<void> {
    const session = "of-the-bystander";
    const acquired = await this.#ask("acquire", { session, identity: "bystander", ttl_ms: 60_000, wait_ms: 0 });
    const { epoch } = acquired.body;
    while (!this.#isStopped) {
      const answer = await this.#ask("renew", { session, epoch });
      if (answer.status === 200 && answer.body["epoch"] === epoch) this.renewed++;
      else this.failures.push(answer);
      await sleep(RENEW_EVERY_MS);
    }
  }

  stop(): void {
    this.#isStopped = true;
  }

  /** On a connection of its own. */
  #ask(what: "acquire" | "renew", body: object): Promise<Answer> {
    return leader.call(`/v1/scopes/bystander/${what}`, { key: OPERATOR_KEY, body, limitMs: LIMIT_MS });
  }
}

async function termOf(node: TenureNode): Promise<unknown> {
  return (await node.call("/v1/cluster", { key: OPERATOR_KEY, limitMs: LIMIT_MS })).body["term"];
}

it(
  "9,999 scopes whose leases end at once are free, without an election, and a bystander's renewals all succeed",
  async () => {
    const term = await termOf(leader);
    const bystander = new Bystander();
    const renewing = bystander.run().catch((error: unknown) => void bystander.failures.push(error));
    try {
      await waitFor("the bystander", () => bystander.renewed > 0);
      for (let [windowMs, isDone] = [WINDOW_MS, false]; !isDone; windowMs *= 2) {
        await acquireAll(windowMs);
        await waitFor("all scopes to be free", async () => (await heldNow()).length === 1, LIMIT_MS);
        isDone = await wereHeldAtOnce();
      }
      expect(await heldNow()).toEqual(["bystander"]);
    } finally {
      bystander.stop();
      await renewing;
    }
    expect(bystander.failures).toEqual([]);
    expect(await Promise.all(cluster.nodes.map(termOf))).toEqual([term, term, term]);
    expect(await cluster.leader()).toBe(leader.id);
  },
  LIMIT_MS,
);
