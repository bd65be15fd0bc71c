// One of each kind of what nodes say to each other and write down, as bytes and as what they mean. `write.ts` stores them once for
// each release; the test reads what was stored with the code of today.

import {
  decodeHistoryQuery,
  decodeStart,
  encodeSegmentQuery,
  encodeStart,
  encodeStartQuery,
} from "../../src/core/archive/index.ts";
import { peerKey } from "../../src/core/kit/ids.ts";
import { decodeConfChange, decodeMessage, encodeConfChange, encodeMessage } from "../../src/core/raft/codec.ts";
import type { ConfChange, Entry, Message } from "../../src/core/raft/index.ts";
import { decodeEvent, encodeEvent, type ScopeEvent } from "../../src/core/scopes/index.ts";
import { decodeStampFile, encodeStampFile, type Stamp, type StampPhase } from "../../src/core/wal/index.ts";
import { decodeBeacon, encodeBeacon } from "../../src/controller/cluster/beacon.ts";
import type { Beacon } from "../../src/core/health/index.ts";
import { systemDigest as digest } from "../../src/drivers/system/digest.ts";
import { FRAME, FRAME_HEADER_BYTES, frame, type FrameType } from "../../src/drivers/wire/frame.ts";
import {
  type Ack,
  decodeAck,
  decodeHello,
  decodeRefuse,
  encodeAck,
  encodeHello,
  encodeRefuse,
  type Hello,
  type Refuse,
} from "../../src/drivers/wire/handshake/hello.ts";

const CLUSTER = "c-compat";

/** What is stored of one. */
export interface StoredFrame {
  readonly name: string;
  readonly kind: FrameKind;
  readonly hex: string;
  readonly means: unknown;
}

export type FrameKind = keyof typeof CODECS;

interface Codec<T> {
  readonly encode: (value: T) => Uint8Array;
  /** Null, or what is no such thing: it can't be read. */
  readonly decode: (bytes: Uint8Array) => T | null;
}

const codec = <T>(encode: (value: T) => Uint8Array, decode: (bytes: Uint8Array) => T | null): Codec<T> => ({
  encode,
  decode,
});

/** With the header that it has on the wire. */
function framed<T>(type: FrameType, { encode, decode }: Codec<T>): Codec<T> {
  return {
    encode: (value) => frame(type, encode(value)),
    decode: (bytes) => {
      const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
      if (view.getUint32(0) !== bytes.length - FRAME_HEADER_BYTES || view.getUint8(4) !== type) return null;
      return decode(bytes.slice(FRAME_HEADER_BYTES));
    },
  };
}

const valueOf = <T>(read: { readonly ok: true; readonly value: T } | { readonly ok: false }): T | null =>
  read.ok ? read.value : null;

export const CODECS = {
  hello: framed(
    FRAME.hello,
    codec<Hello>(encodeHello, (bytes) => valueOf(decodeHello(bytes))),
  ),
  ack: framed(
    FRAME.ack,
    codec<Ack>(encodeAck, (bytes) => valueOf(decodeAck(bytes))),
  ),
  refuse: framed(
    FRAME.refuse,
    codec<Refuse>(encodeRefuse, (bytes) => decodeRefuse(bytes) ?? null),
  ),
  message: framed(
    FRAME.message,
    codec<Message>(
      (message) => encodeMessage(message, CLUSTER),
      (bytes) => {
        const read = decodeMessage(bytes, CLUSTER);
        return read.ok ? read.message : null;
      },
    ),
  ),
  beacon: framed(
    FRAME.beacon,
    codec<Beacon>(
      (beacon) => encodeBeacon(beacon, digest),
      (bytes) => decodeBeacon(bytes, digest),
    ),
  ),
  query: codec((query: ReturnType<typeof decodeHistoryQuery>) => {
    return query?.kind === "segment" ? encodeSegmentQuery(query) : encodeStartQuery();
  }, decodeHistoryQuery),
  start: codec<number>(encodeStart, decodeStart),
  confChange: codec<ConfChange>(encodeConfChange, decodeConfChange),
  scopeEvent: codec<ScopeEvent>(encodeEvent, (bytes) => {
    const event = decodeEvent(bytes);
    return event.kind === "malformed" || event.kind === "later-version" ? null : event;
  }),
  stamp: codec<{ readonly stamp: Stamp; readonly phase: StampPhase }>(
    ({ stamp, phase }) => encodeStampFile(stamp, phase, digest),
    (bytes) => {
      const read = decodeStampFile(bytes, digest);
      return read.kind === "stamp" ? { stamp: read.stamp, phase: read.phase } : null;
    },
  ),
} as const;

/** As JSON tells it, in the order of names: bytes are hex. */
function meaning(value: unknown): unknown {
  if (value instanceof Uint8Array) return hexOf(value);
  if (Array.isArray(value)) return value.map(meaning);
  if (typeof value !== "object" || value === null) return value;
  const sorted = Object.entries(value).toSorted(([one], [other]) => (one < other ? -1 : 1));
  return Object.fromEntries(sorted.map(([name, one]) => [name, meaning(one)]));
}

function hexOf(bytes: Uint8Array): string {
  return Buffer.from(bytes).toString("hex");
}

// ---- one of each -----------------------------------------------------------------------------------------

const [A, B, C] = [peerKey("n1", "a1"), peerKey("n2", "b2"), peerKey("n3", "c3")];
const HEAD = { from: A, to: B, term: 7 };
const ENTRIES: readonly Entry[] = [
  { term: 6, index: 41, type: "EntryNormal", data: new Uint8Array() },
  { term: 7, index: 42, type: "EntryNormal", data: new TextEncoder().encode("data") },
  { term: 7, index: 43, type: "EntryConfChange", data: encodeConfChange({ operations: [] }) },
];
const CONFIGURATION = { voters: [A, B], votersOutgoing: [A], learners: [C], learnersNext: [], autoLeave: true };
const MESSAGES: readonly Message[] = [
  { type: "MsgApp", ...HEAD, index: 40, logTerm: 6, entries: ENTRIES, commit: 41, round: 12 },
  { type: "MsgAppResp", ...HEAD, index: 40, reject: true, rejectHint: 39, logTerm: 5, round: 12 },
  { type: "MsgHeartbeat", ...HEAD, commit: 41, announced: 42, echo: 11, round: 12 },
  { type: "MsgHeartbeatResp", ...HEAD, round: 12, priority: 3, willing: false, stalled: true },
  { type: "MsgSnap", ...HEAD, snapshot: { index: 30, term: 5, configuration: CONFIGURATION }, round: 12 },
  { type: "MsgVote", ...HEAD, index: 43, logTerm: 7, transfer: true, priority: 2 },
  { type: "MsgPreVote", ...HEAD, index: 43, logTerm: 7, transfer: false, priority: 2 },
  { type: "MsgVoteResp", ...HEAD, reject: true },
  { type: "MsgPreVoteResp", ...HEAD, reject: false },
  { type: "MsgTimeoutNow", ...HEAD, force: true, attempt: 4 },
  { type: "MsgTransferRefused", ...HEAD, attempt: 4 },
  { type: "MsgReadIndex", ...HEAD, context: 9 },
  { type: "MsgReadIndexResp", ...HEAD, context: 9, index: 43 },
];
const WHO = { clusterId: CLUSTER, nodeId: "n1", incarnation: "a1", address: "127.0.0.1:7400" };
const INTRODUCTION = { ...WHO, apiUrl: "http://127.0.0.1:7401", leaseEnabled: false };
const BEACON: Beacon = {
  role: "leader",
  term: 7,
  leader: A,
  established: true,
  handedTerm: 6,
  applied: 43,
  chain: [{ index: 43, hash: 0x89abcdef }],
  wallMs: 1_790_000_000_000,
};
const SCOPE = { scope: "payments", atMs: 1_790_000_000_000 };
const STAMP: Stamp = { clusterId: CLUSTER, nodeId: "n1", incarnation: "a1" };

function made<Kind extends FrameKind>(
  kind: Kind,
  value: Parameters<(typeof CODECS)[Kind]["encode"]>[0],
  more = "",
): StoredFrame {
  const encode = CODECS[kind].encode as (value: unknown) => Uint8Array;
  return { name: `${kind}${more === "" ? "" : ` ${more}`}`, kind, hex: hexOf(encode(value)), means: meaning(value) };
}

export function allFrames(): StoredFrame[] {
  return [
    ...(["peer", "bulk", "ask"] as const).map((purpose) =>
      made("hello", { ...INTRODUCTION, protocolMin: 1, protocolMax: 2, purpose }, purpose),
    ),
    made("ack", { ...INTRODUCTION, apiUrl: null, protocol: 2, peers: [["n2", "127.0.0.1:7402"]] }),
    made("refuse", { reason: "protocol", message: "speak another" }),
    ...MESSAGES.map((message) => made("message", message, message.type)),
    made("beacon", BEACON),
    made("query", { kind: "segment", first: 65, offsetBytes: 1_024, bytesMax: 4_096 }, "segment"),
    made("query", { kind: "start" }, "start"),
    made("start", 64),
    made("confChange", {
      operations: [
        { op: "add-voter", peer: B },
        { op: "add-learner", peer: C },
        { op: "remove", peer: A },
      ],
    }),
    made("scopeEvent", {
      kind: "granted",
      ...SCOPE,
      session: "s-1",
      identity: "i-1",
      metadata: { zone: "a" },
      ttlMs: 5_000,
    }),
    ...(["resigned", "expired", "forced", "resign-requested"] as const).map((kind) =>
      made("scopeEvent", { kind, ...SCOPE, epoch: 7 }, kind),
    ),
    ...(["founding", "joining", "replacing", "ready", "recovering"] as const).map((phase) =>
      made("stamp", { stamp: STAMP, phase }, phase),
    ),
  ];
}

/** What is wrong with it, read by the code of today; null: nothing. */
export function problemOf({ name, kind, hex, means }: StoredFrame): string | null {
  const { encode, decode } = CODECS[kind] as Codec<unknown>;
  const value = decode(new Uint8Array(Buffer.from(hex, "hex")));
  if (value === null) return `${name} can't be read any more`;
  const now = JSON.stringify(meaning(value));
  if (now !== JSON.stringify(means)) return `${name} meant ${JSON.stringify(means)}, and means ${now}`;
  const again = hexOf(encode(value));
  return again === hex ? null : `${name} was ${hex}, and is written as ${again}`;
}
