// What an error to COMMIT means, on a loan that the test plays by hand; everything else of the fence is tested on a
// real server (test/postgres/fence.test.ts).

import { describe, expect, test } from "vitest";
import { TenureError } from "../../../core/kit/errors.ts";
import type { Hold } from "../../../ports/backends/backend.ts";
import type { SqlLoan } from "../../../ports/backends/sql.ts";
import { fenceOf } from "./fence.ts";

async function commitFailsWith(
  sqlstate: string,
  severity: string,
  isLast = false,
): Promise<{ outcome: unknown; broken: boolean }> {
  let broken = false;
  const loan: SqlLoan<object> = {
    client: {},
    query: async (text) => {
      if (isLast && text === "rollback") throw new Error("the connection has ended");
      return [];
    },
    finish: async () => {
      throw Object.assign(new Error("refused"), { sqlstate, code: sqlstate, severity });
    },
    giveBack: (isBroken) => {
      broken = isBroken;
    },
  };
  const hold: Hold = { scope: "s", epoch: 1, check: () => 1, lost: () => undefined };
  const lender = { borrow: async () => loan, close: async () => undefined };
  const term = fenceOf({ lender, where: "here", schema: "public", lockKeyOf: () => 1n, nonce: () => "n" })(hold);
  const outcome = await term.tx(() => 1).catch((error: unknown) => error);
  return { outcome, broken };
}

describe("an error to COMMIT", () => {
  test.each([
    ["40001", "ERROR"],
    ["40001", "FEHLER"],
    ["23505", "ОШИБКА"],
  ])("%s %s is a refusal, in whatever language the server speaks", async (sqlstate, severity) => {
    const { outcome, broken } = await commitFailsWith(sqlstate, severity);
    expect(outcome).toMatchObject({ sqlstate });
    expect(broken).toBe(false);
  });

  test.each([
    ["57P01", "SCHWERWIEGEND"],
    ["25P03", "FATAL"],
    ["08006", "ERROR"],
    ["XX000", "PANIC"],
    ["XX000", "ERROR"],
    ["58030", "ERROR"],
    ["40003", "ERROR"],
    ["53200", "FATAL"],
  ])("trap 66: %s %s leaves the outcome unknown", async (sqlstate, severity) => {
    const { outcome, broken } = await commitFailsWith(sqlstate, severity);
    expect(TenureError.is(outcome) && outcome.code).toBe("OUTCOME_UNKNOWN");
    expect(broken).toBe(true);
  });

  test("trap 66: a refusal after which the session does not answer may be a translated PANIC: unknown", async () => {
    const { outcome, broken } = await commitFailsWith("53100", "PANIK", true);
    expect(TenureError.is(outcome) && outcome.code).toBe("OUTCOME_UNKNOWN");
    expect(broken).toBe(true);
  });
});
