// A ring: the public keys whose signatures count for a line. The first ring of a line is pinned by whoever registers or vouches for
// the site; a later one is written in the line itself, as the site's own `controller:registered`.
//
// Invariants:
// - One ring has one hash: keys are sorted by node, each node once, and the text that is hashed is canonical JSON of exactly these fields.
// - A line's rings differ in their keys alone: another controller, generation or author is another line.

import { canonicalJson } from "../../events/canonical.ts";
import type { EventPayload } from "../../events/event.ts";
import { EVENT_SOURCE_BYTES_MAX } from "../../kit/limits.ts";
import type { Digest } from "../../../ports/digest.ts";
import type { Ring, RingKey } from "../model.ts";
import { fromBase64, toBase64 } from "./base64.ts";
import { PUBLIC_KEY_BYTES, RING_KEYS_MAX } from "./limits.ts";

/** Also of a node's id: both are names in a note, where blanks and plus signs mean something else. */
const ID = /^[a-z0-9][a-z0-9-]{0,62}$/;
const RING_FIELDS = ["author", "controller", "generation", "keys"];
const KEY_FIELDS = ["key", "node"];

const textEncoder = new TextEncoder();

export function isControllerId(text: unknown): text is string {
  return typeof text === "string" && ID.test(text);
}

/** 64 hexadecimal digits. */
export function ringHashOf(ring: Ring, digest: Pick<Digest, "sha256Hex">): string {
  const { author, controller, generation } = ring;
  const keys = ring.keys.map(({ key, node }) => ({ key, node }));
  return digest.sha256Hex(textEncoder.encode(canonicalJson({ author, controller, generation, keys })));
}

/** Why this is not a ring, or null: then it is a `Ring`. Its keys may be in no other order than a ring's. */
export function ringProblem(value: unknown): string | null {
  if (!isRecord(value)) return "a ring is an object";
  if (!hasExactly(value, RING_FIELDS)) return "a ring has the fields author, controller, generation and keys";
  const { author, controller, generation, keys } = value;
  if (!isControllerId(controller)) return "a ring's controller is lower-case letters, digits and hyphens, 63 at most";
  if (!isGeneration(generation)) return "a ring's generation is a positive integer";
  if (!isAuthor(author)) return `a ring's author is a text of 1 to ${EVENT_SOURCE_BYTES_MAX} bytes`;
  return keysProblem(keys);
}

/** The public key of a node as a ring spells it. */
export function ringKeyOf(node: string, publicKey: Uint8Array): RingKey {
  return { node, key: toBase64(publicKey) };
}

function publicKeyOf(key: string): Uint8Array | null {
  return fromBase64(key, PUBLIC_KEY_BYTES);
}

/** The key of this node, or null where the ring has none. */
export function keyOfNode(ring: Ring, node: string): Uint8Array | null {
  const found = ring.keys.find((entry) => entry.node === node);
  return found === undefined ? null : publicKeyOf(found.key);
}

export type RegisteredRing =
  | { readonly kind: "ring"; readonly ring: Ring }
  | { readonly kind: "malformed"; readonly problem: string };

/** The ring that a site's own `controller:registered` states. Other fields of the payload (name, urls) are not looked at. */
export function ringOfRegistration(controller: string, payload: EventPayload): RegisteredRing {
  const { author, generation, keys } = payload;
  const ring = { author, controller, generation, keys };
  const problem = ringProblem(ring);
  if (problem !== null) return { kind: "malformed", problem };
  return { kind: "ring", ring: ring as unknown as Ring };
}

export function haveSameKeys(left: Ring, right: Ring): boolean {
  return (
    left.keys.length === right.keys.length &&
    left.keys.every(({ node, key }, at) => right.keys[at]?.node === node && right.keys[at].key === key)
  );
}

function keysProblem(keys: unknown): string | null {
  if (!Array.isArray(keys) || keys.length === 0 || keys.length > RING_KEYS_MAX)
    return `a ring has 1 to ${RING_KEYS_MAX} keys`;
  let last = "";
  for (const entry of keys as readonly unknown[]) {
    if (!isRecord(entry) || !hasExactly(entry, KEY_FIELDS)) return "a key of a ring has the fields key and node";
    const { key, node } = entry;
    if (typeof node !== "string" || !ID.test(node)) return "a node of a ring is lower-case letters, digits and hyphens";
    if (node <= last) return "a ring's keys are sorted by node, each node once";
    if (typeof key !== "string" || publicKeyOf(key) === null) return "a key of a ring is 32 bytes in base64";
    last = node;
  }
  return null;
}

function isGeneration(value: unknown): boolean {
  return Number.isSafeInteger(value) && (value as number) > 0;
}

function isAuthor(value: unknown): boolean {
  if (typeof value !== "string" || value === "" || !value.isWellFormed()) return false;
  return value.length <= EVENT_SOURCE_BYTES_MAX && textEncoder.encode(value).length <= EVENT_SOURCE_BYTES_MAX;
}

export function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

export function hasExactly(value: object, fields: readonly string[]): boolean {
  const keys = Object.keys(value);
  return keys.length === fields.length && fields.every((field) => Object.hasOwn(value, field));
}
