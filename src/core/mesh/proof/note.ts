// The signed note of a checkpoint (C2SP signed-note and tlog-checkpoint), with one extension line that says which events are withheld:
//
//   <line id>\n<size>\n<base64 of the root>\nwithheld <after> <64 hexadecimal digits>\n
//   \n
//   — <controller>/<node> <base64 of the key's id and the signature>\n
//
// Invariants:
// - What is signed is the bytes up to and including the newline before the blank line, as they were received.
// - One checkpoint has one text: whatever `noteText` would not write again, byte for byte, is malformed.
// - One signature a note. Whose key it is, the ring in force says, never the note: the note names a node only to find its key.

import { bytesOfHash, hexOf } from "../../events/hex.ts";
import type { Digest } from "../../../ports/digest.ts";
import type { Signer, VerifySignature } from "../../../ports/signatures.ts";
import type { Checkpoint, Ring } from "../model.ts";
import { fromBase64, toBase64 } from "./base64.ts";
import { KEY_ID_BYTES, NOTE_LENGTH_MAX, SIGNATURE_BYTES } from "./limits.ts";
import { controllerOf, isLineId } from "./line-id.ts";
import { keyOfNode } from "./ring.ts";

/** What checking needs: hashes, and the verification of signatures. */
export interface ProofTools {
  readonly digest: Pick<Digest, "sha256" | "sha256Hex">;
  readonly verify: VerifySignature;
}

export type NoteRead =
  | {
      readonly kind: "note";
      readonly checkpoint: Checkpoint;
      readonly keyName: string;
      readonly keyId: Uint8Array;
      readonly signature: Uint8Array;
      /** The bytes that are signed. */
      readonly signed: Uint8Array;
    }
  | { readonly kind: "malformed"; readonly problem: string };

export type NoteChecked =
  | { readonly kind: "signed"; readonly checkpoint: Checkpoint; readonly node: string }
  | { readonly kind: "malformed"; readonly problem: string }
  /** `isKeyKnown`: it names a key of this ring, which did not sign it; else a key that this ring does not have. */
  | { readonly kind: "unsigned"; readonly isKeyKnown: boolean; readonly problem: string };

const ROOT_BYTES = 32;
/** `withheldHash` of no sequences. */
export const NOTHING_WITHHELD = "0".repeat(64);
/** C2SP: 0x01 is Ed25519. */
const ALGORITHM = [0x0a, 0x01];
const NOTE = /^([^\n]+)\n(\d{1,16})\n([^\n]{44})\nwithheld (\d{1,16}) ([0-9a-f]{64})\n\n— ([^ \n]+) ([^\n]+)\n$/;
const KEY_NAME = /^([a-z0-9][a-z0-9-]{0,62})\/([a-z0-9][a-z0-9-]{0,62})$/;
const textEncoder = new TextEncoder();

export function keyNameOf(controller: string, node: string): string {
  return `${controller}/${node}`;
}

/** The first four bytes of SHA-256(key name ‖ 0x0A ‖ 0x01 ‖ public key). */
function keyIdOf(keyName: string, publicKey: Uint8Array, digest: Pick<Digest, "sha256">): Uint8Array {
  return digest
    .sha256(joined(textEncoder.encode(keyName), Uint8Array.from(ALGORITHM), publicKey))
    .slice(0, KEY_ID_BYTES);
}

export interface NodeKey {
  readonly node: string;
  readonly signer: Signer;
}

/** The note: the checkpoint's text and this node's signature. */
export function signCheckpoint(checkpoint: Checkpoint, key: NodeKey, digest: Pick<Digest, "sha256">): string {
  const text = checkpointText(checkpoint);
  const name = keyNameOf(controllerOf(checkpoint.line), key.node);
  const signature = key.signer.sign(textEncoder.encode(text));
  return noteText(text, name, keyIdOf(name, key.signer.publicKey, digest), signature);
}

/** Strict, and without trust: nothing is verified yet. */
export function readNote(note: string): NoteRead {
  if (note.length > NOTE_LENGTH_MAX) return malformed(`it is longer than ${NOTE_LENGTH_MAX} letters`);
  const parts = NOTE.exec(note);
  if (parts === null) return malformed("it is not a checkpoint's text, a blank line and one signature");
  const [, line, size, root64, after, hash, keyName, signature64] = parts as unknown as NoteParts;
  if (!isLineId(line)) return malformed("its first line is not the id of a line");
  if (!KEY_NAME.test(keyName)) return malformed("its key is not named <controller>/<node>");
  const root = fromBase64(root64, ROOT_BYTES);
  if (root === null) return malformed("its root is not 32 bytes in base64");
  const sealed = fromBase64(signature64, KEY_ID_BYTES + SIGNATURE_BYTES);
  if (sealed === null) return malformed("its signature is not a key's id and 64 bytes in base64");
  const checkpoint: Checkpoint = {
    line,
    size: Number(size),
    root: hexOf(root),
    withheld: { after: Number(after), hash },
  };
  const problem = checkpointProblem(checkpoint);
  if (problem !== null) return malformed(problem);
  const text = checkpointText(checkpoint);
  // Leading zeros, for instance, make another text of the same checkpoint.
  if (noteText(text, keyName, sealed.subarray(0, KEY_ID_BYTES), sealed.subarray(KEY_ID_BYTES)) !== note)
    return malformed("it is not spelt as its checkpoint is");
  return {
    kind: "note",
    checkpoint,
    keyName,
    keyId: sealed.slice(0, KEY_ID_BYTES),
    signature: sealed.slice(KEY_ID_BYTES),
    signed: textEncoder.encode(text),
  };
}

/** Whether a key of this ring signed it. `unsigned`: well-formed, but this ring does not vouch for it. */
export function checkNote(note: string, ring: Ring, tools: ProofTools): NoteChecked {
  const read = readNote(note);
  if (read.kind === "malformed") return read;
  const { checkpoint, keyName } = read;
  if (controllerOf(checkpoint.line) !== ring.controller) return unsigned("its line is another controller's");
  const node = keyName.slice(keyName.indexOf("/") + 1);
  if (keyName !== keyNameOf(ring.controller, node)) return unsigned(`${keyName} is another controller's key`);
  const publicKey = keyOfNode(ring, node);
  if (publicKey === null) return unsigned(`the ring in force has no key of the node ${node}`);
  if (!areSame(read.keyId, keyIdOf(keyName, publicKey, tools.digest)))
    return unsigned(`the ring in force has another key of the node ${node}`);
  if (!tools.verify(publicKey, read.signed, read.signature)) return unsigned("its signature is not valid", true);
  return { kind: "signed", checkpoint, node };
}

type NoteParts = readonly [string, string, string, string, string, string, string, string];

function checkpointProblem({ size, withheld }: Checkpoint): string | null {
  if (!Number.isSafeInteger(size)) return "its size is above 2^53-1";
  if (withheld.after > size) return "what is withheld begins after its size";
  if (withheld.after === size && withheld.hash !== NOTHING_WITHHELD) return "it covers no items, and some are withheld";
  return null;
}

function checkpointText({ line, size, root, withheld }: Checkpoint): string {
  return `${line}\n${size}\n${toBase64(bytesOfHash(root))}\nwithheld ${withheld.after} ${withheld.hash}\n`;
}

function noteText(text: string, keyName: string, keyId: Uint8Array, signature: Uint8Array): string {
  return `${text}\n— ${keyName} ${toBase64(joined(keyId, signature))}\n`;
}

function joined(...parts: readonly Uint8Array[]): Uint8Array {
  const whole = new Uint8Array(parts.reduce((length, part) => length + part.length, 0));
  let at = 0;
  for (const part of parts) {
    whole.set(part, at);
    at += part.length;
  }
  return whole;
}

function areSame(left: Uint8Array, right: Uint8Array): boolean {
  return left.length === right.length && left.every((byte, at) => byte === right[at]);
}

function malformed(problem: string): { readonly kind: "malformed"; readonly problem: string } {
  return { kind: "malformed", problem };
}

function unsigned(problem: string, isKeyKnown = false): NoteChecked {
  return { kind: "unsigned", isKeyKnown, problem };
}
