// The session of a transaction is ended while the transaction awaits something else, as the next leader ends the session of an old
// one (trap 78): with an adapter the process lives. Without it, `term.fence` alone, the process ends.

import { describe, expect, test } from "vitest";
import { LIBRARIES, PLAIN } from "./test-libraries.ts";
import { freshTables, service } from "./test-run.ts";

const url = freshTables();

describe.each(LIBRARIES)("%s", (library) => {
  test("lives when its session ends while it awaits something else, and sends nothing of it to another session", async () => {
    const { code, stderr, ended, last } = await service({ library, url: url(), what: "idle" });
    expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
    const idle = ended.filter(({ fault }) => fault.startsWith("while"));
    expect(idle.map(({ verdict, rows }) => ({ verdict, rows }))).toEqual([
      { verdict: "BACKEND_UNAVAILABLE", rows: 0 },
      { verdict: "BACKEND_UNAVAILABLE", rows: 0 },
    ]);
    const others = ended.filter(({ fault }) => !fault.startsWith("while"));
    expect(others.filter(({ verdict, rows }) => verdict !== "committed" || rows !== 1)).toEqual([]);
    expect(last).toEqual([{ said: "lived", warnings: [] }]);
  });
});

describe.each(PLAIN)("without its adapter, %s", (library) => {
  test("the end of its session while it awaits something else ends the whole process", async () => {
    const { code, stderr } = await service({ library, url: url(), what: "idle" });
    expect(code).toBe(1);
    expect(stderr).toContain("terminating connection due to administrator command");
  });
});
