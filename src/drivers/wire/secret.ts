// The proof that a node without TLS knows the secret of its cluster. Both sides prove it, over fresh random numbers and over
// everything that either has said in the handshake, so that a proof fits no other connection, no other node and not the
// other direction. The secret itself is never sent.
//
//   dialler ──hello, with a nonce──▶                 proof: HMAC-SHA-256(secret, side | hello | ack)
//           ◀──ack, with a nonce────  the other
//           ──proof────────────────▶
//           ◀──proof───────────────

import { createHmac, randomBytes, timingSafeEqual } from "node:crypto";

export const PROOF_BYTES = 32;
const NONCE_BYTES = 16;

type Side = "dialler" | "acceptor";

export class Secret {
  readonly #key: Uint8Array;

  constructor(key: Uint8Array) {
    this.#key = key;
  }

  proof(side: Side, hello: Uint8Array, ack: Uint8Array): Uint8Array {
    const lengths = new Uint8Array(8);
    const view = new DataView(lengths.buffer);
    view.setUint32(0, hello.length);
    view.setUint32(4, ack.length);
    const said = createHmac("sha256", this.#key).update(`tenure-peer-proof ${side} `).update(lengths);
    return said.update(hello).update(ack).digest();
  }

  isProof(proof: Uint8Array, side: Side, hello: Uint8Array, ack: Uint8Array): boolean {
    return proof.length === PROOF_BYTES && timingSafeEqual(proof, this.proof(side, hello, ack));
  }
}

export function newNonce(): string {
  return randomBytes(NONCE_BYTES).toString("hex");
}
