// docs/values.md as a stranger follows it: its quick start as one script in an empty directory, each block compared with what the page says it prints.

import { describe, expect, it } from "vitest";
import { hasPageTools, runSteps, stepsOf } from "../servers/page-script.ts";

/** About 15 s; on a busy machine much more. */
const LIMIT_MS = 300_000;
const STEPS = stepsOf("docs/values.md", "Quick start");

/** What differs from one run to the next: versions, epochs, times, and how far the leader came. */
function inAnyRun(text: string): string {
  return text
    .replaceAll(/\d{4}-\d\d-\d\dT[\d:.]+Z/g, "<time>")
    .replaceAll(/(version|epoch) \d+/g, "$1 <n>")
    .replaceAll(/^(cursor +)\d+ /gm, "$1<n> ")
    .replaceAll(/\{"at":[1-9]\d*\}/g, '{"at":<n>}')
    .replaceAll(/ +/g, " ")
    .trim();
}

describe.skipIf(!hasPageTools())("the page", () => {
  it("docs/values.md: the quick start, as it is written", { timeout: LIMIT_MS }, async () => {
    expect(STEPS).toHaveLength(5);
    const { code, parts, rest } = await runSteps(STEPS, LIMIT_MS - 20_000);
    expect(
      parts.map((text) => inAnyRun(text)),
      `${parts.join("\n")}\n${rest}`,
    ).toEqual(STEPS.map((step) => inAnyRun(step.printed)));
    expect(code, rest).toBe(0);
  });
});
