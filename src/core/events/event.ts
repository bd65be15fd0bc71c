// The event of a site's log. What is stored, sent and hashed is one text, the canonical JSON (RFC 8785) of all its fields
// but `eventHash`; the hash is over exactly these bytes after a domain tag, so the bytes are never made twice (trap 57).
//
// Invariants:
// - What `encodeEvent` makes, `decodeEvent` reads: both ask `fieldProblem`.
// - The prefix of `eventType` is `entityType`; `previousHash` is null for sequence 1 and for no other.
// - `timestamp` is wall time in milliseconds with microseconds as its fraction (…123.004): it must grow with each event, and
//   whole milliseconds would run away from the wall clock as soon as a thousand events are sealed in a second.

import { assert } from "../kit/assert.ts";
import type { Json } from "../kit/json.ts";
import {
  ENTRY_BYTES_MAX,
  EVENT_DEPTH_MAX,
  EVENT_ENTITY_BYTES_MAX,
  EVENT_ID_BYTES_MAX,
  EVENT_SOURCE_BYTES_MAX,
  EVENT_TIMESTAMP_MAX,
  INTEGER_MAX,
  UTF8_BYTES_PER_UNIT_MAX,
} from "../kit/limits.ts";
import { canonicalJson, canonicalString } from "./canonical.ts";
import { isHash } from "./hex.ts";
import { ENTITIES_KEPT_MAX, SLAB_BYTES, SLAB_SHARE_MAX } from "./limits.ts";
import { JsonError, parseStrictJson } from "./strict-json.ts";

export { eventDigestOf, eventHashOf } from "./event-hash.ts";

/** The entity, and what happened to it: `build:submitted`. Which there are, each tenant of the journal knows for itself. */
export type EventKind = `${string}:${string}`;

export type EventPayload = { readonly [key: string]: Json };

/** What a decision makes; the sealer adds its place in the chain. */
export interface EventDraft {
  /** Unique everywhere: a UUID. */
  readonly id: string;
  readonly eventType: EventKind;
  readonly entityId: string;
  readonly entityType: string;
  readonly payload: EventPayload;
  /** The leader's wall time. The sealed event has a later one where the chain is ahead of it. */
  readonly timestamp: number;
}

/** All that is in the stored bytes. */
export interface StoredEvent extends EventDraft {
  /** Its position in the site's log: 1 for the first, without gaps. */
  readonly sequence: number;
  /** The author: the site's incarnation, never a node (design D13). */
  readonly sourceControllerId: string;
  /** The `eventHash` of the event before it; null for the first. */
  readonly previousHash: string | null;
  /** Of the leader that sealed it. */
  readonly leaderEpoch: number;
}

export interface ChainEvent extends StoredEvent {
  /** 64 lower-case hexadecimal digits. */
  readonly eventHash: string;
}

export type EventRead =
  | { readonly kind: "event"; readonly event: StoredEvent }
  | { readonly kind: "malformed"; readonly problem: string };

/** In canonical order. */
const FIELDS = [
  "entityId",
  "entityType",
  "eventType",
  "id",
  "leaderEpoch",
  "payload",
  "previousHash",
  "sequence",
  "sourceControllerId",
  "timestamp",
] as const satisfies readonly (keyof StoredEvent)[];

const textEncoder = new TextEncoder();
const EVENT_TYPE = /^([a-z][a-z0-9-]{0,31}):[a-z][a-z0-9-]{0,31}$/;
/** Of the types that were met: each is looked at once. */
const entities = new Map<string, string>();

let slab = new Uint8Array(0);
let slabUsed = 0;

/** Canonical bytes. Throws EVENT_INVALID where a payload can't be said in them. */
export function encodeEvent(event: StoredEvent): Uint8Array {
  assert(fieldProblem(event) === null, "a sealed event is well-formed", () => fieldProblem(event) ?? "");
  const payload = canonicalJson(event.payload, INTEGER_MAX, 2);
  const text =
    `{"entityId":${canonicalString(event.entityId)},"entityType":"${event.entityType}","eventType":"${event.eventType}"` +
    `,"id":${canonicalString(event.id)},"leaderEpoch":${event.leaderEpoch},"payload":${payload}` +
    `,"previousHash":${event.previousHash === null ? "null" : `"${event.previousHash}"`},"sequence":${event.sequence}` +
    `,"sourceControllerId":${canonicalString(event.sourceControllerId)},"timestamp":${event.timestamp}}`;
  return bytesOf(text);
}

function bytesOf(text: string): Uint8Array {
  const bytesMax = text.length * UTF8_BYTES_PER_UNIT_MAX;
  if (bytesMax > SLAB_SHARE_MAX) return textEncoder.encode(text);
  if (slabUsed + bytesMax > slab.length) {
    slab = new Uint8Array(SLAB_BYTES);
    slabUsed = 0;
  }
  const { written } = textEncoder.encodeInto(text, slab.subarray(slabUsed));
  const bytes = slab.subarray(slabUsed, slabUsed + written);
  slabUsed += written;
  return bytes;
}

/** Strict: an unknown, missing or double field, a wrong type or a number that is not exact is refused. */
export function decodeEvent(bytes: Uint8Array): EventRead {
  if (bytes.length > ENTRY_BYTES_MAX) return malformed(`${bytes.length} bytes, where ${ENTRY_BYTES_MAX} are allowed`);
  let value: Json;
  try {
    value = parseStrictJson(bytes, EVENT_DEPTH_MAX);
  } catch (error) {
    if (error instanceof JsonError) return malformed(error.message);
    throw error;
  }
  if (!isObject(value)) return malformed("it is not an object");
  for (const field of FIELDS) if (!Object.hasOwn(value, field)) return malformed(`${field} is missing`);
  for (const key of Object.keys(value)) {
    if (!(FIELDS as readonly string[]).includes(key))
      return malformed(`an unknown field ${JSON.stringify(key.slice(0, 40))}`);
  }
  const problem = fieldProblem(value as { readonly [field in keyof StoredEvent]: Json });
  return problem === null ? { kind: "event", event: value as unknown as StoredEvent } : malformed(problem);
}

/** The first field that is not what it must be, or null. */
function fieldProblem(event: { readonly [field in keyof StoredEvent]: Json }): string | null {
  if (!isText(event.entityId, EVENT_ENTITY_BYTES_MAX)) return "entityId is not a text of 1 to 256 bytes";
  const entityType = typeof event.eventType === "string" ? entityOf(event.eventType) : undefined;
  if (entityType === undefined) return "eventType is not an entity and what happened to it";
  if (event.entityType !== entityType) return `entityType is not "${entityType}", which eventType asks for`;
  if (!isText(event.id, EVENT_ID_BYTES_MAX)) return "id is not a text of 1 to 64 bytes";
  if (!isPositive(event.leaderEpoch)) return "leaderEpoch is not a positive integer";
  if (!isObject(event.payload)) return "payload is not an object";
  if (!isPositive(event.sequence)) return "sequence is not a positive integer";
  if ((event.previousHash === null) !== (event.sequence === 1))
    return "previousHash is null for sequence 1 and no other";
  if (event.previousHash !== null && !isHash(event.previousHash)) return "previousHash is not a hash";
  if (!isText(event.sourceControllerId, EVENT_SOURCE_BYTES_MAX))
    return "sourceControllerId is not a text of 1 to 256 bytes";
  return isTimestamp(event.timestamp) ? null : "timestamp is not a positive number of milliseconds";
}

function entityOf(eventType: string): string | undefined {
  const known = entities.get(eventType);
  if (known !== undefined) return known;
  const entity = EVENT_TYPE.exec(eventType)?.[1];
  if (entity !== undefined && entities.size < ENTITIES_KEPT_MAX) entities.set(eventType, entity);
  return entity;
}

export function isTimestamp(value: Json): value is number {
  return typeof value === "number" && value > 0 && value <= EVENT_TIMESTAMP_MAX;
}

function isPositive(value: Json): boolean {
  return Number.isSafeInteger(value) && (value as number) > 0;
}

function isText(value: Json, bytesMax: number): boolean {
  if (typeof value !== "string" || value === "" || value.length > bytesMax) return false;
  if (value.length * UTF8_BYTES_PER_UNIT_MAX <= bytesMax) return true;
  let length = value.length;
  for (let at = 0; at < value.length; at++) {
    const unit = value.charCodeAt(at);
    // Each half of a surrogate pair is two bytes of its four.
    if (unit > 0x7f) length += unit > 0x7ff && (unit < 0xd800 || unit > 0xdfff) ? 2 : 1;
  }
  return length <= bytesMax;
}

function isObject(value: Json): value is EventPayload {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function malformed(problem: string): EventRead {
  return { kind: "malformed", problem };
}
