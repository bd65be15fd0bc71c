// Pages of other sites come in one by one for each line, verified on what is applied, and whoever delivers a wrong one is blamed for it.

import { describe, expect, it } from "vitest";
import type { LineState, Page } from "../../../core/mesh/model.ts";
import { fakeVerify } from "../../../core/mesh/test-signatures.ts";
import { ringOf, TestSite } from "../../../core/mesh/test-site.ts";
import { TenureError } from "../../../core/kit/errors.ts";

import { RECORD_GATHERED_BYTES_MAX } from "../../../core/mesh/receipts/index.ts";
import { PAGE_TAKEN_MS } from "../../../core/kit/timeouts.ts";
import { emptyLine } from "../../../core/mesh/proof/index.ts";
import { systemDigest as digest } from "../../../drivers/system/digest.ts";
import { HandClock, settled } from "../../../loops/test-clock.ts";
import type { PageReceived, VerifiedPage } from "../receipts/receipts-reign.ts";
import { PAGES_WAITING_PER_PEER_MAX } from "../limits.ts";
import { Blame } from "./blame.ts";
import { IntakeQueue } from "./intake-queue.ts";

function stage() {
  const clock = new HandClock();
  const blame = new Blame();
  const site = new TestSite(ringOf("a", ["n1"], digest), digest);
  site.writeMany(20);
  const states = new Map<string, LineState>();
  const received: VerifiedPage[] = [];
  const suspicions: string[] = [];
  const world = { isWanted: true, isKnown: true, isOwn: false };
  /** How many events were handed on, and the keys in force then. */
  const said: [count: number, keys: number | null][] = [];
  let receive = async (page: VerifiedPage): Promise<PageReceived> => {
    states.set(page.page.line, page.state);
    const accepted = page.state.size - page.from.size;
    return { kind: "accepted", accepted, duplicates: page.page.items.length - accepted };
  };
  const queue = new IntakeQueue({
    clock,
    digest,
    verify: fakeVerify(digest),
    lines: {
      isOwn: () => world.isOwn,
      isWanted: () => world.isWanted,
      isOthers: () => false,
      stateOf: (line) => states.get(line) ?? null,
      firstRingOf: (line) => (world.isKnown && line === site.line ? site.ring : null),
      begin: async (line) => (world.isKnown && line === site.line ? emptyLine(site.ring, digest) : null),
    },
    blame,
    said: async (line, events) => void said.push([events.length, states.get(line)?.ring.keys.length ?? null]),
    receive: (page) => {
      received.push(page);
      return receive(page);
    },
    suspected: (peer, { line }) => void suspicions.push(`${peer} ${line}`),
  });
  const instead = (other: typeof receive): void => void (receive = other);
  return { clock, blame, site, states, received, suspicions, world, queue, instead, said };
}

function spoilt(page: Page): Page {
  return {
    ...page,
    items: page.items.map((item, at) => (at === 0 && typeof item === "string" ? item.replace("job-", "jOb-") : item)),
  };
}

describe("a page", () => {
  it("that continues what is applied is received, with the state it was verified on", async () => {
    const { queue, site, received, blame } = stage();
    expect(await queue.take("b", site.page(0, 5))).toEqual({ line: site.line, accepted: 5, duplicates: 0 });
    expect(await queue.take("b", site.page(3, 9))).toEqual({ line: site.line, accepted: 4, duplicates: 2 });
    expect(await queue.take("b", site.page(2, 9))).toEqual({ line: site.line, accepted: 0, duplicates: 7 });
    expect(received.map(({ from, state }) => [from.size, state.size])).toEqual([
      [0, 5],
      [5, 9],
    ]);
    expect(blame.of("b")).toEqual({});
  });

  it("that does not is refused, and its deliverer blamed, by reason", async () => {
    const { queue, site, received, blame, suspicions, world } = stage();
    const unsigned = { ...site.page(0, 5), checkpoint: site.page(0, 4).checkpoint };
    expect(await queue.take("b", site.page(5, 9))).toEqual({ line: site.line, error: "CHAIN_GAP", have: 0 });
    expect(await queue.take("b", unsigned)).toMatchObject({
      error: "EVENT_INVALID",
      problem: "its checkpoint is of 4 events, and its items end at 5",
    });
    expect(await queue.take("b", spoilt(site.page(0, 5)))).toMatchObject({ error: "suspected" });
    expect(await queue.take("b", { line: 7 })).toEqual({
      line: "",
      error: "EVENT_INVALID",
      problem: "a page has the fields line, after, items and checkpoint",
    });
    world.isKnown = false;
    expect(await queue.take("b", site.page(0, 5))).toMatchObject({ error: "LINE_UNKNOWN" });
    world.isWanted = false;
    expect(await queue.take("b", site.page(0, 5))).toMatchObject({ error: "not_wanted" });
    expect(received).toEqual([]);
    // A gap says nothing of a page's bytes: what was before it may have been lost here.
    expect(blame.of("b")).toEqual({ invalid: 1, suspected: 1, malformed: 1, "unknown-line": 1 });
    expect(suspicions).toEqual([`b ${site.line}`]);
    expect(blame.peers()).toEqual(["b"]);
  });

  it("of this site's own line changes nothing", async () => {
    const { queue, site, world, received } = stage();
    world.isOwn = true;
    expect(await queue.take("b", spoilt(site.page(0, 5)))).toEqual({ line: site.line, accepted: 0, duplicates: 5 });
    expect(received).toEqual([]);
  });

  it("that the log refuses is refused, and nobody is blamed", async () => {
    const { queue, site, instead, blame } = stage();
    instead(() => Promise.reject(new TenureError("NOT_LEADER", "over")));
    expect(await queue.take("b", site.page(0, 5))).toMatchObject({ error: "NOT_LEADER" });
    instead(() => Promise.reject(new TenureError("DISK_FULL", "full")));
    expect(await queue.take("b", site.page(0, 5))).toMatchObject({ error: "BACKEND_UNAVAILABLE" });
    instead(async () => ({ kind: "again", have: 3 }));
    expect(await queue.take("b", site.page(0, 5))).toMatchObject({ error: "CHAIN_GAP", have: 3 });
    expect(blame.of("b")).toEqual({});
  });
});

describe("pages of one line", () => {
  it("are verified one after the other, each on what the one before has made of it", async () => {
    const { queue, site, received } = stage();
    const outcomes = await Promise.all([queue.take("b", site.page(0, 5)), queue.take("c", site.page(5, 9))]);
    expect(outcomes).toMatchObject([{ accepted: 5 }, { accepted: 4 }]);
    expect(received).toHaveLength(2);
  });

  it("are written together: each is verified on what those before it give, and handed over while they are being written", async () => {
    const { queue, site, received, instead, states } = stage();
    const written = Promise.withResolvers<void>();
    instead(async ({ page, state, from }) => {
      await written.promise;
      states.set(page.line, state);
      return { kind: "accepted", accepted: state.size - from.size, duplicates: 0 };
    });
    const outcomes = [0, 5, 9].map((after, at) => queue.take("b", site.page(after, [5, 9, 12][at]!)));
    await settled();
    expect(received.map(({ from, state }) => [from.size, state.size])).toEqual([
      [0, 5],
      [5, 9],
      [9, 12],
    ]);
    written.resolve();
    expect(await Promise.all(outcomes)).toMatchObject([{ accepted: 5 }, { accepted: 4 }, { accepted: 3 }]);
  });

  it("nothing is answered that rests on one which is not applied yet, and what was not written is answered so (trap 56a)", async () => {
    const { queue, site, instead, received } = stage();
    const written = Promise.withResolvers<PageReceived>();
    instead(() => written.promise);
    const answered: string[] = [];
    const note = (name: string) => (): void => void answered.push(name);
    const first = queue.take("b", site.page(0, 5));
    const again = queue.take("c", site.page(0, 5));
    const gap = queue.take("c", site.page(9, 12));
    for (const [name, one] of Object.entries({ first, again, gap })) void one.then(note(name));
    await settled();
    expect(answered).toEqual([]);
    written.reject(new TenureError("NOT_LEADER", "over"));
    expect(await Promise.all([first, again, gap])).toMatchObject([
      { error: "NOT_LEADER" },
      { error: "BACKEND_UNAVAILABLE" },
      { error: "BACKEND_UNAVAILABLE" },
    ]);
    // The next one is verified on what is applied.
    instead(async () => ({ kind: "accepted", accepted: 5, duplicates: 0 }));
    expect(await queue.take("b", site.page(0, 5))).toMatchObject({ accepted: 5 });
    expect(received.map(({ from }) => from.size)).toEqual([0, 0]);
  });

  it("with more bytes than one append gathers wait until those before are applied", async () => {
    const { queue, site, received, instead, states } = stage();
    const long = "x".repeat(RECORD_GATHERED_BYTES_MAX / 2);
    for (let at = 0; at < 6; at++) site.write({ payload: { long } });
    await queue.take("b", site.page(0, 20));
    const written = Promise.withResolvers<void>();
    instead(async ({ page, state, from }) => {
      await written.promise;
      states.set(page.line, state);
      return { kind: "accepted", accepted: state.size - from.size, duplicates: 0 };
    });
    const outcomes = [20, 22, 24].map((after) => queue.take("b", site.page(after, after + 2)));
    await settled();
    expect(received.map(({ from }) => from.size)).toEqual([0, 20]);
    written.resolve();
    expect(await Promise.all(outcomes)).toMatchObject([{ accepted: 2 }, { accepted: 2 }, { accepted: 2 }]);
  });

  it("wait for a change of the ring to be applied: evidence that waits for that ring is verified with the next page", async () => {
    const { queue, site, received, instead, states } = stage();
    site.register(ringOf("a", ["n1", "n2"], digest));
    site.writeMany(2);
    const written = Promise.withResolvers<void>();
    instead(async ({ page, state, from }) => {
      await written.promise;
      states.set(page.line, state);
      return { kind: "accepted", accepted: state.size - from.size, duplicates: 0 };
    });
    const outcomes = [queue.take("b", site.page(0, 20)), queue.take("b", site.page(20, 21))];
    outcomes.push(queue.take("b", site.page(21, 23)));
    await settled();
    expect(received.map(({ from }) => from.size)).toEqual([0, 20]);
    written.resolve();
    expect(await Promise.all(outcomes)).toMatchObject([{ accepted: 20 }, { accepted: 1 }, { accepted: 2 }]);
  });

  it("that bring another ring are followed by a look at what waits for that ring, also where no page comes after them", async () => {
    const { queue, site, said, instead } = stage();
    site.register(ringOf("a", ["n1", "n2"], digest));
    await queue.take("b", site.page(0, 20));
    expect(await queue.take("b", site.page(20, 21))).toMatchObject({ accepted: 1 });
    await settled();
    expect(said).toEqual([
      [20, null],
      [1, 1],
      [0, 2],
    ]);
    site.register(ringOf("a", ["n1"], digest));
    instead(() => Promise.reject(new TenureError("DISK_FULL", "full")));
    expect(await queue.take("b", site.page(21, 22))).toMatchObject({ error: "BACKEND_UNAVAILABLE" });
    await settled();
    expect(said.slice(3), "it is not in force").toEqual([[1, 2]]);
  });

  it("of a log that does not answer are refused in time, and one peer has so many here at most", async () => {
    const { queue, site, instead, clock, blame } = stage();
    const hold = Promise.withResolvers<PageReceived>();
    instead(() => hold.promise);
    const waiting = Array.from({ length: PAGES_WAITING_PER_PEER_MAX }, () => queue.take("b", site.page(0, 5)));
    expect(await queue.take("b", site.page(0, 5))).toMatchObject({ error: "RATE_LIMITED" });
    const other = queue.take("c", site.page(0, 5));
    await settled();
    await clock.advance(PAGE_TAKEN_MS);
    expect(await Promise.all(waiting)).toEqual(waiting.map(() => ({ line: site.line, error: "BACKEND_UNAVAILABLE" })));
    expect(await other).toMatchObject({ error: "BACKEND_UNAVAILABLE" });
    hold.resolve({ kind: "duplicate", duplicates: 5 });
    await settled();
    expect(await queue.take("b", site.page(0, 5)), "their places are free again").not.toMatchObject({
      error: "RATE_LIMITED",
    });
    expect(blame.of("b"), "it is our log that does not answer").toEqual({});
  });

  it.each(["NOT_LEADER", "DISK_FULL", "OUTCOME_UNKNOWN"] as const)(
    "that were judged on one which our log did not write (%s) are nobody's fault; on one that is written, the deliverer's",
    async (code) => {
      const { queue, site, instead, blame, suspicions, states } = stage();
      const written = Promise.withResolvers<PageReceived>();
      instead(() => written.promise);
      const bad = { ...site.page(5, 9), checkpoint: site.page(5, 8).checkpoint };
      const send = () => [
        queue.take("c", site.page(9, 12)),
        queue.take("c", bad),
        queue.take("c", spoilt(site.page(5, 9))),
      ];
      const first = queue.take("b", site.page(0, 5));
      const others = send();
      await settled();
      written.reject(new TenureError(code, "over"));
      for (const outcome of await Promise.all(others)) expect(outcome).toMatchObject({ error: "BACKEND_UNAVAILABLE" });
      expect("error" in (await first)).toBe(true);
      expect([blame.of("b"), blame.of("c"), suspicions]).toEqual([{}, {}, []]);
      instead(async ({ page, state }) => {
        states.set(page.line, state);
        return { kind: "accepted", accepted: 5, duplicates: 0 };
      });
      expect(await Promise.all([queue.take("b", site.page(0, 5)), ...send()])).toMatchObject([
        { accepted: 5 },
        { error: "CHAIN_GAP", have: 5 },
        { error: "EVENT_INVALID" },
        { error: "suspected" },
      ]);
      expect([blame.of("c"), suspicions]).toEqual([{ invalid: 1, suspected: 1 }, [`c ${site.line}`]]);
    },
  );
});

it("a page of a later generation whose beginning is not known yet stops nothing, and is asked for again", async () => {
  const site = new TestSite(ringOf("a", ["n1"], digest, 2), digest);
  site.writeMany(1);
  const { ring, line } = site;
  const queue = new IntakeQueue({
    clock: new HandClock(),
    digest,
    verify: fakeVerify(digest),
    lines: {
      isOwn: () => false,
      isWanted: () => true,
      isOthers: () => false,
      stateOf: () => null,
      firstRingOf: () => ring,
      begin: async () => null,
    },
    blame: new Blame(),
    said: async () => undefined,
    receive: async () => ({ kind: "duplicate", duplicates: 1 }),
    suspected: () => undefined,
  });
  expect(await queue.take("b", site.page(0, 1))).toEqual({ line, error: "BACKEND_UNAVAILABLE" });
});
