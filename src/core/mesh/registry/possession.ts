// Proof that a site which registers has a key of its line: a signature over its id, its URL and the receiver's id. It is good at one
// receiver, for one id and one URL: whoever has seen it can only repeat what the site itself said.

import type { VerifySignature } from "../../../ports/signatures.ts";
import { fromBase64 } from "../proof/index.ts";
import { PUBLIC_KEY_BYTES, SIGNATURE_BYTES } from "../proof/limits.ts";

export interface PossessionProof {
  /** The public key, base64. */
  readonly key: string;
  /** base64 */
  readonly signature: string;
}

export interface Possession {
  readonly id: string;
  readonly url: string;
  /** The controller id of the site that is asked. */
  readonly receiver: string;
}

const DOMAIN = "tenure:mesh:register:v1";
const textEncoder = new TextEncoder();

/** What is signed. Neither an id nor a URL has a line break in it. */
export function possessionText({ id, url, receiver }: Possession): Uint8Array {
  return textEncoder.encode(`${DOMAIN}\n${id}\n${url}\n${receiver}\n`);
}

/** The public key that has signed it; null: none has. */
export function provenKey(proof: PossessionProof, of: Possession, verify: VerifySignature): string | null {
  const [key, signature] = [fromBase64(proof.key, PUBLIC_KEY_BYTES), fromBase64(proof.signature, SIGNATURE_BYTES)];
  if (key === null || signature === null) return null;
  return verify(key, possessionText(of), signature) ? proof.key : null;
}
