// Values on three real servers that are killed, wiped and restarted: what was acknowledged stays, whose epoch is over writes nothing, and who watches ends
// with what there is.

import { type ChildProcess, spawn } from "node:child_process";
import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type Client, createClient, type StoredValue } from "../../src/client/index.ts";
import { TenureError } from "../../src/core/kit/errors.ts";
import type { Json } from "../../src/core/kit/json.ts";
import { CLIENT_KEY, startTenureCluster, type TenureCluster, waitFor } from "../servers/index.ts";

const LIMIT_MS = 180_000;

let cluster: TenureCluster;
let client: Client;
beforeAll(async () => {
  cluster = await startTenureCluster();
  client = createClient({ urls: cluster.urls, key: CLIENT_KEY, timeoutMs: 30_000 });
}, LIMIT_MS);
afterAll(() => cluster?.end());

async function granted(scope: string): Promise<{ scope: string; epoch: number; session: string }> {
  const session = crypto.randomUUID();
  const grant = await client.scopes.acquire({ scope, session, identity: "i", ttlMs: 60_000, waitMs: 10_000 });
  if (!grant.granted) throw new Error(`${scope} is held`);
  return { scope, epoch: grant.epoch, session };
}

/** Kills the leader, and starts it again when another one leads. */
async function killLeader(): Promise<string> {
  const id = await cluster.leader();
  await cluster.kill(id);
  await cluster.waitForLeader(id);
  cluster.start(id);
  return id;
}

async function all(prefix: string, at?: string): Promise<readonly StoredValue[]> {
  const asked = at === undefined ? client : createClient({ urls: [at], key: CLIENT_KEY });
  const found: StoredValue[] = [];
  for await (const one of asked.values.list({ prefix })) found.push(one);
  return found;
}

const isUnclear = (error: unknown): boolean =>
  TenureError.is(error) && (error.retryable || error.code === "OUTCOME_UNKNOWN");

describe("values on three servers", () => {
  it("what was acknowledged is there after kill -9 of the leader, on every node", { timeout: LIMIT_MS }, async () => {
    const acknowledged = new Map<string, number>();
    const over = new AbortController();
    const writer = async (of: number): Promise<void> => {
      for (let at = 0; !over.signal.aborted; at++) {
        const name = `kept/${of}/${at}`;
        try {
          acknowledged.set(name, (await client.values.put(name, at)).version);
        } catch (error) {
          if (!isUnclear(error)) throw error;
        }
      }
    };
    const writers = [0, 1, 2].map((of) => writer(of));
    for (let kill = 0; kill < 3; kill++) {
      await sleep(500);
      await killLeader();
      await cluster.steady();
    }
    over.abort();
    await Promise.all(writers);
    expect(acknowledged.size).toBeGreaterThan(50);
    for (const url of cluster.urls) {
      const found = new Map((await all("kept/", url)).map(({ name, version }) => [name, version]));
      for (const [name, version] of acknowledged) expect(found.get(name), `${name} at ${url}`).toBe(version);
    }
  });

  it(
    "a leader whose epoch is over writes and deletes nothing, and the next one reads what is final",
    { timeout: LIMIT_MS },
    async () => {
      for (let round = 0; round < 3; round++) {
        const old = await granted("payer");
        let last = -1;
        // It goes on writing as fast as it can, and learns late that it does not lead any more.
        const stale = (async (): Promise<TenureError> => {
          for (let at = 0; ; at++) {
            try {
              await client.values.put("cursor", { round, at }, { scope: "payer", epoch: old.epoch });
              last = at;
            } catch (error) {
              if (TenureError.is(error) && error.code === "STALE_EPOCH") return error;
              if (!isUnclear(error)) throw error;
            }
          }
        })();
        await waitFor("a few writes", () => last > 5);
        const killed = round === 1 ? killLeader() : undefined;
        await killed;
        const operator = createClient({ urls: cluster.urls, key: cluster.key, timeoutMs: 30_000 });
        await operator.scopes.askResign("payer", true);
        const next = await granted("payer");
        const final = await client.values.get("cursor");
        expect((await stale).code).toBe("STALE_EPOCH");
        // Nothing came after that look; what was acknowledged is in it.
        expect((await client.values.get("cursor"))?.version).toBe(final?.version);
        const { at } = final!.value as { at: number };
        expect(at).toBeGreaterThanOrEqual(last);
        await expect(client.values.delete("cursor", { scope: "payer", epoch: old.epoch })).rejects.toMatchObject({
          code: "STALE_EPOCH",
        });
        await client.values.put("cursor", "of the next", { scope: "payer", epoch: next.epoch });
        await client.scopes.resign({ scope: "payer", session: next.session, epoch: next.epoch });
      }
    },
  );

  it(
    "increments on the version that was read lose nothing while leaders are killed",
    { timeout: LIMIT_MS },
    async () => {
      await client.values.put("counter", 0, { ifVersion: 0 });
      const over = new AbortController();
      const counts = { done: 0, unclear: 0, conflicts: 0 };
      const increment = async (): Promise<void> => {
        const before = (await client.values.get("counter"))!;
        try {
          await client.values.put("counter", Number(before.value) + 1, { ifVersion: before.version });
          counts.done++;
        } catch (error) {
          if (TenureError.is(error) && error.code === "VERSION_CONFLICT") counts.conflicts++;
          else if (TenureError.is(error) && error.code === "OUTCOME_UNKNOWN") counts.unclear++;
          else if (!isUnclear(error)) throw error;
        }
      };
      const worker = async (): Promise<void> => {
        while (!over.signal.aborted) {
          await increment().catch((error: unknown) => {
            if (!isUnclear(error)) throw error;
          });
        }
      };
      const workers = [0, 1, 2, 3].map(() => worker());
      for (let kill = 0; kill < 3; kill++) {
        await sleep(500);
        await killLeader();
        await cluster.steady();
      }
      over.abort();
      await Promise.all(workers);
      const total = Number((await client.values.get("counter"))?.value);
      expect(counts.done).toBeGreaterThan(20);
      expect(counts.conflicts).toBeGreaterThan(0);
      expect(total).toBeGreaterThanOrEqual(counts.done);
      expect(total).toBeLessThanOrEqual(counts.done + counts.unclear);
    },
  );

  it(
    "versions only grow, over deletions, over leaders and over restarts of all servers",
    { timeout: LIMIT_MS },
    async () => {
      const versions: number[] = [];
      const write = async (): Promise<void> => {
        versions.push((await client.values.put("v", versions.length)).version);
        versions.push((await client.values.delete("v")).version!);
        versions.push((await client.values.put("v", versions.length, { ifVersion: 0 })).version);
      };
      await write();
      await killLeader();
      await cluster.steady();
      await write();
      await Promise.all(cluster.nodes.map((node) => node.kill9()));
      for (const node of cluster.nodes) node.start();
      await cluster.steady();
      expect((await client.values.get("v"))?.version).toBe(versions.at(-1));
      await write();
      expect(versions).toEqual([...new Set(versions)].toSorted((a, b) => a - b));
      expect((await all("v")).find(({ name }) => name === "v")?.version).toBe(versions.at(-1));
    },
  );

  it("a watch over killed and wiped servers ends with what there is", { timeout: LIMIT_MS }, async () => {
    const over = new AbortController();
    const state = new Map<string, Json>();
    const versions = new Map<string, number>();
    let current = 0;
    const watching = (async (): Promise<void> => {
      for await (const item of client.values.watch({ prefix: "w/", signal: over.signal })) {
        if (item.kind === "current") {
          current = item.version;
          continue;
        }
        const { name, version } = item;
        if (version !== null) {
          expect(version, name).toBeGreaterThan(versions.get(name) ?? 0);
          versions.set(name, version);
        }
        if (item.kind === "put") state.set(name, item.value);
        else state.delete(name);
      }
    })().catch((error: unknown) => {
      if (!over.signal.aborted) throw error;
    });
    await waitFor("the list to be whole", () => current > 0);
    const enough = new AbortController();
    const writer = async (of: number): Promise<void> => {
      for (let at = 0; !enough.signal.aborted; at++) {
        const name = `w/${of}/${at % 7}`;
        const work = at % 3 === 2 ? client.values.delete(name) : client.values.put(name, at);
        await work.catch((error: unknown) => {
          if (!isUnclear(error)) throw error;
        });
      }
    };
    const writers = [0, 1].map((of) => writer(of));
    for (let strike = 0; strike < 4; strike++) {
      await sleep(300);
      const id = strike % 2 === 0 ? await cluster.leader() : cluster.nodes[strike % 3]!.id;
      const node = cluster.node(id);
      await node.kill9();
      // With an empty disk it gets a snapshot, which has no changes in it.
      if (strike === 3) node.wipe();
      await sleep(300);
      node.start();
      await cluster.steady(LIMIT_MS / 2);
    }
    enough.abort();
    await Promise.all(writers);
    await client.values.put("w/last", "last");
    await waitFor("the last change", () => state.get("w/last") === "last", 60_000);
    expect(state).toEqual(new Map((await all("w/")).map(({ name, value }) => [name, value])));
    over.abort();
    await watching;
  });

  it(
    "two instances of examples/servers-values.ts count without a gap over a kill -9 of the leader",
    { timeout: LIMIT_MS },
    async () => {
      const env = { ...process.env, TENURE_SERVERS: cluster.urls.join(","), TENURE_KEY: CLIENT_KEY };
      const [one, two] = [new Example(env), new Example(env)];
      try {
        const counts = (example: Example, more: number): boolean => example.lines.length > more;
        await waitFor("one of them to count", () => counts(one, 5) || counts(two, 5));
        const [first, second] = counts(one, 5) ? [one, two] : [two, one];
        first.child.kill("SIGKILL");
        await first.ended;
        await waitFor("the other to count", () => counts(second, 5), 60_000);
        second.child.kill("SIGTERM");
        expect(await second.ended).toBe(0);
        const [before, after] = [first.lines, second.lines];
        // The kill may have come between a write and its line.
        expect([before.at(-1)!.count + 1, before.at(-1)!.count + 2]).toContain(after[0]!.count);
        const counted = [...before, ...after].map(({ count }) => count);
        expect(counted).toEqual([...new Set(counted)].toSorted((a, b) => a - b));
        expect(after[0]!.epoch).toBeGreaterThan(before[0]!.epoch);
      } finally {
        for (const { child } of [one, two]) child.kill("SIGKILL");
      }
    },
  );
});

class Example {
  readonly child: ChildProcess;
  readonly ended: Promise<number | null>;
  #out = "";

  constructor(env: NodeJS.ProcessEnv) {
    const args = ["--no-warnings", "--conditions=tenure-source", "examples/servers-values.ts"];
    this.child = spawn(process.execPath, args, { env, stdio: ["ignore", "pipe", "inherit"] });
    this.child.stdout?.setEncoding("utf8").on("data", (text: string) => (this.#out += text));
    this.ended = new Promise((resolve) => this.child.once("close", (code) => resolve(code)));
  }

  get lines(): { readonly epoch: number; readonly count: number }[] {
    const whole = this.#out.slice(0, this.#out.lastIndexOf("\n") + 1);
    return whole
      .split("\n")
      .filter((line) => line !== "")
      .map((line) => JSON.parse(line) as { epoch: number; count: number });
  }
}
