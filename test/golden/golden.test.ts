// Golden transcripts: every *.txt here is a story in commands and in what they must print. Run with
// GOLDEN=write to record what they print now, and then READ the difference: it says what the core does,
// not what it should do.

import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { Interaction } from "./interaction.ts";
import { parseScript, printScript } from "./script.ts";

const FOLDER = import.meta.dirname;
const files = readdirSync(FOLDER).filter((file) => file.endsWith(".txt"));

describe("golden transcripts", () => {
  it("are at least twenty", () => {
    expect(files.length).toBeGreaterThanOrEqual(20);
  });

  it.each(files)("%s", (file) => {
    const path = join(FOLDER, file);
    const text = readFileSync(path, "utf8");
    const { blocks, epilogue } = parseScript(text);
    const interaction = new Interaction();
    const recorded = blocks.map((block) => ({
      ...block,
      expected: interaction.run(block.commands, `${file}:${block.line}`),
    }));
    const now = printScript(recorded, epilogue);
    if (process.env["GOLDEN"] === "write") writeFileSync(path, now);
    else expect(now).toBe(text);
  });

  it("notice a changed output", () => {
    const { blocks } = parseScript("add-nodes 1\ncampaign n1\nstatus\n----\nn1 leader\n");
    expect(new Interaction().run(blocks[0]!.commands, "planted")).not.toBe(blocks[0]!.expected);
  });
});
