// Ed25519 by the machine's own library. Public keys are 32 raw bytes here, and what Node makes of them is kept: the same few
// keys sign everything that is verified here.

import { createPublicKey, type KeyObject, sign, verify } from "node:crypto";
import type { Signer, VerifySignature } from "../../ports/signatures.ts";
import { PUBLIC_KEYS_KEPT_MAX } from "./limits.ts";

const PUBLIC_KEY_BYTES = 32;
const keys = new Map<string, KeyObject>();

/** Of an Ed25519 private key. */
export function signerOf(privateKey: KeyObject): Signer {
  if (privateKey.type !== "private" || privateKey.asymmetricKeyType !== "ed25519")
    throw new TypeError("a signer needs an Ed25519 private key");
  const { x } = createPublicKey(privateKey).export({ format: "jwk" });
  const publicKey = new Uint8Array(Buffer.from(x as string, "base64url"));
  return { publicKey, sign: (message) => new Uint8Array(sign(null, message, privateKey)) };
}

export const verifyEd25519: VerifySignature = (publicKey, message, signature) => {
  if (publicKey.length !== PUBLIC_KEY_BYTES) return false;
  try {
    return verify(null, message, keyOf(publicKey), signature);
  } catch {
    // Of bytes that are no point of the curve, for instance.
    return false;
  }
};

function keyOf(publicKey: Uint8Array): KeyObject {
  const x = Buffer.from(publicKey).toString("base64url");
  const known = keys.get(x);
  if (known !== undefined) return known;
  const key = createPublicKey({ key: { kty: "OKP", crv: "Ed25519", x }, format: "jwk" });
  if (keys.size >= PUBLIC_KEYS_KEPT_MAX) keys.clear();
  keys.set(x, key);
  return key;
}
