// The rule alone. That a server's errors are what the rule takes them for is shown on a real one: test/postgres/outcomes.test.ts.

import { describe, expect, test } from "vitest";
import { endsSession, outcomeOfCommit, sqlstateOf } from "./sql-outcome.ts";

const sqlError = (sqlstate: string, severity = "ERROR"): Error =>
  Object.assign(new Error("said"), { sqlstate, severity });

describe("an error to a statement that commits", () => {
  test.each(["40001", "40P01", "23505", "57014", "53100", "55P03", "25P02", "TN001", "40002"])(
    "%s is a refusal, if the session answers afterwards",
    (sqlstate) => expect(outcomeOfCommit(sqlError(sqlstate))).toBe("refused"),
  );

  test.each(["08000", "08006", "08007", "08P01", "40003", "58000", "58030", "58P01", "XX000", "XX001", "XX002"])(
    "%s is unknown, whatever the session does afterwards",
    (sqlstate) => expect(outcomeOfCommit(sqlError(sqlstate))).toBe("unknown"),
  );

  test.each(["57P01", "57P02", "57P03", "57P04", "57P05", "25P03", "25P04"])(
    "%s ends the session in every language, and is unknown",
    (sqlstate) => {
      const error = sqlError(sqlstate, "SCHWERWIEGEND");
      expect([endsSession(error), outcomeOfCommit(error)]).toEqual([true, "unknown"]);
    },
  );

  test.each(["FATAL", "PANIC"])("%s is unknown whatever its SQLSTATE says", (severity) => {
    const error = sqlError("53100", severity);
    expect([endsSession(error), outcomeOfCommit(error)]).toEqual([true, "unknown"]);
  });

  test("an error without an SQLSTATE is unknown, but for a statement that never left", () => {
    expect(outcomeOfCommit(new Error("ECONNRESET"))).toBe("unknown");
    expect(outcomeOfCommit(Object.assign(new Error("EPIPE"), { code: "EPIPE" }))).toBe("unknown");
    expect(outcomeOfCommit(undefined)).toBe("unknown");
    expect(outcomeOfCommit(Object.assign(new Error("ended"), { unsent: true }))).toBe("unsent");
    expect([endsSession("x"), sqlstateOf("x")]).toEqual([false, undefined]);
  });
});
