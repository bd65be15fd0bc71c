// The form of a snapshot of jobs, and what is refused as one.

import { describe, expect, it } from "vitest";
import { newBook } from "../../../../test/jobs-book.ts";
import { agent, COMPLETED, Desk, spec } from "../test-desk.ts";

/** With one job. */
const WITHOUT_EPOCHS =
  "4a0200000000000000030000000000000001000000000000000000000000000000010000005f7b226361706163697479223a3130302c226b696e6473223a5b226275696c64225d2c226c6162656c73223a7b7d2c226e616d65223a226131222c22706c6174666f726d223a226c696e7578222c2273657373696f6e223a2261312d7331227d0000000000000f424000000000000f424000000000000001000004300000000669642d312d31000000000000000100000000000000056275696c640000000764656661756c74000000000000000000030000000200000000000003e8000000000000ea60000000000005265c000000000000000005616c6963658000000000000000000f4240000000077b226e223a317d01000000000000000100000000000000000000000000000001000000000669642d312d340000000000000001000000000000000100000000000000010000000261310000000561312d7331000000000000271000000000000f4240000000000000000000000000000000000700";
const VERSION_1 =
  "4a010000000000000001000000000000000100000000000000000000000000000000000000000001000000000000000669642d312d31000000000000000100000000000000056275696c640000000764656661756c74000000000000000000030000000200000000000003e8000000000000ea60000000000005265c000000000000000005616c6963658000000000000000000f4240000000077b226e223a317d0000";

describe("a snapshot", () => {
  it("that can't be read is refused with a reason, and changes nothing", () => {
    const desk = new Desk(newBook());
    desk.submit(spec(), spec({ queue: "q2" }));
    desk.result("a1-s1", desk.lease().leases[0]!, COMPLETED);
    const bytes = desk.book.snapshot();
    const book = newBook();
    book.restore(bytes);
    for (let length = 1; length < bytes.length; length += 3) {
      expect(() => book.restore(bytes.subarray(0, length))).toThrow(
        expect.objectContaining({ code: "SNAPSHOT_INVALID" }),
      );
    }
    expect(() => book.restore(Uint8Array.of(...bytes, 0))).toThrow(/too many/);
    const later = bytes.slice();
    later[1] = 3;
    expect(() => book.restore(later)).toThrow(expect.objectContaining({ code: "FORMAT_UNSUPPORTED" }));
    expect(book.snapshot()).toEqual(bytes);
    book.restore(new Uint8Array(0));
    expect([book.appliedSequence, [...book.applied.ids()].length]).toEqual([0, 0]);
  });

  it("B9: what was ready is ready where it is restored: the most urgent goes first, however many are older", () => {
    const desk = new Desk(newBook());
    for (let batch = 0; batch < 3; batch++) {
      desk.nowMs += 10;
      desk.submit(...Array.from({ length: 500 }, () => spec()));
    }
    desk.nowMs += 10;
    const [urgent] = desk.submit(spec({ priority: 9 }));
    const restored = newBook();
    restored.restore(desk.book.snapshot(), desk.events.at(-1)!.timestamp);
    const other = new Desk(restored, restored.appliedSequence);
    other.nowMs = desk.nowMs;
    expect(other.lease().leases).toMatchObject([{ jobId: urgent }]);
  });

  it("keeps its form: bytes of version 2, for ever", () => {
    const desk = new Desk(newBook());
    desk.submit(spec());
    expect(Buffer.from(desk.book.snapshot()).toString("hex")).toBe(VERSION_1.replace("4a01", "4a02"));
    desk.lease(agent(), 1, 7);
    expect(Buffer.from(desk.book.snapshot()).toString("hex")).toMatchInlineSnapshot(
      `"4a020000000000000003000000000000000100000000000000000000000000000001000000697b226361706163697479223a3130302c2265706f6368223a322c226b696e6473223a5b226275696c64225d2c226c6162656c73223a7b7d2c226e616d65223a226131222c22706c6174666f726d223a226c696e7578222c2273657373696f6e223a2261312d7331227d0000000000000f424000000000000f424000000000000001000004300000000669642d312d31000000000000000100000000000000056275696c640000000764656661756c74000000000000000000030000000200000000000003e8000000000000ea60000000000005265c000000000000000005616c6963658000000000000000000f4240000000077b226e223a317d01000000000000000100000000000000000000000000000001000000000669642d312d340000000000000001000000000000000100000000000000010000000261310000000561312d7331000000000000271000000000000f4240000000000000000000000000000000000700"`,
    );
  });

  it("of a release before agents had epochs and owners is read as it was, for ever", () => {
    const book = newBook();
    book.restore(Buffer.from(WITHOUT_EPOCHS, "hex"));
    expect(book.applied.agents()).toMatchObject([{ name: "a1", session: "a1-s1", running: 1 }]);
    expect(Buffer.from(book.snapshot()).toString("hex")).toBe(WITHOUT_EPOCHS);
  });

  it("of version 1 is read as it was, for ever", () => {
    const book = newBook();
    book.restore(Buffer.from(VERSION_1, "hex"));
    const desk = new Desk(newBook());
    desk.submit(spec());
    expect(book.snapshot()).toEqual(desk.book.snapshot());
  });

  it("does not depend on the order in which keys stood in a payload", () => {
    const one = new Desk(newBook());
    one.submit(spec({ payload: { a: 1, b: { d: 1, c: 2 } } }));
    const other = new Desk(newBook());
    other.submit(spec({ payload: { b: { c: 2, d: 1 }, a: 1 } }));
    expect(one.book.snapshot()).toEqual(other.book.snapshot());
  });
});
