// The hash of an event, for whoever has read it from `GET /api/events/since/:sequence` and wants to check it without a server.

import { canonicalJson } from "./canonical.ts";
import { eventHashOf } from "./event-hash.ts";
import { hexOf } from "./hex.ts";
import { sha256 } from "./sha256.ts";
import type { Json } from "../kit/json.ts";

/** As `GET /api/events/since/:sequence` answers them (specification: Event); other fields do not count. */
export interface HashedEvent {
  readonly id: string;
  readonly sequence: number;
  /** Of a site in a mesh, where `sequence` is the number of arrival: its place in the line of its own site, which is what was sealed. */
  readonly lineSequence?: number | undefined;
  readonly timestamp: number;
  readonly eventType: string;
  readonly entityId: string;
  readonly entityType: string;
  readonly payload: Readonly<Record<string, unknown>>;
  readonly sourceControllerId: string;
  readonly leaderEpoch: number;
  readonly previousHash: string | null;
}

const encoder = new TextEncoder();
const digest = {
  sha256Hex: (data: Uint8Array | string): string =>
    hexOf(sha256(typeof data === "string" ? encoder.encode(data) : data)),
};

/**
 * SHA-256 of the event's canonical JSON (RFC 8785) after a domain tag: 64 lower-case hexadecimal digits, which are the event's `eventHash` where nobody has
 * changed it. The specification hashes what JSON.stringify gives; that depends on the order of keys in the payload, which JSON does not keep, and leaves
 * out `leaderEpoch`.
 */
export function calculateEventHash(event: HashedEvent): string {
  const { id, timestamp, eventType, entityId, entityType, payload } = event;
  const sequence = event.lineSequence ?? event.sequence;
  const { sourceControllerId, leaderEpoch, previousHash } = event;
  const names = { id, sequence, timestamp, eventType, entityId, entityType };
  const fields = { ...names, payload, sourceControllerId, leaderEpoch, previousHash };
  return eventHashOf(encoder.encode(canonicalJson(fields as unknown as Json)), digest);
}
