import { generateKeyPairSync, webcrypto } from "node:crypto";
import { describe, expect, it } from "vitest";
import type { Ring } from "../../src/core/mesh/model.ts";
import { ringKeyOf } from "../../src/core/mesh/proof/index.ts";
import { NOTHING_WITHHELD, signCheckpoint } from "../../src/core/mesh/proof/note.ts";
import { systemDigest } from "../../src/drivers/system/digest.ts";
import { signerOf } from "../../src/drivers/system/signatures.ts";
import { checkSignature } from "./note-signature.ts";

const { subtle } = webcrypto;
const signer = () => signerOf(generateKeyPairSync("ed25519").privateKey);
const [own, other] = [signer(), signer()];
const checkpoint = {
  line: `paris.${"0".repeat(32)}`,
  size: 7,
  root: "ab".repeat(32),
  withheld: { after: 7, hash: NOTHING_WITHHELD },
};
const note = signCheckpoint(checkpoint, { node: "n1", signer: own }, systemDigest);
const ring: Ring = { controller: "paris", generation: 1, author: "paris", keys: [ringKeyOf("n1", own.publicKey)] };

describe("the signature of a checkpoint", () => {
  it("is valid under the ring whose key has made it", async () => {
    expect(await checkSignature(note, ring, subtle)).toEqual({ kind: "valid", node: "n1" });
  });

  it.each<[string, string, unknown]>([
    ["over another size", note.replace("\n7\n", "\n8\n").replace("withheld 7", "withheld 8"), ring],
    ["of another node's key", note, { ...ring, keys: [ringKeyOf("n2", own.publicKey)] }],
    ["of another key", note, { ...ring, keys: [ringKeyOf("n1", other.publicKey)] }],
    ["of another site", note, { ...ring, controller: "berlin" }],
    ["under what is no ring", note, { keys: 7 }],
    ["that is no note", "x", ring],
  ])("%s is invalid", async (_what, given, under) => {
    expect(await checkSignature(given, under, subtle)).toMatchObject({ kind: "invalid" });
  });

  it("is not claimed where the browser can't, and where no ring is known", async () => {
    const no = {
      importKey: () => Promise.reject(new DOMException("no", "NotSupportedError")),
      verify: () => Promise.resolve(true),
    };
    expect(await checkSignature(note, ring, no)).toEqual({
      kind: "unchecked",
      why: "this browser can't check Ed25519 (NotSupportedError)",
    });
    expect(await checkSignature(note, ring, undefined)).toMatchObject({ kind: "unchecked" });
    expect(await checkSignature(note, null, subtle)).toMatchObject({ kind: "unchecked" });
  });
});
