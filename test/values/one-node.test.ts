// Values on a real server: what is written is there after a restart, and who watches is told.

import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type Client, createClient, type ValueItem } from "../../src/client/index.ts";
import type { Json } from "../../src/core/kit/json.ts";
import { VALUE_BYTES_MAX, VALUES_PER_PAGE_MAX } from "../../src/core/kit/limits.ts";
import { VALUE_CHANGES_KEPT } from "../../src/controller/values/limits.ts";
import { CLIENT_KEY, startTenureCluster, type TenureCluster } from "../servers/index.ts";

const LIMIT_MS = 120_000;

let cluster: TenureCluster;
let client: Client;
beforeAll(async () => {
  cluster = await startTenureCluster({ nodes: 1 });
  client = createClient({ urls: cluster.urls, key: CLIENT_KEY, timeoutMs: 30_000 });
}, LIMIT_MS);
afterAll(() => cluster?.end());

/** At most so many at once. */
async function many(count: number, work: (at: number) => Promise<unknown>): Promise<void> {
  let next = 0;
  const worker = async (): Promise<void> => {
    while (next < count) await work(next++);
  };
  await Promise.all(Array.from({ length: 32 }, worker));
}

async function given(items: AsyncGenerator<ValueItem, never, void>, count: number): Promise<ValueItem[]> {
  const all: ValueItem[] = [];
  while (all.length < count) all.push((await items.next()).value);
  return all;
}

async function listed(prefix: string): Promise<string[]> {
  const names: string[] = [];
  for await (const { name } of client.values.list({ prefix })) names.push(name);
  return names;
}

describe("values on one server", () => {
  it("are read as they were written, in any size and under any name, and are there after a restart", async () => {
    const texts: Json[] = [null, "", { b: [1, -0.5, "é😀"], a: {} }, "x".repeat(VALUE_BYTES_MAX - 2)];
    const names = ["watch", "a/b", "ü", "__proto__"];
    for (const [at, name] of names.entries()) await client.values.put(`kinds/${name}`, texts[at]!);
    const before = await Promise.all(names.map((name) => client.values.get(`kinds/${name}`)));
    expect(before.map((one) => one?.value)).toEqual(texts);
    await cluster.node("n1").kill9();
    cluster.node("n1").start();
    await cluster.steady();
    expect(await Promise.all(names.map((name) => client.values.get(`kinds/${name}`)))).toEqual(before);
  }, 60_000);

  it("are written under an epoch while it is held, and not after it", async () => {
    const session = crypto.randomUUID();
    const campaign = { scope: "led", session, identity: "me", ttlMs: 30_000, waitMs: 5_000 };
    const grant = await client.scopes.acquire(campaign);
    const epoch = grant.granted ? grant.epoch : 0;
    const fence = { scope: "led", epoch };
    await client.values.put("cursor", 1, fence);
    expect(await client.values.get("cursor")).toMatchObject({ value: 1, ...fence });
    await client.scopes.resign({ scope: "led", session, epoch });
    await expect(client.values.put("cursor", 2, fence)).rejects.toMatchObject({ code: "STALE_EPOCH" });
    await expect(client.values.delete("cursor", fence)).rejects.toMatchObject({ code: "STALE_EPOCH" });
    await expect(client.values.put("cursor", 2, { ifVersion: 1 })).rejects.toMatchObject({ code: "VERSION_CONFLICT" });
    expect(await client.values.get("cursor")).toMatchObject({ value: 1 });
  });

  it("are listed over pages, and a watch of a quiet prefix is not disturbed by thousands of other changes", async () => {
    const items = client.values.watch({ prefix: "quiet/" });
    expect((await given(items, 1)).map(({ kind }) => kind)).toEqual(["current"]);
    const next = items.next();
    await many(VALUES_PER_PAGE_MAX + 10, (at) => client.values.put(`page/${String(at).padStart(4, "0")}`, at));
    await many(VALUE_CHANGES_KEPT + 100, () => client.values.put("busy", 1));
    const names = await listed("page/");
    expect(names).toHaveLength(VALUES_PER_PAGE_MAX + 10);
    expect(names).toEqual(names.toSorted());
    await client.values.put("quiet/1", 1);
    // No list before it: the stream went on.
    expect((await next).value).toMatchObject({ kind: "put", name: "quiet/1" });
    await items.return(undefined as never);
  }, 60_000);

  it("a watch goes on over a restart, and gives what differs: deletions too", async () => {
    await client.values.put("kept/1", 1);
    await client.values.put("kept/2", 2);
    const items = client.values.watch({ prefix: "kept/" });
    expect(await given(items, 3)).toMatchObject([{ name: "kept/1" }, { name: "kept/2" }, { kind: "current" }]);
    const next = items.next();
    await cluster.node("n1").kill9();
    cluster.node("n1").start();
    await cluster.steady();
    await client.values.delete("kept/1");
    await client.values.put("kept/3", 3);
    const changes = [(await next).value];
    const isWhole = () => changes.some((item) => "name" in item && item.name === "kept/3");
    while (!isWhole()) changes.push((await items.next()).value);
    const named = changes.flatMap((item) => (item.kind === "current" ? [] : [`${item.kind} ${item.name}`]));
    expect(named.toSorted()).toEqual(["deleted kept/1", "put kept/3"]);
    await items.return(undefined as never);
  }, 60_000);

  it("a key of a viewer writes nothing", async () => {
    const viewer = createClient({ urls: cluster.urls, key: "viewer-key-of-the-test" });
    await expect(viewer.values.put("x", 1)).rejects.toMatchObject({ code: "PERMISSION_DENIED" });
    expect(await viewer.values.get("cursor")).toMatchObject({ value: 1 });
  });
});
