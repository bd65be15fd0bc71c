// The lines of a site's earlier generations, as the site shows them, or whoever vouches for it. A line of a later generation continues the one
// before it, and can't be taken by whoever does not have that: so a site that was recovered or renewed names all of its lines where it is new.

import type { Digest } from "../../../ports/digest.ts";
import type { Ring } from "../model.ts";
import { lineIdOf, ringProblem } from "../proof/index.ts";
import type { PinnedLine } from "./events.ts";
import { LINES_PER_SITE_MAX } from "./limits.ts";

/** `ring`: the first one of the line that is shown. Null: these are not lines of the same site before it, oldest first. */
export function earlierLines(
  value: unknown,
  ring: Ring,
  digest: Pick<Digest, "sha256Hex">,
): readonly PinnedLine[] | null {
  if (!Array.isArray(value) || value.length >= LINES_PER_SITE_MAX) return null;
  const lines: PinnedLine[] = [];
  for (const one of value as readonly unknown[]) {
    const { line, ring: shown } = (one ?? {}) as { readonly line?: unknown; readonly ring?: unknown };
    if (ringProblem(shown) !== null) return null;
    const first = shown as Ring;
    const generation = lines.at(-1)?.ring.generation ?? 0;
    const isBetween = first.generation > generation && first.generation < ring.generation;
    if (first.controller !== ring.controller || !isBetween || lineIdOf(first, digest) !== line) return null;
    lines.push({ line, ring: first });
  }
  return lines;
}
