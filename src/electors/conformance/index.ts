// The door of the conformance suite: one list of cases for every backend, for any test runner.
//
//   for (const { name, run } of electorConformance(makeWorld)) test(name, run);

import { runnable } from "../../loops/conformance.ts";
import { ELECTION_CASES } from "./election-cases.ts";
import { LEAD_CASES } from "./lead-cases.ts";
import { LIFECYCLE_CASES } from "./lifecycle-cases.ts";
import { OBSERVER_CASES } from "./observer-cases.ts";
import { type Case, Stage } from "./stage.ts";
import { type ConformanceCase, type ConformanceTools, type MakeWorld, plays } from "./world.ts";

export { ConformanceFailure, type RunnerContext } from "../../loops/conformance.ts";
export type { ConformanceCase, ConformanceTools, ConformanceWorld, Fault, MakeWorld } from "./world.ts";

const CASES: readonly Case[] = [...ELECTION_CASES, ...OBSERVER_CASES, ...LIFECYCLE_CASES, ...LEAD_CASES];

export function conformanceCases(make: MakeWorld, tools: ConformanceTools): ConformanceCase[] {
  return runnable(CASES, {
    make,
    plays,
    play: async (one, world, index) => {
      const stage = new Stage(`conformance-${index + 1}`, world, tools);
      try {
        await one.play(stage);
      } catch (error) {
        // What the case has found is the news, not what then went wrong behind the scenes.
        await stage.takeDown().catch(() => undefined);
        throw error;
      }
      await stage.takeDown();
    },
  });
}
