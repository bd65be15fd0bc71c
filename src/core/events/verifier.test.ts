import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { systemDigest as digest } from "../../drivers/system/digest.ts";
import { type ChainHead, EMPTY_CHAIN } from "./chain.ts";
import { eventDigestOf } from "./event.ts";
import { hexOf } from "./hex.ts";
import { MerkleFrontier } from "./merkle.ts";
import { chainOf, draftOf, newSealer } from "./test-events.ts";
import { Verifier, type VerifyResult } from "./verifier.ts";

const COUNT = 6;
const chain = chainOf(COUNT, digest);
const head: ChainHead = (() => {
  const sealer = newSealer(digest);
  for (let place = 1; place <= COUNT; place++) sealer.seal(draftOf(place));
  return sealer.head;
})();

function verify(
  events: readonly Uint8Array[],
  expected: ChainHead | undefined = head,
  checkpoint = EMPTY_CHAIN,
): VerifyResult {
  const verifier = new Verifier({ checkpoint, digest });
  events.forEach((bytes, at) => verifier.feed(checkpoint.sequence + at + 1, bytes));
  return verifier.end(expected);
}

function headOf(count: number): ChainHead {
  return verify(chain.slice(0, count), undefined).head;
}

/** The same event with one byte changed. */
function flipped(bytes: Uint8Array, at: number, mask = 1): Uint8Array {
  return bytes.with(at, (bytes[at] as number) ^ mask);
}

describe("a verifier", () => {
  test("finds a sealed chain valid, from the beginning and from every checkpoint", () => {
    expect(verify(chain)).toEqual({ valid: true, head });
    for (let count = 0; count <= COUNT; count++) {
      expect(verify(chain.slice(count), head, headOf(count))).toEqual({ valid: true, head });
    }
  });

  test("finds and names every flipped byte of every event", () => {
    for (let place = 0; place < COUNT; place++) {
      const bytes = chain[place] as Uint8Array;
      for (let at = 0; at < bytes.length; at++) {
        const result = verify(chain.with(place, flipped(bytes, at, 1 << (at % 8))));
        const named = `${result.valid} ${result.firstBrokenSequence} ${result.head.sequence}`;
        if (named !== `false ${place + 1} ${place}`)
          throw new Error(`byte ${at} of ${place + 1}: ${named} ${result.reason}`);
      }
    }
  });

  test("names the event even where the change left it well-formed and canonical", () => {
    const text = new TextDecoder().decode(chain[2]);
    const edited = new TextEncoder().encode(text.replace('"agent":"a7"', '"agent":"a8"'));
    expect(verify(chain.with(2, edited))).toEqual({
      valid: false,
      firstBrokenSequence: 3,
      reason: "its bytes are not those that the next event links to",
      head: headOf(2),
    });
    const relinked = new TextEncoder().encode(text.replace(/"previousHash":"./, '"previousHash":"0'));
    const changed = Buffer.from(relinked).equals(chain[2] as Uint8Array)
      ? flipped(relinked, text.indexOf("previousHash") + 15)
      : relinked;
    expect(verify(chain.with(2, changed))).toMatchObject({
      firstBrokenSequence: 3,
      reason: "its previousHash is not the hash of sequence 2",
    });
  });

  test("finds a changed time, also one that is behind the next event's", () => {
    const text = new TextDecoder().decode(chain[2]);
    for (const time of ["1790000099999", "1690000000000"]) {
      const edited = new TextEncoder().encode(text.replace(/"timestamp":[0-9.]+/, `"timestamp":${time}`));
      expect(verify(chain.with(2, edited))).toMatchObject({ valid: false, firstBrokenSequence: 3 });
    }
  });

  test("finds a chain that was sealed again over the same places, by its head alone", () => {
    const sealer = newSealer(digest);
    const other = Array.from({ length: COUNT }, (_, at) => sealer.seal(draftOf(at + 1, { entityId: "forged" })).bytes);
    expect(verify(other)).toMatchObject({ valid: false, reason: "its hash is not that of the expected head" });
    expect(verify([...chain.slice(0, 3), ...other.slice(3)])).toMatchObject({ valid: false, firstBrokenSequence: 3 });
  });

  test("finds a gap, a swap, a duplicate, a cut in the middle and a cut at the end", () => {
    expect(verify(chain.toSpliced(2, 1))).toMatchObject({
      firstBrokenSequence: 3,
      reason: "it calls itself sequence 4",
    });
    expect(
      verify([...chain.slice(0, 1), chain[2] as Uint8Array, chain[1] as Uint8Array, ...chain.slice(3)]),
    ).toMatchObject({ firstBrokenSequence: 2 });
    expect(verify(chain.toSpliced(2, 0, chain[1] as Uint8Array))).toMatchObject({
      firstBrokenSequence: 3,
      reason: "it calls itself sequence 2",
    });
    expect(verify(chain.with(3, (chain[3] as Uint8Array).subarray(0, 100)))).toMatchObject({ firstBrokenSequence: 4 });
    expect(verify(chain.with(3, new Uint8Array(0)))).toMatchObject({ firstBrokenSequence: 4 });
    expect(verify(chain.slice(0, 4))).toMatchObject({ valid: false, firstBrokenSequence: 5, head: headOf(4) });
    expect(verify(chain, headOf(4))).toMatchObject({ valid: false, firstBrokenSequence: 5 });
    const verifier = new Verifier({ checkpoint: EMPTY_CHAIN, digest });
    expect([verifier.feed(1, chain[0] as Uint8Array), verifier.feed(3, chain[2] as Uint8Array)]).toEqual([true, false]);
    expect(verifier.end(head)).toMatchObject({
      firstBrokenSequence: 2,
      reason: "the log has 3 here, and 2 was expected",
    });
  });

  test("keeps its verdict, whatever comes behind it", () => {
    const verifier = new Verifier({ checkpoint: EMPTY_CHAIN, digest });
    verifier.feed(1, new Uint8Array(3));
    expect(verifier.feed(1, chain[0] as Uint8Array)).toBe(false);
    expect(verifier.end()).toMatchObject({ valid: false, firstBrokenSequence: 1, head: EMPTY_CHAIN });
  });

  test("never blames the checkpoint, which is beyond doubt", () => {
    const wrong = { ...headOf(2), hash: "0".repeat(64) };
    expect(verify(chain.slice(2), head, wrong)).toMatchObject({ valid: false, firstBrokenSequence: 3, head: wrong });
  });

  test("does not accept another spelling of the same event, though every link would fit", () => {
    const spaced = new TextEncoder().encode(
      new TextDecoder().decode(chain[0]).replace('"sequence":1', '"sequence": 1'),
    );
    const spacedHead = { sequence: 1, hash: hexOf(eventDigestOf(spaced, digest)), timestamp: headOf(1).timestamp };
    expect(verify([spaced], spacedHead)).toMatchObject({ valid: false, firstBrokenSequence: 1 });
  });

  test("builds the tree on the way", () => {
    const tree = new MerkleFrontier(digest);
    const verifier = new Verifier({ checkpoint: EMPTY_CHAIN, digest, tree });
    chain.forEach((bytes, at) => verifier.feed(at + 1, bytes));
    expect(verifier.end(head).valid).toBe(true);
    const again = new MerkleFrontier(digest);
    for (const bytes of chain) again.append(eventDigestOf(bytes, digest));
    expect(hexOf(tree.root())).toBe(hexOf(again.root()));
    expect(tree.size).toBe(COUNT);
  });

  test("finds any rearrangement of a chain's events", () => {
    fc.assert(
      fc.property(fc.array(fc.nat(COUNT - 1), { maxLength: COUNT + 1 }), (places) => {
        const isWhole = places.length === COUNT && places.every((place, at) => place === at);
        const result = verify(places.map((place) => chain[place] as Uint8Array));
        const fits = places.findIndex((place, at) => place !== at);
        expect(result.valid).toBe(isWhole);
        if (!isWhole) expect(result.firstBrokenSequence).toBe((fits < 0 ? places.length : fits) + 1);
      }),
      { numRuns: 200 },
    );
  });
});
