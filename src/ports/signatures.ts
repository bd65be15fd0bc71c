// Ed25519 signatures (RFC 8032). They come into the pure rooms as arguments: real ones in production, made of hashes in the simulator.

export interface Signer {
  /** 32 raw bytes. */
  readonly publicKey: Uint8Array;
  /** 64 bytes. */
  sign(message: Uint8Array): Uint8Array;
}

/** False for whatever is not a valid signature of this message by this key. Never throws. */
export type VerifySignature = (publicKey: Uint8Array, message: Uint8Array, signature: Uint8Array) => boolean;
