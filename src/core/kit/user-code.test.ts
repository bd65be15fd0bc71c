import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { NotLeaderError, TenureError } from "./errors.ts";
import { HOSTILE, hostileOf } from "./test-hostile.ts";
import { errorOf, harmlessly, messageOf } from "./user-code.ts";

/** After every microtask, so that what nobody handles would have been reported. */
const turn = (): Promise<void> => new Promise((resolve) => void setImmediate(resolve));

const NUMBERS = fc.array(fc.nat(), { maxLength: 7 });
const MORE = fc.array(fc.anything({ withBigInt: true, withNullPrototype: true, withSparseArray: true }), {
  maxLength: 3,
});

describe("what users' code throws (trap 80)", () => {
  it("has a text and is an error, whatever it is", () => {
    fc.assert(
      fc.property(NUMBERS, MORE, (numbers, more) => {
        const thrown = hostileOf(numbers, more);
        expect(typeof messageOf(thrown)).toBe("string");
        expect(typeof errorOf(thrown)).toBe("object");
        expect([true, false]).toContain(TenureError.is(thrown));
        expect([true, false]).toContain(NotLeaderError.is(thrown));
      }),
    );
    expect(messageOf(new RangeError("far"))).toBe("far");
    expect(messageOf("plain")).toBe("plain");
  });

  it.each(Object.entries(HOSTILE))("reaches nobody but whoever asks for it: %s", async (_, make) => {
    const unhandled: unknown[] = [];
    const hear = (error: unknown): void => void unhandled.push(error);
    process.on("unhandledRejection", hear);
    let failures = 0;
    const count = (): void => void failures++;
    const throws = (): never => {
      throw make();
    };
    harmlessly(throws, count);
    harmlessly(() => Promise.resolve().then(throws), count);
    harmlessly(throws, throws);
    harmlessly(throws);
    harmlessly(() => make());
    await turn();
    process.off("unhandledRejection", hear);
    expect(failures).toBe(2);
    expect(unhandled).toEqual([]);
  });
});
