import fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
  decodeEntry,
  decodeSnapshot,
  encodeEntry,
  encodeSnapshot,
  type LogEntry,
  withFoldSnapshot,
} from "./entry-codec.ts";

const bytes = fc.uint8Array({ maxLength: 40 });
const entry: fc.Arbitrary<LogEntry> = fc.oneof(
  fc.record({ kind: fc.constant("open" as const), epoch: fc.maxSafeNat(), after: fc.maxSafeNat() }),
  fc.record({
    kind: fc.constant("append" as const),
    epoch: fc.maxSafeNat(),
    after: fc.maxSafeNat(),
    batch: fc.array(bytes, { minLength: 1, maxLength: 5 }),
  }),
);

describe("an entry", () => {
  it("is read as it was written", () => {
    fc.assert(
      fc.property(entry, (one) => {
        expect(decodeEntry(encodeEntry(one))).toEqual(one);
      }),
    );
  });

  it("that was cut short or made longer is malformed", () => {
    fc.assert(
      fc.property(entry, fc.nat(), (one, at) => {
        const whole = encodeEntry(one);
        expect(decodeEntry(whole.subarray(0, at % whole.length)).kind).toBe("malformed");
        expect(decodeEntry(Uint8Array.of(...whole, 0)).kind).toBe("malformed");
      }),
    );
  });

  it("of random bytes never throws", () => {
    fc.assert(fc.property(bytes, (noise) => void decodeEntry(noise)));
  });

  it("of a later version is told apart, whatever follows", () => {
    const later = encodeEntry({ kind: "open", epoch: 1, after: 0 }).slice();
    later[1] = 2;
    expect(decodeEntry(later)).toEqual({ kind: "later-version", version: 2 });
    expect(decodeEntry(Uint8Array.of(0x4c, 9))).toEqual({ kind: "later-version", version: 9 });
  });

  it("keeps its form: bytes of version 1, for ever", () => {
    const append: LogEntry = { kind: "append", epoch: 258, after: 3, batch: [Uint8Array.of(7, 8), new Uint8Array(0)] };
    const header = [0x4c, 1, 2, 0, 0, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 0, 0, 0, 3];
    const records = [0, 0, 0, 2, 0, 0, 0, 2, 7, 8, 0, 0, 0, 0];
    expect([...encodeEntry(append)]).toEqual([...header, ...records]);
    const open = [0x4c, 1, 1, 0, 0, 0, 0, 0, 0, 0, 5, 0, 0, 0, 0, 0, 0, 0, 9];
    expect([...encodeEntry({ kind: "open", epoch: 5, after: 9 })]).toEqual(open);
  });
});

describe("a snapshot", () => {
  const snapshot = { head: { position: 12, epoch: 4 }, fold: Uint8Array.of(1, 2, 3) };

  it("is read as it was written, and nothing is the founding one", () => {
    expect(decodeSnapshot(encodeSnapshot(snapshot))).toEqual(snapshot);
    expect(decodeSnapshot(new Uint8Array(0))).toBeNull();
  });

  it("that can't be read, or is of a later version, is refused with a reason", () => {
    const whole = encodeSnapshot(snapshot);
    expect(() => decodeSnapshot(whole.subarray(0, 9))).toThrow(expect.objectContaining({ code: "SNAPSHOT_INVALID" }));
    expect(() => decodeSnapshot(Uint8Array.of(1, 2, 3))).toThrow(expect.objectContaining({ code: "SNAPSHOT_INVALID" }));
    const later = whole.slice();
    later[1] = 2;
    expect(() => decodeSnapshot(later)).toThrow(expect.objectContaining({ code: "FORMAT_UNSUPPORTED" }));
  });

  it("can be given another state around the same head", () => {
    const changed = withFoldSnapshot(encodeSnapshot(snapshot), (fold) => Uint8Array.of(...fold, 4));
    expect(decodeSnapshot(changed)).toEqual({ head: snapshot.head, fold: Uint8Array.of(1, 2, 3, 4) });
    const founded = withFoldSnapshot(new Uint8Array(0), () => Uint8Array.of(9));
    expect(decodeSnapshot(founded)).toEqual({ head: { position: 0, epoch: 0 }, fold: Uint8Array.of(9) });
  });
});
