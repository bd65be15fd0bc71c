// The SDK and its agents against three server processes: what users do, while nodes are killed under them.

import { randomUUID } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, beforeAll, expect, onTestFinished, test } from "vitest";
import { type Client, type ClientFetch, createClient, type EventView, TenureError } from "../../src/entry/client.ts";
import { type Agent, type AgentOptions, createAgent, JobAborted, JobError } from "../../src/entry/agent.ts";
import { OPERATOR_KEY as key, startTenureCluster, type TenureCluster, waitFor } from "../servers/index.ts";

let cluster: TenureCluster;
let client: Client;

beforeAll(async () => {
  cluster = await startTenureCluster();
  client = clientOf();
}, 120_000);

afterAll(() => cluster?.end());

function clientOf(fetch?: ClientFetch, urls: readonly string[] = cluster.urls): Client {
  return createClient({ urls, key, timeoutMs: 30_000, ...(fetch === undefined ? {} : { fetch }) });
}

async function agentOf(
  name: string,
  handlers: AgentOptions["handlers"],
  more: Partial<AgentOptions> = {},
): Promise<Agent> {
  const agent = createAgent({ client, name, handlers, ...more } as AgentOptions);
  onTestFinished(() => agent.stop({ drainMs: 0 }));
  await agent.start();
  return agent;
}

/** The leader dies, another leads, and the dead one comes back. */
async function killLeader(): Promise<void> {
  const old = await cluster.leader();
  await cluster.kill(old);
  await cluster.waitForLeader(old);
  cluster.start(old);
  await cluster.steady();
}

/** From the first event to the head of now. */
async function eventsSoFar(of: Client, types?: readonly string[]): Promise<EventView[]> {
  const { lastSequence } = await of.stats({ consistency: "linearizable" });
  const marker = await of.submit({ kind: `marker-${randomUUID()}` });
  const events: EventView[] = [];
  const wanted = types === undefined ? undefined : [...types, "build:submitted"];
  for await (const event of of.events({ after: 0, types: wanted })) {
    if (event.entityId === marker) break;
    if (event.sequence <= lastSequence && (types === undefined || types.includes(event.eventType))) events.push(event);
  }
  return events;
}

test("200 jobs through two agents, the leader killed twice: each is completed exactly once", async () => {
  const kind = randomUUID();
  /** Every run that a handler began, and what it answered. */
  const runs = new Map<string, string[]>();
  const run = async (job: { readonly id: string }): Promise<string> => {
    const token = randomUUID();
    runs.set(job.id, [...(runs.get(job.id) ?? []), token]);
    await sleep(20 + Math.random() * 80);
    return token;
  };
  for (const name of ["left", "right"])
    await agentOf(`${name}-${kind}`, { [kind]: run }, { capacity: 2, leaseMs: 4_000 });
  const ids: string[] = [];
  const submitting = (async () => {
    for (let batch = 0; batch < 20; batch++) {
      const jobs = Array.from({ length: 10 }, (_, at) => ({ kind, payload: { batch, at } }));
      ids.push(...(await client.submitMany(jobs)));
      await sleep(100);
    }
  })();
  await waitFor("jobs under way", () => runs.size > 10);
  await killLeader();
  await waitFor("more jobs under way", () => runs.size > 60, 60_000);
  await killLeader();
  await submitting;
  const done = await Promise.all(ids.map((id) => client.wait(id, { signal: AbortSignal.timeout(90_000) })));
  expect(new Set(ids).size).toBe(200);
  for (const job of done) {
    expect(job).toMatchObject({ state: "completed", failures: 0 });
    expect(runs.get(job.id), "what is committed is what a run of this job answered").toContain(job.result);
  }
  const completions = (await eventsSoFar(client, ["build:completed"])).filter(({ entityId }) => ids.includes(entityId));
  expect(completions.map(({ entityId }) => entityId).toSorted()).toEqual(ids.toSorted());
  const listed: string[] = [];
  for await (const job of client.jobs({ kind, pageSize: 30, consistency: "linearizable" })) listed.push(job.id);
  expect(listed.toSorted(), "page by page, each once").toEqual(ids.toSorted());
  console.log(`${[...runs.values()].flat().length} runs of ${ids.length} jobs`);
}, 240_000);

test("cancelling a running job aborts its signal, and the job is cancelled", async () => {
  const kind = randomUUID();
  const begun = Promise.withResolvers<AbortSignal>();
  await agentOf(
    `agent-${kind}`,
    {
      [kind]: async (_job, { signal }) => {
        begun.resolve(signal);
        await new Promise((_resolve, reject) => signal.addEventListener("abort", () => reject(signal.reason as Error)));
      },
    },
    // There is room for another, so a poll is parked, and is told at once.
    { capacity: 2 },
  );
  const id = await client.submit({ kind });
  const signal = await begun.promise;
  const startedMs = performance.now();
  expect(await client.cancel(id)).toMatchObject({ state: "cancelling" });
  expect(await client.wait(id)).toMatchObject({ state: "cancelled", attempts: [{ end: "cancelled" }] });
  expect(performance.now() - startedMs, "not only at the next renewal, 5 s later").toBeLessThan(4_000);
  expect(signal.reason).toBeInstanceOf(JobAborted);
  expect(signal.reason).toMatchObject({ reason: "cancelled" });
  await expect(client.cancel(id)).rejects.toMatchObject({ code: "JOB_FINISHED" });
});

test("trap 51: an agent that can't renew aborts before its lease ends, and its late result is not taken", async () => {
  const kind = randomUUID();
  const leaseMs = 3_000;
  let isCut = false;
  const cut: ClientFetch = (url, init) => (isCut ? Promise.reject(new TypeError("fetch failed")) : fetch(url, init));
  const aborted = Promise.withResolvers<{ readonly afterMs: number; readonly reason: unknown }>();
  const late = await agentOf(
    `cut-${kind}`,
    {
      [kind]: async (_job, { signal }) => {
        isCut = true;
        const cutMs = performance.now();
        await new Promise<void>((resolve) => signal.addEventListener("abort", () => resolve()));
        aborted.resolve({ afterMs: performance.now() - cutMs, reason: signal.reason });
        return "late";
      },
    },
    { client: clientOf(cut), leaseMs },
  );
  const id = await client.submit({ kind });
  const { afterMs, reason } = await aborted.promise;
  expect(reason).toMatchObject({ reason: "lease-lost" });
  expect(afterMs).toBeLessThan(leaseMs);
  await agentOf(`whole-${kind}`, { [kind]: (_job, { attempt }) => `attempt ${attempt}` });
  expect(await client.wait(id)).toMatchObject({ state: "completed", result: "attempt 2", losses: 1 });
  isCut = false;
  await waitFor("the late result to be answered", () => late.running === 0);
  expect(await client.job(id)).toMatchObject({ state: "completed", result: "attempt 2" });
});

test("trap 67: events go on without gap or repetition when the node they come from is killed", async () => {
  const kind = randomUUID();
  const before = await client.stats({ consistency: "linearizable" });
  const stop = new AbortController();
  const seen: EventView[] = [];
  // It is notified of one node only, reads from that one, and learns of the others from it.
  const source = cluster.node(await cluster.leader());
  const reader = clientOf(undefined, [source.url]);
  const reading = (async () => {
    for await (const event of reader.events({ after: before.lastSequence, signal: stop.signal })) seen.push(event);
  })().catch((error: unknown) => error);
  const first = await client.submitMany(Array.from({ length: 20 }, () => ({ kind })));
  await waitFor("the first events", () => seen.length >= first.length);
  await source.kill9();
  const second = await client.submitMany(Array.from({ length: 20 }, () => ({ kind })));
  await waitFor("the events behind the kill", () => seen.length >= first.length + second.length);
  source.start();
  await cluster.steady();
  stop.abort(new Error("enough"));
  expect(await reading).toMatchObject({ message: "enough" });
  expect(seen.map(({ sequence }) => sequence)).toEqual(seen.map((_, at) => before.lastSequence + 1 + at));
  expect(seen.map(({ entityId }) => entityId)).toEqual(expect.arrayContaining([...first, ...second]));
  for (const [at, event] of seen.entries()) if (at > 0) expect(event.previousHash).toBe(seen[at - 1]?.eventHash);
});

test("traps 65, 66: an unknown outcome is asked for again with the same key, and nothing is submitted twice", async () => {
  const kind = randomUUID();
  let lost = 0;
  const keys = new Set<string>();
  /** The request is done; its answer never comes. */
  const losing: ClientFetch = async (url, init) => {
    const response = await fetch(url, init);
    if (!url.endsWith("/v1/jobs")) return response;
    keys.add((init.headers as Record<string, string>)["idempotency-key"] ?? "none");
    if (lost++ >= 2) return response;
    await response.arrayBuffer();
    throw new TypeError("fetch failed", { cause: Object.assign(new Error("reset"), { code: "ECONNRESET" }) });
  };
  const id = await clientOf(losing).submit({ kind });
  const listed: string[] = [];
  for await (const job of client.jobs({ kind, consistency: "linearizable" })) listed.push(job.id);
  expect(listed).toEqual([id]);
  expect([lost, keys.size, keys.has("none")]).toEqual([3, 1, false]);

  lost = 0;
  const unkeyed = clientOf(losing).submit({ kind: `${kind}-2` }, { idempotencyKey: null });
  await expect(unkeyed, "without a key it is never repeated").rejects.toMatchObject({ code: "OUTCOME_UNKNOWN" });
  expect(lost).toBe(1);
  const mine = { idempotencyKey: randomUUID() };
  const [one, same] = [await client.submit({ kind }, mine), await client.submit({ kind }, mine)];
  expect(same).toBe(one);
  await expect(client.submit({ kind, priority: 1 }, mine)).rejects.toMatchObject({ code: "IDEMPOTENCY_MISMATCH" });
});

test("a handler's progress, log and errors arrive; what is not worth a retry is not retried", async () => {
  const kind = randomUUID();
  await agentOf(`agent-${kind}`, {
    [kind]: async ({ payload }, { log, progress, attempt, signal }) => {
      progress(0.5, "half");
      for (let line = 0; line < 50; line++) log(`line ${line} – ünïcode\n`);
      await sleep(300, undefined, { signal });
      if (payload === "bad") throw new JobError("no good", { retry: false, detail: { why: "bad payload" } });
      return { attempt };
    },
  });
  const wanted = Array.from({ length: 50 }, (_, line) => `line ${line} – ünïcode\n`).join("");
  const id = await client.submit({ kind, payload: "good" });
  let followed = "";
  await waitFor("its first log", async () => (await client.job(id)).state === "building");
  for await (const { text } of client.logs(id, { follow: true })) followed += text;
  expect(followed).toBe(wanted);
  expect(await client.wait(id)).toMatchObject({
    state: "completed",
    result: { attempt: 1 },
    progress: { share: 0.5, message: "half" },
  });
  let paged = "";
  for await (const { text } of client.logs(id, { consistency: "linearizable" })) paged += text;
  expect(paged).toBe(wanted);
  const bad = await client.wait(await client.submit({ kind, payload: "bad" }));
  expect(bad).toMatchObject({ state: "failed", error: { message: "no good", detail: { why: "bad payload" } } });
  expect(bad.attempts).toHaveLength(1);
});

test("stop drains: what can end ends, what can't is handed back and costs the job nothing", async () => {
  const kind = randomUUID();
  const begun: string[] = [];
  const agent = await agentOf(
    `agent-${kind}`,
    {
      [kind]: async ({ id, payload }, { signal }) => {
        begun.push(id);
        await sleep(payload === "short" ? 300 : 600_000, undefined, { signal });
      },
    },
    { capacity: 2 },
  );
  const [short, long] = await client.submitMany([
    { kind, payload: "short" },
    { kind, payload: "long" },
  ]);
  await waitFor("both to run", () => begun.length === 2);
  await agent.stop({ drainMs: 1_000 });
  expect(await agent.ended).toBeNull();
  expect(await client.job(short!, { consistency: "linearizable" })).toMatchObject({ state: "completed" });
  expect(await client.job(long!, { consistency: "linearizable" })).toMatchObject({
    state: "pending",
    failures: 0,
    losses: 0,
    attempts: [{ end: "handed-back" }],
  });
});

test("trap 55: another process under the same name takes over, and the first one ends by itself", async () => {
  const kind = randomUUID();
  const signals: AbortSignal[] = [];
  const wait = async (_job: unknown, { signal }: { readonly signal: AbortSignal }): Promise<void> => {
    signals.push(signal);
    await sleep(600_000, undefined, { signal });
  };
  const first = await agentOf(`agent-${kind}`, { [kind]: wait }, { leaseMs: 3_000 });
  const id = await client.submit({ kind });
  await waitFor("it to run", () => signals.length === 1);
  await agentOf(`agent-${kind}`, { [kind]: () => "second" });
  expect(TenureError.is(await first.ended)).toBe(true);
  expect(signals[0]?.aborted).toBe(true);
  expect(await client.wait(id)).toMatchObject({ state: "completed", result: "second" });
});

test("idempotency keys that are remembered are counted on every node", async () => {
  await client.submit({ kind: randomUUID() });
  for (const node of cluster.nodes) {
    const value = async (name: string): Promise<number> => {
      const text = await fetch(`${node.url}/metrics`, { headers: { "x-api-key": cluster.key } }).then((one) =>
        one.text(),
      );
      return Number(new RegExp(`^${name} (\\d+)$`, "m").exec(text)?.[1]);
    };
    await waitFor(`${node.id} to remember it`, async () => (await value("tenure_idempotency_keys")) > 0);
    expect(await value("tenure_idempotency_keys_dropped_total")).toBe(0);
  }
});

test("schedules, queues, agents and keys are listed and changed", async () => {
  const kind = randomUUID();
  await client.putSchedule(`s-${kind}`, { cron: "0 3 * * *", timeZone: "Europe/Berlin", spec: { kind } });
  await expect(client.putSchedule(`n-${kind}`, { cron: "0 0 30 2 *", spec: { kind } })).rejects.toMatchObject({
    code: "SCHEDULE_INVALID",
    message: expect.stringContaining("never fires") as string,
  });
  const schedules = await client.schedules({ consistency: "linearizable" });
  expect(schedules.find(({ name }) => name === `s-${kind}`)).toMatchObject({
    timeZone: "Europe/Berlin",
    spec: { kind },
  });
  await client.deleteSchedule(`s-${kind}`);
  await client.pauseQueue(`q-${kind}`);
  const id = await client.submit({ kind, queue: `q-${kind}` });
  expect(await client.job(id)).toMatchObject({ pendingReason: { reason: "paused", queue: `q-${kind}` } });
  await client.resumeQueue(`q-${kind}`);
  const agent = await agentOf(`a-${kind}`, { [kind]: () => null });
  await client.wait(id);
  expect((await client.agents({ consistency: "linearizable" })).map(({ name }) => name)).toContain(`a-${kind}`);
  await agent.stop();
  const made = await client.keys.create({ name: `k-${kind}`, role: "viewer" });
  const viewer = createClient({ urls: cluster.urls, key: made.key });
  await waitFor("the key to be known", async () => await viewer.stats().then(Boolean, () => false));
  await expect(viewer.submit({ kind })).rejects.toMatchObject({ code: "PERMISSION_DENIED" });
  await client.keys.revoke(`k-${kind}`);
  expect((await client.keys.list({ consistency: "linearizable" })).map(({ name }) => name)).not.toContain(`k-${kind}`);
});
