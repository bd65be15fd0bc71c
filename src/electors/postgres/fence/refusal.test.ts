import { describe, expect, test } from "vitest";
import { HOSTILE } from "../../../core/kit/test-hostile.ts";
import { isRefusedWith } from "./refusal.ts";

const refused = (): Error => Object.assign(new Error("a driver's"), { code: "42704" });

describe("the server's SQLSTATE in an error", () => {
  test.each(["cause", "driverError", "original", "meta"])("is found in its %s", (name) => {
    expect(isRefusedWith(Object.assign(new Error("a query builder's"), { [name]: refused() }), "42704")).toBe(true);
    expect(isRefusedWith(Object.assign(new Error("a query builder's"), { [name]: refused() }), "42P01")).toBe(false);
  });

  test("is found among the errors of a batch, each of which names the batch as its cause", () => {
    // Read once for each way that leads to it, this one would take a day.
    const batch = new AggregateError([], "a batch");
    batch.errors = Array.from({ length: 1_000 }, () => new Error("one of it", { cause: batch }));
    expect(isRefusedWith(batch, "42704")).toBe(false);
    (batch.errors as Error[]).push(refused());
    expect(isRefusedWith(batch, "42704")).toBe(true);
  });

  test("is not in an error that wraps itself, nor in whatever users throw", () => {
    const error = new Error("cyclic");
    error.cause = error;
    expect(isRefusedWith(error, "42704")).toBe(false);
    for (const make of Object.values(HOSTILE)) expect(isRefusedWith(make(), "42704")).toBe(false);
  });
});
