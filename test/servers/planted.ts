// Plants mistakes into a process of its own: source lines are changed as they are loaded (sim/mutants). The file that
// `writePlant` makes is given to `node --import`; production code knows nothing of it.

import { readFileSync, writeFileSync } from "node:fs";
import { registerHooks } from "node:module";
import { type Edit, plant } from "../../src/sim/mutants/patch.ts";

/** Flags for `node`; none where there is nothing to plant. Throws where a source has changed under an edit: no process would start with it. */
export function writePlant(file: string, edits: readonly Edit[]): string[] {
  if (edits.length === 0) return [];
  checkPlant(edits);
  const hook = JSON.stringify(import.meta.url);
  writeFileSync(file, `import { plantAll } from ${hook};\nplantAll(${JSON.stringify(edits)});\n`);
  return ["--import", file];
}

/** Throws where a line to change is not in its source, or is there more than once. */
export function checkPlant(edits: readonly Edit[]): void {
  for (const file of new Set(edits.map((edit) => edit.file))) plantedSource(sourceOf(file), edits);
}

function sourceOf(file: string): URL {
  return new URL(`../../src/${file}`, import.meta.url);
}

/** Null: nothing is planted there. */
function plantedSource(url: URL, edits: readonly Edit[]): string | null {
  const here = edits.filter(({ file }) => sourceOf(file).href === url.href);
  return here.length === 0 ? null : here.reduce(plant, readFileSync(url, "utf8"));
}

/** Before any of the sources is loaded. */
export function plantAll(edits: readonly Edit[]): void {
  registerHooks({
    load(url, context, nextLoad) {
      const source = plantedSource(new URL(url), edits);
      if (source === null) return nextLoad(url, context);
      return { format: "module-typescript", source, shortCircuit: true };
    },
  });
}
