// Plants mistakes into a process of its own: source lines are changed as they are loaded (sim/mutants). The file that
// `writePlant` makes is given to `node --import`; production code knows nothing of it.

import { readFileSync, writeFileSync } from "node:fs";
import { registerHooks } from "node:module";
import { type Edit, plant } from "../../src/sim/mutants/patch.ts";

/** Flags for `node`; none where there is nothing to plant. */
export function writePlant(file: string, edits: readonly Edit[]): string[] {
  if (edits.length === 0) return [];
  const hook = JSON.stringify(import.meta.url);
  writeFileSync(file, `import { plantAll } from ${hook};\nplantAll(${JSON.stringify(edits)});\n`);
  return ["--import", file];
}

/** Before any of the sources is loaded. */
export function plantAll(edits: readonly Edit[]): void {
  registerHooks({
    load(url, context, nextLoad) {
      const here = edits.filter((edit) => url === new URL(`../../src/${edit.file}`, import.meta.url).href);
      if (here.length === 0) return nextLoad(url, context);
      return {
        format: "module-typescript",
        source: here.reduce(plant, readFileSync(new URL(url), "utf8")),
        shortCircuit: true,
      };
    },
  });
}
