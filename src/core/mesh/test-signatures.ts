// Signatures made of hashes, for tests and the simulator: quick, the same in every run, and refused for any other message or key.
// Anybody could forge them, because the public key is all that they are made of: hostile sites of a simulation must not.

import type { Digest } from "../../ports/digest.ts";
import type { Signer, VerifySignature } from "../../ports/signatures.ts";

type Hashes = Pick<Digest, "sha256">;

const textEncoder = new TextEncoder();

/** The same name, the same key. */
export function fakeSigner(name: string, digest: Hashes): Signer {
  const publicKey = digest.sha256(textEncoder.encode(`fake key of ${name}`));
  return { publicKey, sign: (message) => fakeSignature(publicKey, message, digest) };
}

export function fakeVerify(digest: Hashes): VerifySignature {
  return (publicKey, message, signature) => {
    const expected = fakeSignature(publicKey, message, digest);
    return signature.length === expected.length && expected.every((byte, at) => byte === signature[at]);
  };
}

function fakeSignature(publicKey: Uint8Array, message: Uint8Array, digest: Hashes): Uint8Array {
  const input = new Uint8Array(publicKey.length + message.length);
  input.set(publicKey);
  input.set(message, publicKey.length);
  const signature = new Uint8Array(64);
  signature.set(digest.sha256(input));
  signature.set(digest.sha256(signature.subarray(0, 32)), 32);
  return signature;
}
