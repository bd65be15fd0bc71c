// docs/transactions.md as a stranger follows it: its blocks as one script in an empty directory, each compared with what the page says it prints.

import { describe, expect, it } from "vitest";
import { hasPageTools, runSteps, stepsOf } from "../servers/page-script.ts";

/** About 30 s; on a busy machine much more. */
const LIMIT_MS = 600_000;
const STEPS = stepsOf("docs/transactions.md", "Three islands in five minutes");

describe.skipIf(!hasPageTools())("the page", () => {
  it("docs/transactions.md: three islands in five minutes, as they are written", { timeout: LIMIT_MS }, async () => {
    expect(STEPS.length).toBeGreaterThan(5);
    const { code, parts, rest } = await runSteps(STEPS, LIMIT_MS - 20_000);
    const printed = parts.map((text) => text.trim());
    expect(printed, `${parts.join("\n")}\n${rest}`).toEqual(STEPS.map((step) => step.printed.trim()));
    expect(code, rest).toBe(0);
  });
});
