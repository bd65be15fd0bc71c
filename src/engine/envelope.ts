// What travels on the wire: a Raft message, and behind it, for MsgSnap alone, the snapshot's contents.
//   CRC-32 of all that follows (u32) | message bytes (u32, big-endian) | message | snapshot file
// TLS authenticates what it carries; the checksum is for what it does not see, a flipped bit in a buffer
// before or behind it, because an entry that changed on its way would be committed as it arrived.

import { decodeMessage, encodeMessage, type DecodedMessage, type Message } from "../core/raft/index.ts";
import type { Digest } from "../ports/digest.ts";

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
