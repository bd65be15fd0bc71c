import { describe, expect, it } from "vitest";
import { TenureError } from "../../core/kit/errors.ts";
import type { ValueItem } from "../../ports/stored-values.ts";
import { settled } from "../../loops/test-clock.ts";
import { ok, refusal, type Said, TestServers, unreachable, valuesOf } from "./test-wire.ts";

const value = (name: string, version: number) => ({ name, value: `${name}${version}`, version, updated_at_ms: 1 });
const put = (name: string, version: number) =>
  ({ kind: "put", name, value: `${name}${version}`, version, updatedAtMs: 1 }) as const;
const page = (values: object[], asOf: number, next: string | null = null): Said => ok({ values, next, as_of: asOf });
const frame = (version: number, change: object): string => `id: ${version}\ndata: ${JSON.stringify(change)}\n\n`;
const putFrame = (name: string, version: number): string => frame(version, { kind: "put", ...value(name, version) });
const deletedFrame = (name: string, version: number): string =>
  frame(version, { kind: "deleted", name, version, updated_at_ms: 1 });
const RESET = 'event: reset\ndata: {"as_of":90}\n\n';

/** A stream of these pieces, which goes on until its signal aborts, or ends, or breaks. */
function stream(end: "ends" | "breaks" | "goes on", ...pieces: string[]): () => Said {
  return () => ({ ...ok({}), pieces: follow(end, pieces) });
}

async function* follow(end: "ends" | "breaks" | "goes on", pieces: readonly string[]) {
  yield* pieces;
  if (end === "breaks") throw new TenureError("BACKEND_UNAVAILABLE", "the connection was cut.");
  if (end === "goes on") await new Promise(() => undefined);
}

/** What a watch gives, while the clock goes on. */
async function seen(servers: TestServers, watch: AsyncIterable<ValueItem>, count: number): Promise<unknown[]> {
  const items: unknown[] = [];
  const reader = (async () => {
    for await (const item of watch) if (items.push(item) === count) return;
    items.push("the end");
  })().catch((error: unknown) => void items.push(error));
  const state = { isDone: false };
  void reader.then(() => (state.isDone = true));
  for (let ms = 0; ms < 200_000 && !state.isDone; ms += 500) await servers.clock.advance(500);
  await reader;
  return items;
}

async function all<T>(list: AsyncIterable<T>): Promise<T[]> {
  const items: T[] = [];
  for await (const item of list) items.push(item);
  return items;
}

function stage(lists: Said[], streams: (() => Said)[]) {
  const servers = new TestServers();
  servers.says["values"] = () => lists.shift() ?? unreachable(true);
  servers.says["watch"] = () => (streams.shift() ?? (() => unreachable(true)))();
  const paths = (what: string) => servers.questions.map(({ path }) => path).filter((path) => path.startsWith(what));
  return { servers, values: valuesOf(servers), paths };
}

describe("a list", () => {
  it("is asked for page by page, each linearizable, and is given by name", async () => {
    const { values, paths } = stage([page([value("a/1", 3)], 9, "a/1"), page([value("a/2", 4)], 10)], []);
    expect((await all(values.list({ prefix: "a/" }))).map(({ name }) => name)).toEqual(["a/1", "a/2"]);
    expect(paths("/v1/values")).toEqual([
      "/v1/values?consistency=linearizable&prefix=a%2F&limit=256",
      "/v1/values?consistency=linearizable&prefix=a%2F&limit=256&after=a%2F1",
    ]);
  });

  it("shows by which transaction a value is locked", async () => {
    const { values } = stage([page([value("a", 3), { ...value("b", 4), pending_txn: "t1" }], 9)], []);
    expect((await all(values.list())).map(({ pendingTxn }) => pendingTxn)).toEqual([undefined, "t1"]);
  });

  it("without an end is refused", async () => {
    const { values } = stage([page([value("a", 3)], 9, "a"), page([value("a", 3)], 9, "a")], []);
    await expect(all(values.list())).rejects.toMatchObject({ code: "BACKEND_UNSUPPORTED" });
  });

  it("of servers without values is NOT_SUPPORTED, and so is a value", async () => {
    const { values } = stage([refusal(404, "NOT_FOUND"), refusal(501, "NOT_SUPPORTED")], []);
    await expect(all(values.list())).rejects.toMatchObject({ code: "NOT_SUPPORTED" });
    await expect(values.get("a")).rejects.toMatchObject({ code: "NOT_SUPPORTED" });
    await expect(values.get("..")).rejects.toMatchObject({ code: "BAD_REQUEST" });
  });
});

describe("a watch", () => {
  it("gives what there is, says that this is all, and then each change, in whatever pieces it comes", async () => {
    const text = `retry: 1000\nid: 9\n\n${putFrame("a", 10)}${deletedFrame("b", 11)}`;
    const { servers, values, paths } = stage(
      [page([value("a", 3), value("b", 4)], 9)],
      [stream("goes on", text.slice(0, 40), text.slice(40, 41), text.slice(41))],
    );
    expect(await seen(servers, values.watch({ prefix: "" }), 5)).toEqual([
      put("a", 3),
      put("b", 4),
      { kind: "current", version: 9 },
      put("a", 10),
      { kind: "deleted", name: "b", version: 11, updatedAtMs: 1 },
    ]);
    expect(paths("/v1/watch")).toEqual(["/v1/watch/values?prefix=&after=9"]);
  });

  it("that breaks goes on from where it was, also past changes of other names, and gives nothing twice", async () => {
    const { servers, values, paths } = stage(
      [page([], 9)],
      [
        stream("breaks", putFrame("a", 10), ": heartbeat\nid: 20\n\n"),
        () => unreachable(false),
        stream("ends", putFrame("a", 10), putFrame("a", 21)),
        stream("goes on", putFrame("a", 22)),
      ],
    );
    const items = await seen(servers, values.watch({ prefix: "a" }), 4);
    expect(items).toEqual([{ kind: "current", version: 9 }, put("a", 10), put("a", 21), put("a", 22)]);
    expect(new Set(paths("/v1/watch"))).toEqual(
      new Set([9, 20, 21].map((after) => `/v1/watch/values?prefix=a&after=${after}`)),
    );
  });

  it("gives all changes that were made together, also where the stream breaks between them", async () => {
    const pair = (...names: string[]): string[] => {
      const frames = names.map((name) => putFrame(name, 10));
      return frames.map((text, at) => (at < frames.length - 1 ? text.replace(/^id.*\n/, "") : text));
    };
    const [first = "", second = ""] = pair("a", "b");
    const { servers, values, paths } = stage(
      [page([], 9)],
      [stream("breaks", first), stream("goes on", first, second, putFrame("c", 11))],
    );
    const items = await seen(servers, values.watch(), 4);
    expect(items).toEqual([{ kind: "current", version: 9 }, put("a", 10), put("b", 10), put("c", 11)]);
    expect(new Set(paths("/v1/watch"))).toEqual(new Set(["/v1/watch/values?prefix=&after=9"]));
  });

  it("whose changes are not kept any more lists again, and gives what differs, deletions too", async () => {
    const { servers, values } = stage(
      [page([value("a", 3), value("b", 4)], 9), page([value("b", 4), value("c", 80)], 90)],
      [stream("ends", RESET), stream("goes on", putFrame("c", 80), deletedFrame("x", 91), putFrame("b", 92))],
    );
    expect(await seen(servers, values.watch(), 7)).toEqual([
      put("a", 3),
      put("b", 4),
      { kind: "current", version: 9 },
      put("c", 80),
      { kind: "deleted", name: "a", version: null, updatedAtMs: null },
      { kind: "current", version: 90 },
      put("b", 92),
    ]);
  });

  it("after a version gives only changes, and ends with LOG_COMPACTED where these are not kept any more", async () => {
    const { servers, values, paths } = stage([], [stream("ends", deletedFrame("a", 7)), stream("ends", RESET)]);
    const items = await seen(servers, values.watch({ after: 5 }), 9);
    expect(items).toEqual([
      { kind: "deleted", name: "a", version: 7, updatedAtMs: 1 },
      expect.objectContaining({ code: "LOG_COMPACTED" }),
    ]);
    expect(paths("/v1/values")).toEqual([]);
  });

  it("that nobody serves for a minute fails with the reason, and asks in moderation meanwhile", async () => {
    const { servers, values } = stage([], []);
    const items = await seen(servers, values.watch(), 1);
    expect(items).toEqual([expect.objectContaining({ code: "BACKEND_UNAVAILABLE" })]);
    expect(servers.clock.now.monotonicMs).toBeGreaterThan(60_000);
    expect(servers.asked.length).toBeLessThan(3_000);
  });

  it("that is refused for good fails at once", async () => {
    const { servers, values } = stage([refusal(403, "PERMISSION_DENIED")], []);
    expect(await seen(servers, values.watch(), 1)).toEqual([expect.objectContaining({ code: "PERMISSION_DENIED" })]);
    expect(servers.clock.now.monotonicMs).toBeLessThan(5_000);
  });

  it.each(["its signal aborts", "the values are closed"])("ends without an error when %s", async (how) => {
    const { servers, values } = stage([page([], 9)], []);
    servers.says["watch"] = ({ signal }) => ({ ...ok({}), pieces: untilAborted(signal) });
    const stop = new AbortController();
    const items: ValueItem[] = [];
    const reader = (async () => {
      for await (const item of values.watch({ signal: stop.signal })) items.push(item);
    })();
    await servers.clock.advance(100);
    expect(items).toEqual([{ kind: "current", version: 9 }]);
    if (how === "its signal aborts") stop.abort();
    else await values.close();
    await settled();
    await reader;
  });

  it("that its reader leaves ends its stream", async () => {
    const { servers, values } = stage([page([], 9)], []);
    let ended: AbortSignal | undefined;
    servers.says["watch"] = ({ signal }) => {
      ended = signal;
      return { ...ok({}), pieces: follow("goes on", [putFrame("a", 10)]) };
    };
    await seen(servers, values.watch(), 2);
    expect(ended?.aborted).toBe(true);
  });
});

// oxlint-disable-next-line require-yield -- a stream on which nothing comes
async function* untilAborted(signal: AbortSignal): AsyncGenerator<string, void, void> {
  await new Promise((_, reject) => {
    signal.addEventListener("abort", () => reject(new TenureError("BACKEND_UNAVAILABLE", "given up")), { once: true });
  });
}
