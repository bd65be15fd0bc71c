import { describe, expect, test } from "vitest";
import { Phases } from "./jobs-phases.ts";

const NEVER = new Promise<never>(() => undefined);

describe("a phase of a run of chaos jobs", () => {
  test("that does not end within its bound is named", async () => {
    const phases = new Phases({ log: () => undefined, hasFailed: () => false });
    await expect(phases.run("traffic", 20, () => NEVER)).rejects.toThrow(
      'the phase "traffic" did not end within 0.02 s',
    );
  });

  test("gives what its work gives, and fails as it does", async () => {
    const said: string[] = [];
    const phases = new Phases({ log: (line) => said.push(line), hasFailed: () => true });
    expect(await phases.run("audit", 60_000, () => Promise.resolve(7))).toBe(7);
    await expect(phases.run("audit", 60_000, () => Promise.reject(new Error("no answer")))).rejects.toThrow(
      "no answer",
    );
    expect(said.join()).toContain("phase: audit");
  });
});
