import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { systemDigest as digest } from "../../drivers/system/digest.ts";
import { DecodeError } from "../kit/bytes.ts";
import { hexOf } from "./hex.ts";
import { verifyConsistency, verifyInclusion } from "./merkle-proof.ts";
import { type Hash, leafHash, MerkleFrontier, nodeHash } from "./merkle.ts";
import { consistencyProof, inclusionProof } from "./test-merkle.ts";

const fromHex = (hex: string): Uint8Array => Uint8Array.from(Buffer.from(hex, "hex"));

/** The reference data of certificate transparency: eight leaves, and the root of the first n of them. */
const INPUTS = ["", "00", "10", "2021", "3031", "40414243", "5051525354555657", "606162636465666768696a6b6c6d6e6f"].map(
  fromHex,
);
const ROOTS = [
  "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
  "6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d",
  "fac54203e7cc696cf0dfcb42c92a1d9dbaf70ad9e621f4bd8d98662f00e3c125",
  "aeb6bcfe274b70a14fb067a5e5578264db0fa9b51af5e0ba159158f329e06e77",
  "d37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7",
  "4e3bbb1f7b478dcfe71fb631631519a3bca12c9aefca1612bfce4c13a86264d4",
  "76e67dadbcdf1e10e1b74ddc608abd2f98dfb16fbce75277b5232a127f2087ef",
  "ddb89be403809e325750d3d263cd78929c2942b7942a34b77e122c9594a74c8c",
  "5dc9da79a70659a9ad559cb701ded9a2ab9d823aad2f4960cfe370eff4604328",
];
const A = "96a296d224f285c67bee93c30f8a309157f0daa35dc5b87e410b78630a09cfc7";
const B = "5f083f0a1a33ca076a95279832580db3e0ef4584bdff1f54c8a360f50de3031e";
const C = "6b47aaf29ee3c2af9af889bc1fb9254dabd31177f16232dd6aab035ca39bf6e4";
const D = "bc1a0643b12e4d2d7c77918f44e0f4f79a838b6cf9ec5b5c283e1f4d88599e6b";
const E = "ca854ea128ed050b41b35ffc1b87b8eb2bde461e9e3b5596ece6b9d5975a0ae0";
const F = "0ebc5d3437fbe2db158b9f126a1d118e308181031d0a949f8dededebc558ef6a";
const rootOf = (size: number): string => ROOTS[size] as string;

const leaves = INPUTS.map((input) => leafHash(input, digest));

/** The definition of RFC 6962, word for word. */
function plainRoot(hashes: readonly Hash[]): Hash {
  if (hashes.length === 0) return digest.sha256(new Uint8Array(0));
  if (hashes.length === 1) return hashes[0] as Hash;
  let split = 1;
  while (split * 2 < hashes.length) split *= 2;
  return nodeHash(plainRoot(hashes.slice(0, split)), plainRoot(hashes.slice(split)), digest);
}

function numbered(count: number): Hash[] {
  return Array.from({ length: count }, (_, at) => leafHash(new TextEncoder().encode(`leaf ${at}`), digest));
}

describe("the tree of RFC 6962", () => {
  test.each(ROOTS.map((root, size) => [size, root] as const))("has the reference root over %i leaves", (size, root) => {
    const frontier = new MerkleFrontier(digest);
    for (const input of INPUTS.slice(0, size)) frontier.append(input);
    expect(hexOf(frontier.root())).toBe(root);
    expect(frontier.size).toBe(size);
  });

  test.each([
    [0, 1, []],
    [0, 8, [A, B, C]],
    [5, 8, [D, E, rootOf(4)]],
    [2, 3, [rootOf(2)]],
    [1, 5, [rootOf(1), B, D]],
  ])("has the reference proof that leaf %i is among %i", (index, size, path) => {
    expect(inclusionProof(leaves, index, size, digest).map(hexOf)).toEqual(path);
    const claim = {
      leafHash: leaves[index] as Hash,
      index,
      size,
      root: fromHex(rootOf(size)),
      proof: path.map(fromHex),
    };
    expect(verifyInclusion(claim, digest)).toBe(true);
  });

  test.each([
    [1, 1, []],
    [1, 8, [A, B, C]],
    [6, 8, [F, E, rootOf(4)]],
    [2, 5, [B, D]],
  ])("has the reference proof that %i leaves begin %i", (first, second, path) => {
    expect(consistencyProof(leaves, first, second, digest).map(hexOf)).toEqual(path);
    const claim = {
      first,
      second,
      firstRoot: fromHex(rootOf(first)),
      secondRoot: fromHex(rootOf(second)),
      proof: path.map(fromHex),
    };
    expect(verifyConsistency(claim, digest)).toBe(true);
  });

  test("trap 62: a node can't be passed off as a leaf, and an odd leaf is never paired with itself", () => {
    const pair = Uint8Array.of(...(leaves[0] as Hash), ...(leaves[1] as Hash));
    expect(hexOf(leafHash(pair, digest))).not.toBe(rootOf(2));
    expect(hexOf(plainRoot([...leaves.slice(0, 3), leaves[2] as Hash]))).not.toBe(rootOf(3));
  });
});

describe("a frontier", () => {
  test("has the root of the definition at every size, and goes on from its bytes", () => {
    const hashes = numbered(70);
    let frontier = new MerkleFrontier(digest);
    for (let size = 0; size < hashes.length; size++) {
      expect(hexOf(frontier.root())).toBe(hexOf(plainRoot(hashes.slice(0, size))));
      frontier = MerkleFrontier.decode(frontier.encode(), digest);
      expect(frontier.size).toBe(size);
      frontier.appendLeafHash(hashes[size] as Hash);
    }
  });

  test("is copied so that the copy stays as it was", () => {
    const frontier = new MerkleFrontier(digest);
    for (const hash of leaves.slice(0, 5)) frontier.appendLeafHash(hash);
    const copy = frontier.copy();
    frontier.appendLeafHash(leaves[5] as Hash);
    expect([hexOf(copy.root()), hexOf(frontier.root())]).toEqual([rootOf(5), rootOf(6)]);
  });

  test("of other bytes is refused", () => {
    const frontier = new MerkleFrontier(digest);
    for (const hash of leaves.slice(0, 7)) frontier.appendLeafHash(hash);
    const bytes = frontier.encode();
    const wrong = [
      bytes.with(0, 9),
      bytes.subarray(0, -1),
      Uint8Array.of(...bytes, 0),
      bytes.with(8, 3),
      bytes.with(8, 15),
      bytes.with(12, 31),
      bytes.with(1, 255),
      new Uint8Array(0),
    ];
    for (const one of wrong) expect(() => MerkleFrontier.decode(one, digest)).toThrow(DecodeError);
  });

  test("keeps no more than one hash for each bit of its size", () => {
    const frontier = new MerkleFrontier(digest);
    for (let size = 0; size < 1_023; size++) frontier.appendLeafHash(leaves[0] as Hash);
    expect(frontier.encode()).toHaveLength(1 + 8 + 10 * 36);
    frontier.appendLeafHash(leaves[0] as Hash);
    expect(frontier.encode()).toHaveLength(1 + 8 + 36);
  });
});

describe("a proof", () => {
  const hashes = numbered(33);
  const roots = Array.from({ length: hashes.length + 1 }, (_, size) => plainRoot(hashes.slice(0, size)));
  const rootAt = (size: number): Hash => roots[size] as Hash;

  test("of inclusion holds for each leaf of each size, and for no other leaf, place, size or root", () => {
    for (let size = 1; size <= 12; size++) {
      for (let index = 0; index < size; index++) {
        const proof = inclusionProof(hashes, index, size, digest);
        const claim = { leafHash: hashes[index] as Hash, index, size, root: rootAt(size), proof };
        expect(verifyInclusion(claim, digest)).toBe(true);
        expect(verifyInclusion({ ...claim, leafHash: hashes[20] as Hash }, digest)).toBe(false);
        expect(verifyInclusion({ ...claim, root: rootAt(size + 1) }, digest)).toBe(false);
        expect(verifyInclusion({ ...claim, proof: [...proof, rootAt(1)] }, digest)).toBe(false);
        if (proof.length > 0) expect(verifyInclusion({ ...claim, proof: proof.slice(1) }, digest)).toBe(false);
        for (let other = 0; other < size; other++) {
          if (other !== index) expect(verifyInclusion({ ...claim, index: other }, digest)).toBe(false);
        }
      }
    }
  });

  test("of consistency holds for each pair of sizes, and for no other roots", () => {
    for (let second = 0; second <= 17; second++) {
      for (let first = 0; first <= second; first++) {
        const proof = consistencyProof(hashes, first, second, digest);
        const claim = { first, second, firstRoot: rootAt(first), secondRoot: rootAt(second), proof };
        expect(verifyConsistency(claim, digest)).toBe(true);
        expect(verifyConsistency({ ...claim, firstRoot: rootAt(30) }, digest)).toBe(false);
        // An empty tree begins every other.
        if (first > 0) expect(verifyConsistency({ ...claim, secondRoot: rootAt(30) }, digest)).toBe(false);
        expect(verifyConsistency({ ...claim, proof: [...proof, rootAt(1)] }, digest)).toBe(false);
        if (proof.length > 0) expect(verifyConsistency({ ...claim, proof: proof.slice(1) }, digest)).toBe(false);
      }
    }
  });

  test("with any bit changed proves nothing", () => {
    fc.assert(
      fc.property(fc.integer({ min: 2, max: 33 }), fc.nat(), fc.nat(), fc.nat(255), (size, seed, place, bit) => {
        const index = seed % size;
        const proof = [...inclusionProof(hashes, index, size, digest)];
        const at = place % proof.length;
        const hash = proof[at] as Hash;
        proof[at] = hash.with(bit >> 3, (hash[bit >> 3] as number) ^ (1 << (bit & 7)));
        expect(
          verifyInclusion({ leafHash: hashes[index] as Hash, index, size, root: rootAt(size), proof }, digest),
        ).toBe(false);
      }),
      { numRuns: 200 },
    );
  });

  test("of nonsense proves nothing and does not throw", () => {
    const claim = { leafHash: hashes[0] as Hash, index: 0, size: 1, root: hashes[0] as Hash, proof: [] };
    expect(verifyInclusion(claim, digest)).toBe(true);
    for (const wrong of [
      { index: 1 },
      { index: -1 },
      { index: 0.5 },
      { size: 0 },
      { size: Number.NaN },
      { root: new Uint8Array(0) },
    ]) {
      expect(verifyInclusion({ ...claim, ...wrong }, digest)).toBe(false);
    }
    const pair = { first: 2, second: 1, firstRoot: rootAt(2), secondRoot: rootAt(1), proof: [] };
    expect(verifyConsistency(pair, digest)).toBe(false);
    expect(verifyConsistency({ ...pair, first: 1, second: 2 }, digest)).toBe(false);
    expect(verifyConsistency({ ...pair, first: 0, second: 2 }, digest)).toBe(false);
  });
});
