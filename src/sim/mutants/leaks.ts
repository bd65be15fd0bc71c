// Two leaks of determinism that a simulator must notice by itself: the same seed no longer gives the same trace.

import { type Mutant, planting } from "./patch.ts";

const leak = planting();

export const LEAKS: readonly Mutant[] = [
  leak("ambient-randomness", "trap 32: randomness that no seed decides", {
    file: "core/raft/patience.ts",
    find: "const timeoutMs = min + this.#random.next() * (max - min) * share + (isStrained ? this.#state.strainMs : 0);",
    replace: "const timeoutMs = min + Math.random() * (max - min) * share + (isStrained ? this.#state.strainMs : 0);",
  }),
  leak("arrival-ordered-map", "trap 32: a loop over a Map in the order in which its members arrived", {
    file: "sim/kernel/world.ts",
    find: "this.scheduler.schedule(this.nowMs, process.owner, () => this.start(name));",
    replace: 'if (process.state === "crashed") this.start(name);',
  }),
];
