// What the tests of the storage share: a founder of two voters, and short words for its requests.

import { peerKey } from "../core/kit/ids.ts";
import type { Configuration, Entry, HardState, PersistRequest, SnapshotMeta } from "../core/raft/types.ts";
import { wholeOf } from "../core/kit/pieces.ts";
import { recover, type Recovery, snapshotHead } from "../core/wal/index.ts";
import type { Digest } from "../ports/digest.ts";
import { readDirectory } from "./storage-layout.ts";
import type { TestDisk } from "./test-disk.ts";
import { Storage, type Opened, type OpenOptions } from "./storage.ts";

/** Table-driven, because this room touches no Node; core/wal's tests run the same format on zlib's. */
export const digest: Digest = {
  crc32: (bytes, seed = 0) => {
    let crc = ~seed;
    for (let at = 0; at < bytes.length; at++) crc = CRC_TABLE[(crc ^ bytes[at]!) & 0xff]! ^ (crc >>> 8);
    return ~crc >>> 0;
  },
  sha256: noHashes,
  sha256Hex: noHashes,
};
function noHashes(): never {
  throw new Error("the storage takes checksums, not hashes");
}
const CRC_TABLE = Uint32Array.from({ length: 256 }, (_, byte) => {
  let crc = byte;
  for (let bit = 0; bit < 8; bit++) crc = (crc >>> 1) ^ ((crc & 1) * 0xedb88320);
  return crc;
});

export const n1 = peerKey("n1", "a1");
export const n2 = peerKey("n2", "a2");
export const configuration: Configuration = {
  voters: [n1, n2],
  votersOutgoing: [],
  learners: [],
  learnersNext: [],
  autoLeave: false,
};
export const bootstrap = { incarnation: "a1", configuration };

let incarnations = 0;
const newIncarnation = (): string => (0xb000 + ++incarnations).toString(16);

/** Without a reservation, unless one is asked for: then a file ends where its log does. */
export function open(disk: TestDisk, options: Partial<OpenOptions> = {}): Promise<Opened> {
  const names = { clusterId: "c", nodeId: "n1", newIncarnation, bootstrap };
  return Storage.open({ disk, digest, ...names, reserveBytes: 0, ...options });
}

/** Where the last whole frame of a segment ends. */
export function logEndOf(bytes: Uint8Array): number {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
  let at = 0;
  while (at < bytes.length && bytes[at] !== 0) at += 14 + view.getUint32(at + 10);
  return at;
}

/** As it is sent. */
export function sentSnapshot(meta: SnapshotMeta, data: Uint8Array): Uint8Array {
  return wholeOf([snapshotHead(meta, { bytes: data.length, crc: digest.crc32(data) }, digest), data]);
}

export function entry(index: number, term: number, text = `e${index}`): Entry {
  return { index, term, type: "EntryNormal", data: new TextEncoder().encode(text) };
}

export function request(fields: Partial<PersistRequest>): PersistRequest {
  return { sequence: 0, snapshot: null, hardState: null, entries: [], mustSync: true, afterSync: [], ...fields };
}

export function hardState(term: number, commit: number, vote = n1): HardState {
  return { term, vote, commit };
}

export function snapshotAt(index: number, term: number): SnapshotMeta {
  return { index, term, configuration };
}

export const bytesOf = (text: string): Uint8Array => new TextEncoder().encode(text);

export async function verdictOn(disk: TestDisk): Promise<Recovery> {
  return recover({ clusterId: "c", nodeId: "n1", ...(await readDirectory(disk)) }, digest);
}

/** Founder with three synced batches, the last of which no later one testifies to. */
export async function written(disk: TestDisk, options: Partial<OpenOptions> = {}): Promise<Storage> {
  const { storage } = await open(disk, options);
  await storage.persist([request({ hardState: hardState(2, 1), entries: [entry(2, 2), entry(3, 2)] })], null);
  await storage.persist([request({ hardState: hardState(2, 3), entries: [entry(4, 2)] })], null);
  await storage.persist([request({ hardState: hardState(3, 3, n2), entries: [entry(5, 3)] })], null);
  return storage;
}
