// Two leaks of determinism that a simulator must notice by itself: the same seed no longer gives the same trace.

import type { Mutant } from "./patch.ts";

export const LEAKS: readonly Mutant[] = [
  {
    name: "ambient-randomness",
    breaks: "trap 32: randomness that no seed decides",
    edits: [
      {
        file: "core/raft/patience.ts",
        find: "const timeoutMs = min + this.#random.next() * (max - min) * share + (isStrained ? this.#state.strainMs : 0);",
        replace:
          "const timeoutMs = min + Math.random() * (max - min) * share + (isStrained ? this.#state.strainMs : 0);",
      },
    ],
  },
  {
    name: "arrival-ordered-map",
    breaks: "trap 32: a loop over a Map in the order in which its members arrived",
    edits: [
      {
        file: "sim/kernel/world.ts",
        find: "this.scheduler.schedule(this.nowMs, process.owner, () => this.start(name));",
        replace: 'if (process.state === "crashed") this.start(name);',
      },
    ],
  },
];
