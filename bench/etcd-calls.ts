// The calls of etcd's gRPC API that the benchmarks make, encoded by hand (protobuf: field number and kind, then the
// value), and the little of their answers that they read.

import type { GrpcConnection } from "./grpc.ts";

export const PUT = "/etcdserverpb.KV/Put";
export const TXN = "/etcdserverpb.KV/Txn";
const STATUS = "/etcdserverpb.Maintenance/Status";
const MOVE_LEADER = "/etcdserverpb.Maintenance/MoveLeader";

const LENGTH_DELIMITED = 2;

/** PutRequest: key = 1, value = 2. */
export function encodePut(key: Uint8Array, value: Uint8Array): Buffer {
  return Buffer.concat([tag(1), varint(BigInt(key.length)), key, tag(2), varint(BigInt(value.length)), value]);
}

const COMPARE_EQUAL = 0n;
const COMPARE_CREATED = 1n;

/**
 * Puts where the guard was created at this revision. TxnRequest: compare = 1 {result = 1, target = 2, key = 3, create_revision = 5}, success = 2
 * {request_put = 2}.
 */
export function compareAndPut(guard: Uint8Array, revision: bigint, key: Uint8Array, value: Uint8Array): Buffer {
  const numbers = [
    numbered(1, COMPARE_EQUAL),
    numbered(2, COMPARE_CREATED),
    delimited(3, guard),
    numbered(5, revision),
  ];
  const put = delimited(2, encodePut(key, value));
  return Buffer.concat([delimited(1, Buffer.concat(numbers)), delimited(2, put)]);
}

/** Of the store, after a put. PutResponse: header = 1 {revision = 3}. */
export function revisionOf(message: Buffer): bigint {
  const header = readFields(message).get(1);
  const revision = Buffer.isBuffer(header) ? readFields(header).get(3) : undefined;
  if (typeof revision !== "bigint") throw new RangeError("etcd's answer has no revision");
  return revision;
}

/** TxnResponse: succeeded = 2. */
export function succeededOf(message: Buffer): boolean {
  return readFields(message).get(2) === 1n;
}

export interface EtcdStatus {
  readonly memberId: bigint;
  readonly leaderId: bigint;
  readonly version: string;
}

/** Null where it did not answer. StatusResponse: header = 1 {member_id = 2}, version = 2, leader = 4. */
export async function etcdStatus(connection: GrpcConnection): Promise<EtcdStatus | null> {
  const outcome = await connection.call(STATUS, new Uint8Array(0));
  if (outcome.kind !== "answered") return null;
  const fields = readFields(outcome.message);
  const header = fields.get(1);
  const memberId = Buffer.isBuffer(header) ? readFields(header).get(2) : undefined;
  const version = fields.get(2);
  const leaderId = fields.get(4);
  return {
    memberId: typeof memberId === "bigint" ? memberId : 0n,
    leaderId: typeof leaderId === "bigint" ? leaderId : 0n,
    version: Buffer.isBuffer(version) ? version.toString() : "",
  };
}

/** Asked of the leader. MoveLeaderRequest: targetID = 1. */
export async function moveLeader(connection: GrpcConnection, targetId: bigint): Promise<boolean> {
  const message = Buffer.concat([Buffer.from([1 << 3]), varint(targetId)]);
  return (await connection.call(MOVE_LEADER, message)).kind === "answered";
}

function numbered(field: number, value: bigint): Buffer {
  return Buffer.concat([Buffer.from([field << 3]), varint(value)]);
}

function delimited(field: number, bytes: Uint8Array): Buffer {
  return Buffer.concat([tag(field), varint(BigInt(bytes.length)), bytes]);
}

function tag(field: number): Buffer {
  return Buffer.from([(field << 3) | LENGTH_DELIMITED]);
}

function varint(value: bigint): Buffer {
  const bytes: number[] = [];
  let rest = value;
  while (rest >= 0x80n) {
    bytes.push(Number(rest & 0x7fn) | 0x80);
    rest >>= 7n;
  }
  bytes.push(Number(rest));
  return Buffer.from(bytes);
}

/** Varints and strings; nothing else is in the answers that are read here. */
function readFields(bytes: Buffer): Map<number, bigint | Buffer> {
  const fields = new Map<number, bigint | Buffer>();
  let at = 0;
  const next = (): bigint => {
    let value = 0n;
    for (let shift = 0n; ; shift += 7n) {
      const byte = bytes[at++];
      if (byte === undefined) throw new RangeError("etcd's answer ends in the middle of a number");
      value |= BigInt(byte & 0x7f) << shift;
      if (byte < 0x80) return value;
    }
  };
  while (at < bytes.length) {
    const head = Number(next());
    const value = next();
    if ((head & 7) !== LENGTH_DELIMITED) fields.set(head >> 3, value);
    else {
      fields.set(head >> 3, bytes.subarray(at, at + Number(value)));
      at += Number(value);
    }
  }
  return fields;
}
