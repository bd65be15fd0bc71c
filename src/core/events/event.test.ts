import { createHash } from "node:crypto";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { systemDigest as digest } from "../../drivers/system/digest.ts";
import type { Json } from "../kit/json.ts";
import { ENTRY_BYTES_MAX, EVENT_TIMESTAMP_MAX } from "../kit/limits.ts";
import { canonicalJson } from "./canonical.ts";
import { EventScanner } from "./event-scanner.ts";
import { decodeEvent, encodeEvent, eventHashOf, type StoredEvent } from "./event.ts";
import { draftOf } from "./test-events.ts";

const stored: StoredEvent = {
  ...draftOf(2),
  sequence: 2,
  sourceControllerId: "c1.0",
  previousHash: "0123456789abcdef".repeat(4),
  leaderEpoch: 7,
};

const asJson = (event: StoredEvent): Json => event as unknown as Json;
const bytesOf = (value: unknown): Uint8Array => new TextEncoder().encode(canonicalJson(value as Json));
const problemOf = (bytes: Uint8Array): string => {
  const read = decodeEvent(bytes);
  return read.kind === "malformed" ? read.problem : "none";
};

describe("an event's bytes", () => {
  test("are the canonical JSON of all its fields but its hash", () => {
    expect(new TextDecoder().decode(encodeEvent(stored))).toBe(canonicalJson(asJson(stored)));
    const first: StoredEvent = { ...stored, sequence: 1, previousHash: null, timestamp: 1_790_000_000_000.004 };
    expect(new TextDecoder().decode(encodeEvent(first))).toBe(canonicalJson(asJson(first)));
  });

  test("are hashed as they are, behind a domain tag, whatever their size", () => {
    for (const length of [0, 1, 400, 64 * 1024, 64 * 1024 + 1]) {
      const bytes = new Uint8Array(length).fill(120);
      const expected = createHash("sha256").update("tenure:event:v1\n").update(bytes).digest("hex");
      expect(eventHashOf(bytes, digest)).toBe(expected);
    }
  });

  test("are read back as the same event", () => {
    expect(decodeEvent(encodeEvent(stored))).toEqual({ kind: "event", event: stored });
  });

  test.each(["build:submitted", "site-2:re-joined", `${"x".repeat(32)}:${"y".repeat(32)}`])(
    "%s belongs to the entity that it names, whoever knows it",
    (eventType) => {
      const entityType = eventType.slice(0, eventType.indexOf(":"));
      const scanner = new EventScanner();
      expect(problemOf(bytesOf({ ...stored, eventType, entityType }))).toBe("none");
      expect(scanner.scan(bytesOf({ ...stored, eventType, entityType }))).toBeNull();
      for (const other of ["other", entityType.slice(1), `${entityType}a`]) {
        expect(problemOf(bytesOf({ ...stored, eventType, entityType: other }))).toContain("entityType is not");
        expect(scanner.scan(bytesOf({ ...stored, eventType, entityType: other }))).not.toBeNull();
      }
    },
  );

  const NO_TYPES = [
    "",
    "build",
    "build:",
    ":submitted",
    "Build:done",
    "build:é",
    "build:a:b",
    "2build:x",
    "-b:x",
    "b:-x",
  ];
  test.each([...NO_TYPES, `${"x".repeat(33)}:y`, `x:${"y".repeat(33)}`])("%j is no type", (eventType) => {
    const entityType = eventType.split(":", 1)[0];
    expect(problemOf(bytesOf({ ...stored, eventType, entityType }))).toContain("eventType is not");
    expect(new EventScanner().scan(bytesOf({ ...stored, eventType, entityType }))).not.toBeNull();
  });
});

/** Each is one change of a good event, and what is said about it. */
const WRONG: readonly (readonly [Record<string, unknown>, string])[] = [
  [{ eventHash: "00" }, 'an unknown field "eventHash"'],
  [{ __proto__x: 1 }, 'an unknown field "__proto__x"'],
  [{ entityId: "" }, "entityId is not a text"],
  [{ entityId: "é".repeat(129) }, "entityId is not a text"],
  [{ entityId: 5 }, "entityId is not a text"],
  [{ eventType: "build exploded" }, "eventType is not"],
  [{ eventType: null }, "eventType is not"],
  [{ entityType: "worker" }, 'entityType is not "build"'],
  [{ id: "x".repeat(65) }, "id is not a text"],
  [{ leaderEpoch: 0 }, "leaderEpoch is not"],
  [{ leaderEpoch: 1.5 }, "leaderEpoch is not"],
  [{ leaderEpoch: "7" }, "leaderEpoch is not"],
  [{ payload: [] }, "payload is not"],
  [{ payload: null }, "payload is not"],
  [{ payload: "{}" }, "payload is not"],
  [{ sequence: 0 }, "sequence is not"],
  [{ sequence: -2 }, "sequence is not"],
  [{ sequence: 2.5 }, "sequence is not"],
  [{ sequence: null }, "sequence is not"],
  [{ sequence: 1 }, "previousHash is null for"],
  [{ previousHash: null }, "previousHash is null for"],
  [{ previousHash: "0".repeat(63) }, "previousHash is not a hash"],
  [{ previousHash: "A".repeat(64) }, "previousHash is not a hash"],
  [{ previousHash: "0".repeat(65) }, "previousHash is not a hash"],
  [{ previousHash: 5 }, "previousHash is not a hash"],
  [{ sourceControllerId: "" }, "sourceControllerId is not"],
  [{ sourceControllerId: "x".repeat(257) }, "sourceControllerId is not"],
  [{ timestamp: 0 }, "timestamp is not"],
  [{ timestamp: -1 }, "timestamp is not"],
  [{ timestamp: EVENT_TIMESTAMP_MAX + 1 }, "timestamp is not"],
  [{ timestamp: "1790000000000" }, "timestamp is not"],
];

describe("trap 57: a reader of events refuses", () => {
  test.each(WRONG)("%j", (change, problem) => {
    const bytes = bytesOf({ ...stored, ...change });
    expect(problemOf(bytes)).toContain(problem);
    expect(new EventScanner().scan(bytes)).not.toBeNull();
  });

  test.each(Object.keys(stored))("an event without %s", (field) => {
    const { [field as keyof StoredEvent]: _, ...rest } = stored;
    expect(problemOf(bytesOf(rest))).toContain(`${field} is missing`);
    expect(new EventScanner().scan(bytesOf(rest))).not.toBeNull();
  });

  test("a field twice, a number that is not exact, more bytes than an entry has", () => {
    const text = new TextDecoder().decode(encodeEvent(stored));
    const encode = (edited: string): Uint8Array => new TextEncoder().encode(edited);
    expect(problemOf(encode(text.replace('"sequence":2', '"sequence":2,"sequence":2')))).toContain(
      "a key that occurs twice",
    );
    expect(problemOf(encode(text.replace('"sequence":2', '"sequence":9007199254740993')))).toContain("beyond 2^53-1");
    expect(problemOf(encode(`${text} x`))).toContain("something follows");
    const padded = (length: number): Uint8Array => encode(text + " ".repeat(length - encodeEvent(stored).length));
    expect(problemOf(padded(ENTRY_BYTES_MAX))).toBe("none");
    expect(problemOf(padded(ENTRY_BYTES_MAX + 1))).toContain("1048576 are allowed");
  });
});

describe("the scanner of stored events", () => {
  test("reads the fields of the chain where they lie", () => {
    const scanner = new EventScanner();
    const bytes = encodeEvent(stored);
    expect(scanner.scan(bytes)).toBeNull();
    expect([scanner.sequence, scanner.timestamp]).toEqual([2, stored.timestamp]);
    expect(new TextDecoder().decode(bytes.subarray(scanner.previousHashAt, scanner.previousHashAt + 64))).toBe(
      stored.previousHash,
    );
    expect(scanner.scan(encodeEvent({ ...stored, sequence: 1, previousHash: null }))).toBeNull();
    expect(scanner.previousHashAt).toBe(-1);
  });

  test.each(["plain", 'é"\n', "😀"])("reads its names, also where they are not ASCII or have escapes: %j", (name) => {
    const scanner = new EventScanner();
    expect(scanner.scan(encodeEvent({ ...stored, entityId: name, sourceControllerId: name }))).toBeNull();
    expect([scanner.eventType, scanner.entityId]).toEqual([stored.eventType, name]);
    const encode = (text: string): Uint8Array => new TextEncoder().encode(text);
    const spelt = encode(JSON.stringify(name).slice(1, -1));
    expect(scanner.hasSource(spelt)).toBe(true);
    expect(scanner.hasSource(spelt.subarray(1))).toBe(false);
    expect(scanner.hasSource(encode(`${name}x`))).toBe(false);
  });

  test("accepts exactly what is decoded and encoded again to the same bytes", () => {
    const scanner = new EventScanner();
    const good = encodeEvent({ ...stored, entityId: 'é"\n', timestamp: 1_790_000_000_000.12 });
    const edits = fc.array(fc.tuple(fc.nat(good.length - 1), fc.nat(255), fc.constantFrom("put", "cut", "add")), {
      minLength: 1,
      maxLength: 2,
    });
    const seen = { good: 0, bad: 0 };
    fc.assert(
      fc.property(edits, (changes) => {
        let bytes = [...good];
        for (const [at, byte, how] of changes) {
          if (how === "put") bytes[at] = byte;
          else bytes = how === "cut" ? bytes.toSpliced(at, 1) : bytes.toSpliced(at, 0, byte);
        }
        const edited = Uint8Array.from(bytes);
        const read = decodeEvent(edited);
        const isSame = read.kind === "event" && Buffer.from(encodeEvent(read.event)).equals(edited);
        seen[isSame ? "good" : "bad"]++;
        expect(scanner.scan(edited) === null).toBe(isSame);
      }),
      { numRuns: 600 },
    );
    expect(Math.min(seen.good, seen.bad)).toBeGreaterThan(20);
  });
});
