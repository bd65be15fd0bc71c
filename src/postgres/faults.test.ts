import { describe, expect, it } from "vitest";
import { TenureError } from "../core/kit/errors.ts";
import { faultOf, softened } from "./faults.ts";
import { applicationName } from "./ready.ts";

const context = { where: "db:5432/app", scope: "payer" };
const server = (sqlstate: string, message = "no"): Error => Object.assign(new Error(message), { sqlstate });
const system = (code: string): Error => Object.assign(new Error(`connect ${code}`), { code });

describe("faultOf", () => {
  it.each([
    ["28P01", "PERMISSION_DENIED", false],
    ["28000", "PERMISSION_DENIED", false],
    ["42501", "PERMISSION_DENIED", false],
    ["3D000", "CONFIG_INVALID", false],
    ["42P01", "SCHEMA_MISSING", false],
    ["42883", "SCHEMA_MISSING", false],
    ["TN002", "SCOPE_CLASH", false],
    ["TN003", "POOLER_IN_PATH", false],
    ["TN004", "BACKEND_UNAVAILABLE", true],
    ["25006", "BACKEND_READ_ONLY", true],
    ["57014", "BACKEND_UNAVAILABLE", true],
    ["40001", "BACKEND_UNAVAILABLE", true],
    ["53300", "BACKEND_UNAVAILABLE", true],
    ["57P01", "BACKEND_UNAVAILABLE", true],
  ])("SQLSTATE %s is %s", (sqlstate, code, retryable) => {
    const fault = faultOf(server(sqlstate), context);
    expect(fault).toMatchObject({ code, retryable });
    expect(fault.message).toContain(`SQLSTATE ${sqlstate}`);
    expect(fault.message).toContain("db:5432/app");
  });

  it("knows a pooler by what it refuses", () => {
    const error = server("08P01", "unsupported startup parameter: options");
    expect(faultOf(error, context).code).toBe("POOLER_IN_PATH");
    expect(faultOf(server("08P01", "something else"), context).code).toBe("BACKEND_UNAVAILABLE");
  });

  it("passes on the hints of our own functions", () => {
    const error = Object.assign(server("TN004", "the fence was still held"), { hint: "grant it pg_signal_backend" });
    expect(faultOf(error, context).message).toContain("grant it pg_signal_backend");
  });

  it.each([
    ["ECONNREFUSED", "connection refused"],
    ["ENOTFOUND", "DNS"],
    ["ECONNRESET", "connection reset"],
    ["EPIPE", "EPIPE"],
  ])("%s is a server out of reach", (code, words) => {
    const fault = faultOf(system(code), context);
    expect(fault).toMatchObject({ code: "BACKEND_UNAVAILABLE", retryable: true });
    expect(fault.message).toContain(words);
  });

  it("speaks for the first of several addresses", () => {
    const error = Object.assign(new AggregateError([system("ECONNREFUSED"), system("ENETUNREACH")]), {
      code: "ECONNREFUSED",
    });
    expect(faultOf(error, context).message).toContain("connection refused");
  });

  it("leaves our own errors as they are", () => {
    const error = new TenureError("POOLER_IN_PATH", "no");
    expect(faultOf(error, context)).toBe(error);
  });
});

describe("softened", () => {
  it("makes an error retryable, with the same words and the cause", () => {
    const fault = faultOf(server("28P01", "password authentication failed"), context);
    expect(softened(fault)).toMatchObject({ code: "BACKEND_UNAVAILABLE", retryable: true, cause: fault });
    expect(softened(fault).message).toContain("password authentication failed");
  });

  it("leaves a clash what it is", () => {
    expect(softened(faultOf(server("TN002"), context)).code).toBe("SCOPE_CLASH");
  });
});

it("an application name is printable ASCII of at most 63 bytes, and ends no string", () => {
  expect(applicationName("tenure zahlung/ü'; drop \\ \u{1F600}")).toBe("tenure zahlung/??; drop ? ??");
  expect(applicationName("x".repeat(100))).toHaveLength(63);
});
