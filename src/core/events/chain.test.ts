import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { systemDigest as digest } from "../../drivers/system/digest.ts";
import type { Json } from "../kit/json.ts";
import { EVENT_TIMESTAMP_MAX } from "../kit/limits.ts";
import { type ChainHead, checkLink, EMPTY_CHAIN, isLifted, Sealer, tickAfter } from "./chain.ts";
import { decodeEvent, eventHashOf } from "./event.ts";
import { chainOf, draftOf, newSealer, START_MS, TEXT_UNITS } from "./test-events.ts";

const stringUnit = fc.constantFrom(...TEXT_UNITS);

describe("a sealer", () => {
  test("gives each event its place, the hash before it and a later time", () => {
    const sealer = newSealer(digest);
    const first = sealer.seal(draftOf(1));
    const second = sealer.seal(draftOf(1));
    expect(first.event).toMatchObject({
      sequence: 1,
      previousHash: null,
      timestamp: START_MS,
      leaderEpoch: 7,
      sourceControllerId: "c1.0",
    });
    expect(second.event).toMatchObject({
      sequence: 2,
      previousHash: first.event.eventHash,
      timestamp: START_MS + 0.001,
    });
    expect(sealer.head).toEqual({ sequence: 2, hash: second.event.eventHash, timestamp: second.event.timestamp });
  });

  test("makes bytes that are read as the event that it returned", () => {
    const sealer = newSealer(digest);
    for (let place = 1; place < 5; place++) {
      const { event, bytes } = sealer.seal(draftOf(place));
      const { eventHash, ...stored } = event;
      expect(decodeEvent(bytes)).toEqual({ kind: "event", event: stored });
      expect(eventHashOf(bytes, digest)).toBe(eventHash);
    }
  });

  test("never writes over the bytes of an event that it has given away, of whatever size and letters", () => {
    const sealer = newSealer(digest);
    const payloads = ["", "a".repeat(900), "é".repeat(2_500), "漢😀".repeat(700), "x".repeat(70_000)];
    const given = Array.from({ length: 400 }, (_, at) =>
      sealer.seal({ ...draftOf(at + 1), payload: { text: payloads[at % payloads.length]!, at } }),
    );
    for (const { event, bytes } of given) {
      expect(eventHashOf(bytes, digest)).toBe(event.eventHash);
      const read = decodeEvent(bytes);
      expect(read.kind === "event" && read.event.payload).toEqual(event.payload);
    }
  });

  test("goes back to where it was when what it sealed was refused, and takes the place again", () => {
    const sealer = newSealer(digest);
    sealer.seal(draftOf(1));
    const kept = sealer.head;
    const refused = sealer.seal(draftOf(2)).event;
    sealer.seal(draftOf(3));
    sealer.rewind(kept);
    const next = sealer.seal(draftOf(4)).event;
    expect([next.sequence, next.previousHash]).toEqual([refused.sequence, kept.hash]);
    expect(next.eventHash).not.toBe(refused.eventHash);
  });

  test("is never rewound to a head that it did not have", () => {
    const sealer = newSealer(digest);
    sealer.seal(draftOf(1));
    expect(() => sealer.rewind({ ...sealer.head, sequence: 2 })).toThrow("rewound to where it was");
    expect(() => sealer.rewind({ ...sealer.head, hash: "0".repeat(64) })).toThrow("rewound to where it was");
  });

  test("seals nothing of a payload that could not be read back", () => {
    const sealer = newSealer(digest);
    for (const value of [Number.NaN, 1e300, 2 ** 53, "\ud800", undefined]) {
      const payload = { value } as { value: Json };
      expect(() => sealer.seal(draftOf(1, { payload }))).toThrow(expect.objectContaining({ code: "EVENT_INVALID" }));
    }
    expect(sealer.head).toEqual(EMPTY_CHAIN);
  });

  test("whatever it seals, a follower can apply", () => {
    fc.assert(
      fc.property(
        fc.array(fc.dictionary(fc.string({ unit: stringUnit }), fc.jsonValue({ stringUnit, depthSize: "xsmall" })), {
          maxLength: 5,
        }),
        (payloads) => {
          const sealer = newSealer(digest);
          let head = EMPTY_CHAIN;
          for (const payload of payloads) {
            let sealed;
            try {
              sealed = sealer.seal(draftOf(1, { payload: payload as Record<string, Json> }));
            } catch {
              continue;
            }
            const checked = checkLink(head, sealed.bytes, digest);
            if (checked.kind !== "linked") throw new Error(checked.reason);
            head = checked.head;
          }
          expect(head).toEqual(sealer.head);
        },
      ),
      { numRuns: 60 },
    );
  });
});

describe("the hybrid clock", () => {
  test("follows the wall clock while that goes on, and ticks by microseconds while it stands still or is put back", () => {
    expect(tickAfter(START_MS, START_MS + 5)).toBe(START_MS + 5);
    expect(tickAfter(START_MS, START_MS)).toBe(START_MS + 0.001);
    expect(tickAfter(START_MS + 0.999, START_MS)).toBe(START_MS + 1);
    expect(tickAfter(START_MS, START_MS - 3_600_000)).toBe(START_MS + 0.001);
  });

  test("stays with the wall clock at 30,000 events per second: fractions never add up", () => {
    let last = 0;
    for (let place = 0; place < 30_000; place++) {
      const wall = START_MS + Math.floor(place / 30);
      const next = tickAfter(last, wall);
      if (!(next > last && next - wall < 0.031)) throw new Error(`${next} after ${last} at ${wall}`);
      last = next;
    }
    expect(last).toBe(START_MS + 999 + 0.029);
  });

  test("grows strictly up to the largest time, and its text is the shortest", () => {
    const times = fc.tuple(fc.integer({ min: 1_024, max: EVENT_TIMESTAMP_MAX - 2 }), fc.nat(999));
    fc.assert(
      fc.property(times, ([whole, ticks]) => {
        const next = tickAfter(whole + ticks / 1_000, 1);
        expect(next).toBeGreaterThan(whole + ticks / 1_000);
        expect(next).toBe(ticks === 999 ? whole + 1 : Number(`${whole}.${String(ticks + 1).padStart(3, "0")}`));
      }),
      { numRuns: 300 },
    );
  });
});

describe("the link of an event", () => {
  const chain = chainOf(4, digest);
  const headAt = (count: number): ChainHead => {
    let head = EMPTY_CHAIN;
    for (const bytes of chain.slice(0, count)) {
      const checked = checkLink(head, bytes, digest);
      if (checked.kind !== "linked") throw new Error(checked.reason);
      ({ head } = checked);
    }
    return head;
  };

  test("holds in the order in which the chain was sealed, and in no other", () => {
    for (let at = 0; at <= 3; at++) {
      for (let next = 0; next <= 3; next++) {
        expect(checkLink(headAt(at), chain[next] as Uint8Array, digest).kind).toBe(at === next ? "linked" : "broken");
      }
    }
  });

  test("does not hold with another hash, or with a time that does not grow", () => {
    const head = headAt(2);
    expect(checkLink({ ...head, hash: "0".repeat(64) }, chain[2] as Uint8Array, digest)).toEqual({
      kind: "broken",
      reason: "previousHash is not the hash of sequence 2",
    });
    const later = checkLink({ ...head, timestamp: START_MS + 10 }, chain[2] as Uint8Array, digest);
    expect(later).toMatchObject({ kind: "broken", reason: expect.stringContaining("is not behind") as string });
  });

  test("names what can't be read", () => {
    expect(checkLink(EMPTY_CHAIN, Uint8Array.of(0x7b), digest)).toEqual({
      kind: "broken",
      reason: "a key was expected at byte 1",
    });
  });
});

describe("the floor of the hybrid clock", () => {
  const sealerOf = (floorMs: () => number): Sealer =>
    new Sealer({ head: EMPTY_CHAIN, sourceControllerId: "c1", leaderEpoch: 1, digest, floorMs });

  test("lies below everything that is sealed, and nothing else is moved by it", () => {
    let floorMs = 0;
    const sealer = sealerOf(() => floorMs);
    const at = (timestamp: number): number => sealer.seal(draftOf(1, { timestamp })).event.timestamp;
    expect(at(100)).toBe(100);
    floorMs = 1_100;
    expect([at(200), at(300), at(1_100), at(1_100.5)]).toEqual([1_100.001, 1_100.002, 1_100.003, 1_100.5]);
    floorMs = 900;
    expect([at(1_000), at(1_200)]).toEqual([1_100.501, 1_200]);
  });

  test("is told from a clock, event by event", () => {
    const cases: readonly [timestamp: number, before: number, floorMs: number, wasLifted: boolean, is: boolean][] = [
      [100, 0, 0, false, false],
      [100.001, 100, 0, false, false],
      [100.001, 100, 100, false, false],
      [500.001, 100, 500, false, true],
      [500.002, 500.001, 500, true, true],
      [500.002, 500.001, 500, false, false],
      [501, 500.001, 500, true, false],
      [501, 100, 500, false, false],
      // Sealed before the leader knew of it, applied after.
      [400, 100, 500, false, true],
    ];
    for (const [timestamp, before, floorMs, wasLifted, expected] of cases) {
      const head = { sequence: 1, hash: "0".repeat(64), timestamp: before };
      expect(isLifted(timestamp, head, floorMs, wasLifted), String([timestamp, before, floorMs])).toBe(expected);
    }
  });
});
