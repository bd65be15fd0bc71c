// What a coordinator keeps on disk, as bytes: the ledger, and the membership leases.
//
//   9d3c01f2 tenure-tc-ledger 1        CRC-32 of all that follows the first space; what it is; its format
//   {"voter":"n1@3f9a", …}             JSON, which an operator can read
//
// The checksum is judged before the format, and comes first in every format: a rotten digit is damage, and a higher number
// is a later release's. Formats that a release has written are read for ever (FORMAT below; a new one is read next to the old one).
//
// What does not have exactly the fields of its format, each of its type, is damage too: a ledger that is half understood votes wrongly.

import type { Digest } from "../../ports/digest.ts";
import { type PeerKey, parsePeerKey } from "../kit/ids.ts";
import { INTEGER_MAX } from "../kit/limits.ts";
import { MEMBERSHIPS_KEPT } from "./limits.ts";
import type { MembershipLease } from "./members.ts";
import type { Grant, Ledger, Position, RegistryEntries, Roster, RosterVoter, Shown } from "./model.ts";

/** Both files have their first one. */
const FORMAT = 1;
const HEAD = /^([0-9a-f]{8}) tenure-tc-([a-z]+) ([1-9][0-9]{0,8})\n/;
const SUM_DIGITS = 8;

const textEncoder = new TextEncoder();
const textDecoder = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

/** The ledger, and whose it is. It names its voter itself: a ledger and a name that are kept apart can be of two disks. */
export interface KeptLedger {
  readonly voter: PeerKey;
  /** The incarnation of the log in the same directory. */
  readonly log: string;
  readonly ledger: Ledger;
}

export type RecordRead<T> =
  | { readonly kind: "whole"; readonly value: T }
  /** Whole, and of a later release. */
  | { readonly kind: "newer"; readonly format: number }
  | { readonly kind: "damaged"; readonly why: string };

export function encodeLedger({ voter, log, ledger }: KeptLedger, digest: Digest): Uint8Array {
  const { clusterId, term, grant, roster, shown } = ledger;
  const kept = { grant: grantOut(grant), roster: rosterOut(roster), shown: shownOut(shown) };
  return encode("ledger", { voter, log, cluster_id: clusterId, term, ...kept }, digest);
}

export function decodeLedger(bytes: Uint8Array, digest: Digest): RecordRead<KeptLedger> {
  return decode("ledger", bytes, digest, (value) => {
    const fields = fieldsOf(value, "voter", "log", "cluster_id", "term", "grant", "roster", "shown");
    const ledger: Ledger = {
      clusterId: orNull(textIn)(fields.cluster_id),
      term: integerIn(fields.term),
      grant: orNull(grantIn)(fields.grant),
      roster: orNull(rosterIn)(fields.roster),
      shown: orNull(shownIn)(fields.shown),
    };
    return { voter: peerIn(fields.voter), log: textIn(fields.log), ledger };
  });
}

export function encodeLeases(leases: readonly MembershipLease[], digest: Digest): Uint8Array {
  const out = leases.map(({ identity, endpoint, updatedAtMs, expiresAtMs }) => ({
    identity,
    endpoint,
    updated_at_ms: updatedAtMs,
    expires_at_ms: expiresAtMs,
  }));
  return encode("leases", out, digest);
}

export function decodeLeases(bytes: Uint8Array, digest: Digest): RecordRead<readonly MembershipLease[]> {
  return decode("leases", bytes, digest, (value) => {
    const all = listIn(leaseIn)(value);
    if (all.length > MEMBERSHIPS_KEPT) throw new WrongShape("more leases than are kept");
    return all;
  });
}

// ---- the frame -------------------------------------------------------------------------------------

function encode(what: string, value: unknown, digest: Digest): Uint8Array {
  const text = `tenure-tc-${what} ${FORMAT}\n${JSON.stringify(value)}\n`;
  return textEncoder.encode(`${sumOf(textEncoder.encode(text), digest)} ${text}`);
}

function decode<T>(what: string, bytes: Uint8Array, digest: Digest, read: (value: unknown) => T): RecordRead<T> {
  const text = textOf(bytes);
  const head = text === null ? null : HEAD.exec(text);
  if (text === null || head?.[2] !== what) return { kind: "damaged", why: `it does not begin as a ${what} does` };
  if (head[1] !== sumOf(bytes.subarray(SUM_DIGITS + 1), digest))
    return { kind: "damaged", why: "its checksum is wrong" };
  const format = Number(head[3]);
  if (format > FORMAT) return { kind: "newer", format };
  try {
    return { kind: "whole", value: read(JSON.parse(text.slice(head[0].length))) };
  } catch (error) {
    if (error instanceof WrongShape || error instanceof SyntaxError) return { kind: "damaged", why: error.message };
    throw error;
  }
}

function sumOf(bytes: Uint8Array, digest: Digest): string {
  return digest.crc32(bytes).toString(16).padStart(SUM_DIGITS, "0");
}

/** Null: it is no UTF-8. */
function textOf(bytes: Uint8Array): string | null {
  try {
    return textDecoder.decode(bytes);
  } catch {
    return null;
  }
}

// ---- the fields ------------------------------------------------------------------------------------

class WrongShape extends Error {}

// Each field is named: what an object carries besides is not written, as it could not be read again.

function grantOut(grant: Grant | null): object | null {
  return grant === null ? null : { term: grant.term, leader: grant.leader, released: grant.released };
}

function rosterOut(roster: Roster | null): object | null {
  if (roster === null) return null;
  const { term, version, recoveredBy, voters, registry } = roster;
  const votersOut = voters.map(({ peer, endpoint }) => ({ peer, endpoint }));
  return { term, version, recovered_by: recoveredBy, voters: votersOut, registry: registryOut(registry) };
}

function shownOut(shown: Shown | null): object | null {
  return shown === null ? null : { term: shown.term, version: shown.version, registry: registryOut(shown.registry) };
}

function registryOut(registry: RegistryEntries): object[] {
  return registry.map(({ backendHash, endpoint }) => ({ backend_hash: backendHash, endpoint }));
}

function grantIn(value: unknown): Grant {
  const { term, leader, released } = fieldsOf(value, "term", "leader", "released");
  if (typeof released !== "boolean") throw new WrongShape("`released` is no truth value");
  return { term: integerIn(term), leader: peerIn(leader), released };
}

function rosterIn(value: unknown): Roster {
  const fields = fieldsOf(value, "term", "version", "recovered_by", "voters", "registry");
  const voters = listIn(voterIn)(fields.voters);
  if (voters.length === 0) throw new WrongShape("a roster without voters");
  const recoveredBy = orNull(peerIn)(fields.recovered_by);
  return { ...positionIn(fields), recoveredBy, voters, registry: registryIn(fields.registry) };
}

function voterIn(value: unknown): RosterVoter {
  const { peer, endpoint } = fieldsOf(value, "peer", "endpoint");
  return { peer: peerIn(peer), endpoint: textIn(endpoint) };
}

function shownIn(value: unknown): Shown {
  const fields = fieldsOf(value, "term", "version", "registry");
  return { ...positionIn(fields), registry: registryIn(fields.registry) };
}

function registryIn(value: unknown): RegistryEntries {
  return listIn((entry) => {
    const { backend_hash: backendHash, endpoint } = fieldsOf(entry, "backend_hash", "endpoint");
    return { backendHash: textIn(backendHash), endpoint: textIn(endpoint) };
  })(value);
}

function leaseIn(value: unknown): MembershipLease {
  const fields = fieldsOf(value, "identity", "endpoint", "updated_at_ms", "expires_at_ms");
  const { identity, endpoint, updated_at_ms: updatedAtMs, expires_at_ms: expiresAtMs } = fields;
  const times = { updatedAtMs: numberIn(updatedAtMs), expiresAtMs: numberIn(expiresAtMs) };
  return { identity: textIn(identity), endpoint: textIn(endpoint), ...times };
}

function positionIn({ term, version }: Readonly<Record<"term" | "version", unknown>>): Position {
  return { term: integerIn(term), version: integerIn(version) };
}

function peerIn(value: unknown): PeerKey {
  const peer = typeof value === "string" ? parsePeerKey(value) : undefined;
  if (peer === undefined) throw new WrongShape("no node with its disk");
  return peer;
}

function textIn(value: unknown): string {
  if (typeof value !== "string") throw new WrongShape("no text where one belongs");
  return value;
}

function integerIn(value: unknown): number {
  const number = numberIn(value);
  if (!Number.isInteger(number) || number < 0 || number > INTEGER_MAX) throw new WrongShape("no integer from 0 on");
  return number;
}

function numberIn(value: unknown): number {
  if (typeof value !== "number") throw new WrongShape("no number where one belongs");
  return value;
}

function orNull<T>(read: (value: unknown) => T): (value: unknown) => T | null {
  return (value) => (value === null ? null : read(value));
}

function listIn<T>(read: (value: unknown) => T): (value: unknown) => readonly T[] {
  return (value) => {
    if (!Array.isArray(value)) throw new WrongShape("no list where one belongs");
    return value.map((one: unknown) => read(one));
  };
}

/** Exactly these. */
function fieldsOf<K extends string>(value: unknown, ...names: readonly K[]): Readonly<Record<K, unknown>> {
  if (typeof value !== "object" || value === null || Array.isArray(value))
    throw new WrongShape("no object where one belongs");
  const found = Object.keys(value);
  if (found.length !== names.length || !names.every((name) => Object.hasOwn(value, name)))
    throw new WrongShape(`not the fields ${names.join(", ")}`);
  return value as Readonly<Record<K, unknown>>;
}
