import { describe, expect, it } from "vitest";
import { TenureError } from "../../core/kit/errors.ts";
import { failedConnection, stageOf } from "./connection.ts";

const coded = (code: string, message = "") => Object.assign(new Error(message), { code });
const answered = (sqlstate: string, message = "") => Object.assign(new Error(message), { sqlstate });

describe("where a connection failed", () => {
  it.each([
    [coded("ENOTFOUND"), "dns"],
    [coded("EAI_AGAIN"), "dns"],
    [coded("ECONNREFUSED"), "tcp"],
    [new AggregateError([coded("ECONNREFUSED"), coded("ENETUNREACH")]), "tcp"],
    [coded("ETIMEDOUT"), "tcp"],
    [new Error("The server does not support SSL connections"), "tls"],
    [coded("DEPTH_ZERO_SELF_SIGNED_CERT"), "tls"],
    [coded("ERR_TLS_CERT_ALTNAME_INVALID"), "tls"],
    [answered("28P01"), "login"],
    [answered("28000"), "login"],
    [new Error("SASL: SCRAM-SERVER-FIRST-MESSAGE: client password must be a string"), "login"],
    [answered("08P01", "no such user: x"), "login"],
    [answered("3D000"), "database"],
    [answered("08P01", "no such database: x"), "database"],
    [answered("53300"), "full"],
    [answered("57P03"), "starting"],
    [answered("08P01", "unsupported startup parameter: options"), "pooler"],
    [new TenureError("BACKEND_UNAVAILABLE", "did not let us in within 5000 ms"), "silent"],
    [new Error("Connection terminated unexpectedly"), "silent"],
    [new TenureError("CONFIG_INVALID", "the package pg is not installed"), "client"],
    [answered("XX000"), "other"],
    ["nonsense", "other"],
  ])("%s is %s", (error, stage) => expect(stageOf(error)).toBe(stage));

  it("is one problem that says what to do", () => {
    expect(failedConnection("dns", "unknown host")).toMatchObject({
      name: "connection",
      level: "problem",
      seen: "failed at dns: unknown host",
      advice: "Check the host in the URL, and DNS on this machine.",
    });
  });
});
