// Pages next to a dumb oracle, and the tamper matrix: whatever of a page is changed, it is refused with a named problem, or the change
// means nothing (the same events, the same state).

import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { systemDigest as digest } from "../../../drivers/system/digest.ts";
import { decodeEvent, eventHashOf } from "../../events/event.ts";
import { bytesOfHash } from "../../events/hex.ts";
import { parseJson } from "../../kit/parse-json.ts";
import { rootOf as merkleRootOf } from "./test-root.ts";
import type { LineState, Page, PageItem } from "../model.ts";
import { ringOf, TestSite } from "../test-site.ts";
import { checkPage, type Verdict } from "./intake.ts";
import { PAGE_SCRATCH_BYTES, SLICE_ITEMS } from "./limits.ts";

import { changed, exampleSite, expectKind, readTo, signedPage, toolsOf, verdictOf } from "./test-pages.ts";

const tools = toolsOf(digest);
const bytesOf = (text: string): Uint8Array => new TextEncoder().encode(text);
const verdict = (state: LineState, page: unknown): Verdict => verdictOf(state, page as Page, tools);

function expectRefused(state: LineState, page: unknown, why: string): void {
  const { kind, ...rest } = verdict(state, page);
  expect(["bad", "suspected", "gap"], why).toContain(kind);
  if (kind !== "gap") expect((rest as { problem?: string }).problem, why).toMatch(/./);
}

describe("a page next to a dumb oracle", () => {
  const kinds = fc.array(fc.constantFrom("build:assigned", "build:log", "key:created", "strange:thing"), {
    minLength: 1,
    maxLength: 40,
  });

  test("any line in any cuts, with any overlap, gives every event once and the tree of all of them", () => {
    fc.assert(
      fc.property(kinds, fc.array(fc.tuple(fc.nat(40), fc.nat(40)), { maxLength: 12 }), (types, cuts) => {
        const site = new TestSite(ringOf("site-a", ["n1"], digest), digest);
        for (const eventType of types) site.write({ eventType });
        let state = site.start;
        const texts: PageItem[] = [];
        for (const [from, length] of [...cuts, [0, types.length] as const]) {
          const after = Math.min(from, types.length - 1);
          const end = Math.min(after + 1 + length, types.length);
          const got = verdict(state, site.page(after, end));
          const expected = after > state.size ? "gap" : end <= state.size ? "duplicate" : "accepted";
          expect(got.kind).toBe(expected);
          if (got.kind !== "accepted") continue;
          expect(got.firstNew).toBe(state.size + 1);
          for (const entry of got.events) texts.push(entry.kind === "event" ? entry.text : { hash: entry.hash });
          state = got.state;
          const hashes = types.slice(0, end).map((_, at) => bytesOfHash(site.hash(at + 1)));
          expect(site.root(end)).toBe(merkleRootOf(hashes, digest));
        }
        expect(state).toMatchObject({ size: types.length, hash: site.hash(types.length), ring: site.ring });
        expect(texts).toEqual(types.map((_, at) => site.item(at + 1)));
        expect(state.frontier).toEqual(site.frontier(types.length));
      }),
      { numRuns: 60 },
    );
  });

  test("what is accepted are the bytes that came, with their hashes and places", () => {
    const site = exampleSite(digest);
    const got = verdict(site.start, site.page(0, 12));
    expect(got.kind).toBe("accepted");
    if (got.kind !== "accepted") return;
    for (const [at, entry] of got.events.entries()) {
      if (entry.kind === "stub") expect(entry).toEqual({ kind: "stub", sequence: at + 1, hash: site.hash(at + 1) });
      else {
        expect(entry.text).toBe(site.text(at + 1));
        expect(decodeEvent(bytesOf(entry.text))).toMatchObject({ kind: "event", event: { sequence: at + 1 } });
        const eventHash = eventHashOf(bytesOf(entry.text), digest);
        expect(entry.event).toEqual({ ...(parseJson(entry.text) as object), eventHash });
      }
    }
    // The time of a stub is not known: that of the event before it counts on.
    const stub = verdict(site.start, site.page(0, 4));
    expect(stub).toMatchObject({ state: { hash: site.hash(4), timestamp: readTo(site, [3], tools).timestamp } });
  });
});

test("a page that is only judged gets the same verdict, and of its events the stubs alone", () => {
  const site = exampleSite(digest);
  site.register(site.ring);
  const whole = expectKind(verdict(site.start, site.page(0, 13)), "accepted");
  const judged = verdictOf(site.start, site.page(0, 13), { ...tools, isOnlyJudged: true });
  expect(judged).toEqual({ ...whole, events: whole.events.filter(({ kind }) => kind === "stub") });
  for (const [at, item] of site.page(0, 13).items.entries()) {
    if (typeof item !== "string") continue;
    const items = site.page(0, 13).items.with(at, item.replace('"payload":{', '"payload":{"0":0,"0":0'));
    const page = signedPage(site, site.start, items);
    const found = verdict(site.start, page);
    expect(["bad", "suspected"]).toContain(found.kind);
    expect(verdictOf(site.start, page, { ...tools, isOnlyJudged: true })).toEqual(found);
  }
});

test("an author whose name has escapes, and a text that is longer than the buffer for bytes", () => {
  const ring = { ...ringOf("site-a", ["n1"], digest), author: 'é"one' };
  const site = new TestSite(ring, digest);
  site.write();
  site.write({ payload: { text: "é".repeat(PAGE_SCRATCH_BYTES) } });
  site.write();
  const got = verdict(site.start, site.page(0, 3));
  expect(got).toMatchObject({ kind: "accepted", state: { size: 3, hash: site.hash(3) } });
});

describe("the work", () => {
  test("is done in slices, by items and by bytes", () => {
    const yields = (site: TestSite): number => {
      const check = checkPage({ state: site.start, page: site.page(0, site.size), ...tools });
      let count = 0;
      while (check.next().done !== true) count++;
      return count;
    };
    const many = new TestSite(ringOf("site-a", ["n1"], digest), digest);
    many.writeMany(4 * SLICE_ITEMS + 1);
    expect(yields(many)).toBe(1 + 4);
    const large = new TestSite(ringOf("site-a", ["n1"], digest), digest);
    for (let at = 0; at < 6; at++) large.write({ payload: { text: "x".repeat(40_000) } });
    expect(yields(large)).toBe(1 + 3);
  });
});

describe("the tamper matrix", () => {
  const site = exampleSite(digest);
  const state = readTo(site, [3], tools);
  const page = site.page(3, 9);
  const same = verdict(state, page);

  test("begins with a page that is accepted", () => {
    expect(same.kind).toBe("accepted");
  });

  test("each byte of each text: another bit, left out, twice", () => {
    const accepted: string[] = [];
    for (const [place, item] of page.items.entries()) {
      if (typeof item !== "string") continue;
      const letters = Array.from(item);
      for (const [at, letter] of letters.entries()) {
        const flipped = String.fromCodePoint(letter.codePointAt(0)! ^ 1);
        for (const text of [letters.with(at, flipped), letters.toSpliced(at, 1), letters.toSpliced(at, 0, letter)]) {
          const tampered = { ...page, items: page.items.with(place, text.join("")) };
          const got = verdict(state, tampered);
          if (got.kind !== "suspected" && got.kind !== "bad") accepted.push(`${got.kind}: ${text.join("")}`);
        }
      }
    }
    expect(accepted).toEqual([]);
  });

  test("each digit of each hash", () => {
    for (const [place, item] of page.items.entries()) {
      if (typeof item === "string") continue;
      for (let at = 0; at < item.hash.length; at++) {
        const other = item.hash[at] === "0" ? "1" : "0";
        const hash = item.hash.slice(0, at) + other + item.hash.slice(at + 1);
        expectRefused(state, { ...page, items: page.items.with(place, { hash }) }, hash);
      }
      expectRefused(state, { ...page, items: page.items.with(place, { hash: item.hash.toUpperCase() }) }, "capitals");
    }
  });

  test("each letter of its note", () => {
    const letters = Array.from(page.checkpoint);
    const accepted: string[] = [];
    for (const [at, letter] of letters.entries()) {
      const flipped = String.fromCodePoint(letter.codePointAt(0)! ^ 1);
      for (const text of [letters.with(at, flipped), letters.toSpliced(at, 1), letters.toSpliced(at, 0, letter)]) {
        const got = verdict(state, { ...page, checkpoint: text.join("") });
        if (got.kind !== "bad") accepted.push(`${got.kind}: ${text.join("")}`);
      }
    }
    expect(accepted).toEqual([]);
  });

  test("each item left out, twice, or in another place", () => {
    for (const [at, item] of page.items.entries()) {
      expectRefused(state, { ...page, items: page.items.toSpliced(at, 1) }, `without ${at}`);
      expectRefused(state, { ...page, items: page.items.toSpliced(at, 0, item) }, `${at} twice`);
      const next = page.items[at + 1];
      if (next === undefined) continue;
      expectRefused(state, { ...page, items: page.items.with(at, next).with(at + 1, item) }, `${at} after its next`);
    }
  });

  test.each(["line", "after", "items", "checkpoint"] as const)("without %s, or with another type of it", (field) => {
    const { [field]: _, ...rest } = page;
    expectRefused(state, rest, "without");
    for (const value of [null, undefined, true, 1.5, -1, Number.NaN, 2 ** 53, "", "x", [], {}, [null], [[]], () => 1])
      expectRefused(state, { ...page, [field]: value }, `${field}: ${typeof value}`);
  });

  test.each([
    ["an unknown field", { ...page, more: 1 }],
    [
      "a field called __proto__",
      JSON.parse(`{"__proto__":{},"line":"${page.line}","after":3,"items":["x"],"checkpoint":"x"}`),
    ],
    ["another line", { ...page, line: `site-b.${page.line.slice(7)}` }],
    ["another after, earlier", { ...page, after: 2 }],
    ["another after, later", { ...page, after: 4 }],
    ["after at the end of numbers", { ...page, after: Number.MAX_SAFE_INTEGER }],
    ["the note of another page", { ...page, checkpoint: site.page(3, 8).checkpoint }],
    ["a head in place of its note", { ...page, checkpoint: site.head(9) }],
    ["null", null],
    ["a list", []],
    ["a text", "page"],
  ])("with %s", (why, tampered) => {
    expectRefused(state, tampered, why);
  });

  test("what is known already is not read again: changed, it means nothing", () => {
    const whole = site.page(0, 9);
    const tampered = { ...whole, items: whole.items.with(0, "not even JSON") };
    const got = verdict(state, tampered);
    expect(got.kind).toBe("accepted");
    if (got.kind !== "accepted" || same.kind !== "accepted") return;
    expect(got.events).toEqual(same.events);
    expect({ ...got.state, checkpoint: "" }).toEqual({ ...same.state, checkpoint: "" });
  });
});

describe("texts that two readers could understand differently, even if the site signs them", () => {
  const site = exampleSite(digest);
  const first = site.text(1);
  const deep = `${"[".repeat(60)}${"]".repeat(60)}`;
  const withPayload = (payload: string): string =>
    first.replace(/"payload":\{.*\},"previousHash"/s, `"payload":${payload},"previousHash"`);

  test("the text that is changed is a good one", () => {
    expect(verdict(site.start, signedPage(site, site.start, [withPayload('{"a":1}')])).kind).toBe("accepted");
    expect(verdict(site.start, signedPage(site, site.start, [withPayload('{"__proto__":{"a":1}}')])).kind).toBe(
      "accepted",
    );
  });

  test.each([
    ["a key twice", withPayload('{"a":1,"a":1}')],
    ["a key twice, spelt differently", withPayload('{"a":1,"\\u0061":1}')],
    ["keys in another order", withPayload('{"b":1,"a":1}')],
    ["blanks", withPayload('{"a": 1}')],
    ["a blank in front", ` ${first}`],
    ["a newline at the end", `${first}\n`],
    ["an escape that is not needed", withPayload('{"a":"\\/"}')],
    ["half of a surrogate pair, as an escape", withPayload('{"a":"\\ud800"}')],
    ["a number above 2^53", withPayload('{"a":9007199254740993}')],
    ["a number with an exponent", withPayload('{"a":1e2}')],
    ["minus zero", withPayload('{"a":-0}')],
    ["NaN", withPayload('{"a":NaN}')],
    ["deep nesting", withPayload(`{"a":${deep}}`)],
    ["a payload that is a list", withPayload("[]")],
    ["a byte order mark", `\ufeff${first}`],
    ["a field more", first.replace('{"entityId"', '{"a":1,"entityId"')],
    ["a field called __proto__", first.replace('{"entityId"', '{"__proto__":{},"entityId"')],
    ["a field less", first.replace(/"id":"[^"]*",/, "")],
    ["a type that is no type", changed(first, { eventType: "Build:assigned" })],
    ["another entity's type", changed(first, { entityType: "worker" })],
    ["no JSON", "hello"],
    ["nothing", ""],
    ["cut", first.slice(0, -1)],
  ])("%s", (why, text) => {
    expect(text).not.toBe(first);
    expect(verdict(site.start, signedPage(site, site.start, [text])), why).toMatchObject({ kind: "bad", sequence: 1 });
  });

  test("half of a surrogate pair in the text itself, which UTF-8 can't say", () => {
    const page = { ...site.page(0, 1), items: [first.replace("site-a", "\ud800")] };
    expect(verdict(site.start, page)).toMatchObject({ kind: "bad", problem: "item 0 is neither a text nor a hash" });
  });
});

describe("registrations", () => {
  const begin = (): TestSite => new TestSite(ringOf("site-a", ["n1", "n2"], digest), digest);
  const one = ringOf("site-a", ["n1"], digest);

  test("of other sites, of unknown types and of the same ring change nothing", () => {
    const site = begin();
    site.write({ eventType: "controller:registered", entityId: "site-b", payload: { keys: "anything" } });
    site.write({ eventType: "unheard:of", payload: {} });
    site.write({ eventType: "controller:heartbeat", entityId: "site-a", payload: {} });
    site.register(site.ring);
    expect(verdict(site.start, site.page(0, 4))).toMatchObject({ kind: "accepted", state: { ring: site.ring } });
  });

  test("with other keys change the ring for what follows", () => {
    const site = begin();
    site.register(one);
    expect(verdict(site.start, site.page(0, 1))).toMatchObject({
      kind: "accepted",
      state: { ring: one, line: site.line, isStated: true },
    });
  });

  test.each([
    ["no keys", { keys: [] }, "1 to 32 keys"],
    ["keys that are no list", { keys: {} }, "1 to 32 keys"],
    ["a node twice", { keys: [one.keys[0]!, one.keys[0]!] }, "each node once"],
    ["a key of 31 bytes", { keys: [{ node: "n1", key: Buffer.alloc(31).toString("base64") }] }, "32 bytes"],
    ["a field more in a key", { keys: [{ ...one.keys[0]!, more: 1 }] }, "the fields key and node"],
    ["another generation", { generation: 2 }, "another line"],
    ["another author", { author: "site-b.1" }, "another line"],
    ["another line", { line: `site-a.${"0".repeat(32)}` }, "another line"],
  ])("of the site itself with %s are refused", (_, more, problem) => {
    const site = begin();
    const { author, generation } = site.ring;
    const keys = one.keys.map(({ node, key }) => ({ node, key }));
    const payload = JSON.parse(JSON.stringify({ line: site.line, generation, author, keys, ...more }));
    site.write({ eventType: "controller:registered", entityId: "site-a", payload });
    const got = verdict(site.start, site.page(0, 1));
    expect(got).toMatchObject({ kind: "bad", sequence: 1, problem: expect.stringContaining(problem) });
  });
});

test("an author is compared as text: another one, which an event spells with the same bytes, is refused", () => {
  const [author, other] = ["a\\n", "a\n"] as const;
  expect(JSON.stringify(other)).toBe(`"${author}"`);
  const ring = { ...ringOf("site-a", ["n1"], digest), author };
  const site = new TestSite(ring, digest);
  site.register(ring);
  site.write();
  expectKind(verdict(site.start, site.page(0, 2)), "accepted");
  const { state } = expectKind(verdict(site.start, site.page(0, 1)), "accepted");
  const forged = signedPage(site, state, [changed(site.text(2), { sourceControllerId: other })]);
  expectKind(verdict(state, forged), "bad", "its author is not");
});
