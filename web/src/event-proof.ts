// "Verify this event", computed in the browser: from the event's bytes to its hash, from there along the proof to the root of its line's tree,
// and that root in the checkpoint that the line's site has signed (note-signature.ts checks the signature). Pure.

import { canonicalJson } from "../../src/core/events/canonical.ts";
import { eventHashOf } from "../../src/core/events/event.ts";
import { bytesOfHash, hexOf, isHash } from "../../src/core/events/hex.ts";
import { leafHash } from "../../src/core/events/merkle.ts";
import { verifyInclusion } from "../../src/core/events/merkle-proof.ts";
import { sha256 } from "../../src/core/events/sha256.ts";
import type { Json } from "../../src/core/kit/json.ts";

const digest = {
  sha256,
  sha256Hex: (data: Uint8Array | string): string =>
    hexOf(sha256(typeof data === "string" ? new TextEncoder().encode(data) : data)),
};

/** What is shown of an event, and what is to be proven. */
export interface ShownEvent {
  readonly line: string;
  readonly lineSequence: number;
  readonly eventHash: string;
  /** What the reader sees next to the word "verified": the proof is of the text, and these are not read from it. */
  readonly said: SaidFields;
}

export interface SaidFields {
  readonly eventType: string;
  readonly entityId: string;
  readonly timestamp: number;
  readonly payload: object;
}

/** What the node gave: nothing of it is believed. */
export interface Evidence {
  /** The event's canonical text; or, of one whose text did not leave its site, its hash. */
  readonly item: unknown;
  /** The signed note of the line's head. */
  readonly note: string;
  readonly path: unknown;
}

export interface Checkpoint {
  readonly line: string;
  readonly size: number;
  readonly root: Uint8Array;
  /** Who signed, as the note says. */
  readonly signer: string;
}

export type Proof =
  | {
      readonly kind: "proven";
      /** Hashed here; false: its text did not leave its site, and only its hash is known. */
      readonly hasText: boolean;
      readonly hashes: number;
      readonly checkpoint: Checkpoint;
    }
  | { readonly kind: "refuted"; readonly why: string };

const NOTE = /^([^\n]+)\n([1-9]\d{0,15})\n([A-Za-z0-9+/]{43}=)\n[^\n]+\n\n— (\S+) \S+\n$/;

/** Null: this is no note of a checkpoint. */
export function checkpointIn(note: string): Checkpoint | null {
  const [, line, size, root, signer] = NOTE.exec(note) ?? [];
  if (line === undefined || root === undefined || signer === undefined) return null;
  return { line, size: Number(size), root: Uint8Array.from(atob(root), (letter) => letter.charCodeAt(0)), signer };
}

export function proofOf(event: ShownEvent, { item, note, path }: Evidence): Proof {
  const hash = typeof item === "string" ? eventHashOf(new TextEncoder().encode(item), digest) : hashIn(item);
  if (hash === null) return refuted("the node gave neither the event's text nor its hash");
  if (hash !== event.eventHash) return refuted("the event's bytes have another hash than the event that is shown");
  const other = typeof item === "string" ? otherField(event.said, item) : null;
  if (other !== null) return refuted(`the ${other} that is shown is not the one in the event's text`);
  const checkpoint = checkpointIn(note);
  if (checkpoint === null) return refuted("the node gave no signed checkpoint");
  if (checkpoint.line !== event.line) return refuted("the checkpoint is of another line");
  if (!Array.isArray(path) || !path.every(isHash)) return refuted("the node gave no proof");
  const claim = {
    leafHash: leafHash(bytesOfHash(hash), digest),
    index: event.lineSequence - 1,
    size: checkpoint.size,
    root: checkpoint.root,
    proof: path.map(bytesOfHash),
  };
  if (!verifyInclusion(claim, digest)) return refuted("the proof does not lead from this event to the signed root");
  return { kind: "proven", hasText: typeof item === "string", hashes: path.length + 1, checkpoint };
}

/** The first field that is shown otherwise than the text has it; null: none is. */
function otherField(shown: SaidFields, text: string): string | null {
  // Of a later release: nothing of its text is shown.
  if (shown.eventType === "unreadable" && textOf(shown.payload) === "{}") return null;
  const said = JSON.parse(text) as SaidFields;
  if (shown.eventType !== said.eventType) return "type";
  if (shown.entityId !== said.entityId) return "entity";
  if (shown.timestamp !== said.timestamp) return "time";
  // Of a long one only its length is shown.
  const omitted = { omittedBytes: new TextEncoder().encode(JSON.stringify(said.payload)).length };
  return [said.payload, omitted].some((one) => textOf(one) === textOf(shown.payload)) ? null : "payload";
}

function textOf(value: object): string {
  return canonicalJson(value as Json, Number.MAX_SAFE_INTEGER);
}

function hashIn(item: unknown): string | null {
  const hash = typeof item === "object" && item !== null && "hash" in item ? item.hash : null;
  return isHash(hash) ? hash : null;
}

function refuted(why: string): Proof {
  return { kind: "refuted", why };
}
