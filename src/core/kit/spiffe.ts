// Identities in certificates: spiffe://<trust domain>/<kind>/<name>, the one URI among a certificate's names. `server` is a
// node of a cluster, `operator` a person or tool that may change it, `sdk` a program that leads scopes, `submitter` one that
// submits jobs, `agent` one that runs them, `backup` one that saves snapshots, `viewer` one that only reads, `controller` another
// site of the mesh, under its controller id, `tc` a program that decides transactions over several islands.
//
// One identity has one spelling: no escapes, no query, no second slash, lower-case domain. What differs is none.

import { assert } from "./assert.ts";

export const IDENTITY_KINDS = [
  "server",
  "operator",
  "sdk",
  "submitter",
  "agent",
  "backup",
  "viewer",
  "controller",
  "tc",
] as const;
export type IdentityKind = (typeof IDENTITY_KINDS)[number];

/** Of `tenure cert init`. */
export const TRUST_DOMAIN_DEFAULT = "tenure";

export interface SpiffeId {
  readonly trustDomain: string;
  readonly kind: IdentityKind;
  readonly name: string;
}

const PATTERN = new RegExp(
  `^spiffe://([a-z0-9][a-z0-9.-]{0,254})/(${IDENTITY_KINDS.join("|")})/([A-Za-z0-9][A-Za-z0-9._-]{0,62})$`,
);
const PLAIN_NAME = /^[a-z0-9][a-z0-9-]{0,62}$/;

/** For text from outside: undefined where it is no identity of ours. */
export function parseSpiffeId(text: string): SpiffeId | undefined {
  const [, trustDomain, kind, name] = PATTERN.exec(text) ?? [];
  if (trustDomain === undefined || kind === undefined || name === undefined) return undefined;
  // A node id is part of peer keys, a controller id of the names of lines: both have an alphabet of their own.
  if ((kind === "server" || kind === "controller") && !PLAIN_NAME.test(name)) return undefined;
  return { trustDomain, kind: kind as IdentityKind, name };
}

export function formatSpiffeId({ trustDomain, kind, name }: SpiffeId): string {
  const text = `spiffe://${trustDomain}/${kind}/${name}`;
  assert(parseSpiffeId(text) !== undefined, "a SPIFFE id is well-formed", () => text);
  return text;
}

/**
 * The URIs among a certificate's names, from the text that Node and OpenSSL make of them ("DNS:a, URI:b"). A name that
 * holds a comma or a quote is written as a JSON string there; it is none of ours, but it counts.
 */
export function uriNames(subjectAltName: string | undefined): string[] {
  const names = subjectAltName?.match(/[A-Za-z ]+:(?:"(?:[^"\\]|\\.)*"|[^,]*)/g) ?? [];
  return names
    .map((name) => name.trim())
    .filter((name) => name.startsWith("URI:"))
    .map((name) => name.slice(4));
}

export type ServerNamed =
  | { readonly ok: true; readonly nodeId: string }
  | { readonly ok: false; readonly message: string };

const SHOWN_CHARS = 128;

/** The node whose server certificate has these URI names: exactly one, of this trust domain. `message`: what is wrong with them. */
export function serverNamed(uris: readonly string[], trustDomain: string): ServerNamed {
  const [uri, second] = uris;
  const wanted = `spiffe://${trustDomain}/server/<node id>`;
  if (uri === undefined) return wrong(`the certificate has no URI name; it needs one, ${wanted}`);
  if (second !== undefined) {
    return wrong(`the certificate has ${uris.length} URI names; it must have exactly one, ${wanted}`);
  }
  const id = parseSpiffeId(uri);
  const shown = uri.slice(0, SHOWN_CHARS).replaceAll(/[^\x20-\x7e]/g, "?");
  if (id === undefined || id.kind !== "server") return wrong(`the certificate names ${shown}, not ${wanted}`);
  if (id.trustDomain !== trustDomain)
    return wrong(`the certificate names ${shown}, of another trust domain than ${trustDomain}`);
  return { ok: true, nodeId: id.name };
}

function wrong(message: string): ServerNamed {
  return { ok: false, message };
}
