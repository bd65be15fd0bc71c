// What a parent says of itself is what a site may register with, or it is not heard.

import { expect, it } from "vitest";
import { linkMessageOf, ownIdIn } from "./messages.ts";

const RING = { controller: "p", generation: 1, author: "p", keys: [] };
const METADATA = { version: "1", urls: ["http://p:1"], line: "p.1", ring: RING, proof: { key: "k", signature: "s" } };
const HELLO = { id: "p", url: "http://p:1", name: "p", metadata: METADATA };

it("a hello of a site that was recovered brings its earlier lines: the newest can't be taken without those that it continues", () => {
  const earlier = [{ line: "a.1", ring: { controller: "a" } }];
  const hello = { ...HELLO, metadata: { ...METADATA, earlier } };
  expect(linkMessageOf({ hello })).toEqual({ kind: "hello", introduction: hello });
});

it.each([["p"], [null, "P", "p\nq", "p".repeat(64), "p".repeat(100_000), 5, undefined]])(
  "whoever lists itself has the id of a site, or is none",
  (...ids) => {
    for (const id of ids) expect(ownIdIn({ controllers: [{ id }] })).toBe(id === "p" ? "p" : null);
  },
);

it("a hello is taken with what is known of it, and nothing else", () => {
  const hello = { ...HELLO, metadata: { ...METADATA, vouchedBy: "x" } };
  expect(linkMessageOf({ hello })).toEqual({ kind: "hello", introduction: HELLO });
});

it.each([
  ["without a ring, which would speak for any site that is known here", { ...HELLO, metadata: {} }],
  ["without a proof", { ...HELLO, metadata: { ...METADATA, proof: undefined } }],
  ["with a proof that is none, which would end the process", { ...HELLO, metadata: { ...METADATA, proof: {} } }],
  ["with addresses that are no list", { ...HELLO, metadata: { ...METADATA, urls: 5 } }],
  ["with more addresses than a site has", { ...HELLO, metadata: { ...METADATA, urls: Array(33).fill("http://p:1") } }],
  ["with earlier lines that are no list", { ...HELLO, metadata: { ...METADATA, earlier: {} } }],
  ["with a version that is no text", { ...HELLO, metadata: { ...METADATA, version: {} } }],
  ["with a name without a bound", { ...HELLO, name: "p".repeat(100_000) }],
])("a hello %s is none", (_name, hello) => {
  expect(linkMessageOf({ hello })).toEqual({ kind: "other" });
});
