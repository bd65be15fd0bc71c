import { createPrivateKey, createPublicKey, generateKeyPairSync, verify } from "node:crypto";
import { describe, expect, test } from "vitest";
import { signerOf, verifyEd25519 } from "./signatures.ts";
import { PUBLIC_KEYS_KEPT_MAX } from "./limits.ts";

/** The first test of RFC 8032, section 7.1: an empty message. */
const SEED = "9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60";
const PUBLIC_KEY = "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a";
const SIGNATURE =
  "e5564300c360ac729086e2cc806e828a84877f1eb8e5d974d873e065224901555fb8821590a33bacc61e39701cf9b46bd25bf5f0595bbe24655141438e7a100b";

const bytesOf = (hex: string): Uint8Array => new Uint8Array(Buffer.from(hex, "hex"));
const privateKey = createPrivateKey({
  key: Buffer.from(`302e020100300506032b657004220420${SEED}`, "hex"),
  format: "der",
  type: "pkcs8",
});

describe("Ed25519", () => {
  test("is that of RFC 8032", () => {
    const signer = signerOf(privateKey);
    expect(signer.publicKey).toEqual(bytesOf(PUBLIC_KEY));
    expect(signer.sign(new Uint8Array(0))).toEqual(bytesOf(SIGNATURE));
    expect(verifyEd25519(bytesOf(PUBLIC_KEY), new Uint8Array(0), bytesOf(SIGNATURE))).toBe(true);
  });

  test("makes what Node verifies with the same key", () => {
    const pair = generateKeyPairSync("ed25519");
    const message = new TextEncoder().encode("a message — of sorts");
    expect(verify(null, message, pair.publicKey, signerOf(pair.privateKey).sign(message))).toBe(true);
  });

  test("refuses every changed bit of a signature, another message and another key", () => {
    const signer = signerOf(privateKey);
    const { publicKey } = signer;
    const message = Uint8Array.of(1, 2, 3);
    const signature = signer.sign(message);
    for (let bit = 0; bit < 8 * signature.length; bit++) {
      const changed = signature.slice();
      changed[bit >>> 3]! ^= 1 << (bit & 7);
      expect(verifyEd25519(publicKey, message, changed), `bit ${bit}`).toBe(false);
    }
    expect(verifyEd25519(publicKey, Uint8Array.of(1, 2, 4), signature)).toBe(false);
    const other = signerOf(generateKeyPairSync("ed25519").privateKey);
    expect(verifyEd25519(other.publicKey, message, signature)).toBe(false);
  });

  test.each([
    ["a short key", new Uint8Array(31), new Uint8Array(64)],
    ["a long key", new Uint8Array(33), new Uint8Array(64)],
    ["a key that is no point", new Uint8Array(32).fill(0xff), new Uint8Array(64)],
    ["a short signature", bytesOf(PUBLIC_KEY), bytesOf(SIGNATURE).slice(1)],
    ["a long signature", bytesOf(PUBLIC_KEY), Uint8Array.of(...bytesOf(SIGNATURE), 0)],
    ["no signature", bytesOf(PUBLIC_KEY), new Uint8Array(0)],
  ])("answers %s with false, and never throws", (_, key, signature) => {
    expect(verifyEd25519(key, new Uint8Array(0), signature)).toBe(false);
  });

  test("goes on after more keys than are kept", () => {
    for (let at = 0; at <= PUBLIC_KEYS_KEPT_MAX; at++) {
      const key = new Uint8Array(32);
      new DataView(key.buffer).setUint32(0, at);
      expect(verifyEd25519(key, new Uint8Array(0), bytesOf(SIGNATURE))).toBe(false);
    }
    expect(verifyEd25519(bytesOf(PUBLIC_KEY), new Uint8Array(0), bytesOf(SIGNATURE))).toBe(true);
  });

  test("takes no other kind of key, and no public one", () => {
    const { privateKey: other } = generateKeyPairSync("ed448");
    expect(() => signerOf(other)).toThrow("Ed25519 private key");
    expect(() => signerOf(createPublicKey(privateKey))).toThrow("Ed25519 private key");
  });
});
