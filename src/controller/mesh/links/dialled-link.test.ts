// A parent is dialled for ever: registered with, streamed from, sent to, one request at a time; whatever goes wrong, it is dialled again.

import { describe, expect, it } from "vitest";
import { TenureError } from "../../../core/kit/errors.ts";
import { seededRandom } from "../../../core/kit/random.ts";
import type { Page } from "../../../core/mesh/model.ts";
import { ManualClock, settled } from "../../../loops/test-clock.ts";
import type { Delivered, Delivery, LinkMessage, PageOutcome, SiteAnswer, Sites } from "../../../ports/mesh/sites.ts";
import { dialForEver } from "./dialled-link.ts";
import type { LinkEnd, LinkHost, Wish } from "./link-end.ts";
import {
  BAD_PAGE_PAUSE_MS,
  DELIVERY_EVERY_MS,
  PAGES_SENT_MAX,
  PEER_BYTES_PER_S_MAX,
  PEER_EVENTS_PER_S_MAX,
  PEER_REQUESTS_PER_S_MAX,
  RETRY_AFTER_MS_MAX,
} from "../limits.ts";
import { OwnHeads } from "./own-heads.ts";

const URL = "http://parent:1";
const page: Page = { line: "child.1", after: 0, items: ["{}"], checkpoint: "" };
const HELLO = { kind: "hello", introduction: { id: "parent", url: URL, name: "p", metadata: {} } } as const;
const TAKEN = { line: "x", accepted: 1, duplicates: 0 } as const;
const KNOWN = { line: "x", accepted: 0, duplicates: 1 } as const;
const OK = { kind: "answer", body: null } as const;

function refusal(status: number, more: object = {}) {
  return {
    kind: "refused",
    status,
    code: "X",
    message: `no ${status}`,
    retryAfterMs: null,
    urls: [],
    ...more,
  } as const;
}

function stage(identified: SiteAnswer<string> = { kind: "answer", body: "parent" }) {
  const clock = new ManualClock();
  const calls: string[] = [];
  const noted: (string | null)[] = [];
  const ends: LinkEnd[] = [];
  const heads: string[][] = [];
  const deliveries: { delivery: Delivery; answer: PromiseWithResolvers<SiteAnswer<Delivered>> }[] = [];
  let push: (message: LinkMessage) => Promise<void> = async () => undefined;
  const opened: (readonly string[])[] = [];
  const over = { stream: Promise.withResolvers<SiteAnswer<null>>() };
  const answers = {
    register: (): SiteAnswer<null> => OK,
    heartbeat: (): SiteAnswer<null> => OK,
    /** Null: it is open. */
    stream: (): SiteAnswer<null> | null => null,
  };
  const sites: Sites = {
    identify: async (url) => {
      calls.push(`identify ${url}`);
      return identified;
    },
    register: async (_url, { id }) => {
      calls.push(`register ${id}`);
      return answers.register();
    },
    heartbeat: async (_url, id) => {
      calls.push(`heartbeat ${id}`);
      return answers.heartbeat();
    },
    stream: (_url, opening, signal, receive) => {
      calls.push(`stream ${opening.controller}`);
      const refused = answers.stream();
      if (refused !== null) return Promise.resolve(refused);
      opened.push(opening.heads);
      push = receive;
      over.stream = Promise.withResolvers();
      signal.addEventListener("abort", () => over.stream.reject(new TenureError("BACKEND_UNAVAILABLE", "given up")));
      return over.stream.promise;
    },
    deliver: (_url, delivery) => {
      const answer = Promise.withResolvers<SiteAnswer<Delivered>>();
      deliveries.push({ delivery, answer });
      return answer.promise;
    },
    consistency: () => Promise.reject(new TenureError("NOT_FOUND", "none")),
    close: () => undefined,
  };
  const pages = { outcome: async (): Promise<PageOutcome> => KNOWN };
  const host = {
    introductions: 0,
    up: (end: LinkEnd) => void ends.push(end),
    down: () => void calls.push("down"),
    isDialled: () => false,
    heads: async (_end: LinkEnd, notes: readonly string[]) => void heads.push([...notes]),
    page: () => {
      calls.push("page");
      return pages.outcome();
    },
    wish: (_end: LinkEnd, wish: Wish) => void calls.push(`wish ${wish.kind}`),
  } satisfies LinkHost;
  const lines = {
    lines: () => ["child.1", "other.1"],
    size: () => 1,
    checkpoint: async (line: string) => `note of ${line}`,
  };
  const stop = new AbortController();
  void dialForEver(
    {
      url: URL,
      clock,
      random: seededRandom(1),
      sites,
      host,
      heads: new OwnHeads(lines, clock),
      heartbeatMs: 120_000,
      ownId: () => "child",
      introduce: async (receiver) => ({ id: "child", url: "http://child:1", name: receiver, metadata: {} }),
      met: async ({ id }) => void calls.push(`met ${id}`),
      heard: (controller) => void calls.push(`heard ${controller}`),
      noted: (problem) => void noted.push(problem),
    },
    stop.signal,
  );
  const answer = async (body: Partial<Delivered> = {}): Promise<Delivery> => {
    const { delivery, answer: given } = deliveries.shift()!;
    given.resolve({ kind: "answer", body: { pages: [], heads: [], ...body } });
    await clock.advance(DELIVERY_EVERY_MS);
    return delivery;
  };
  return {
    clock,
    calls,
    noted,
    ends,
    heads,
    deliveries,
    answers,
    over,
    stop,
    answer,
    pages,
    opened,
    host,
    hand: (message: LinkMessage) => push(message),
    push: async (message: LinkMessage) => {
      await push(message);
      await settled();
    },
  };
}

it("registers, opens the stream, pins the parent's ring, and is up when the parent has said who it is", async () => {
  const { calls, ends, push, answer, noted } = stage();
  await settled();
  expect(calls).toEqual([`identify ${URL}`, "register child", "stream child"]);
  await push({ kind: "page", page: {} });
  expect([ends, calls.includes("page")], "nothing counts before that").toEqual([[], false]);
  await push(HELLO);
  expect([calls.at(-1), ends.map(({ controller, url }) => [controller, url]), noted]).toEqual([
    "met parent",
    [["parent", URL]],
    [null],
  ]);
  expect(await answer()).toMatchObject({ controller: "child", heads: ["note of child.1", "note of other.1"] });
});

it("shows nothing of the own line before the parent has said who it is: what the parent has of it is compared first (decision 62)", async () => {
  const { opened } = stage();
  await settled();
  expect(opened).toEqual([["note of other.1"]]);
});

it("one request is under way; what waits goes with the next one, and its outcome to whoever sent the page", async () => {
  const { ends, push, answer, deliveries } = stage();
  await settled();
  await push(HELLO);
  const sent = ends[0]!.send([page]);
  ends[0]!.ask({ kind: "graft", graft: { line: "b.1", after: 1 } });
  ends[0]!.ask({ kind: "prune", line: "c.1" });
  await settled();
  expect(deliveries).toHaveLength(1);
  await answer();
  const pages = [{ line: page.line, accepted: 1, duplicates: 0 }];
  expect(await answer({ pages })).toMatchObject({
    pages: [page],
    graft: [{ line: "b.1", after: 1 }],
    prune: [{ line: "c.1" }],
  });
  expect(await sent).toEqual({ kind: "taken", through: 1 });
  expect(deliveries).toEqual([]);
});

it.each([
  [
    { line: "x", accepted: 0, duplicates: 1 },
    { kind: "duplicate", through: 1 },
  ],
  [
    { line: "x", error: "CHAIN_GAP", have: 7 },
    { kind: "gap", have: 7 },
  ],
  [{ line: "x", error: "not_wanted" }, { kind: "refused" }],
] as const)("an outcome of a page: %j", async (outcome, expected) => {
  const { ends, push, answer } = stage();
  await settled();
  await push(HELLO);
  await answer();
  const sent = ends[0]!.send([page]);
  await settled();
  await answer({ pages: [outcome] });
  expect(await sent).toEqual(expected);
});

it.each([
  [[TAKEN, TAKEN], { kind: "taken", through: 3 }],
  [[KNOWN, KNOWN], { kind: "duplicate", through: 3 }],
  [[TAKEN, { line: "x", error: "BACKEND_UNAVAILABLE" }], { kind: "taken", through: 1 }],
  [[{ line: "x", error: "CHAIN_GAP", have: 7 }, TAKEN], { kind: "gap", have: 7 }],
  [[{ line: "x", error: "EVENT_INVALID" }, TAKEN], { kind: "refused" }],
] as const)("pages that go together count as far as they were taken: %j", async (outcomes, expected) => {
  const { ends, push, answer } = stage();
  await settled();
  await push(HELLO);
  await answer();
  const following = { ...page, after: 1, items: ["x", "y"] };
  const sent = ends[0]!.send([page, following]);
  await settled();
  expect((await answer({ pages: outcomes })).pages).toEqual([page, following]);
  expect(await sent).toEqual(expected);
});

it("a site that has something to send all the time stays far below the requests that a site may make", async () => {
  const { ends, push, deliveries, clock } = stage();
  await settled();
  await push(HELLO);
  let requests = 0;
  for (let ms = 0; ms < 1_000; ms++) {
    for (const { answer } of deliveries.splice(0)) {
      requests++;
      answer.resolve({ kind: "answer", body: { pages: [TAKEN], heads: [] } });
    }
    ends[0]!.ask({ kind: "graft", graft: { line: "b.1", after: ms } });
    await clock.advance(1);
  }
  expect(requests).toBeGreaterThan(100);
  expect(requests).toBeLessThan(PEER_REQUESTS_PER_S_MAX * 0.8);
});

describe("pages of the stream", () => {
  it("are read on while the ones before are being taken, as many as go together and no more", async () => {
    const { push, pages } = stage();
    await settled();
    await push(HELLO);
    const taken = Promise.withResolvers<PageOutcome>();
    pages.outcome = () => taken.promise;
    for (let at = 1; at < PAGES_SENT_MAX; at++) await push({ kind: "page", page: {} });
    let isRead = false;
    const last = push({ kind: "page", page: {} }).then(() => (isRead = true));
    await settled();
    expect(isRead).toBe(false);
    taken.resolve(TAKEN);
    await last;
  });

  it.each(["EVENT_INVALID", "suspected"] as const)("are not read for a while after one that is %s", async (why) => {
    const { push, hand, pages, clock, calls } = stage();
    await settled();
    await push(HELLO);
    pages.outcome = async () => ({ line: "x", error: why });
    const read = async (): Promise<void> => {
      for (let at = 0; at < 3; at++) await hand({ kind: "page", page: {} });
    };
    void read();
    const count = (): number => calls.filter((call) => call === "page").length;
    await clock.advance(BAD_PAGE_PAUSE_MS - 1);
    // The next one may have been under way.
    expect(count()).toBeLessThanOrEqual(2);
    const before = count();
    await clock.advance(BAD_PAGE_PAUSE_MS - 1);
    expect(count() - before).toBeLessThanOrEqual(1);
    await clock.advance(2 * BAD_PAGE_PAUSE_MS);
    expect(count()).toBe(3);
  });
});

describe("what comes down the stream", () => {
  /** How many of a message are read in so long, of a parent that sends it as fast as it is read; time passes only while nothing is. */
  async function readIn(ms: number, message: LinkMessage, outcome: PageOutcome, max: number): Promise<number> {
    const { push, hand, pages, clock, stop } = stage();
    await settled();
    await push(HELLO);
    pages.outcome = async () => outcome;
    const untilMs = clock.monotonicMs() + ms;
    let count = 0;
    while (clock.monotonicMs() < untilMs && count < max) {
      const reading = { isOver: false };
      void hand(message).then(() => (reading.isOver = true));
      for (let turn = 0; turn < 20 && !reading.isOver; turn++) await Promise.resolve();
      while (!reading.isOver) await clock.advance(10);
      count++;
    }
    stop.abort();
    return count;
  }
  const long = {
    kind: "page",
    page: { line: "x", after: 0, items: ["x".repeat(512 * 1024)], checkpoint: "" },
  } as const;
  const gap = { line: "x", error: "CHAIN_GAP", have: 1 } as const;

  it.each([
    ["pages that are known", long, KNOWN, PEER_BYTES_PER_S_MAX / (512 * 1024)],
    ["pages after a gap", long, gap, PEER_BYTES_PER_S_MAX / (512 * 1024)],
    [
      "heads",
      { kind: "heads", heads: Array.from({ length: 500 }, () => "n"), atMs: 0 },
      KNOWN,
      PEER_EVENTS_PER_S_MAX / 500,
    ],
    ["wishes", { kind: "prune", line: "x" }, KNOWN, PEER_EVENTS_PER_S_MAX],
    ["what nobody knows", { kind: "other" }, KNOWN, PEER_EVENTS_PER_S_MAX],
  ] as const)(
    "and brings nothing is read as fast as a peer may send, and no faster: %s",
    async (_name, message, outcome, perS) => {
      const count = await readIn(2_000, message, outcome, 10 * perS);
      expect(count, "the share of the first second, and two more").toBeGreaterThan(2.9 * perS);
      expect(count).toBeLessThan(3.1 * perS + PAGES_SENT_MAX);
    },
  );

  it("and is new is read as fast as it is taken: a site that joins waits for nothing else", async () => {
    expect(await readIn(1, long, TAKEN, 1_000)).toBe(1_000);
  });
});

it.each([
  ["register", 429],
  ["register", 503],
  ["stream", 429],
  ["stream", 503],
] as const)(
  "an address that refuses %s with %d is called again after the time that it names, and not before",
  async (which, status) => {
    const { calls, clock, answers } = stage();
    answers[which] = () => refusal(status, { retryAfterMs: 20_000 });
    await settled();
    expect(calls.at(-1)).toBe(`${which} child`);
    calls.length = 0;
    await clock.advance(19_999);
    expect(calls).toEqual([]);
    answers[which] = () => refusal(status, { retryAfterMs: 9_999_000 });
    await clock.advance(1);
    expect(calls[0]).toBe(`identify ${URL}`);
    calls.length = 0;
    await clock.advance(RETRY_AFTER_MS_MAX - 1);
    expect(calls).toEqual([]);
    await clock.advance(1);
    expect(calls[0], "nobody waits for hours").toBe(`identify ${URL}`);
  },
);

it("while one address has to wait the parent's others are called, and where all have to, the first that may be", async () => {
  const { calls, clock, answers } = stage();
  const waits = [20_000, 3_000];
  answers.register = () => refusal(503, { retryAfterMs: waits.shift() ?? null, urls: ["http://other:1"] });
  await settled();
  const asked = (): string[] => calls.splice(0).filter((call) => call.startsWith("identify"));
  expect(asked()).toEqual([`identify ${URL}`]);
  await clock.advance(200);
  expect(asked()).toEqual(["identify http://other:1"]);
  await clock.advance(2_700);
  expect(asked()).toEqual([]);
  await clock.advance(300);
  expect(asked()).toEqual(["identify http://other:1"]);
});

it("a parent that has too much is sent the same again after the time that it names, and the link stays", async () => {
  const { ends, push, answer, deliveries, clock, calls } = stage();
  await settled();
  await push(HELLO);
  await answer();
  const sent = ends[0]!.send([page]);
  await settled();
  deliveries.shift()!.answer.resolve(refusal(429, { retryAfterMs: 3_000 }));
  await clock.advance(2_999);
  expect(deliveries).toEqual([]);
  await clock.advance(1);
  await answer({ pages: [{ line: page.line, accepted: 1, duplicates: 0 }] });
  expect(await sent).toEqual({ kind: "taken", through: 1 });
  expect(calls).not.toContain("down");
  void ends[0]!.send([page]);
  await settled();
  deliveries.shift()!.answer.resolve(refusal(429, { retryAfterMs: 9_999_000 }));
  await clock.advance(RETRY_AFTER_MS_MAX);
  expect(deliveries, "nobody waits for hours").toHaveLength(1);
});

it("is dialled again, for ever, also at the addresses that the parent names; five seconds apart at most", async () => {
  const { calls, clock, noted } = stage(refusal(409, { urls: ["http://leader:1"] }));
  await settled();
  calls.length = 0;
  await clock.advance(3_600_000);
  const asked = calls.filter((call) => call.startsWith("identify"));
  expect(asked.length).toBeGreaterThan(720);
  expect(new Set(asked)).toEqual(new Set(["identify http://leader:1", `identify ${URL}`]));
  expect(noted.at(-1)).toBe("X: no 409");
});

it("the bound between two attempts doubles when every address was tried, and not with each of them", async () => {
  const urls = Array.from({ length: 7 }, (_, at) => `http://node-${at}:1`);
  const { calls, clock } = stage(refusal(409, { urls }));
  await settled();
  // Those and the configured one, at the least pause: what each of eight would have doubled is more.
  for (let at = 0; at < 8; at++) await clock.advance(200);
  const asked = calls.filter((call) => call.startsWith("identify"));
  expect(new Set(asked).size).toBe(8);
});

it("a stream that ends, a good-bye and a request that fails end the link; what was under way is not known to be sent", async () => {
  const { ends, push, over, clock, calls, deliveries, answer } = stage();
  await settled();
  await push(HELLO);
  await answer();
  const sent = ends[0]!.send([page]);
  sent.catch(() => undefined);
  over.stream.resolve(OK);
  await expect(sent).rejects.toThrow("down");
  expect(calls.filter((call) => call === "down")).toHaveLength(1);
  await clock.advance(30_000);
  await push(HELLO);
  expect(ends).toHaveLength(2);
  await push({ kind: "bye", urls: [] });
  expect(calls.filter((call) => call === "down")).toHaveLength(2);
  await clock.advance(30_000);
  await push(HELLO);
  await settled();
  deliveries.at(-1)!.answer.reject(new TenureError("BACKEND_UNAVAILABLE", "cut"));
  await settled();
  expect(calls.filter((call) => call === "down")).toHaveLength(3);
});

it("a registration that was forgotten is made again, by the heartbeat that finds out", async () => {
  const { push, calls, clock, answers, deliveries } = stage();
  await settled();
  await push(HELLO);
  const answering = async (ms: number): Promise<void> => {
    for (let passed = 0; passed < ms; passed += 1_000) {
      for (const { answer } of deliveries.splice(0)) answer.resolve({ kind: "answer", body: { pages: [], heads: [] } });
      await clock.advance(1_000);
    }
  };
  await answering(121_000);
  expect(calls.slice(-2)).toEqual(["heartbeat child", "heard parent"]);
  answers.heartbeat = () => refusal(404);
  await answering(121_000);
  expect(calls.slice(-2)).toEqual(["heartbeat child", "register child"]);
});

it("a ring that changes between the registration and the parent's word is registered before the link is up", async () => {
  const { calls, ends, push, host, clock, noted } = stage();
  await settled();
  // Links.introduceAgain ends the links that are up; this one is not.
  host.introductions++;
  await push(HELLO);
  expect([ends, noted]).toEqual([[], ["this site has another ring by now"]]);
  calls.length = 0;
  for (let at = 0; at < 60; at++) await clock.advance(100);
  expect(calls.slice(0, 3)).toEqual([`identify ${URL}`, "register child", "stream child"]);
  await push(HELLO);
  expect(ends).toHaveLength(1);
});

it("this site's own address is not linked to", async () => {
  const { calls, clock, noted } = stage({ kind: "answer", body: "child" });
  await clock.advance(60_000);
  expect(calls.filter((call) => call.startsWith("register"))).toHaveLength(0);
  expect(noted.at(-1)).toMatch("this site itself");
});
