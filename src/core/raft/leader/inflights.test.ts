import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { InvariantError } from "../../kit/assert.ts";
import { Inflights } from "./inflights.ts";

const SEED = 5;

describe("inflights", () => {
  test("behave as a plain list that is filtered", () => {
    const limits = fc.record({
      messagesMax: fc.integer({ min: 1, max: 6 }),
      bytesMax: fc.integer({ min: 1, max: 300 }),
    });
    const act = fc.oneof(
      { weight: 6, arbitrary: fc.record({ add: fc.integer({ min: 1, max: 5 }), bytes: fc.nat({ max: 120 }) }) },
      { weight: 4, arbitrary: fc.record({ free: fc.integer({ min: -2, max: 12 }) }) },
      { weight: 1, arbitrary: fc.constant("clear" as const) },
    );
    let queued = 0;
    fc.assert(
      fc.property(limits, fc.array(act, { maxLength: 60, size: "max" }), (bounds, acts) => {
        const inflights = new Inflights(bounds);
        let model: { index: number; bytes: number }[] = [];
        let last = 0;
        for (const each of acts) {
          const full = inflights.isFull;
          if (each === "clear") {
            inflights.clear();
            model = [];
          } else if ("free" in each) {
            const upTo = (model[0]?.index ?? last) + each.free;
            inflights.freeUpTo(upTo);
            model = model.filter(({ index }) => index > upTo);
          } else if (full) {
            expect(() => inflights.add(last + each.add, each.bytes)).toThrow(InvariantError);
          } else {
            last += each.add;
            inflights.add(last, each.bytes);
            model.push({ index: last, bytes: each.bytes });
            if (model.length > 1) queued++;
          }
          const bytes = model.reduce((sum, { bytes }) => sum + bytes, 0);
          expect([inflights.count, inflights.bytes]).toEqual([model.length, bytes]);
          expect(inflights.isFull).toBe(model.length === bounds.messagesMax || bytes >= bounds.bytesMax);
        }
      }),
      { seed: SEED, numRuns: 300 },
    );
    // Mostly empty rings would show nothing (trap 33).
    expect(queued).toBeGreaterThan(500);
  });

  test("one message may pass the byte bound, the next may not follow", () => {
    const inflights = new Inflights({ messagesMax: 10, bytesMax: 100 });
    inflights.add(1, 1000);
    expect([inflights.isFull, inflights.count]).toEqual([true, 1]);
  });

  test("an index that does not grow is our own mistake", () => {
    const inflights = new Inflights({ messagesMax: 10, bytesMax: 100 });
    inflights.add(5, 1);
    expect(() => inflights.add(5, 1)).toThrow(InvariantError);
  });
});
