// The cluster's own certificate authority: one self-signed certificate, and the certificates that it signs. A node's
// certificate names it by its one URI (core/kit/spiffe.ts) and serves both ways, as nodes dial each other; a client's
// names an operator or a program, and can't be used to be one's server.

import { createPrivateKey, randomBytes, webcrypto, X509Certificate as NodeCertificate } from "node:crypto";
import { isIP } from "node:net";
import type { Extension, JsonGeneralName, X509Certificate } from "@peculiar/x509";
import { TenureError } from "../../core/kit/errors.ts";
import { formatSpiffeId, type SpiffeId } from "../../core/kit/spiffe.ts";
import { blocksOf } from "./inspection.ts";
import { BACKDATE_MS } from "./limits.ts";
import { loadX509, type X509 } from "./x509.ts";

const KEY = { name: "ECDSA", namedCurve: "P-256" };
const SIGNATURE = { name: "ECDSA", hash: "SHA-256" };
const DAY_MS = 24 * 60 * 60 * 1_000;
const SERIAL_BYTES = 16;
const CA_DAYS = 3_650;
const CERTIFICATE_DAYS = 365;

/** PEM text. */
export interface KeyPair {
  readonly cert: string;
  readonly key: string;
}

export interface CaOptions {
  readonly trustDomain: string;
  readonly days?: number | undefined;
  readonly nowMs: number;
}

export interface IssueOptions {
  readonly ca: KeyPair;
  readonly identity: SpiffeId;
  /** Names and addresses under which the API is reached, for a node. */
  readonly hosts?: readonly string[] | undefined;
  readonly days?: number | undefined;
  /** PEM; a new one is made where there is none. */
  readonly key?: string | undefined;
  readonly nowMs: number;
}

export async function createCa({ trustDomain, days = CA_DAYS, nowMs }: CaOptions): Promise<KeyPair> {
  const x509 = await loadX509();
  const keys = await webcrypto.subtle.generateKey(KEY, true, ["sign", "verify"]);
  const certificate = await x509.X509CertificateGenerator.createSelfSigned({
    serialNumber: newSerial(),
    name: [{ O: [trustDomain] }, { CN: [`Tenure authority of ${trustDomain}`] }],
    notBefore: new Date(nowMs - BACKDATE_MS),
    notAfter: new Date(nowMs + days * DAY_MS),
    signingAlgorithm: SIGNATURE,
    keys,
    extensions: [
      new x509.BasicConstraintsExtension(true, 0, true),
      new x509.KeyUsagesExtension(x509.KeyUsageFlags.keyCertSign | x509.KeyUsageFlags.cRLSign, true),
      await x509.SubjectKeyIdentifierExtension.create(keys.publicKey),
    ],
  });
  return { cert: pem(certificate), key: await exportKey(keys.privateKey) };
}

/**
 * The pair with the one certificate that belongs to its key: a `ca.crt` may hold several authorities while one takes the place
 * of another.
 */
export function ownPair({ cert, key }: KeyPair): KeyPair {
  try {
    const secret = createPrivateKey(key);
    const own = blocksOf(cert).find((block) => new NodeCertificate(block).checkPrivateKey(secret));
    return { cert: own === undefined ? cert : `${own}\n`, key };
  } catch (error) {
    throw unusable(error);
  }
}

export async function issue(options: IssueOptions): Promise<KeyPair> {
  const { ca, identity, nowMs, days = CERTIFICATE_DAYS } = options;
  const x509 = await loadX509();
  const authority = authorityOf(x509, ca);
  const keys =
    options.key === undefined
      ? await webcrypto.subtle.generateKey(KEY, true, ["sign", "verify"])
      : await keysOf(options.key);
  const notAfterMs = Math.min(nowMs + days * DAY_MS, authority.notAfter.getTime());
  const certificate = await x509.X509CertificateGenerator.create({
    serialNumber: newSerial(),
    subject: [{ O: [identity.trustDomain] }, { OU: [identity.kind] }, { CN: [identity.name] }],
    issuer: authority.subjectName,
    notBefore: new Date(nowMs - BACKDATE_MS),
    notAfter: new Date(notAfterMs),
    signingAlgorithm: SIGNATURE,
    signingKey: (await keysOf(ca.key)).privateKey,
    publicKey: keys.publicKey,
    extensions: await extensionsOf(x509, options, authority, keys.publicKey),
  });
  return { cert: pem(certificate), key: options.key ?? (await exportKey(keys.privateKey)) };
}

async function extensionsOf(
  x509: X509,
  { identity, hosts = [] }: IssueOptions,
  authority: X509Certificate,
  publicKey: webcrypto.CryptoKey,
): Promise<Extension[]> {
  const names: JsonGeneralName[] = [{ type: "url", value: formatSpiffeId(identity) }];
  for (const host of hosts) names.push(isIP(host) === 0 ? { type: "dns", value: host } : { type: "ip", value: host });
  const usages = [
    x509.ExtendedKeyUsage.clientAuth,
    ...(identity.kind === "server" ? [x509.ExtendedKeyUsage.serverAuth] : []),
  ];
  return [
    new x509.BasicConstraintsExtension(false, undefined, true),
    new x509.KeyUsagesExtension(x509.KeyUsageFlags.digitalSignature, true),
    new x509.ExtendedKeyUsageExtension(usages),
    new x509.SubjectAlternativeNameExtension(names),
    await x509.SubjectKeyIdentifierExtension.create(publicKey),
    await x509.AuthorityKeyIdentifierExtension.create(authority),
  ];
}

function authorityOf(x509: X509, ca: KeyPair): X509Certificate {
  try {
    const certificate = new NodeCertificate(ca.cert);
    const belongs = certificate.ca && certificate.checkPrivateKey(createPrivateKey(ca.key));
    if (!belongs) throw new Error(certificate.ca ? "the key is another one's" : "it is no authority's certificate");
    return new x509.X509Certificate(ca.cert);
  } catch (error) {
    throw unusable(error);
  }
}

function unusable(error: unknown): TenureError {
  const why = error instanceof Error ? error.message : String(error);
  const text = `the authority's certificate and key can't be used: ${why}. Give the directory that tenure cert init made.`;
  return new TenureError("CERTIFICATE_INVALID", text, { cause: error });
}

async function keysOf(key: string): Promise<{ privateKey: webcrypto.CryptoKey; publicKey: webcrypto.CryptoKey }> {
  try {
    const pkcs8 = createPrivateKey(key).export({ type: "pkcs8", format: "der" });
    const privateKey = await webcrypto.subtle.importKey("pkcs8", pkcs8, KEY, true, ["sign"]);
    const { d: _secret, key_ops: _operations, ...open } = await webcrypto.subtle.exportKey("jwk", privateKey);
    const publicKey = await webcrypto.subtle.importKey("jwk", { ...open, key_ops: ["verify"] }, KEY, true, ["verify"]);
    return { privateKey, publicKey };
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error);
    const text = `the private key can't be used: ${why}. Keys here are ECDSA P-256; make a new one with --force.`;
    throw new TenureError("CERTIFICATE_INVALID", text, { cause: error });
  }
}

async function exportKey(key: webcrypto.CryptoKey): Promise<string> {
  const der = Buffer.from(await webcrypto.subtle.exportKey("pkcs8", key));
  return createPrivateKey({ key: der, format: "der", type: "pkcs8" }).export({ type: "pkcs8", format: "pem" });
}

function pem(certificate: X509Certificate): string {
  return `${certificate.toString("pem").trim()}\n`;
}

/** Positive, and long enough that no two are equal. */
function newSerial(): string {
  const bytes = randomBytes(SERIAL_BYTES);
  bytes[0] = (bytes[0]! & 0x7f) | 0x40;
  return bytes.toString("hex");
}
