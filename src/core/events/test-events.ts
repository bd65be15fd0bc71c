// What the tests of this room share: a chain of plausible events, and bytes with one of them changed.

import type { Digest } from "../../ports/digest.ts";
import { EMPTY_CHAIN, Sealer } from "./chain.ts";
import type { EventDraft } from "./event.ts";

/** Wall time of the first event. */
export const START_MS = 1_790_000_000_000;

/** What texts are made of that look into every corner of JSON: quotes, escapes, controls, one to four bytes each. */
export const TEXT_UNITS = [
  "a",
  "b",
  "Z",
  "0",
  '"',
  "\\",
  "/",
  "{",
  "\n",
  "\u0000",
  "\u001f",
  "\u007f",
  "é",
  "€",
  "\u2028",
  "\ufb33",
  "\ufeff",
  "😀",
];

export function draftOf(place: number, more: Partial<EventDraft> = {}): EventDraft {
  return {
    id: `6f1c3f0e-58a0-4f6e-9d5b-${String(place).padStart(12, "0")}`,
    eventType: "build:assigned",
    entityType: "build",
    entityId: `job-${place}`,
    payload: { agent: "a7", attempt: 1, größe: [0.5, null, { ok: true }], text: 'x"\\\n😀' },
    timestamp: START_MS + Math.floor(place / 3),
    ...more,
  };
}

export function newSealer(digest: Pick<Digest, "sha256Hex">): Sealer {
  return new Sealer({ head: EMPTY_CHAIN, sourceControllerId: "c1.0", leaderEpoch: 7, digest });
}

/** The stored bytes of the first `count` events; number 1 is at place 0. */
export function chainOf(count: number, digest: Pick<Digest, "sha256Hex">): readonly Uint8Array[] {
  const sealer = newSealer(digest);
  return Array.from({ length: count }, (_, place) => sealer.seal(draftOf(place + 1)).bytes);
}
