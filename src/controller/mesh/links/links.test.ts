// What other sites name makes nothing grow here: only lines that this site has, or whose ring it knows, count.

import { expect, it, vi } from "vitest";
import { TenureError } from "../../../core/kit/errors.ts";
import { seededRandom } from "../../../core/kit/random.ts";
import { Spread } from "../../../core/mesh/spread/index.ts";
import { ManualClock, settled } from "../../../loops/test-clock.ts";
import type { Introduction } from "../../../ports/mesh/sites.ts";
import { LINES_CHECK_MS } from "../limits.ts";
import { Lines } from "../lines.ts";
import { Blame } from "./blame.ts";
import { Links, type LinksOptions } from "./links.ts";

const OWN = `home.${"1".repeat(32)}`;

function stage(
  judged: Promise<readonly []> = Promise.resolve([]),
  evicted = new Set<string>(),
  clock = new ManualClock(),
  change: Partial<LinksOptions> = {},
) {
  const introduction = { id: "home", url: "http://home:1", name: "home", metadata: {} };
  const links = new Links({
    clock,
    random: seededRandom(1),
    sites: {} as LinksOptions["sites"],
    parents: [],
    heartbeatMs: 1_000,
    lines: {
      lines: () => [OWN],
      has: (line) => line === OWN,
      size: (line) => {
        if (line !== OWN) throw new Error("there is no such line");
        return 3;
      },
      checkpoint: async () => "note",
      pages: async () => [],
    },
    known: {
      isOwn: (line) => line.startsWith("home."),
      isWanted: () => true,
      stateOf: () => null,
      firstRingOf: () => null,
      isOthers: () => false,
      begin: async () => null,
    },
    intake: {
      take: async (_peer: string, page: unknown) => ({
        line: (page as { line?: string } | null)?.line ?? "",
        error: "EVENT_INVALID",
      }),
    } as unknown as LinksOptions["intake"],
    judge: { judge: () => judged } as unknown as LinksOptions["judge"],
    blame: new Blame(),
    ownId: () => "home",
    introduce: () => Promise.resolve(introduction),
    met: async () => undefined,
    heard: () => undefined,
    isPeer: () => true,
    isEvicted: (controller) => evicted.has(controller),
    leftAt: () => null,
    urls: () => [],
    headsOf: () => undefined,
    ...change,
  });
  return links;
}

it("wishes and pages of lines that nobody has are not remembered, and the links can be shown", async () => {
  const step = vi.spyOn(Spread.prototype, "step");
  const links = stage();
  links.open("evil", []);
  step.mockClear();
  const name = (at: number): string => `${at % 2 === 0 ? "home" : "x"}.${String(at).padStart(32, "0")}`;
  const graft = Array.from({ length: 100 }, (_, at) => ({ line: name(at), after: 0 }));
  await links.deliver({ controller: "evil", pages: [null, { line: name(7) }], graft, prune: graft });
  await settled();
  const named = step.mock.calls.map(([input]) => ("line" in input ? input.line : OWN));
  expect(named.filter((line) => line !== OWN)).toEqual([]);
  expect(links.views()).toMatchObject([{ controller: "evil", connected: true }]);
  links.end();
  step.mockRestore();
});

it("the size of a line is found without going through all of them", () => {
  let listed = 0;
  const foreign = { lines: () => (listed++, []), has: () => true, size: () => 1 };
  const own = { lines: () => (listed++, []), has: () => false };
  const lines = new Lines({ own, foreign, sites: () => [] } as unknown as ConstructorParameters<typeof Lines>[0]);
  expect([lines.size("a.1"), listed], "it is asked for every line, each second").toEqual([1, 0]);
});

it.each([true, false])(
  "heads are answered when they are judged, so that nobody piles them up; with a link: %s",
  async (isLinked) => {
    const judged = Promise.withResolvers<readonly []>();
    const links = stage(judged.promise);
    if (isLinked) links.open("evil", []);
    let isAnswered = false;
    const answer = links.deliver({ controller: "evil", heads: ["note"] }).then(() => (isAnswered = true));
    await settled();
    expect(isAnswered).toBe(false);
    judged.resolve([]);
    await answer;
    links.end();
  },
);

it("a site that is evicted while it is linked is sent nothing any more", async () => {
  const evicted = new Set<string>();
  const clock = new ManualClock();
  const links = stage(undefined, evicted, clock);
  const link = links.open("evil", []);
  links.open("honest", []);
  expect(await link.next()).toHaveProperty("hello");
  evicted.add("evil");
  await clock.advance(LINES_CHECK_MS);
  expect([await link.next(), await link.next()]).toEqual([{ bye: true, urls: [] }, null]);
  expect(links.views().map(({ controller }) => controller)).toEqual(["honest"]);
  links.end();
});

it("a site that dialled has the word of one that leaves when it says so, not when it was written to its stream", async () => {
  const clock = new ManualClock();
  let leftAt: number | null = null;
  const has: [string, number][] = [];
  const links = stage(undefined, undefined, clock, {
    leftAt: () => leftAt,
    lines: {
      lines: () => [OWN],
      has: (line) => line === OWN,
      size: () => 3,
      checkpoint: async () => "note",
      pages: async () => [{ line: OWN, after: 0, items: ["1", "2", "3"], checkpoint: "" }],
    },
    judge: { judge: async () => has } as unknown as LinksOptions["judge"],
  });
  const link = links.open("paris", []);
  await links.deliver({ controller: "paris", graft: [{ line: OWN, after: 0 }] });
  await settled();
  leftAt = 3;
  expect([await link.next(), await link.next(), await link.next()]).toMatchObject([{ hello: {} }, {}, { page: {} }]);
  // The page is written.
  void link.next();
  await settled();
  let confirmed: readonly string[] | null = null;
  void links.left().then((heard) => (confirmed = heard));
  await clock.advance(LINES_CHECK_MS);
  expect([confirmed, links.isServed("paris")]).toEqual([null, true]);
  has.push([OWN, 3]);
  await links.deliver({ controller: "paris", heads: ["note"] });
  await clock.advance(LINES_CHECK_MS);
  expect([confirmed, links.isServed("paris")]).toEqual([["paris"], false]);
  links.end();
});

it("a parent of three nodes, of which every address is named, has one link that stays; who leads is found again at once", async () => {
  const clock = new ManualClock();
  const urls = ["http://p1:1", "http://p2:1", "http://p3:1"];
  let leader = urls[0]!;
  let opened = 0;
  let bye = async (): Promise<void> => undefined;
  const hello = { id: "parent", url: leader, name: "parent", metadata: {} };
  const sites = {
    identify: async () => ({ kind: "answer", body: "parent" }),
    register: async (url) =>
      url === leader
        ? { kind: "answer", body: null }
        : { kind: "refused", status: 421, code: "NOT_LEADER", message: "no", retryAfterMs: null, urls: [leader] },
    heartbeat: async () => ({ kind: "answer", body: null }),
    deliver: async () => ({ kind: "answer", body: { pages: [], heads: [] } }),
    // As `open`: the stream before it ends.
    stream: (_url, _opening, signal, receive) => {
      opened++;
      void bye();
      const over = Promise.withResolvers<{ kind: "answer"; body: null }>();
      signal.addEventListener("abort", () => over.reject(new TenureError("BACKEND_UNAVAILABLE", "given up")));
      bye = () => receive({ kind: "bye", urls });
      void receive({ kind: "hello", introduction: hello });
      return over.promise;
    },
  } satisfies Partial<LinksOptions["sites"]>;
  const links = stage(undefined, undefined, clock, {
    parents: urls,
    sites: sites as unknown as LinksOptions["sites"],
  });
  const pass = async (ms: number): Promise<void> => {
    for (let passed = 0; passed < ms; passed += 50) await clock.advance(50);
  };
  await pass(10_000);
  const before = opened;
  await pass(60_000);
  expect(opened - before, "streams that were opened in a minute").toBe(0);
  const views = links.views();
  expect(views.filter(({ connected }) => connected)).toHaveLength(1);
  expect(views.map(({ controller }) => controller)).toEqual(["parent", "parent", "parent"]);
  // Nobody is notified that the other addresses are out of reach.
  expect(Math.max(...views.map(({ downMs }) => downMs ?? 0))).toBeLessThan(10_000);
  leader = urls[1]!;
  void bye();
  await pass(3_000);
  expect(links.views().filter(({ connected }) => connected)).toHaveLength(1);
  links.end();
});

it("nothing that comes over the link of a site that is evicted is taken, from that moment on, whosever line it is", async () => {
  const evicted = new Set<string>();
  const judged: string[] = [];
  const taken: string[] = [];
  const links = stage(undefined, evicted, new ManualClock(), {
    intake: {
      take: async (_peer: string, page: unknown) => {
        taken.push((page as { line: string }).line);
        return { line: OWN, accepted: 0, duplicates: 1 };
      },
    } as unknown as LinksOptions["intake"],
    judge: {
      judge: async (peer: string) => {
        judged.push(peer);
        return [];
      },
    } as unknown as LinksOptions["judge"],
  });
  const link = links.open("evil", ["note"]);
  await links.page(link, { line: OWN, after: 0, items: [1] });
  evicted.add("evil");
  expect(await links.page(link, { line: `far.${"2".repeat(32)}`, after: 0, items: [1] })).toEqual({
    line: "",
    error: "not_wanted",
  });
  await links.heads(link, ["note"], null);
  expect([taken, judged, link.isOver]).toEqual([[OWN], ["evil"], true]);
  links.end();
});

it.each([true, false])(
  "whoever delivers without a link is shown the head of the own line where it has registered: %s",
  async (isPeer) => {
    const links = stage(undefined, undefined, undefined, { isPeer: () => isPeer });
    const { heads } = await links.deliver({ controller: "stranger", heads: [] });
    expect(heads).toEqual(isPeer ? ["note"] : []);
    links.end();
  },
);

it("of several addresses of one parent one is linked: links to the same site do not end each other", async () => {
  const clock = new ManualClock();
  const parent = stage(undefined, undefined, clock);
  const opened = vi.spyOn(parent, "open");
  const [leader, follower] = ["http://home-1:1", "http://home-2:1"] as const;
  const sites: LinksOptions["sites"] = {
    identify: async () => ({ kind: "answer", body: "home" }),
    register: async (url) =>
      url === leader
        ? { kind: "answer", body: null }
        : { kind: "refused", status: 409, code: "", message: "not here", retryAfterMs: null, urls: [leader] },
    heartbeat: async () => ({ kind: "answer", body: null }),
    deliver: async (_url, delivery) => ({ kind: "answer", body: await parent.deliver(delivery) }),
    consistency: () => Promise.reject(new Error("not used")),
    stream: async (_url, { controller, heads }, signal, receive) => {
      const link = parent.open(controller, heads);
      signal.addEventListener("abort", () => {
        link.close();
        parent.down(link);
      });
      for (let message = await link.next(); message !== null && !signal.aborted; message = await link.next()) {
        const { hello, heads: notes, bye } = message as { hello?: Introduction; heads?: string[]; bye?: true };
        if (hello !== undefined) await receive({ kind: "hello", introduction: hello });
        else if (notes !== undefined) await receive({ kind: "heads", heads: notes, atMs: 0 });
        else if (bye === true) await receive({ kind: "bye", urls: [leader, follower] });
      }
      return { kind: "answer", body: null };
    },
    close: () => undefined,
  };
  const child = stage(undefined, undefined, clock, { sites, parents: [leader, follower], ownId: () => "child" });
  for (let at = 0; at < 600; at++) await clock.advance(100);
  expect(opened.mock.calls.length, "in a minute").toBeLessThanOrEqual(3);
  expect(child.views().filter(({ connected }) => connected)).toHaveLength(1);
  expect(child.views().map(({ downMs }) => downMs)).toEqual([null, null]);
  // The one that was spare takes its place, soon.
  opened.mockClear();
  parent.introduceAgain();
  for (let at = 0; at < 20; at++) await clock.advance(100);
  expect(opened).toHaveBeenCalled();
  child.end();
  parent.end();
});
