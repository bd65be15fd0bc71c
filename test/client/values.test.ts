// client.values over real HTTP: conditions, what is sent again and what is not, lists, and a watch that outlives its node.

import { describe, expect, it } from "vitest";
import { type Client, createClient, type ValueItem } from "../../src/client/index.ts";
import type { Json } from "../../src/core/kit/json.ts";
import { VALUES_PER_PAGE_MAX } from "../../src/core/kit/limits.ts";
import { TenureError } from "../../src/core/kit/errors.ts";
import { startApi, type TestApi } from "../api/test-api.ts";

const clientOf = (urls: readonly string[], fetchVia?: typeof fetch): Client =>
  createClient({
    urls,
    key: "client-key",
    timeoutMs: 3_000,
    ...(fetchVia === undefined ? {} : { fetch: fetchVia }),
  });

const put = (t: TestApi, name: string, value: Json = 1) => t.values.put({ name, value, ifVersion: null, fence: null });
const remove = (t: TestApi, name: string) => t.values.delete({ name, ifVersion: null, fence: null });

/** What a watch gives, until it has given so many. */
async function taken(items: AsyncIterable<ValueItem>, count: number): Promise<ValueItem[]> {
  const all: ValueItem[] = [];
  for await (const item of items) if (all.push(item) === count) break;
  return all;
}

const brief = (item: ValueItem): unknown[] =>
  item.kind === "current" ? ["current", item.version] : [item.kind, item.name, item.version];

/** As a program that holds everything does. */
function apply(state: Map<string, Json>, item: ValueItem): void {
  if (item.kind === "put") state.set(item.name, item.value);
  else if (item.kind === "deleted") state.delete(item.name);
}

const stateOf = (t: TestApi): Map<string, Json> =>
  new Map(t.values.list({ prefix: "", after: null, limit: 10_000 }).values.map(({ name, value }) => [name, value]));

describe("get, put, delete, list", () => {
  it("shows what was written, untouched; null where there is none", async () => {
    await using t = await startApi();
    const { values } = clientOf([t.url]);
    const value = { camelCase: { snake_case: [1, null] }, "": "é" };
    expect(await values.get("a/b")).toBeNull();
    const { version } = await values.put("a/b", value);
    await values.put("a/b c", 2);
    expect(await values.get("a/b")).toEqual({ name: "a/b", value, version, updatedAtMs: 1_000 + version });
    expect(await values.get("a/")).toBeNull();
    expect(await values.delete("a/b", { ifVersion: version })).toEqual({ deleted: true, version: version + 2 });
    expect(await values.delete("a/b")).toEqual({ deleted: false, version: null });
    expect(await values.get("a/b")).toBeNull();
    await values.put("null", null);
    expect(await values.get("null")).toMatchObject({ value: null });
  });

  it("a write under an epoch that is over, or on another version, is refused as what it is", async () => {
    await using t = await startApi();
    const { values, scopes } = clientOf([t.url]);
    const grant = await scopes.acquire({ scope: "s", session: "1", identity: "me", ttlMs: 5_000, waitMs: 0 });
    const epoch = grant.granted ? grant.epoch : 0;
    const { version } = await values.put("x", 1, { ifVersion: 0, scope: "s", epoch });
    expect(await values.get("x")).toMatchObject({ scope: "s", epoch });
    await expect(values.put("x", 2, { scope: "s", epoch: epoch + 1 })).rejects.toMatchObject({ code: "STALE_EPOCH" });
    await expect(values.delete("x", { scope: "t", epoch })).rejects.toMatchObject({ code: "STALE_EPOCH" });
    await expect(values.put("x", 2, { ifVersion: version + 1 })).rejects.toMatchObject({ code: "VERSION_CONFLICT" });
    await expect(values.put("x", 2, { scope: "s" })).rejects.toMatchObject({ code: "BAD_REQUEST" });
    expect(await values.get("x")).toMatchObject({ value: 1, version });
  });

  it("a condition with a misspelt name is refused, and nothing is sent", async () => {
    await using t = await startApi();
    const { values } = clientOf([t.url]);
    const misspelt = { if_version: 1 } as object;
    await expect(values.put("x", 1, misspelt)).rejects.toThrow(
      'values.put: there is no option "if_version"; did you mean ifVersion?',
    );
    await expect(values.delete("x", misspelt)).rejects.toMatchObject({ code: "CONFIG_INVALID" });
    expect(t.values.version).toBe(100);
  });

  it("a value that JSON would say otherwise is refused, and nothing is written", async () => {
    await using t = await startApi();
    const { values } = clientOf([t.url]);
    const others = [
      NaN,
      { at: Infinity },
      { at: undefined },
      [undefined],
      { at: 2 ** 53 },
      "\ud800",
    ] as unknown as Json[];
    for (const value of others)
      await expect(values.put("x", value)).rejects.toMatchObject({ code: "BAD_REQUEST", field: "value" });
    expect(await values.get("x")).toBeNull();
  });

  it("reads are confirmed by the leader, where nobody asks for less", async () => {
    await using t = await startApi();
    await put(t, "x");
    const client = createClient({ urls: [t.url], key: "client-key", timeoutMs: 500 });
    Object.assign(t.cluster, { isCutOff: true });
    t.cluster.follow(null);
    await expect(client.values.get("x")).rejects.toMatchObject({ code: "ERR_NO_LEADER" });
    await expect(client.values.list().next()).rejects.toMatchObject({ code: "ERR_NO_LEADER" });
    expect(await client.values.get("x", { consistency: "local" })).toMatchObject({ value: 1 });
  });

  it("an older server, which has no such path, is no server without the value", async () => {
    const old = (async () =>
      new Response('{"error":"NOT_FOUND","message":"There is no such path in this API."}', {
        status: 404,
        headers: { "content-type": "application/json" },
      })) as typeof fetch;
    await expect(clientOf(["http://old:1"], old).values.get("x")).rejects.toMatchObject({ code: "NOT_FOUND" });
  });

  it("lists by name, of one prefix, over all pages", async () => {
    await using t = await startApi();
    const names = Array.from({ length: VALUES_PER_PAGE_MAX + 40 }, (_, at) => `job/${String(at).padStart(3, "0")}`);
    for (const name of [...names, "other"]) await put(t, name);
    const { values } = clientOf([t.url]);
    const found = async (prefix: string): Promise<string[]> => {
      const all: string[] = [];
      for await (const { name } of values.list({ prefix })) all.push(name);
      return all;
    };
    expect(await found("job/")).toEqual(names);
    expect(await found("none")).toEqual([]);
  });
});

describe("what is sent again", () => {
  it("trap 66: a write whose answer is lost is not sent again, and is unknown", async () => {
    await using t = await startApi();
    let sent = 0;
    const lossy = (async (url: string, init: RequestInit) => {
      const response = await fetch(url, init);
      if (init.method !== "PUT" && init.method !== "DELETE") return response;
      sent++;
      await response.body?.cancel();
      throw new TypeError("the connection broke");
    }) as typeof fetch;
    const { values } = clientOf([t.url], lossy);
    await expect(values.put("x", 1)).rejects.toMatchObject({ code: "OUTCOME_UNKNOWN" });
    await expect(values.delete("x")).rejects.toMatchObject({ code: "OUTCOME_UNKNOWN" });
    expect([sent, t.values.version]).toEqual([2, 102]);
  });

  it("what the server itself calls unknown is not sent again either", async () => {
    await using t = await startApi();
    let sent = 0;
    Object.assign(t.values, {
      put: () => {
        sent++;
        return Promise.reject(new TenureError("OUTCOME_UNKNOWN", "leadership changed"));
      },
    });
    await expect(clientOf([t.url]).values.put("x", 1)).rejects.toMatchObject({ code: "OUTCOME_UNKNOWN" });
    expect(sent).toBe(1);
  });

  it("what was certainly not done is: on another leader, after a hand-over, when there is room again", async () => {
    await using t = await startApi();
    const codes = ["TRANSFER_IN_PROGRESS", "UNCOMMITTED_LIMIT", "OVERLOADED", "NOT_LEADER"] as const;
    const refusals = [...codes];
    const real = t.values.put.bind(t.values);
    Object.assign(t.values, {
      put: (request: Parameters<typeof real>[0]) => {
        const code = refusals.shift();
        return code === undefined ? real(request) : Promise.reject(new TenureError(code, "not now"));
      },
    });
    expect(await clientOf([t.url]).values.put("x", 1)).toEqual({ version: 101 });
    expect(refusals).toEqual([]);
  });

  it("what is refused for good is not", async () => {
    await using t = await startApi();
    let sent = 0;
    Object.assign(t.values, {
      put: () => {
        sent++;
        return Promise.reject(new TenureError("QUOTA_EXCEEDED", "full"));
      },
    });
    await expect(clientOf([t.url]).values.put("x", 1)).rejects.toMatchObject({ code: "QUOTA_EXCEEDED" });
    expect(sent).toBe(1);
  });
});

describe("watch", () => {
  it("first what there is, then each change; of its prefix alone", async () => {
    await using t = await startApi();
    await put(t, "a/1");
    await put(t, "b/1");
    const items = clientOf([t.url]).values.watch({ prefix: "a/" });
    expect((await next(items, 2)).map(brief)).toEqual([
      ["put", "a/1", 101],
      ["current", 102],
    ]);
    await put(t, "b/2");
    await put(t, "a/2", { someName: 1 });
    await remove(t, "a/1");
    const changes = await next(items, 2);
    expect(changes).toEqual([
      { kind: "put", name: "a/2", value: { someName: 1 }, version: 104, updatedAtMs: 1_104 },
      { kind: "deleted", name: "a/1", version: 105, updatedAtMs: 1_105 },
    ]);
    await items.return(undefined as never);
  });

  it("with `after` only what came after it; where that is not kept any more it says so and leaves nothing out", async () => {
    await using t = await startApi();
    await put(t, "a");
    await put(t, "b");
    const { values } = clientOf([t.url]);
    expect((await taken(values.watch({ after: 101 }), 1)).map(brief)).toEqual([["put", "b", 102]]);
    t.values.forgetChanges();
    await expect(taken(values.watch({ after: 101 }), 1)).rejects.toMatchObject({
      code: "LOG_COMPACTED",
      message: expect.stringContaining("not kept any more, or there is no such version yet") as string,
    });
  });

  it("goes on at another node when its own stops, each change once", async () => {
    await using a = await startApi();
    await using b = await startApi({ values: a.values });
    await put(a, "v0");
    const items = clientOf([b.url, a.url]).values.watch();
    await next(items, 2);
    await put(a, "v1");
    expect((await next(items, 1)).map(brief)).toEqual([["put", "v1", 102]]);
    await b.api.stop(0);
    await put(a, "v2");
    await put(a, "v1");
    expect((await next(items, 2)).map(brief)).toEqual([
      ["put", "v2", 103],
      ["put", "v1", 104],
    ]);
    await items.return(undefined as never);
  });

  it("after a reset it lists again, and gives what differs: whoever applies each item has what there is", async () => {
    await using t = await startApi();
    const network = new Cuttable();
    for (let at = 0; at < 5; at++) await put(t, `v${at}`, at);
    const items = clientOf([t.url], network.fetch).values.watch();
    const state = new Map<string, Json>();
    const follow = async (count: number): Promise<ValueItem[]> => {
      const given = await next(items, count);
      for (const item of given) apply(state, item);
      return given;
    };
    await follow(6);
    await put(t, "v5");
    await follow(1);
    expect(state).toEqual(stateOf(t));
    network.cut();
    await remove(t, "v1");
    await put(t, "v2", "new");
    await remove(t, "v3");
    await put(t, "v3", "again");
    await put(t, "v9", "new");
    t.values.forgetChanges();
    network.mend();
    const given = await follow(5);
    expect(given.map(brief)).toEqual([
      ["put", "v2", 108],
      ["put", "v3", 110],
      ["put", "v9", 111],
      ["deleted", "v1", null],
      ["current", 111],
    ]);
    expect(state).toEqual(stateOf(t));
    await put(t, "v1", "back");
    await follow(1);
    expect(state).toEqual(stateOf(t));
    await items.return(undefined as never);
  });

  it("changes made while the pages of a list are read come neither twice nor backwards", async () => {
    await using t = await startApi();
    const names = Array.from({ length: VALUES_PER_PAGE_MAX + 5 }, (_, at) => `v${String(at).padStart(4, "0")}`);
    for (const name of names) await put(t, name, 0);
    const [first = "", last = ""] = [names[0], names.at(-1)];
    const real = t.values.list.bind(t.values);
    let pages = 0;
    Object.assign(t.values, {
      list: (request: Parameters<typeof real>[0]) => {
        const page = real(request);
        if (request.limit !== 1 && ++pages === 1) {
          void put(t, last, 1);
          void remove(t, first);
          void put(t, "v9999", 1);
          void remove(t, "v9999");
        }
        return page;
      },
    });
    const items = clientOf([t.url]).values.watch();
    const versions = new Map<string, number>();
    const state = new Map<string, Json>();
    for (const item of await next(items, names.length + 1 + 3)) {
      apply(state, item);
      if (item.kind !== "put") continue;
      expect(item.version).toBeGreaterThan(versions.get(item.name) ?? 0);
      versions.set(item.name, item.version);
    }
    expect(pages).toBe(2);
    expect(state).toEqual(stateOf(t));
    await items.return(undefined as never);
  });

  it("gives all changes that were made together, each once, also where it was cut between them", async () => {
    await using t = await startApi();
    let isCut = false;
    // The first stream ends after the first frame with data.
    const cutting = (async (url: string, init: RequestInit) => {
      const response = await fetch(url, init);
      if (!url.includes("/v1/watch/") || isCut) return response;
      isCut = true;
      let rest = "";
      const cut = new TransformStream<Uint8Array, Uint8Array>({
        transform(bytes, controller) {
          rest += new TextDecoder().decode(bytes);
          const end = rest.indexOf("\n\n", rest.indexOf("data:"));
          if (!rest.includes("data:") || end < 0) return;
          controller.enqueue(new TextEncoder().encode(rest.slice(0, end + 2)));
          controller.error(new TypeError("cut"));
        },
      });
      return new Response(response.body!.pipeThrough(cut), response);
    }) as typeof fetch;
    const items = clientOf([t.url], cutting).values.watch();
    expect((await next(items, 1)).map(brief)).toEqual([["current", 100]]);
    const first = next(items, 4);
    await new Promise((resolve) => setTimeout(resolve, 100));
    t.values.putTogether({ a: 1, b: 2, c: 3 });
    await put(t, "a");
    expect((await first).map(brief)).toEqual([
      ["put", "a", 101],
      ["put", "b", 101],
      ["put", "c", 101],
      ["put", "a", 102],
    ]);
    expect(isCut).toBe(true);
    await items.return(undefined as never);
  });

  it("waits while nobody leads, and ends with its signal", async () => {
    await using t = await startApi();
    await put(t, "x");
    t.cluster.follow(null);
    Object.assign(t.cluster, { isCutOff: true });
    const over = new AbortController();
    const items = createClient({ urls: t.url, key: "client-key", timeoutMs: 100 }).values.watch({
      signal: over.signal,
    });
    const first = items.next();
    await new Promise((resolve) => setTimeout(resolve, 300));
    t.cluster.lead();
    expect((await first).value).toMatchObject({ kind: "put", name: "x" });
    await next(items, 1);
    const pending = items.next();
    over.abort(new Error("enough"));
    await expect(pending).rejects.toThrow("enough");
    await expect.poll(() => t.values.watching).toBe(0);
  });
});

/** A network whose streams can be cut; requests fail until it is repaired. */
class Cuttable {
  #cut = new AbortController();
  #isDown = false;

  readonly fetch = (async (url: string, init: RequestInit) => {
    if (this.#isDown) throw new TypeError("cut");
    return fetch(url, { ...init, signal: AbortSignal.any([init.signal!, this.#cut.signal]) });
  }) as typeof fetch;

  cut(): void {
    this.#isDown = true;
    this.#cut.abort(new TypeError("cut"));
    this.#cut = new AbortController();
  }

  mend(): void {
    this.#isDown = false;
  }
}

/** Goes on with the same watch. */
async function next(items: AsyncGenerator<ValueItem, never, void>, count: number): Promise<ValueItem[]> {
  const all: ValueItem[] = [];
  while (all.length < count) all.push((await items.next()).value);
  return all;
}
