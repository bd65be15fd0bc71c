// TLS between peers: 1.3 only, both sides checked against the cluster's own authority, and the node id taken from the
// certificate's one URI, spiffe://<trust domain>/server/<node id>. Host names are not checked: addresses change, a node
// is who its certificate says. The trust domain is that of our own certificate.
//
// Invariant: a certificate that can't be used changes nothing: it is checked as a whole before it replaces the old one.

import { constants, X509Certificate } from "node:crypto";
import {
  createSecureContext,
  type ConnectionOptions,
  type SecureContext,
  type TlsOptions,
  type TLSSocket,
} from "node:tls";
import { TenureError } from "../../../core/kit/errors.ts";
import { parseSpiffeId, serverNamed, uriNames } from "../../../core/kit/spiffe.ts";
import type { Refuse } from "./hello.ts";
import { HANDSHAKE_MS_MAX } from "../limits.ts";

/** PEM text. */
export interface PeerTls {
  readonly ca: string;
  readonly cert: string;
  readonly key: string;
}

export type Identified = { readonly ok: true; readonly nodeId: string | null } | ({ readonly ok: false } & Refuse);

/** How the two ends of a connection know each other: by certificates, or by a secret (secret.ts). */
export interface Channel {
  listenOptions(): TlsOptions;
  dialOptions(expectedNodeId: string): ConnectionOptions;
  /** Of one that dialled us. */
  identify(socket: TLSSocket): Identified;
  /** What it means that TLS failed. */
  refusal(failure: Refuse): Refuse;
}

const VERSION = { minVersion: "TLSv1.3", maxVersion: "TLSv1.3" } as const;

export class Security implements Channel {
  readonly #nodeId: string;
  #tls: PeerTls;
  #context: SecureContext;
  #trustDomain: string;
  #notAfterMs: number;

  constructor(tls: PeerTls, nodeId: string) {
    this.#nodeId = nodeId;
    const checked = check(tls, nodeId);
    this.#tls = tls;
    this.#context = checked.context;
    this.#trustDomain = checked.trustDomain;
    this.#notAfterMs = checked.notAfterMs;
  }

  get notAfterMs(): number {
    return this.#notAfterMs;
  }

  reload(tls: PeerTls): void {
    const { context, trustDomain, notAfterMs } = check(tls, this.#nodeId);
    if (trustDomain !== this.#trustDomain) {
      throw invalid(
        `its trust domain is ${trustDomain}, that of this node is ${this.#trustDomain}. Issue it in the same one; another one needs a restart of all nodes`,
      );
    }
    this.#tls = tls;
    this.#context = context;
    this.#notAfterMs = notAfterMs;
  }

  /** Whoever is not trusted is let in far enough to be told so: see `identify`. */
  listenOptions(): TlsOptions {
    return {
      ...this.#tls,
      ...VERSION,
      requestCert: true,
      rejectUnauthorized: false,
      handshakeTimeout: HANDSHAKE_MS_MAX,
      // A resumed session would not show its certificate again.
      secureOptions: constants.SSL_OP_NO_TICKET,
    };
  }

  dialOptions(expectedNodeId: string): ConnectionOptions {
    return {
      ...VERSION,
      secureContext: this.#context,
      rejectUnauthorized: true,
      checkServerIdentity: (_host, certificate) => {
        const identified = this.#identityIn(uriNames(certificate.subjectaltname));
        if (!identified.ok) return new IdentityError(identified);
        if (identified.nodeId === expectedNodeId) return undefined;
        return new IdentityError({
          reason: "id-of-another",
          message: `the certificate there is that of ${identified.nodeId}, not of ${expectedNodeId}; correct its address`,
        });
      },
    };
  }

  /** Of one that dialled us. */
  identify(socket: TLSSocket): Identified {
    const certificate = socket.getPeerX509Certificate();
    if (certificate === undefined) return refused("certificate", "it showed no certificate");
    if (!socket.authorized) {
      const code = String(socket.authorizationError);
      return refused("certificate", `its certificate is not trusted here: ${explain(code)}`);
    }
    return this.#identityIn(uriNames(certificate.subjectAltName));
  }

  refusal(failure: Refuse): Refuse {
    return failure;
  }

  #identityIn(uris: readonly string[]): Identified {
    return identityIn(uris, this.#trustDomain);
  }
}

/** Carries a refusal through node:tls, which takes an Error. */
export class IdentityError extends Error {
  readonly refusal: Refuse;

  constructor({ reason, message }: Refuse) {
    super(message);
    this.refusal = { reason, message };
  }
}

function identityIn(uris: readonly string[], trustDomain: string): Identified {
  const named = serverNamed(uris, trustDomain);
  return named.ok ? named : refused("certificate-identity", named.message);
}

/** What TLS said, for people. */
export function explain(code: string): string {
  switch (code) {
    case "CERT_HAS_EXPIRED":
      return "it has expired (tenure cert issue makes another one)";
    case "CERT_NOT_YET_VALID":
      return "it is not valid yet (is a clock wrong?)";
    case "UNABLE_TO_VERIFY_LEAF_SIGNATURE":
    case "UNABLE_TO_GET_ISSUER_CERT":
    case "UNABLE_TO_GET_ISSUER_CERT_LOCALLY":
    case "DEPTH_ZERO_SELF_SIGNED_CERT":
    case "SELF_SIGNED_CERT_IN_CHAIN":
    case "CERT_SIGNATURE_FAILURE":
      return `it was not issued by this cluster's authority (${code})`;
    case "INVALID_PURPOSE":
      return "it may not be used for this (serverAuth and clientAuth are needed)";
    default:
      return code;
  }
}

function check(tls: PeerTls, nodeId: string): { context: SecureContext; trustDomain: string; notAfterMs: number } {
  try {
    const context = createSecureContext({ ...tls, ...VERSION });
    const certificate = new X509Certificate(tls.cert);
    const uris = uriNames(certificate.subjectAltName);
    const trustDomain = parseSpiffeId(uris[0] ?? "")?.trustDomain ?? "tenure";
    const identified = identityIn(uris, trustDomain);
    if (!identified.ok) throw invalid(identified.message);
    if (identified.nodeId !== nodeId) {
      throw invalid(`it is that of node ${identified.nodeId}, and this is node ${nodeId}. Give each node its own`);
    }
    if (!isIssuedBy(certificatesIn(tls.cert), certificatesIn(tls.ca))) {
      throw invalid(
        "it was not issued by this cluster's authority, so the other nodes would refuse it. Give cert_file and ca_file that belong together, or issue it again with `tenure cert issue`",
      );
    }
    return { context, trustDomain, notAfterMs: certificate.validToDate.getTime() };
  } catch (error) {
    if (TenureError.is(error)) throw error;
    const why = error instanceof Error ? error.message : String(error);
    throw invalid(`it can't be used (${why}). Certificate and key belong together and are PEM text`, error);
  }
}

/** The first is the node's; what follows in its file may stand between it and the authority. */
function isIssuedBy([leaf, ...between]: readonly X509Certificate[], authorities: readonly X509Certificate[]): boolean {
  let at = leaf;
  for (let depth = 0; at !== undefined && depth <= between.length; depth++) {
    const signed = at;
    const isBy = (one: X509Certificate): boolean => signed.checkIssued(one) && signed.verify(one.publicKey);
    if (authorities.some(isBy)) return true;
    at = between.find((one) => one !== signed && isBy(one));
  }
  return false;
}

function certificatesIn(pem: string): X509Certificate[] {
  const blocks = pem.match(/-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g) ?? [];
  return blocks.map((block) => new X509Certificate(block));
}

function invalid(why: string, cause?: unknown): TenureError {
  const text = `this node's certificate for peers: ${why}. tenure cert show FILE tells what is in one.`;
  return new TenureError("CERTIFICATE_INVALID", text, { cause });
}

function refused(reason: Refuse["reason"], message: string): { readonly ok: false } & Refuse {
  return { ok: false, reason, message };
}
