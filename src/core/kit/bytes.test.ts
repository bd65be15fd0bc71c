import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { InvariantError } from "./assert.ts";
import { ByteReader, ByteWriter, DecodeError } from "./bytes.ts";
import { anyText } from "../../../test/any-text.ts";

const SEED = 1;

type Field =
  | { readonly kind: "u8" | "u32" | "uint53"; readonly value: number }
  | { readonly kind: "bool"; readonly value: boolean }
  | { readonly kind: "text"; readonly value: string }
  | { readonly kind: "bytes"; readonly value: Uint8Array };

const field: fc.Arbitrary<Field> = fc.oneof(
  fc.record({ kind: fc.constant("u8" as const), value: fc.nat({ max: 0xff }) }),
  fc.record({ kind: fc.constant("u32" as const), value: fc.nat({ max: 0xffffffff }) }),
  fc.record({ kind: fc.constant("uint53" as const), value: fc.maxSafeNat() }),
  fc.record({ kind: fc.constant("bool" as const), value: fc.boolean() }),
  fc.record({ kind: fc.constant("text" as const), value: anyText({ maxLength: 40 }) }),
  fc.record({ kind: fc.constant("bytes" as const), value: fc.uint8Array({ maxLength: 200 }) }),
);

function write(w: ByteWriter, { kind, value }: Field): void {
  if (kind === "bool") w.bool(value);
  else if (kind === "text") w.text(value);
  else if (kind === "bytes") w.bytes(value);
  else w[kind](value);
}

function read(r: ByteReader, kind: Field["kind"]): unknown {
  return kind === "text" || kind === "bytes" ? r[kind](1000) : r[kind]();
}

function refusalOf(act: () => unknown): string {
  try {
    act();
  } catch (error) {
    if (error instanceof DecodeError) return error.reason;
    throw error;
  }
  return "accepted";
}

describe("round trip", () => {
  test("fields come back as they were written, whatever the capacity", () => {
    fc.assert(
      fc.property(fc.array(field, { maxLength: 20 }), fc.nat({ max: 64 }), (fields, capacityBytes) => {
        const w = new ByteWriter(capacityBytes);
        for (const each of fields) write(w, each);
        const r = new ByteReader(w.finish());
        for (const each of fields) expect(read(r, each.kind)).toEqual(each.value);
        expect(r.remainingBytes).toBe(0);
      }),
      { seed: SEED, numRuns: 500 },
    );
  });

  test("every truncation of a field is refused as truncated", () => {
    fc.assert(
      fc.property(field, (each) => {
        const w = new ByteWriter();
        write(w, each);
        const bytes = w.finish();
        for (let length = 0; length < bytes.length; length++) {
          const cut = bytes.subarray(0, length);
          expect(refusalOf(() => read(new ByteReader(cut), each.kind))).toBe("truncated");
        }
      }),
      { seed: SEED },
    );
  });

  test("a leading byte order mark is text like any other", () => {
    const w = new ByteWriter();
    w.text("\uFEFF\uFEFFx");
    expect(new ByteReader(w.finish()).text(100)).toBe("\uFEFF\uFEFFx");
  });

  test("integers are big-endian and at the edge exact", () => {
    const w = new ByteWriter();
    w.uint53(Number.MAX_SAFE_INTEGER);
    w.u32(0xfffefdfc);
    expect([...w.finish()]).toEqual([0, 0x1f, 255, 255, 255, 255, 255, 255, 0xff, 0xfe, 0xfd, 0xfc]);
  });

  test("records of one writer do not touch each other, and an unfinished one can be dropped", () => {
    const record = fc.record({
      fields: fc.array(field, { maxLength: 4 }),
      sizeBytes: fc.nat({ max: 80 }),
      drop: fc.boolean(),
    });
    fc.assert(
      fc.property(fc.array(record, { maxLength: 12, size: "max" }), fc.nat({ max: 64 }), (records, capacityBytes) => {
        const shared = new ByteWriter(capacityBytes);
        const finished: { got: Uint8Array; wanted: Uint8Array }[] = [];
        for (const { fields, sizeBytes, drop } of records) {
          shared.begin(sizeBytes);
          const own = new ByteWriter();
          for (const each of fields) {
            write(shared, each);
            write(own, each);
          }
          expect(shared.lengthBytes).toBe(own.lengthBytes);
          if (!drop) finished.push({ got: shared.finish(), wanted: own.finish() });
        }
        for (const { got, wanted } of finished) expect(got).toEqual(wanted);
      }),
      { seed: SEED, numRuns: 200 },
    );
  });

  test("texts are told apart, however many came before", () => {
    const texts = Array.from({ length: 2000 }, (_, i) => `n${(i * 7919) % 2000}@${i % 3}`);
    // Each one is followed by its own beginning, which must not be taken for it.
    for (const text of [...texts, ...texts].flatMap((each) => [each, each.slice(0, -1)])) {
      const w = new ByteWriter();
      w.text(text);
      expect(new ByteReader(w.finish()).text(100)).toBe(text);
    }
  });

  test("a reader honours the offset of the view it is given", () => {
    const bytes = new Uint8Array([9, 9, 0, 0, 0, 1, 7, 9]).subarray(2, 7);
    expect([...new ByteReader(bytes).bytes(10)]).toEqual([7]);
  });
});

describe("what the writer asserts", () => {
  test.each([-1, 256, 1.5, NaN])("u8 of %s", (value) => {
    expect(() => new ByteWriter().u8(value)).toThrow(InvariantError);
  });
  test.each([-1, 2 ** 32, 1.5, NaN])("u32 of %s", (value) => {
    expect(() => new ByteWriter().u32(value)).toThrow(InvariantError);
  });
  test.each([-1, 2 ** 53, 1.5, NaN, Infinity])("uint53 of %s", (value) => {
    expect(() => new ByteWriter().uint53(value)).toThrow(InvariantError);
  });
  test("text with a lone surrogate", () => {
    expect(() => new ByteWriter().text("a\ud800")).toThrow(InvariantError);
  });
});

describe("what the reader refuses", () => {
  const reader = (...bytes: number[]): ByteReader => new ByteReader(new Uint8Array(bytes));

  test("trap 31: an integer above 2^53-1 is wild", () => {
    expect(refusalOf(() => reader(0, 0x20, 0, 0, 0, 0, 0, 0).uint53())).toBe("wild");
    expect(refusalOf(() => reader(255, 255, 255, 255, 255, 255, 255, 255).uint53())).toBe("wild");
  });
  test("a truth value other than 0 and 1 is malformed", () => {
    expect(refusalOf(() => reader(2).bool())).toBe("malformed");
  });
  test("a length above its bound is malformed before a byte of it is looked at", () => {
    expect(refusalOf(() => reader(255, 255, 255, 255).bytes(100))).toBe("malformed");
    expect(refusalOf(() => reader(0, 0, 0, 101).text(100))).toBe("malformed");
  });
  test.each([
    ["a stray continuation", [0x80]],
    ["an overlong form", [0xc0, 0x80]],
    ["a surrogate", [0xed, 0xa0, 0x80]],
    ["a cut sequence", [0x61, 0xe2, 0x82]],
  ])("text with %s is malformed", (_name, bytes) => {
    expect(refusalOf(() => reader(0, 0, 0, bytes.length, ...bytes).text(100))).toBe("malformed");
  });
});
