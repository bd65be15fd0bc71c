import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { HOSTILE, hostileOf } from "../core/kit/test-hostile.ts";
import { JOB_ERROR_BYTES_MAX, JOB_PAYLOAD_BYTES_MAX } from "../core/kit/limits.ts";
import { type AbortReason, JobAborted, JobError, outcomeOfReturn, outcomeOfThrow } from "./outcome.ts";

const NUMBERS = fc.array(fc.nat(), { maxLength: 7 });
const MORE = fc.array(fc.anything({ withBigInt: true, withNullPrototype: true, withSparseArray: true }), {
  maxLength: 3,
});

describe("how a handler ended", () => {
  it("to return is to have done it; nothing is null", () => {
    expect(outcomeOfReturn(undefined)).toEqual({ kind: "completed", result: null });
    expect(outcomeOfReturn({ at: new Date(0), gone: undefined })).toEqual({
      kind: "completed",
      result: { at: "1970-01-01T00:00:00.000Z" },
    });
  });

  it("what can't be stored is a failure that no retry mends", () => {
    const ring: unknown[] = [];
    ring.push(ring);
    for (const value of [1n, ring, () => 1, "x".repeat(JOB_PAYLOAD_BYTES_MAX - 1)]) {
      expect(outcomeOfReturn(value)).toMatchObject({ kind: "failed", retry: false });
    }
    expect(outcomeOfReturn("x".repeat(JOB_PAYLOAD_BYTES_MAX - 2)).kind).toBe("completed");
  });

  it("to throw is to have failed, and a JobError says whether to try again", () => {
    expect(outcomeOfThrow(new RangeError("far"), null)).toEqual({
      kind: "failed",
      error: { message: "far", detail: { name: "RangeError" } },
      retry: true,
    });
    const error = new JobError("no", { retry: false, detail: { code: 3 } });
    expect(outcomeOfThrow(error, null)).toEqual({
      kind: "failed",
      error: { message: "no", detail: { code: 3 } },
      retry: false,
    });
    const long = outcomeOfThrow(new Error("€".repeat(JOB_ERROR_BYTES_MAX)), null);
    expect(long.kind === "failed" && new TextEncoder().encode(long.error.message).length).toBeLessThanOrEqual(
      JOB_ERROR_BYTES_MAX,
    );
  });

  it("a throw behind an abort means what the abort means", () => {
    const kindOf = (reason: AbortReason) => outcomeOfThrow(new Error("stopped"), new JobAborted(reason, "why"));
    expect(kindOf("cancelled")).toEqual({ kind: "cancelled" });
    expect(kindOf("lease-lost")).toEqual({ kind: "handed-back" });
    expect(kindOf("stopping")).toEqual({ kind: "handed-back" });
    expect(kindOf("timed-out")).toMatchObject({ kind: "failed", error: { message: "why" }, retry: true });
  });

  it.each(Object.entries(HOSTILE))(
    "trap 80: %s, thrown, is a failure with a text; returned, it ends its own job",
    (_, make) => {
      expect(outcomeOfThrow(make(), null)).toMatchObject({ kind: "failed", retry: true });
      expect(["completed", "failed"]).toContain(outcomeOfReturn(make()).kind);
    },
  );

  it("trap 80: has an outcome of bounded size that JSON can say, whatever is thrown or returned", () => {
    const letters = (outcome: unknown): number => JSON.stringify(outcome).length;
    const aborted = fc.constantFrom<AbortReason | null>(null, "cancelled", "timed-out", "lease-lost", "stopping");
    fc.assert(
      fc.property(NUMBERS, MORE, aborted, (numbers, more, reason) => {
        const value = hostileOf(numbers, more);
        const thrown = outcomeOfThrow(value, reason === null ? null : new JobAborted(reason, "why"));
        // The message as JSON has up to six letters for a byte; the detail is bounded as results are.
        expect(letters(thrown)).toBeLessThanOrEqual(6 * JOB_ERROR_BYTES_MAX + 6 * JOB_PAYLOAD_BYTES_MAX);
        if (thrown.kind === "failed") expect(thrown.error.message.isWellFormed()).toBe(true);
        expect(letters(outcomeOfReturn(value))).toBeLessThanOrEqual(6 * JOB_PAYLOAD_BYTES_MAX);
        expect(outcomeOfThrow(value, null).kind).not.toBe("completed");
      }),
    );
  });

  it("trap 80: is not changed by what the handler does to its detail and its result afterwards", () => {
    const detail: { self?: unknown } = {};
    const failed = outcomeOfThrow(new JobError("no", { detail: detail as never }), null);
    detail.self = detail;
    expect(failed).toMatchObject({ error: { detail: {} } });
    expect(() => JSON.stringify(failed)).not.toThrow();
  });
});
