import { createHash, createPrivateKey, createPublicKey, verify as nodeVerify } from "node:crypto";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { systemDigest as digest } from "../../../drivers/system/digest.ts";
import { signerOf, verifyEd25519 } from "../../../drivers/system/signatures.ts";
import type { Checkpoint, Ring } from "../model.ts";
import { checkNote, NOTHING_WITHHELD, readNote, signCheckpoint } from "./note.ts";
import { lineIdOf } from "./line-id.ts";
import { ringHashOf, ringKeyOf } from "./ring.ts";
import { withheldHash } from "./withheld.ts";

/** The key of the first test of RFC 8032, section 7.1. */
const SEED = "9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60";
const signer = signerOf(
  createPrivateKey({
    key: Buffer.from(`302e020100300506032b657004220420${SEED}`, "hex"),
    format: "der",
    type: "pkcs8",
  }),
);
const ring: Ring = {
  controller: "site-a",
  generation: 1,
  author: "site-a",
  keys: [ringKeyOf("n1", signer.publicKey)],
};
const checkpoint: Checkpoint = {
  line: lineIdOf(ring, digest),
  size: 42,
  root: "4813494d137e1631bba301d5acab6e7bb7aa74ce1185d456565ef51d737677b2",
  withheld: { after: 40, hash: withheldHash([41], digest) },
};
const note = signCheckpoint(checkpoint, { node: "n1", signer }, digest);
const tools = { digest, verify: verifyEd25519 };

// Other sites and later versions read these: they never change.
const GOLDEN_NOTE =
  "site-a.c9fc0577dd2b86d36a74d03298282953\n42\nSBNJTRN+FjG7owHVrKtue7eqdM4RhdRWVl71HXN2d7I=\n" +
  "withheld 40 89c382939aaaa65027afeaaefb5175f3b727bc5541a6a00f30948c31a8e7155c\n\n" +
  "— site-a/n1 gu3hypMgIwsRiN5tOfXo8RCrUoYe5qtaSsgOXyRyo87dtTXqo6XACc7v46lX3DRoZG6yntR0jPAHv8Gy/1hJGS/ifgk=\n";

describe("stored for ever", () => {
  test("the hash of a ring, and the name of its line", () => {
    expect(ringHashOf(ring, digest)).toBe("c9fc0577dd2b86d36a74d03298282953871531d6adeb1ad3ffc7506922adfdf9");
    expect(lineIdOf(ring, digest)).toBe("site-a.c9fc0577dd2b86d36a74d03298282953");
  });

  test("the hash of what is withheld", () => {
    expect(withheldHash([], digest)).toBe("0".repeat(64));
    expect(withheldHash([4, 7, 2 ** 40], digest)).toBe(
      "aadf20dcdc729e5a1de40b190c4157696304fd2d8ce25952b4c0c379b04bf575",
    );
  });

  test("a note", () => {
    expect(note).toBe(GOLDEN_NOTE);
  });
});

test("whoever reads C2SP's page alone can verify a note", () => {
  const at = GOLDEN_NOTE.indexOf("\n\n");
  const signed = Buffer.from(GOLDEN_NOTE.slice(0, at + 1));
  const [, name, base64] = /^— (\S+) (\S+)\n$/.exec(GOLDEN_NOTE.slice(at + 2))!;
  const blob = Buffer.from(base64!, "base64");
  const raw = Buffer.from("d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a", "hex");
  const keyId = createHash("sha256").update(`${name}\n`).update(Buffer.of(1)).update(raw).digest().subarray(0, 4);
  expect(blob.subarray(0, 4)).toEqual(keyId);
  const key = createPublicKey({
    key: Buffer.concat([Buffer.from("302a300506032b6570032100", "hex"), raw]),
    format: "der",
    type: "spki",
  });
  expect(nodeVerify(null, signed, key, blob.subarray(4))).toBe(true);
  const [line, size, root] = signed.toString().split("\n");
  expect([line, size, Buffer.from(root!, "base64").toString("hex")]).toEqual([checkpoint.line, "42", checkpoint.root]);
});

describe("a note is read", () => {
  test("as it was signed", () => {
    expect(checkNote(note, ring, tools)).toEqual({ kind: "signed", checkpoint, node: "n1" });
  });

  test("back, whatever the checkpoint says", () => {
    const hash = fc.uint8Array({ minLength: 32, maxLength: 32 }).map((bytes) => Buffer.from(bytes).toString("hex"));
    const sizes = fc.tuple(fc.maxSafeNat(), fc.maxSafeNat()).map(([a, b]) => [Math.min(a, b), Math.max(a, b)] as const);
    fc.assert(
      fc.property(sizes, hash, hash, ([after, size], root, withheld) => {
        const hash = after === size ? NOTHING_WITHHELD : withheld;
        const any = { line: checkpoint.line, size, root, withheld: { after, hash } };
        const read = readNote(signCheckpoint(any, { node: "n1", signer }, digest));
        expect(read).toMatchObject({ kind: "note", checkpoint: any, keyName: "site-a/n1" });
      }),
    );
  });
});

describe("a note that was changed is refused:", () => {
  const letters = Array.from(note);

  test("each letter, another one in its place, left out or twice", () => {
    const accepted: string[] = [];
    for (const [at, letter] of letters.entries()) {
      const others = ["0", "9", "a", "A", "=", "\n", " ", "+", "—", "\u0000", letter === "z" ? "y" : "z"];
      const texts = others.filter((other) => other !== letter).map((other) => letters.with(at, other).join(""));
      texts.push(letters.toSpliced(at, 1).join(""), letters.toSpliced(at, 0, letter).join(""));
      accepted.push(...texts.filter((text) => checkNote(text, ring, tools).kind === "signed"));
    }
    expect(accepted).toEqual([]);
  });

  test("each bit of its signed bytes and of its signature", () => {
    const bytes = Buffer.from(note);
    const accepted: number[] = [];
    for (let bit = 0; bit < 8 * bytes.length; bit++) {
      const changed = Buffer.from(bytes);
      changed[bit >>> 3]! ^= 1 << (bit & 7);
      if (checkNote(changed.toString(), ring, tools).kind === "signed") accepted.push(bit);
    }
    expect(accepted).toEqual([]);
  });

  const [text, signature] = note.split("\n\n") as [string, string];
  const lines = text.split("\n");
  const withLine = (at: number, line: string): string => `${lines.with(at, line).join("\n")}\n\n${signature}`;
  test.each([
    ["empty", ""],
    ["without a signature", `${text}\n\n`],
    ["with two signatures", `${note}${signature}`],
    ["without the last newline", note.slice(0, -1)],
    ["with something after it", `${note}\n`],
    ["with another extension line", `${text}\nmore\n\n${signature}`],
    ["without its extension line", `${lines.slice(0, 3).join("\n")}\n\n${signature}`],
    ["with carriage returns", note.replaceAll("\n", "\r\n")],
    ["with a byte order mark", `\ufeff${note}`],
    ["with a hyphen for the dash", note.replace("—", "-")],
    ["with a size of leading zeros", withLine(1, "042")],
    ["with a negative size", withLine(1, "-42")],
    ["with a size in exponents", withLine(1, "4e1")],
    ["with a size of 2^53", withLine(1, "9007199254740992")],
    ["with an empty size", withLine(1, "")],
    ["with a withheld range that ends before it begins", withLine(3, `withheld 43 ${checkpoint.withheld.hash}`)],
    ["of a head that withholds something", withLine(3, `withheld 42 ${checkpoint.withheld.hash}`)],
    ["with capital digits", withLine(3, `withheld 40 ${checkpoint.withheld.hash.toUpperCase()}`)],
    ["with a root of 31 bytes", withLine(2, Buffer.alloc(31).toString("base64"))],
    ["with a root of 33 bytes", withLine(2, Buffer.alloc(33).toString("base64"))],
    ["with base64 for URLs", withLine(2, lines[2]!.replace("+", "-"))],
    ["with bits left over in its base64", withLine(2, lines[2]!.replace("I=", "J="))],
    ["with another name of the key", note.replace("site-a/n1", "site-a/n1/n1")],
    ["with a line's name in capitals", withLine(0, lines[0]!.replace("site", "Site"))],
    ["as long as a book", note + "x".repeat(100_000)],
  ])("%s", (_, wrong) => {
    expect(readNote(wrong)).toMatchObject({ kind: "malformed", problem: expect.stringMatching(/./) });
  });

  test("by whose key it is", () => {
    const key = { node: "n1", signer };
    const other = { ...checkpoint, line: checkpoint.line.replace("site-a", "site-b") };
    expect(checkNote(signCheckpoint(other, key, digest), ring, tools)).toMatchObject({
      problem: "its line is another controller's",
    });
    const strange = note.replace("— site-a/n1", "— site-b/n1");
    expect(checkNote(strange, ring, tools)).toMatchObject({ kind: "unsigned", isKeyKnown: false });
    const absent = signCheckpoint(checkpoint, { node: "n2", signer }, digest);
    expect(checkNote(absent, ring, tools)).toMatchObject({ kind: "unsigned", isKeyKnown: false });
    expect(checkNote(note, ring, { digest, verify: () => false })).toMatchObject({
      kind: "unsigned",
      isKeyKnown: true,
    });
  });
});
