// The planted mistakes of the spread: what makes broadcast trees slow, loud, or leaves sites without an event. Each must be found by the
// simulation of spreading sites (sim/spread). Three rules are against sites that lie, and all sites of that simulation are honest, so the tests
// next to the code have them alone: that duplicates are no progress, that whoever claims more and sends nothing is asked ever less often, and that
// whoever answers one gap after the other is not sent to at once.

import { type Mutant, planting } from "./patch.ts";

const SPREAD = "core/mesh/spread/spread.ts";

const mutant = planting(undefined, "spread");

export const SPREAD_MUTANTS: readonly Mutant[] = [
  mutant("two-way-prune", "one direction", {
    file: SPREAD,
    find: "        lane.outgoing = false;\n",
    replace: "        lane.outgoing = false;\n        lane.incoming = false;\n",
  }),
  mutant("links-born-eager", "born lazy", {
    file: SPREAD,
    find: "        outgoing: false,\n",
    replace: "        outgoing: true,\n",
  }),
  mutant("duplicates-are-not-pruned", "duplicates", {
    file: SPREAD,
    find: "if (!lane.incoming || incomingOf(line) > 1) this.#prune(lane);",
  }),
  mutant("page-sent-for-ever", "cursor", {
    file: SPREAD,
    find: 'else if ("through" in outcome && outcome.through > after) this.#reaches(lane, outcome.through);',
    replace: 'else if ("through" in outcome && outcome.through > after) lane.size = after;',
  }),
  mutant("graft-never-repeated", "heads ahead", {
    file: SPREAD,
    find: "      if (next !== undefined) this.#graft(next);\n      this.#watch(line);",
    replace: "      if (next !== undefined) this.#graft(next);",
  }),
  mutant("no-graft-after-a-second", "heads ahead", {
    file: SPREAD,
    find: "this.#lagging.set(line, this.#nowMs + GRAFT_AFTER_MS);",
  }),
  mutant("lines-do-not-take-turns", "turns", {
    file: SPREAD,
    find: "const [lane] = link.ready;",
    replace: "const lane = [...link.ready].toSorted((a, b) => (a.line.id < b.line.id ? -1 : 1))[0];",
  }),
  mutant("two-pages-under-way", "one page", {
    file: SPREAD,
    find: "if (link.underWay !== null || lane === undefined) return;",
    replace: "if (lane === undefined) return;",
  }),
  mutant("lanes-outlive-their-link", "bounded state", {
    file: SPREAD,
    find: "lane.line.lanes.delete(id);",
  }),
  mutant("graft-after-what-was-lost", "applied", {
    file: SPREAD,
    find: "line: line.id, after: line.have });",
    replace: "line: line.id, after: line.arrived });",
  }),
  mutant("graft-keeps-the-cursor", "cursor", {
    file: SPREAD,
    find: "lane.size = after < lane.line.have ? after : Math.max(lane.size, lane.line.have);",
    replace: "lane.size = Math.max(lane.size, after);",
  }),
  mutant("own-line-is-asked-for", "own line", {
    file: SPREAD,
    find: "if (!lane.line.wanted) return;",
  }),
  mutant("last-way-pruned", "duplicates", {
    file: SPREAD,
    find: "if (!lane.incoming || incomingOf(line) > 1) this.#prune(lane);",
    replace: "this.#prune(lane);",
  }),
  mutant("no-pause-after-a-refusal", "pause", {
    file: SPREAD,
    find: "else this.#paused.set(lane, this.#nowMs + REFUSED_PAUSE_MS);",
  }),
  mutant("pause-ends-without-a-turn", "pause", {
    file: SPREAD,
    find: "      this.#paused.delete(lane);\n      this.#offer(lane);\n",
    replace: "      this.#paused.delete(lane);\n",
  }),
  mutant("shorter-way-not-taken", "shortest", {
    file: SPREAD,
    find: "if (shortest !== undefined) return this.#replaceBy(shortest);",
  }),
  mutant("mutual-lanes-stay", "one link", {
    file: SPREAD,
    find: "return this.#endMutual(lane);",
    replace: "return;",
  }),
];
