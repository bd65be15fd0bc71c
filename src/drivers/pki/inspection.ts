// What is in a certificate, and what is wrong with it, for people and for checks. It reads any PEM text; what it finds is
// told, never thrown, except where there is no certificate at all.

import { X509Certificate } from "node:crypto";
import { TenureError } from "../../core/kit/errors.ts";
import { IDENTITY_KINDS, parseSpiffeId, uriNames } from "../../core/kit/spiffe.ts";

const DAY_MS = 24 * 60 * 60 * 1_000;
/** Somebody must have the time to make another one. */
const EXPIRY_WARNING_DAYS = 30;
const PEM_BLOCK = /-----BEGIN CERTIFICATE-----[^-]*-----END CERTIFICATE-----/g;

export interface Inspected {
  readonly subject: string;
  /** The one URI name, where it is an identity of ours. */
  readonly spiffeId: string | null;
  /** Where it is that of a node. */
  readonly nodeId: string | null;
  /** DNS names and addresses. */
  readonly hosts: readonly string[];
  readonly notBefore: Date;
  readonly notAfter: Date;
  readonly issuer: string;
  /** SHA-256 of the certificate. */
  readonly fingerprint: string;
  readonly isCa: boolean;
  /** One sentence each; empty: nothing is wrong. */
  readonly problems: readonly string[];
}

/** Each certificate of the text, in order. */
export function inspect(pemText: string, nowMs: number): readonly Inspected[] {
  const blocks = blocksOf(pemText);
  if (blocks.length === 0) {
    const hint = pemText.includes("PRIVATE KEY") ? " It holds a private key, which is never shown." : "";
    throw new TenureError("CERTIFICATE_INVALID", `there is no certificate (PEM) in it.${hint}`);
  }
  return blocks.map((block) => inspectOne(block, nowMs));
}

/** PEM, one for each certificate. */
export function blocksOf(pemText: string): readonly string[] {
  return pemText.match(PEM_BLOCK) ?? [];
}

function inspectOne(block: string, nowMs: number): Inspected {
  let certificate: X509Certificate;
  try {
    certificate = new X509Certificate(block);
  } catch (error) {
    throw new TenureError("CERTIFICATE_INVALID", "it can't be read as a certificate: it is damaged.", { cause: error });
  }
  const uris = uriNames(certificate.subjectAltName);
  const id = uris.length === 1 ? parseSpiffeId(uris[0]!) : undefined;
  return {
    subject: oneLine(certificate.subject),
    spiffeId: id === undefined ? null : uris[0]!,
    nodeId: id?.kind === "server" ? id.name : null,
    hosts: hostsIn(certificate.subjectAltName),
    notBefore: certificate.validFromDate,
    notAfter: certificate.validToDate,
    issuer: oneLine(certificate.issuer),
    fingerprint: certificate.fingerprint256,
    isCa: certificate.ca,
    problems: [...nameProblems(certificate, uris), ...timeProblems(certificate, nowMs)],
  };
}

function nameProblems(certificate: X509Certificate, uris: readonly string[]): string[] {
  if (certificate.ca) return uris.length === 0 ? [] : ["an authority's certificate names a URI"];
  if (uris.length === 0) return ["it has no URI name, so it names no node, operator or program"];
  if (uris.length > 1) return [`it has ${uris.length} URI names; exactly one is accepted`];
  if (parseSpiffeId(uris[0]!) !== undefined) return [];
  return [`its URI name is not spiffe://<trust domain>/${IDENTITY_KINDS.join("|")}/<name>`];
}

function timeProblems({ validFromDate, validToDate }: X509Certificate, nowMs: number): string[] {
  if (nowMs < validFromDate.getTime()) return [`it is not valid before ${validFromDate.toISOString()}`];
  const leftMs = validToDate.getTime() - nowMs;
  if (leftMs <= 0) return [`it has expired on ${validToDate.toISOString()}`];
  if (leftMs >= EXPIRY_WARNING_DAYS * DAY_MS) return [];
  return [`it expires in ${Math.ceil(leftMs / DAY_MS)} days, on ${validToDate.toISOString()}`];
}

function hostsIn(subjectAltName: string | undefined): string[] {
  const names = subjectAltName?.split(", ") ?? [];
  return names.flatMap((name) => /^(?:DNS|IP Address):([^"]+)$/.exec(name)?.[1] ?? []);
}

function oneLine(name: string | undefined): string {
  return (name ?? "").replaceAll("\n", ", ");
}
