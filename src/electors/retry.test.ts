import { describe, expect, test } from "vitest";
import { ERRORS, type ErrorCode, NotLeaderError, StaleEpochError, TenureError } from "../core/kit/errors.ts";
import { HOSTILE } from "../core/kit/test-hostile.ts";
import { isRetryable } from "./retry.ts";

const withCode = (code: string): Error => Object.assign(new Error("a driver's"), { code });

describe("an error that a retry may repair", () => {
  test("is one of ours by its code: what the registry calls retryable, and what only a new epoch settles", () => {
    const retried = (Object.keys(ERRORS) as ErrorCode[]).filter((code) => isRetryable(new TenureError(code, "")));
    const byRegistry = (Object.keys(ERRORS) as ErrorCode[]).filter((code) => ERRORS[code].retryable);
    expect(new Set(retried)).toEqual(new Set([...byRegistry, "OUTCOME_UNKNOWN", "STALE_EPOCH"]));
    expect(isRetryable(new NotLeaderError("too-short", ""))).toBe(true);
    expect(isRetryable(new StaleEpochError("s", 1))).toBe(true);
  });

  test.each([
    "08006",
    "40001",
    "40P01",
    "53300",
    "57P01",
    "57P02",
    "57P03",
    "57014",
    "55P03",
    "25P03",
    "25006",
    "58030",
    "TN001",
    "ECONNREFUSED",
    "ECONNRESET",
    "EPIPE",
    "CONNECTION_CLOSED",
    "UND_ERR_SOCKET",
  ])("has the code %s, itself or in what it wraps", (code) => {
    expect(isRetryable(withCode(code))).toBe(true);
    expect(isRetryable(new Error("a query builder's", { cause: withCode(code) }))).toBe(true);
    // What `fetch` throws.
    expect(isRetryable(new TypeError("fetch failed", { cause: withCode(code) }))).toBe(true);
  });

  test.each([
    "Connection terminated unexpectedly",
    "Connection terminated",
    "timeout exceeded when trying to connect",
    "Query read timeout",
    "Client has encountered a connection error and is not queryable",
  ])("is pg's %s, which has no code", (message) => {
    expect(isRetryable(new Error(message))).toBe(true);
  });
});

describe("an error that a retry would only repeat", () => {
  test.each([
    "23505",
    "42P01",
    "42501",
    "22P02",
    "28P01",
    "3D000",
    "XX000",
    "P0001",
    "ENOENT",
    "EACCES",
    "ERR_ASSERTION",
  ])("has the code %s", (code) => expect(isRetryable(withCode(code))).toBe(false));

  test("is a mistake in the user's code", () => {
    expect(isRetryable(new TypeError("undefined is not a function"))).toBe(false);
    expect(isRetryable(new Error("the provider answered 500"))).toBe(false);
  });

  test("is one of ours that says so, whatever caused it", () => {
    expect(isRetryable(new TenureError("TX_MISUSED", "", { cause: withCode("57P01") }))).toBe(false);
  });

  test("has no end of causes", () => {
    const error = new Error("round");
    error.cause = error;
    expect(isRetryable(error)).toBe(false);
  });

  test.each(Object.entries(HOSTILE))("is %s", (_name, make) => expect(isRetryable(make())).toBe(false));
});
