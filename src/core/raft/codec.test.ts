import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { InvariantError } from "../kit/assert.ts";
import { ByteReader, ByteWriter, DecodeError } from "../kit/bytes.ts";
import { peerKey, type PeerKey } from "../kit/ids.ts";
import { APPEND_ENTRIES_MAX, CONF_CHANGE_OPERATIONS_MAX, ENTRY_BYTES_MAX, MESSAGE_BYTES_MAX } from "../kit/limits.ts";
import {
  decodeConfChange,
  decodeMessage,
  encodeConfChange,
  encodeMessage,
  readEntry,
  readHardState,
  readSnapshotMeta,
  writeEntry,
  writeHardState,
  writeSnapshotMeta,
} from "./codec.ts";
import { readConfiguration, writeConfiguration } from "./membership/configuration-codec.ts";
import type { ConfChange, Configuration, Entry, Message, MessageType, MsgApp } from "./types.ts";

const SEED = 2;
const CLUSTER = "cluster-7";
const A = peerKey("n1", "a1");
const B = peerKey("n2", "b2");
const C = peerKey("n3", "c3");

// ---- arbitraries -----------------------------------------------------------------------------------

const uint53 = fc.oneof(fc.maxSafeNat(), fc.nat({ max: 10 }));
const peer = fc
  .tuple(fc.stringMatching(/^[a-z0-9][a-z0-9-]{0,20}$/), fc.stringMatching(/^[0-9a-f]{1,16}$/))
  .map(([nodeId, incarnation]) => peerKey(nodeId, incarnation));
const head = { from: peer, to: peer, term: uint53 };

/** Each of six node ids has two incarnations; a role is drawn for each of them. */
const configuration: fc.Arbitrary<Configuration> = fc
  .tuple(
    fc.array(fc.record({ incoming: fc.nat(2), outgoing: fc.nat(2), learns: fc.boolean() }), {
      minLength: 1,
      maxLength: 6,
    }),
    fc.boolean(),
    fc.boolean(),
  )
  .map(([draws, joint, autoLeave]) => {
    const incarnation = (node: number, which: number): PeerKey => peerKey(`n${node}`, which === 1 ? "a" : "b");
    const voters: PeerKey[] = [];
    const outgoing: PeerKey[] = [];
    draws.forEach((draw, node) => {
      if (draw.incoming > 0 || node === 0) voters.push(incarnation(node, draw.incoming));
      if (joint && draw.outgoing > 0) outgoing.push(incarnation(node, draw.outgoing));
    });
    const learners = draws.flatMap((draw, node) => (draw.learns ? [incarnation(node, 1), incarnation(node, 2)] : []));
    return {
      voters,
      votersOutgoing: outgoing,
      learners: learners.filter((each) => !voters.includes(each) && !outgoing.includes(each)),
      learnersNext: learners.filter((each) => outgoing.includes(each) && !voters.includes(each)),
      autoLeave: autoLeave && outgoing.length > 0,
    };
  });

const append: fc.Arbitrary<MsgApp> = fc
  .record({
    ...head,
    index: fc.nat({ max: 2 ** 40 }),
    commit: uint53,
    round: uint53,
    logTerm: fc.nat({ max: 2 ** 45 }),
    steps: fc.array(
      fc.record({ climb: fc.nat({ max: 3 }), isChange: fc.boolean(), data: fc.uint8Array({ maxLength: 40 }) }),
      { maxLength: 8 },
    ),
    ahead: fc.nat({ max: 2 ** 40 }),
  })
  .map(({ from, to, index, commit, round, logTerm, steps, ahead }) => {
    let term = logTerm;
    const entries = steps.map(({ climb, isChange, data }, i): Entry => {
      term += climb;
      return { term, index: index + 1 + i, type: isChange ? "EntryConfChange" : "EntryNormal", data };
    });
    return { type: "MsgApp", from, to, term: term + ahead, index, logTerm, entries, commit, round };
  });

const messages: { readonly [T in MessageType]: fc.Arbitrary<Message> } = {
  MsgApp: append,
  MsgAppResp: fc.record({
    type: fc.constant("MsgAppResp"),
    ...head,
    index: uint53,
    reject: fc.boolean(),
    rejectHint: uint53,
    logTerm: uint53,
    round: uint53,
  }),
  MsgHeartbeat: fc.record({
    type: fc.constant("MsgHeartbeat"),
    ...head,
    commit: uint53,
    announced: uint53,
    echo: uint53,
    round: uint53,
  }),
  MsgHeartbeatResp: fc.record({
    type: fc.constant("MsgHeartbeatResp"),
    ...head,
    round: uint53,
    priority: fc.nat(255),
    willing: fc.boolean(),
    stalled: fc.boolean(),
  }),
  MsgSnap: fc
    .record({ ...head, index: uint53, snapshotTerm: uint53, configuration, round: uint53 })
    .map(({ from, to, term, index, snapshotTerm, configuration, round }) => {
      const snapshot = { index, term: Math.min(term, snapshotTerm), configuration };
      return { type: "MsgSnap", from, to, term, snapshot, round };
    }),
  MsgVote: vote("MsgVote"),
  MsgPreVote: vote("MsgPreVote"),
  MsgVoteResp: fc.record({ type: fc.constant("MsgVoteResp"), ...head, reject: fc.boolean() }),
  MsgPreVoteResp: fc.record({ type: fc.constant("MsgPreVoteResp"), ...head, reject: fc.boolean() }),
  MsgTimeoutNow: fc.record({ type: fc.constant("MsgTimeoutNow"), ...head, force: fc.boolean(), attempt: uint53 }),
  MsgTransferRefused: fc.record({ type: fc.constant("MsgTransferRefused"), ...head, attempt: uint53 }),
  MsgReadIndex: fc.record({ type: fc.constant("MsgReadIndex"), ...head, context: uint53 }),
  MsgReadIndexResp: fc.record({ type: fc.constant("MsgReadIndexResp"), ...head, context: uint53, index: uint53 }),
  MsgAskMembers: fc.record({ type: fc.constant("MsgAskMembers"), ...head }),
  MsgMembers: fc.record({
    type: fc.constant("MsgMembers"),
    ...head,
    index: uint53,
    members: fc.array(peer, { maxLength: 32 }),
    committed: fc.boolean(),
  }),
};

function vote(type: "MsgVote" | "MsgPreVote"): fc.Arbitrary<Message> {
  const fields = { index: uint53, logTerm: uint53, transfer: fc.boolean(), priority: fc.nat(255) };
  return fc.record({ type: fc.constant(type), ...head, ...fields });
}

const anyMessage = fc.oneof(...Object.values(messages));
const change: fc.Arbitrary<ConfChange> = fc.record({
  operations: fc.array(fc.record({ op: fc.constantFrom("add-voter", "add-learner", "remove"), peer }), {
    maxLength: 8,
  }),
});

// ---- messages --------------------------------------------------------------------------------------

describe("messages", () => {
  test.each(Object.keys(messages) as MessageType[])("%s comes back as it was sent", (type) => {
    fc.assert(
      fc.property(messages[type], (message) => {
        expect(decodeMessage(encodeMessage(message, CLUSTER), CLUSTER)).toEqual({ ok: true, message });
      }),
      { seed: SEED },
    );
  });

  test("every truncation is refused", () => {
    fc.assert(
      fc.property(anyMessage, (message) => {
        const bytes = encodeMessage(message, CLUSTER);
        // Without its attempt a transfer is another message; the envelope's length and checksum tell them apart.
        const another = "attempt" in message && message.attempt > 0 ? bytes.length - 8 : -1;
        for (let length = 0; length < bytes.length; length++) {
          if (length === another) continue;
          expect(decodeMessage(bytes.subarray(0, length), CLUSTER)).toEqual({ ok: false, reason: "truncated" });
        }
      }),
      { seed: SEED, numRuns: 100 },
    );
  });

  test("the first transfer of a term is written as releases read it that count none", () => {
    const head = { from: A, to: B, term: 1 } as const;
    const lengthOf = (message: Message): number => encodeMessage(message, CLUSTER).length;
    const bare = lengthOf({ type: "MsgTransferRefused", ...head, attempt: 0 });
    expect(lengthOf({ type: "MsgTimeoutNow", ...head, force: true, attempt: 0 })).toBe(bare + 1);
    expect(lengthOf({ type: "MsgTransferRefused", ...head, attempt: 3 })).toBe(bare + 8);
    const said = new Uint8Array([
      ...encodeMessage({ type: "MsgTransferRefused", ...head, attempt: 0 }, CLUSTER),
      ...new Uint8Array(8),
    ]);
    expect(decodeMessage(said, CLUSTER)).toEqual({ ok: false, reason: "malformed" });
  });

  test("random bytes are refused without throwing, after a good header too", () => {
    const header = encodeMessage({ type: "MsgTransferRefused", from: A, to: B, term: 1, attempt: 0 }, CLUSTER);
    const kindAt = 1 + 4 + CLUSTER.length;
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 300 }), fc.nat({ max: 12 }), (noise, kind) => {
        expect(decodeMessage(noise, CLUSTER).ok).toBe(false);
        const bytes = new Uint8Array([...header, ...noise]);
        bytes[kindAt] = kind;
        expectCanonical(bytes);
      }),
      { seed: SEED, numRuns: 2000 },
    );
  });

  test("a flipped bit is refused, or is another message with exactly these bytes; it never throws", () => {
    fc.assert(
      fc.property(anyMessage, fc.nat(), (message, at) => {
        const bytes = encodeMessage(message, CLUSTER).slice();
        const bit = at % (bytes.length * 8);
        bytes[bit >> 3] = (bytes[bit >> 3] as number) ^ (1 << (bit & 7));
        expectCanonical(bytes);
      }),
      { seed: SEED, numRuns: 3000 },
    );
  });

  /** One message has one encoding: whatever is accepted must encode to the bytes it came from. */
  function expectCanonical(bytes: Uint8Array): void {
    const decoded = decodeMessage(bytes, CLUSTER);
    if (decoded.ok) expect(encodeMessage(decoded.message, CLUSTER)).toEqual(bytes);
  }

  test("messages keep their bytes while others are encoded, and after one that was asserted away", () => {
    const wrong: Message = {
      type: "MsgHeartbeat",
      from: A,
      to: B,
      term: 1,
      commit: 1,
      announced: 1,
      echo: 0,
      round: -1,
    };
    fc.assert(
      fc.property(fc.array(anyMessage, { maxLength: 40, size: "max" }), (all) => {
        const encoded = all.map((message) => {
          expect(() => encodeMessage(wrong, CLUSTER)).toThrow(InvariantError);
          return encodeMessage(message, CLUSTER);
        });
        expect(encoded.map((bytes) => decodeMessage(bytes, CLUSTER))).toEqual(
          all.map((message) => ({ ok: true, message })),
        );
      }),
      { seed: SEED, numRuns: 20 },
    );
  });

  test("the format is recorded: a change of these bytes is a new format version", () => {
    const entries: Entry[] = [{ term: 2, index: 4, type: "EntryConfChange", data: new Uint8Array([0xab]) }];
    const message: Message = {
      type: "MsgApp",
      from: A,
      to: B,
      term: 5,
      index: 3,
      logTerm: 2,
      entries,
      commit: 1,
      round: 9,
    };
    expect(hexOf(encodeMessage(message, "c"))).toBe(
      "01 00000001 63 00 00000005 6e31406131 00000005 6e32406232 0000000000000005".replaceAll(" ", "") +
        "0000000000000003 0000000000000002 0000000000000001 0000000000000009 00000001".replaceAll(" ", "") +
        "0000000000000002 0000000000000004 01 00000001 ab".replaceAll(" ", ""),
    );
  });
});

describe("messages that are refused, each with its reason", () => {
  const heartbeat: Message = {
    type: "MsgHeartbeat",
    from: A,
    to: B,
    term: 7,
    commit: 1,
    announced: 1,
    echo: 0,
    round: 2,
  };
  const kindAt = 1 + 4 + CLUSTER.length;

  function reasonFor(message: Message, spoil: (bytes: Uint8Array) => Uint8Array | void): string {
    const bytes = encodeMessage(message, CLUSTER).slice();
    const decoded = decodeMessage(spoil(bytes) ?? bytes, CLUSTER);
    return decoded.ok ? "accepted" : decoded.reason;
  }

  test("another format version", () => {
    expect(reasonFor(heartbeat, (bytes) => void bytes.fill(2, 0, 1))).toBe("version");
  });
  test("another cluster", () => {
    expect(decodeMessage(encodeMessage(heartbeat, "cluster-8"), CLUSTER)).toEqual({ ok: false, reason: "cluster" });
  });
  test("an unknown kind", () => {
    expect(reasonFor(heartbeat, (bytes) => void bytes.fill(200, kindAt, kindAt + 1))).toBe("kind");
  });
  test("a peer key that is none", () => {
    expect(reasonFor(heartbeat, (bytes) => void bytes.fill(0x40, kindAt + 5, kindAt + 6))).toBe("malformed");
  });
  test("trap 31: a term above 2^53-1 is wild", () => {
    const termAt = kindAt + 1 + 2 * (4 + A.length);
    expect(reasonFor(heartbeat, (bytes) => void bytes.fill(0x20, termAt + 1, termAt + 2))).toBe("wild");
    expect(reasonFor(heartbeat, (bytes) => void bytes.fill(0xff, termAt, termAt + 8))).toBe("wild");
  });
  test("bytes after the end", () => {
    expect(reasonFor(heartbeat, (bytes) => new Uint8Array([...bytes, 0]))).toBe("trailing");
  });
  test("more bytes than a message may have", () => {
    expect(decodeMessage(new Uint8Array(MESSAGE_BYTES_MAX + 1), CLUSTER)).toEqual({ ok: false, reason: "malformed" });
  });
  test("a snapshot of a later term than its sender", () => {
    const configuration = { voters: [A], votersOutgoing: [], learners: [], learnersNext: [], autoLeave: false };
    const message: Message = {
      type: "MsgSnap",
      from: A,
      to: B,
      term: 7,
      snapshot: { index: 3, term: 7, configuration },
      round: 0,
    };
    const termAt = kindAt + 1 + 2 * (4 + A.length);
    expect(reasonFor(message, (bytes) => void bytes.fill(6, termAt + 7, termAt + 8))).toBe("malformed");
  });
});

describe("appends that no leader's log can hold", () => {
  const entry = (index: number, term: number): Entry => ({ index, term, type: "EntryNormal", data: new Uint8Array(0) });
  const good: MsgApp = {
    type: "MsgApp",
    from: A,
    to: B,
    term: 5,
    index: 10,
    logTerm: 3,
    entries: [],
    commit: 0,
    round: 0,
  };
  const bad: readonly [string, MsgApp][] = [
    ["a gap before the first entry", { ...good, entries: [entry(12, 3)] }],
    ["a gap between entries", { ...good, entries: [entry(11, 3), entry(13, 3)] }],
    ["a repeated index", { ...good, entries: [entry(11, 3), entry(11, 3)] }],
    ["a first term below the one before", { ...good, entries: [entry(11, 2)] }],
    ["a falling term", { ...good, entries: [entry(11, 4), entry(12, 3)] }],
    ["a term after the leader's", { ...good, entries: [entry(11, 6)] }],
    ["a previous term after the leader's", { ...good, logTerm: 6 }],
  ];

  test.each(bad)("%s: asserted when sent, malformed when received", (_name, message) => {
    expect(() => encodeMessage(message, CLUSTER)).toThrow(InvariantError);
    expect(decodeMessage(forgedAppend(message), CLUSTER)).toEqual({ ok: false, reason: "malformed" });
  });

  test("the forging of this test is sound: a good append passes through it", () => {
    const message = { ...good, entries: [entry(11, 3), entry(12, 5)] };
    expect(decodeMessage(forgedAppend(message), CLUSTER)).toEqual({ ok: true, message });
  });

  test("an append may carry APPEND_ENTRIES_MAX entries and not one more", () => {
    const entries = Array.from({ length: APPEND_ENTRIES_MAX + 1 }, (_, i) => entry(11 + i, 3));
    const most = { ...good, entries: entries.slice(0, -1) };
    expect(decodeMessage(forgedAppend(most), CLUSTER).ok).toBe(true);
    expect(decodeMessage(forgedAppend({ ...good, entries }), CLUSTER)).toEqual({ ok: false, reason: "malformed" });
  });

  test("an entry may have ENTRY_BYTES_MAX bytes and not one more", () => {
    const sized = (length: number): MsgApp => ({
      ...good,
      entries: [{ ...entry(11, 3), data: new Uint8Array(length) }],
    });
    expect(decodeMessage(encodeMessage(sized(ENTRY_BYTES_MAX), CLUSTER), CLUSTER).ok).toBe(true);
    expect(() => encodeMessage(sized(ENTRY_BYTES_MAX + 1), CLUSTER)).toThrow(InvariantError);
    expect(decodeMessage(forgedAppend(sized(ENTRY_BYTES_MAX + 1)), CLUSTER)).toEqual({
      ok: false,
      reason: "malformed",
    });
  });

  /** The same bytes as encodeMessage would give, without its assertions. */
  function forgedAppend(message: MsgApp): Uint8Array {
    const w = new ByteWriter();
    w.u8(1);
    w.text(CLUSTER);
    w.u8(0);
    w.text(message.from);
    w.text(message.to);
    for (const n of [message.term, message.index, message.logTerm, message.commit, message.round]) w.uint53(n);
    w.u32(message.entries.length);
    for (const { term, index, data } of message.entries) {
      w.uint53(term);
      w.uint53(index);
      w.u8(0);
      w.bytes(data);
    }
    return w.finish();
  }
});

// ---- what the log stores ---------------------------------------------------------------------------

describe("stored records", () => {
  test("entries, hard states, snapshots and configurations come back as they were written", () => {
    const hardState = fc.record({ term: uint53, vote: fc.option(peer), commit: uint53 });
    const snapshot = fc.record({ index: uint53, term: uint53, configuration });
    fc.assert(
      fc.property(append, hardState, snapshot, configuration, (message, state, meta, members) => {
        const w = new ByteWriter();
        for (const entry of message.entries) writeEntry(w, entry);
        writeHardState(w, state);
        writeSnapshotMeta(w, meta);
        writeConfiguration(w, members);
        const r = new ByteReader(w.finish());
        for (const entry of message.entries) expect(readEntry(r)).toEqual(entry);
        expect(readHardState(r)).toEqual(state);
        expect(readSnapshotMeta(r)).toEqual(meta);
        expect(readConfiguration(r)).toEqual(members);
        expect(r.remainingBytes).toBe(0);
      }),
      { seed: SEED, numRuns: 300 },
    );
  });

  test("an unknown type of entry is malformed", () => {
    const w = new ByteWriter();
    writeEntry(w, { term: 1, index: 1, type: "EntryNormal", data: new Uint8Array(0) });
    const bytes = w.finish();
    bytes[16] = 2;
    expect(() => readEntry(new ByteReader(bytes))).toThrow(DecodeError);
  });

  const many = Array.from({ length: 33 }, (_, i) => peerKey(`m${String(i).padStart(2, "0")}`, "a"));
  test.each<[string, PeerKey[], PeerKey[], PeerKey[], PeerKey[]]>([
    ["voters out of order", [B, A], [], [], []],
    ["a repeated voter", [A, A], [], [], []],
    ["a key that is none", ["n1" as PeerKey], [], [], []],
    ["more members than allowed", many, [], [], []],
    ["more members than allowed in all lists together", many.slice(0, 20), [], many.slice(20), []],
    ["members without a voter", [], [], [A], []],
    ["a learner that is also a voter", [A, B], [], [B], []],
    ["a staged learner that is no outgoing voter", [A], [B], [], [C]],
    ["two incarnations of a voter", [A, peerKey("n1", "a2")], [], [], []],
  ])("a configuration with %s is refused", (_name, voters, votersOutgoing, learners, learnersNext) => {
    const w = new ByteWriter();
    for (const peers of [voters, votersOutgoing, learners, learnersNext]) {
      w.u8(peers.length);
      for (const each of peers) w.text(each);
    }
    w.bool(false);
    expect(() => readConfiguration(new ByteReader(w.finish()))).toThrow(DecodeError);
    const broken = { voters, votersOutgoing, learners, learnersNext, autoLeave: false };
    expect(() => writeConfiguration(new ByteWriter(), broken)).toThrow(InvariantError);
  });
});

describe("membership changes", () => {
  test("come back as they were encoded, and no truncation or extension does", () => {
    fc.assert(
      fc.property(change, (each) => {
        const bytes = encodeConfChange(each);
        expect(decodeConfChange(bytes)).toEqual(each);
        for (let length = 0; length < bytes.length; length++) {
          expect(decodeConfChange(bytes.subarray(0, length))).toBeNull();
        }
        expect(decodeConfChange(new Uint8Array([...bytes, 0]))).toBeNull();
      }),
      { seed: SEED },
    );
  });

  test("random bytes never throw", () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 60 }), fc.nat({ max: 70 }), (noise, count) => {
        expect(decodeConfChange(noise)).toBeNull();
        const bytes = new Uint8Array([1, count, ...noise]);
        const decoded = decodeConfChange(bytes);
        if (decoded !== null) expect(encodeConfChange(decoded)).toEqual(bytes);
      }),
      { seed: SEED, numRuns: 1000 },
    );
  });

  test("one operation above the bound is refused", () => {
    const operations = Array.from({ length: CONF_CHANGE_OPERATIONS_MAX }, () => ({ op: "remove" as const, peer: A }));
    const bytes = encodeConfChange({ operations });
    expect(decodeConfChange(bytes)).toEqual({ operations });
    const one = encodeConfChange({ operations: operations.slice(0, 1) }).subarray(2);
    const longer = new Uint8Array([...bytes, ...one]);
    longer[1] = CONF_CHANGE_OPERATIONS_MAX + 1;
    expect(decodeConfChange(longer)).toBeNull();
  });
});

function hexOf(bytes: Uint8Array): string {
  return [...bytes].map((byte) => byte.toString(16).padStart(2, "0")).join("");
}
