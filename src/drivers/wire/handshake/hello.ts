// The handshake's three frames. The dialler says hello; the other acknowledges, or refuses with a reason, and closes.
//
//   hello:  magic | u8 protocol min | u8 protocol max | u8 purpose | cluster | node | incarnation | address | API | lease
//           | mark of its process | ""
//   ack:    magic | u8 protocol     | cluster | node | incarnation | address | API | lease | peers it is connected to
//   refuse: reason | text
//
// The mark came with version 3: a hello without it is one of an older release. The empty text is read by those that expect one.
//
// Magic and protocol come first in every version, so that versions with nothing in common can still tell each other so.
// Bytes after the last known field are ignored: a later version may add fields without a new number.

import { ByteReader, ByteWriter, DecodeError } from "../../../core/kit/bytes.ts";
import { parsePeerKey } from "../../../core/kit/ids.ts";
import { CLUSTER_ID_BYTES_MAX, PEER_KEY_BYTES_MAX } from "../../../core/kit/limits.ts";
import { parseAddress } from "../address.ts";
import * as limits from "../limits.ts";
import { isRefusalReason, type RefusalReason } from "../refusals.ts";

const MAGIC = "tenure-peer";
/**
 * 1: messages, beacons, bulks. 2: also queries and their answers, on a connection for which both sides agreed on it. 3: the mark
 * of the process in the hello (boots.ts). 4: the same frames; who says so reads records of revoked certificates. 5: the same frames;
 * who says so reads records of the mesh: registered sites, and what other sites sent. 6: the same frames; who says so reads records of values.
 * 7: the same frames; who says so reads records of transactions.
 */
export const PROTOCOL_MIN = 1;
export const PROTOCOL_MAX = 7;
export const PROTOCOL_OF_QUERIES = 2;
export const PROTOCOL_OF_REVOCATIONS = 4;
export const PROTOCOL_OF_MESH = 5;
export const PROTOCOL_OF_VALUES = 6;
export const PROTOCOL_OF_TRANSACTIONS = 7;

/** `peer`: messages and beacons. `bulk`: one large message. `ask`: which cluster is this? */
export const PURPOSES = ["peer", "bulk", "ask"] as const;
export type Purpose = (typeof PURPOSES)[number];

export interface Introduction {
  readonly clusterId: string;
  readonly nodeId: string;
  /** "" with `ask`: a node that has no disk yet. */
  readonly incarnation: string;
  /** Where it listens for peers; "" with `ask`. */
  readonly address: string;
  readonly apiUrl: string | null;
  readonly leaseEnabled: boolean;
}

export interface Hello extends Introduction {
  readonly protocolMin: number;
  readonly protocolMax: number;
  readonly purpose: Purpose;
  /** Drawn by its process at the start (boots.ts). */
  readonly mark?: string | undefined;
}

export interface Ack extends Introduction {
  readonly protocol: number;
  /** Whom it is connected to: node id and address. */
  readonly peers: readonly (readonly [string, string])[];
}

export interface Refuse {
  readonly reason: RefusalReason;
  readonly message: string;
}

export type Decoded<T> = { readonly ok: true; readonly value: T } | ({ readonly ok: false } & Refuse);

export function encodeHello(hello: Hello): Uint8Array {
  const writer = new ByteWriter(256);
  writer.text(MAGIC);
  writer.u8(hello.protocolMin);
  writer.u8(hello.protocolMax);
  writer.u8(PURPOSES.indexOf(hello.purpose) + 1);
  writeIntroduction(writer, hello);
  if (hello.mark !== undefined) {
    writer.text(hello.mark);
    writer.text("");
  }
  return writer.finish();
}

export function decodeHello(bytes: Uint8Array): Decoded<Hello> {
  return decoded(bytes, (reader) => {
    const protocolMin = reader.u8();
    const protocolMax = reader.u8();
    if (commonProtocol(protocolMin, protocolMax) === null) return protocolRefusal(protocolMin, protocolMax);
    const purpose = PURPOSES[reader.u8() - 1];
    if (purpose === undefined) throw new DecodeError("malformed", "an unknown purpose");
    const introduction = readIntroduction(reader, purpose === "ask");
    const hello = { protocolMin, protocolMax, purpose, ...introduction };
    if (reader.remainingBytes === 0) return { ok: true, value: hello };
    return { ok: true, value: { ...hello, mark: reader.text(limits.MARK_BYTES_MAX) } };
  });
}

export function encodeAck(ack: Ack): Uint8Array {
  const writer = new ByteWriter(256);
  writer.text(MAGIC);
  writer.u8(ack.protocol);
  writeIntroduction(writer, ack);
  const told: (readonly [string, string])[] = [];
  let bytes = 0;
  for (const peer of ack.peers.slice(0, limits.PEERS_TOLD_MAX)) {
    bytes += peer[0].length + peer[1].length + 8;
    if (bytes <= limits.PEERS_TOLD_BYTES_MAX) told.push(peer);
  }
  writer.u8(told.length);
  for (const [nodeId, address] of told) {
    writer.text(nodeId);
    writer.text(address);
  }
  return writer.finish();
}

export function decodeAck(bytes: Uint8Array): Decoded<Ack> {
  return decoded(bytes, (reader) => {
    const protocol = reader.u8();
    if (commonProtocol(protocol, protocol) === null) return protocolRefusal(protocol, protocol);
    const introduction = readIntroduction(reader, false);
    const count = reader.u8();
    if (count > limits.PEERS_TOLD_MAX) throw new DecodeError("malformed", `${count} peers`);
    const peers = Array.from({ length: count }, () => {
      const nodeId = readNodeId(reader);
      return [nodeId, readAddress(reader)] as const;
    });
    return { ok: true, value: { protocol, ...introduction, peers } };
  });
}

export function encodeRefuse({ reason, message }: Refuse): Uint8Array {
  const writer = new ByteWriter(256);
  writer.text(reason);
  writer.text(message.toWellFormed().slice(0, limits.REASON_BYTES_MAX / 4));
  return writer.finish();
}

/** A reason that a later version may have invented is told as `other`. */
export function decodeRefuse(bytes: Uint8Array): Refuse | undefined {
  try {
    const reader = new ByteReader(bytes);
    const reason = reader.text(limits.REASON_BYTES_MAX);
    // It ends in our log: no line breaks, no escapes.
    const message = reader.text(limits.REASON_BYTES_MAX).replaceAll(/[\p{Cc}\p{Cf}\u2028\u2029]/gu, "?");
    return { reason: isRefusalReason(reason) ? reason : "other", message };
  } catch (error) {
    if (error instanceof DecodeError) return undefined;
    throw error;
  }
}

/** The highest version that both speak. */
export function commonProtocol(min: number, max: number): number | null {
  const highest = Math.min(max, PROTOCOL_MAX);
  return highest >= Math.max(min, PROTOCOL_MIN) ? highest : null;
}

function protocolRefusal(min: number, max: number): { readonly ok: false } & Refuse {
  const message = `one side speaks version ${range(min, max)} of the protocol, the other ${range(PROTOCOL_MIN, PROTOCOL_MAX)}; upgrade the older one`;
  return { ok: false, reason: "protocol", message };
}

function range(from: number, to: number): string {
  return from === to ? `${from}` : `${from} to ${to}`;
}

function decoded<T>(bytes: Uint8Array, read: (reader: ByteReader) => Decoded<T>): Decoded<T> {
  try {
    const reader = new ByteReader(bytes);
    if (reader.text(MAGIC.length) !== MAGIC) throw new DecodeError("malformed", "another magic");
    return read(reader);
  } catch (error) {
    if (!(error instanceof DecodeError)) throw error;
    return { ok: false, reason: "garbage", message: `the handshake can't be read (${error.message})` };
  }
}

function writeIntroduction(writer: ByteWriter, introduction: Introduction): void {
  writer.text(introduction.clusterId);
  writer.text(introduction.nodeId);
  writer.text(introduction.incarnation);
  writer.text(introduction.address);
  writer.text(introduction.apiUrl ?? "");
  writer.bool(introduction.leaseEnabled);
}

function readIntroduction(reader: ByteReader, asks: boolean): Introduction {
  const clusterId = reader.text(CLUSTER_ID_BYTES_MAX);
  const nodeId = readNodeId(reader);
  const incarnation = reader.text(PEER_KEY_BYTES_MAX);
  if (!asks && parsePeerKey(`${nodeId}@${incarnation}`) === undefined) {
    throw new DecodeError("malformed", "an incarnation that is none");
  }
  const address = asks ? reader.text(limits.ADDRESS_BYTES_MAX) : readAddress(reader);
  const apiUrl = reader.text(limits.URL_BYTES_MAX);
  if (apiUrl !== "" && !/^https?:\/\/[\x21-\x7e]+$/.test(apiUrl))
    throw new DecodeError("malformed", "a URL that is none");
  return {
    clusterId,
    nodeId,
    incarnation,
    address,
    apiUrl: apiUrl === "" ? null : apiUrl,
    leaseEnabled: reader.bool(),
  };
}

function readNodeId(reader: ByteReader): string {
  const nodeId = reader.text(PEER_KEY_BYTES_MAX);
  if (parsePeerKey(`${nodeId}@0`) === undefined) throw new DecodeError("malformed", "a node id that is none");
  return nodeId;
}

function readAddress(reader: ByteReader): string {
  const address = reader.text(limits.ADDRESS_BYTES_MAX);
  if (parseAddress(address) === undefined) throw new DecodeError("malformed", "an address that is none");
  return address;
}
