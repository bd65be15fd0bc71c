// The adapters with their real libraries on a real Postgres: the session is ended at every packet that a transaction sends, as the
// next leader ends the session of an old one. The process lives, the error is a TenureError, and what it says is what is in the
// table. (While a transaction awaits something else: crash.test.ts.)

import { describe, expect, test } from "vitest";
import { LIBRARIES } from "./test-libraries.ts";
import { freshTables, service } from "./test-run.ts";
import type { Ended } from "./test-service.ts";

const SESSIONS_MAX = 3;

const url = freshTables();

/** What a verdict promises about the table. */
function isTrue({ verdict, isTenureError, rows }: Ended): boolean {
  if (verdict === "committed") return rows === 1;
  if (verdict === "OUTCOME_UNKNOWN") return rows <= 1;
  return isTenureError && rows === 0;
}

describe.each(LIBRARIES)("%s", (library) => {
  test("lives when its session ends at any packet, and says what is true", async () => {
    const { code, stderr, ended, last } = await service({ library, url: url(), what: "every packet" });
    expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
    expect(ended.filter((one) => !isTrue(one))).toEqual([]);
    // begin, mark, fence, insert, select, unmark, commit at each of the three moments.
    expect(new Set(ended.map(({ fault }) => fault)).size).toBeGreaterThan(3 * 7);
    const verdicts = new Set(ended.map(({ verdict }) => verdict));
    expect(verdicts).toEqual(new Set(["committed", "BACKEND_UNAVAILABLE", "OUTCOME_UNKNOWN"]));
    // The answer to COMMIT was lost: written, and not known.
    expect(ended.some(({ verdict, rows }) => verdict === "OUTCOME_UNKNOWN" && rows === 1)).toBe(true);
    expect(last).toEqual([{ said: "lived", warnings: [] }]);
  });

  test("twenty times: no listener and no session is left over", async () => {
    const { code, stderr, ended, last } = await service({ library, url: url(), what: "twenty times" });
    expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
    expect(ended.filter((one) => !isTrue(one))).toEqual([]);
    expect(ended.length).toBeGreaterThanOrEqual(100);
    const [counted, lived] = last;
    expect(lived).toEqual({ said: "lived", warnings: [] });
    expect(counted?.["sessions"]).toBeLessThanOrEqual(SESSIONS_MAX);
    expect(counted?.["connections"]).toBeLessThanOrEqual(SESSIONS_MAX);
  });
});
