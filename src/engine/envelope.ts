// What travels on the wire: a Raft message, and after it, for MsgSnap alone, the snapshot's contents.
//   CRC-32 of all that follows (u32) | message bytes (u32, big-endian) | message | snapshot file
// TLS authenticates what it carries; the checksum is for what it does not see, a flipped bit in a buffer
// before or after it, because an entry that changed on its way would be committed as it arrived.

import { crc32OfBoth } from "../core/kit/crc32.ts";
import { decodeMessage, encodeMessage, type DecodedMessage, type Message } from "../core/raft/index.ts";
import type { Digest } from "../ports/digest.ts";
import { ENVELOPE_SLICE_BYTES } from "./limits.ts";
import type { SealedFile } from "./snapshots.ts";

export const ENVELOPE_HEADER_BYTES = 8;
const CHECKSUM_BYTES = 4;
const NOTHING = new Uint8Array(0);

export interface OpenedEnvelope {
  readonly decoded: DecodedMessage;
  readonly attachment: Uint8Array;
}

export function sealEnvelope(
  message: Message,
  clusterId: string,
  attachment: Uint8Array | null,
  digest: Digest,
): Uint8Array {
  const body = encodeMessage(message, clusterId);
  const sealed = new Uint8Array(ENVELOPE_HEADER_BYTES + body.length + (attachment?.length ?? 0));
  const view = new DataView(sealed.buffer);
  view.setUint32(CHECKSUM_BYTES, body.length);
  sealed.set(body, ENVELOPE_HEADER_BYTES);
  if (attachment !== null) sealed.set(attachment, ENVELOPE_HEADER_BYTES + body.length);
  view.setUint32(0, digest.crc32(sealed.subarray(CHECKSUM_BYTES)));
  return sealed;
}

/**
 * The same with a snapshot's file after the message, without its contents: they follow as they are. Their checksum is
 * known, so they are neither read nor copied, however many they are.
 */
export function sealBefore(file: SealedFile, message: Message, clusterId: string, digest: Digest): Uint8Array {
  const sealed = sealEnvelope(message, clusterId, file.head, digest);
  const view = new DataView(sealed.buffer);
  const messageEnd = ENVELOPE_HEADER_BYTES + view.getUint32(CHECKSUM_BYTES);
  const messageCrc = digest.crc32(sealed.subarray(CHECKSUM_BYTES, messageEnd));
  view.setUint32(0, crc32OfBoth(messageCrc, file.crc, file.head.length + file.data.length));
  return sealed;
}

/** As `openEnvelope`, for large ones: slice by slice, so that heartbeats are heard in between. */
export function* openInSlices(bytes: Uint8Array, clusterId: string, digest: Digest): Generator<void, OpenedEnvelope> {
  let crc = 0;
  for (let at = CHECKSUM_BYTES; at < bytes.length; at += ENVELOPE_SLICE_BYTES) {
    if (at > CHECKSUM_BYTES) yield;
    crc = digest.crc32(bytes.subarray(at, at + ENVELOPE_SLICE_BYTES), crc);
  }
  return openEnvelope(bytes, clusterId, { ...digest, crc32: () => crc });
}

/** Accepts any bytes; what can't be read is refused with its reason. */
export function openEnvelope(bytes: Uint8Array, clusterId: string, digest: Digest): OpenedEnvelope {
  if (bytes.length < ENVELOPE_HEADER_BYTES) return refused("truncated");
  const view = new DataView(bytes.buffer, bytes.byteOffset);
  if (view.getUint32(0) !== digest.crc32(bytes.subarray(CHECKSUM_BYTES))) return refused("malformed");
  const end = ENVELOPE_HEADER_BYTES + view.getUint32(CHECKSUM_BYTES);
  if (end > bytes.length) return refused("truncated");
  const decoded = decodeMessage(bytes.subarray(ENVELOPE_HEADER_BYTES, end), clusterId);
  const attachment = bytes.subarray(end);
  if (decoded.ok && decoded.message.type !== "MsgSnap" && attachment.length > 0) return refused("trailing");
  return { decoded, attachment };
}

function refused(reason: Extract<DecodedMessage, { ok: false }>["reason"]): OpenedEnvelope {
  return { decoded: { ok: false, reason }, attachment: NOTHING };
}
