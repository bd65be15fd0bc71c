// docs/coordinators.md as a stranger follows it: its blocks as one script in an empty directory, each compared with what the page says it prints.

import { describe, expect, it } from "vitest";
import { hasPageTools, runSteps, stepsOf } from "../servers/page-script.ts";

/** About 45 s; on a busy machine much more. */
const LIMIT_MS = 600_000;

const STEPS = stepsOf("docs/coordinators.md", "Three islands in five minutes");

/** What differs from one run to the next: disks, hashes and their order, times, counts of changes; and who is elected. */
function inAnyRun(text: string): string {
  const words = text
    .replaceAll(/\b[0-9a-f]{64}\b +https:.*$/gm, "<island>")
    .replaceAll(/\b[0-9a-f]{64}\b/g, "<hash>")
    .replaceAll(/@[0-9a-f]{16}\b/g, "@<disk>")
    .replaceAll(/\bc-[0-9a-f]{16}\b/g, "<cluster>")
    .replaceAll(/\d{4}-\d\d-\d\dT[\d:.]+Z/g, "<time>")
    .replaceAll(/(term|version)( +)\d+/g, "$1 <n>")
    .replaceAll(/\b(leads|answers|unknown)\b/g, "<state>")
    .replaceAll(/^leader .*$/gm, "leader <whoever>")
    // Of a node that does not lead.
    .replaceAll(/^STATE .*\n/gm, "");
  return words.replaceAll(/ +/g, " ").replaceAll(/ $/gm, "").trim();
}

describe.skipIf(!hasPageTools())("the page", () => {
  it("docs/coordinators.md: three islands in five minutes, as they are written", { timeout: LIMIT_MS }, async () => {
    expect(STEPS).toHaveLength(8);
    const { code, parts, rest } = await runSteps(STEPS, LIMIT_MS - 20_000);
    const printed = parts.map((text) => inAnyRun(text));
    expect(printed, `${parts.join("\n")}\n${rest}`).toEqual(STEPS.map((step) => inAnyRun(step.printed)));
    expect(code, rest).toBe(0);
  });
});
