// A real server, and sites that lie to it: nothing that they send changes anything of another site's line, each is counted and blamed, and the
// line that they name is not. A site that signs two histories is proven to have done so.

import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { OPERATOR_KEY, waitFor } from "../servers/index.ts";
import { Stranger, withItem } from "./test-hostile.ts";
import { keyOf, SITES_START_MS, SPREAD_MS, TestSite } from "./test-sites.ts";

let hub: TestSite;
let honest: Stranger;
let evil: Stranger;

const known = 5;

beforeAll(async () => {
  hub = await TestSite.start({
    id: "hub",
    children: ["honest", "evil", "forger", "forker", "raw", "unregistered", "looping", "banned"],
  });
  await waitFor("the hub to have a line", async () => (await hub.ownLine()) !== "", SPREAD_MS);
  honest = new Stranger("honest", hub.node);
  evil = new Stranger("evil", hub.node);
  for (const site of [honest, evil]) expect((await site.register("hub")).status, site.id).toBe(200);
  honest.line.writeMany(40);
  evil.line.writeMany(40);
  expect(await honest.send(honest.line.page(0, known))).toEqual([
    { line: honest.line.line, accepted: known, duplicates: 0 },
  ]);
}, SITES_START_MS);

afterAll(() => hub?.end(), 60_000);

async function blamed(controller: string): Promise<Readonly<Record<string, number>>> {
  const { links } = await hub.get<{ links: readonly { controller: string; blamed: Record<string, number> }[] }>(
    "/v1/mesh/sites",
  );
  return links.find((link) => link.controller === controller)?.blamed ?? {};
}

describe("what a site delivers of another one's line", () => {
  const next = () => honest.line.page(known, 10);
  const lies = [
    {
      name: "with changed bytes",
      page: () => withItem(next(), 2, (text) => text.replace("job-", "jOb-")),
      error: "suspected",
      reason: "suspected",
    },
    {
      name: "in another order",
      page: () => ({ ...next(), items: next().items.toReversed() }),
      error: "suspected",
      reason: "suspected",
    },
    {
      name: "signed by the deliverer",
      page: () => ({ ...next(), checkpoint: evil.line.sign(honest.line.checkpoint(10, known)) }),
      error: "EVENT_INVALID",
      reason: "invalid",
    },
    {
      name: "with the note of another page",
      page: () => ({ ...next(), checkpoint: honest.line.page(known, 9).checkpoint }),
      error: "EVENT_INVALID",
      reason: "invalid",
    },
    {
      name: "with a text replaced by its hash",
      page: () => ({
        ...next(),
        items: next().items.map((item, at) => (at === 1 ? { hash: honest.line.hash(known + 2) } : item)),
      }),
      error: "EVENT_INVALID",
      reason: "invalid",
    },
    { name: "after a gap", page: () => honest.line.page(20, 30), error: "CHAIN_GAP", reason: null },
    {
      name: "of no shape",
      page: () => ({ line: honest.line.line, after: -1, items: [], checkpoint: 7 }),
      error: "EVENT_INVALID",
      reason: "malformed",
    },
    {
      name: "with more items than a page has",
      page: () => ({ ...next(), items: Array.from({ length: 513 }, () => "{}") }),
      error: "EVENT_INVALID",
      reason: "malformed",
    },
  ] as const;

  it.each(lies)("$name", async ({ page, error, reason }) => {
    const before = await blamed("evil");
    const [outcome] = await evil.send(page());
    expect(outcome).toMatchObject({ error });
    expect((await hub.heads()).get(honest.line.line)?.size).toBe(known);
    expect(await blamed("evil")).toEqual(reason === null ? before : { ...before, [reason]: (before[reason] ?? 0) + 1 });
    expect(await blamed("honest"), "the line is not blamed").toEqual({});
  });

  it("one bad page spoils no other", async () => {
    const bad = withItem(evil.line.page(0, 5), 0, (text) => text.replace("job-", "jOb-"));
    const outcomes = await evil.send(bad, evil.line.page(0, 5), { nothing: true });
    expect(outcomes).toMatchObject([{ error: "suspected" }, { accepted: 5 }, { error: "EVENT_INVALID" }]);
  });

  it("the same again is a duplicate, whoever delivers it", async () => {
    for (const site of [honest, evil]) {
      const [outcome] = await site.send(honest.line.page(0, known));
      expect(outcome).toEqual({ line: honest.line.line, accepted: 0, duplicates: known });
    }
  });

  it("what is true is taken, whoever delivers it", async () => {
    const [outcome] = await evil.send(honest.line.page(3, 8));
    expect(outcome).toEqual({ line: honest.line.line, accepted: 3, duplicates: 2 });
    expect((await hub.heads()).get(honest.line.line)?.size).toBe(8);
  });
});

it("an event in another site's name is refused in one's own line too", async () => {
  const forger = new Stranger("forger", hub.node);
  expect((await forger.register("hub")).status).toBe(200);
  // Everything is in order with this page, signed as it is, but for the author of its events.
  const forged = forger.anotherHistory({ ...forger.ring, author: "honest" });
  forged.writeMany(2);
  const { line } = forger.line;
  const checkpoint = forged.sign({ ...forged.checkpoint(2, 0), line });
  expect(await forger.send({ ...forged.page(0, 2), line, checkpoint })).toMatchObject([
    { error: "EVENT_INVALID", sequence: 1 },
  ]);
  expect((await hub.heads()).has(line)).toBe(false);
  expect(await blamed("forger")).toEqual({ invalid: 1 });
});

describe("texts that a site has signed itself, in its own line", () => {
  let raw: Stranger;

  beforeAll(async () => {
    raw = new Stranger("raw", hub.node);
    expect((await raw.register("hub")).status).toBe(200);
    raw.line.write({ eventType: "future:thing" });
  });

  it.each([
    ["with a blank that canonical text does not have", (text: string) => text.replace('":', '": ')],
    ["with a name twice", (text: string) => text.replace('"payload":{', '"payload":{"attempt":1,')],
    ["with names in another order", (text: string) => text.replace(/^\{(.*?),(.*?),/, "{$2,$1,")],
    ["with a number in another spelling", (text: string) => text.replace('"attempt":1', '"attempt":1.0')],
    ["with a letter spelt as an escape", (text: string) => text.replace('"attempt"', String.raw`"\u0061ttempt"`)],
    ["with a field that events do not have", (text: string) => text.replace(/\}$/, ',"zzz":1}')],
    ["without a field", (text: string) => text.replace(/"entityId":"[^"]*",/, "")],
    ["that are no JSON", () => "nonsense"],
    ["that are nothing", () => ""],
  ] as const)("%s are refused, and nothing is changed", async (_name, change) => {
    const text = change(raw.line.text(1));
    expect(text).not.toBe(raw.line.text(1));
    const before = (await blamed("raw"))["invalid"] ?? 0;
    const answer = await raw.call("/api/events/broadcast", { controller: "raw", pages: [raw.signedAnyway(text)] });
    expect(answer).toMatchObject({ status: 400, body: { error: "EVENT_INVALID" } });
    expect((await hub.heads()).has(raw.line.line)).toBe(false);
    expect((await blamed("raw"))["invalid"]).toBe(before + 1);
  });

  it("of a type that nobody knows here are taken as they are", async () => {
    expect(await raw.send(raw.signedAnyway(raw.line.text(1)))).toMatchObject([{ accepted: 1, duplicates: 0 }]);
    expect(await hub.items(raw.line.line)).toEqual([raw.line.text(1)]);
  });
});

it("who is not known, or shows another ring or another key for an id, is not registered", async () => {
  const body = { controller: "honest", pages: [honest.line.page(8, 10)] };
  const nobody = await hub.node.call("/api/events/broadcast", { body, key: "a-key-that-nobody-has" });
  expect(nobody).toMatchObject({ status: 401, body: { error: "UNAUTHENTICATED" } });
  const impostor = new Stranger("honest", hub.node);
  expect(await impostor.register("hub")).toMatchObject({ status: 409, body: { error: "CONTROLLER_CONFLICT" } });
  expect(await impostor.register("elsewhere"), "a proof for another site").toMatchObject({ status: 409 });
  expect(await evil.registerAs("honest"), "the key is of another id").toMatchObject({ status: 403 });
  expect((await hub.heads()).get(honest.line.line)?.size).toBe(8);
});

it("nobody acts for another site, and nobody sends lines that nobody has registered", async () => {
  const asHonest = await evil.call("/api/events/broadcast", { controller: "honest", pages: [honest.line.page(8, 10)] });
  expect([asHonest.status, asHonest.body["error"]]).toEqual([403, "PERMISSION_DENIED"]);
  const stream = await evil.call("/v1/mesh/stream", { controller: "honest", heads: [] });
  expect([stream.status, stream.body["error"]]).toEqual([403, "PERMISSION_DENIED"]);
  const stranger = new Stranger("unregistered", hub.node);
  stranger.line.writeMany(3);
  const opened = await stranger.call("/v1/mesh/stream", { controller: "unregistered", heads: [] });
  expect([opened.status, opened.body["error"]]).toEqual([403, "PERMISSION_DENIED"]);
  const sent = await stranger.call("/api/events/broadcast", {
    controller: "unregistered",
    pages: [stranger.line.page(0, 3)],
  });
  expect([sent.status, sent.body["error"]]).toEqual([403, "LINE_UNKNOWN"]);
  expect(await blamed("unregistered")).toEqual({ "unknown-line": 1 });
  const viewer = await hub.node.call("/v1/mesh/stream", {
    body: { controller: "evil", heads: [] },
    key: "viewer-key-of-the-test",
  });
  expect(viewer.status).toBe(403);
});

it("a single page that is refused refuses its request, with what is known here", async () => {
  const gap = await honest.call("/api/events/broadcast", { controller: "honest", pages: [honest.line.page(20, 30)] });
  expect(gap).toMatchObject({ status: 409, body: { error: "CHAIN_GAP", have: 8 } });
  const bad = { ...honest.line.page(8, 10), checkpoint: evil.line.sign(honest.line.checkpoint(10, 8)) };
  const invalid = await honest.call("/api/events/broadcast", { controller: "honest", pages: [bad] });
  expect(invalid).toMatchObject({ status: 400, body: { error: "EVENT_INVALID" } });
});

it("a single event is a hint, and no more", async () => {
  const hint = async (text: string, eventHash: string) =>
    honest.call("/api/events/broadcast", { ...(JSON.parse(text) as object), eventHash });
  expect(await hint(honest.line.text(2), honest.line.hash(2))).toMatchObject({ status: 200, body: { pending: 0 } });
  expect(await hint(honest.line.text(12), honest.line.hash(12))).toMatchObject({ status: 202, body: { pending: 1 } });
  expect(await hint(honest.line.text(12), honest.line.hash(13))).toMatchObject({
    status: 400,
    body: { error: "EVENT_INVALID" },
  });
  const unknown = honest.line.text(12).replace('"sourceControllerId":"honest"', '"sourceControllerId":"nobody"');
  expect(await hint(unknown, honest.line.hash(12))).toMatchObject({ status: 403, body: { error: "LINE_UNKNOWN" } });
  expect((await hub.heads()).get(honest.line.line)?.size).toBe(8);
});

it("more than a site may send is refused with the time after which it fits, and the site's own jobs go on", async () => {
  const page = { ...evil.line.page(5, 40), items: Array.from({ length: 512 }, () => "{}") };
  const flood = Array.from({ length: 30 }, () =>
    evil.call("/api/events/broadcast", { controller: "evil", pages: [page], heads: [] }),
  );
  const answers = await Promise.all([...flood, hub.submit(5)]);
  const refused = answers.filter((answer) => answer?.status === 429);
  expect(refused.length).toBeGreaterThan(0);
  expect(Number(refused[0]!.headers["retry-after"])).toBeGreaterThan(0);
  expect((await blamed("evil"))["flood"]).toBeGreaterThan(0);
  const huge = { controller: "honest", pages: [{ line: "x".repeat(3 * 1024 * 1024) }] };
  const before = (await blamed("honest"))["malformed"] ?? 0;
  // The connection is closed before all of it was sent: whoever still writes may not see the answer.
  const oversized = await honest.call("/api/events/broadcast", huge).catch(({ code }: NodeJS.ErrnoException) => code);
  expect([413, "EPIPE", "ECONNRESET"]).toContain(typeof oversized === "object" ? oversized.status : oversized);
  await waitFor("it to be blamed", async () => (await blamed("honest"))["malformed"] === before + 1);
});

it("heads that are no notes, or not signed, are blamed on whoever shows them", async () => {
  const before = await blamed("evil");
  const counted = async (reason: string): Promise<number> =>
    ((await blamed("evil"))[reason] ?? 0) - (before[reason] ?? 0);
  const note = honest.line.head(10);
  // The last letter before the end of the signature's line: the key is known, the signature is not valid.
  const spoilt = `${note.slice(0, -6)}${note.at(-6) === "A" ? "B" : "A"}${note.slice(-5)}`;
  const isTaken = async (): Promise<boolean> => (await evil.show("nonsense", spoilt)).status === 200;
  await waitFor("the share of a site that has sent too much", isTaken);
  await waitFor("the heads to be judged", async () => (await counted("malformed")) + (await counted("invalid")) === 2);
  expect(await counted("malformed")).toBe(1);
});

it("a site that signs two histories is proven to have done so: its line is frozen", async () => {
  const forker = new Stranger("forker", hub.node);
  expect((await forker.register("hub")).status).toBe(200);
  forker.line.writeMany(6);
  expect(await forker.send(forker.line.page(0, 6))).toMatchObject([{ accepted: 6 }]);
  const other = forker.anotherHistory();
  other.write({ payload: { another: "history" } });
  other.writeMany(5);
  expect(await forker.send(other.page(3, 6)), "not blamed on the line yet").toMatchObject([{ error: "suspected" }]);
  await forker.show(other.head());
  const status = async (): Promise<string | undefined> => {
    const path = "/api/controllers?all=true";
    const { controllers } = await hub.get<{ controllers: readonly { id: string; status: string }[] }>(path);
    return controllers.find(({ id }) => id === "forker")?.status;
  };
  await waitFor("the fork to be proven", async () => (await status()) === "forked", SPREAD_MS);
  const isRaised = async (): Promise<boolean> =>
    (await hub.node.view())?.alerts.some(({ name }) => name === "mesh_fork") === true;
  await waitFor("its alert", isRaised, SPREAD_MS);
  forker.line.writeMany(2);
  expect(await forker.send(forker.line.page(6, 8))).toMatchObject([{ error: "not_wanted" }]);
  expect((await hub.heads()).get(forker.line.line)?.size).toBe(6);
  const { status: answered } = await hub.node.call("/api/events/verify", { key: OPERATOR_KEY });
  expect(answered).toBe(200);
});

it("a site that opens streams in a loop is refused with the time after which it may again", async () => {
  const looping = new Stranger("looping", hub.node);
  expect((await looping.register("hub")).status).toBe(200);
  const over = new AbortController();
  const opened: Response[] = [];
  // Each costs a tenth of a second's share; the machine may be slow, so as many as it takes.
  const isRefused = async (): Promise<boolean> => {
    const answers = await Promise.all(Array.from({ length: 30 }, () => openStream("looping", over.signal)));
    opened.push(...answers);
    return answers.some(({ status }) => status === 429);
  };
  await waitFor("a stream to be refused", isRefused, SPREAD_MS);
  const refused = opened.find(({ status }) => status === 429)!;
  expect(Number(refused.headers.get("retry-after"))).toBeGreaterThan(0);
  expect((await refused.json()) as object).toMatchObject({ error: "RATE_LIMITED" });
  over.abort();
});

it("the stream of a site that is evicted ends, and nothing more comes in through it, whosever line it is", async () => {
  const banned = new Stranger("banned", hub.node);
  expect((await banned.register("hub")).status).toBe(200);
  const stream = await openStream("banned", AbortSignal.timeout(SPREAD_MS));
  expect(stream.status).toBe(200);
  const size = (await hub.heads()).get(honest.line.line)!.size;
  const evicted = await hub.node.call("/v1/mesh/sites/banned/evict", { body: {}, key: OPERATOR_KEY });
  expect(evicted.status).toBe(200);
  const delivery = { controller: "banned", pages: [honest.line.page(size, size + 2)], heads: [] };
  const sent = await banned.call("/api/events/broadcast", delivery);
  expect([sent.status, sent.body["error"]]).toEqual([403, "PERMISSION_DENIED"]);
  expect((await hub.heads()).get(honest.line.line)!.size).toBe(size);
  expect((await stream.text()).trimEnd().split("\n").at(-1), "the last of the stream").toContain('"bye":true');
  for (const path of ["heads", "sites", `pages?line=${honest.line.line}&after=0`]) {
    const read = await hub.node.call(`/v1/mesh/${path}`, { key: keyOf("banned") });
    expect([read.status, read.body["error"]], path).toEqual([403, "PERMISSION_DENIED"]);
  }
  const again = await banned.call("/v1/mesh/stream", { controller: "banned", heads: [] });
  expect([again.status, again.body["error"]]).toEqual([403, "PERMISSION_DENIED"]);
});

function openStream(controller: string, signal: AbortSignal): Promise<Response> {
  const headers = { "content-type": "application/json", "x-api-key": keyOf(controller) };
  const body = JSON.stringify({ controller, heads: [] });
  return fetch(`${hub.node.url}/v1/mesh/stream`, { method: "POST", headers, body, signal });
}
