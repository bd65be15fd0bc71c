import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { eventHashOf } from "../../src/core/events/event.ts";
import { bytesOfHash, hexOf } from "../../src/core/events/hex.ts";
import { leafHash, MerkleFrontier } from "../../src/core/events/merkle.ts";
import { inclusionProof } from "../../src/core/events/test-merkle.ts";
import { systemDigest } from "../../src/drivers/system/digest.ts";
import { type Evidence, proofOf, type ShownEvent } from "./event-proof.ts";
import { sha256 } from "../../src/core/events/sha256.ts";

it("this page's SHA-256 is that of everybody, at every length around a block and for any bytes", () => {
  for (let length = 0; length < 200; length++) {
    const bytes = Uint8Array.from({ length }, (_, at) => at * 7 + length);
    expect(hexOf(sha256(bytes)), `${length} bytes`).toBe(hexOf(systemDigest.sha256(bytes)));
  }
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 300 }), (bytes) => {
      expect(hexOf(sha256(bytes))).toBe(hexOf(systemDigest.sha256(bytes)));
    }),
  );
});

const LINE = `a.${"0".repeat(32)}`;
const SIZE = 13;
const LONG = 9;
const said = Array.from({ length: SIZE }, (_, at) => ({
  eventType: "build:submitted",
  entityId: `j${at}`,
  timestamp: 1_000 + at,
  payload: at === LONG ? { text: "é".repeat(5_000) } : { b: 1, a: [at] },
}));
const texts = said.map((fields, at) => JSON.stringify({ ...fields, sequence: at + 1 }));
const hashes = texts.map((text) => eventHashOf(new TextEncoder().encode(text), systemDigest));
const leaves = hashes.map((hash) => leafHash(bytesOfHash(hash), systemDigest));
const frontier = new MerkleFrontier(systemDigest);
for (const hash of hashes) frontier.append(bytesOfHash(hash));
const root = Buffer.from(frontier.root());

function noteOf(line: string, size: number, ofRoot: Uint8Array): string {
  return `${line}\n${size}\n${Buffer.from(ofRoot).toString("base64")}\nwithheld ${size} ${"0".repeat(64)}\n\n— a/n1 AAAA\n`;
}

function world(at: number): { readonly event: ShownEvent; readonly evidence: Evidence } {
  return {
    event: { line: LINE, lineSequence: at + 1, eventHash: hashes[at]!, said: said[at]! },
    evidence: {
      item: texts[at]!,
      note: noteOf(LINE, SIZE, root),
      path: inclusionProof(leaves, at, SIZE, systemDigest).map(hexOf),
    },
  };
}

describe("an event", () => {
  it.each(texts.map((_, at) => at))("that is in the tree is proven: %i", (at) => {
    const { event, evidence } = world(at);
    const proven = { kind: "proven", hasText: true, checkpoint: { line: LINE, size: SIZE, signer: "a/n1" } };
    expect(proofOf(event, evidence)).toMatchObject(proven);
    expect(proofOf(event, { ...evidence, item: { hash: hashes[at] } })).toMatchObject({ ...proven, hasText: false });
  });

  it("of which a long payload is not shown is proven: its length is", () => {
    const { event, evidence } = world(LONG);
    const omittedBytes = Buffer.byteLength(JSON.stringify(said[LONG]!.payload));
    const shown = (payload: object): ShownEvent => ({ ...event, said: { ...event.said, payload } });
    expect(proofOf(shown({ omittedBytes }), evidence).kind).toBe("proven");
    expect(proofOf(shown({ omittedBytes: omittedBytes + 1 }), evidence).kind).toBe("refuted");
  });

  const { event, evidence } = world(5);
  const other = (fields: Partial<ShownEvent["said"]>): ShownEvent => ({ ...event, said: { ...event.said, ...fields } });
  const path = evidence.path as string[];
  it.each<[string, ShownEvent, Evidence]>([
    ["with another text", event, { ...evidence, item: texts[6] }],
    ["with one letter changed", event, { ...evidence, item: texts[5]!.replace("j5", "j6") }],
    ["with the hash of another", event, { ...evidence, item: { hash: hashes[6] } }],
    ["with no text and no hash", event, { ...evidence, item: null }],
    ["at another place", { ...event, lineSequence: 7 }, evidence],
    ["shown with another hash", { ...event, eventHash: hashes[6]! }, evidence],
    ["shown with another payload", other({ payload: { b: 1, a: [6] } }), evidence],
    ["shown with another type", other({ eventType: "build:completed" }), evidence],
    ["shown as of another job", other({ entityId: "j6" }), evidence],
    ["shown at another time", other({ timestamp: 999 }), evidence],
    ["of another line", { ...event, line: `b.${"0".repeat(32)}` }, evidence],
    ["with the root of another tree", event, { ...evidence, note: noteOf(LINE, SIZE, leaves[0]!) }],
    ["with the size of a smaller tree", event, { ...evidence, note: noteOf(LINE, 8, root) }],
    ["with half a proof", event, { ...evidence, path: path.slice(1) }],
    ["with a longer proof", event, { ...evidence, path: [...path, path[0]] }],
    ["with a proof that is none", event, { ...evidence, path: [7] }],
    ["with no note", event, { ...evidence, note: "" }],
    ["with a note without a signature", event, { ...evidence, note: evidence.note.replace("— a/n1 AAAA\n", "") }],
  ])("%s is refuted", (_what, shown, given) => {
    expect(proofOf(shown, given).kind).toBe("refuted");
  });
});
