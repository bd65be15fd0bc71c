// Connections without certificates, between nodes of one machine that share a secret: TLS 1.3 with a key that is derived from it.
// Whoever does not know the secret gets through no handshake, on either side, and can neither add to a connection, change it
// nor repeat it, also where it passes the bytes on. So a refusal, an acknowledgement and an answer are words of a node that knows
// the secret, without a proof of their own. The secret itself is never sent.

import { constants, createHmac } from "node:crypto";
import { type ConnectionOptions, createSecureContext, type SecureContext, type TlsOptions } from "node:tls";
import type { Refuse } from "./hello.ts";
import { HANDSHAKE_MS_MAX } from "../limits.ts";
import { type Channel, type Identified, IdentityError } from "./security.ts";

const NOT_PROVED =
  "it does not know the secret of this cluster's nodes; they have to be of one release and run as one user, or have the same peer.secret_file";
const IDENTITY = "tenure-peer";
/** The one suite that a key without a hash of its own may be used with (RFC 8446, 4.2.11). */
const SUITE = {
  minVersion: "TLSv1.3",
  maxVersion: "TLSv1.3",
  ciphers: "TLS_AES_128_GCM_SHA256",
  ecdhCurve: "X25519:P-256",
} as const;

export class Secret implements Channel {
  readonly #key: Uint8Array;
  /** Trusts no authority: who shows a certificate instead of using the key is nobody. */
  readonly #context: SecureContext = createSecureContext({ ...SUITE, ca: [] });

  constructor(secret: Uint8Array) {
    this.#key = createHmac("sha256", secret).update("tenure-peer-psk").digest();
  }

  /** Without a certificate nobody gets in but by the key. */
  listenOptions(): TlsOptions {
    return {
      ...SUITE,
      handshakeTimeout: HANDSHAKE_MS_MAX,
      secureOptions: constants.SSL_OP_NO_TICKET,
      pskCallback: (_socket, identity) => (identity === IDENTITY ? this.#key : null),
    };
  }

  dialOptions(): ConnectionOptions {
    return {
      minVersion: SUITE.minVersion,
      maxVersion: SUITE.maxVersion,
      secureContext: this.#context,
      rejectUnauthorized: true,
      pskCallback: () => ({ psk: this.#key, identity: IDENTITY }),
      checkServerIdentity: (_host, certificate) =>
        Object.keys(certificate).length === 0 ? undefined : new IdentityError(this.refusal(null)),
    };
  }

  /** A secret that all nodes share names none of them. */
  identify(): Identified {
    return { ok: true, nodeId: null };
  }

  /** Whatever TLS says of it, the cause is one; only who was slow may know the secret all the same. */
  refusal(failure: Refuse | null): Refuse {
    if (failure?.reason === "handshake-timeout") return failure;
    return { reason: "secret", message: failure === null ? NOT_PROVED : `${NOT_PROVED} (${failure.message})` };
  }
}
