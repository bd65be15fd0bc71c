// The door of the conformance suite: one list of cases for every backend, for any test runner.
//
//   for (const { name, run } of electorConformance(makeWorld)) test(name, run);

import type { Case } from "./case-list.ts";
import { ELECTION_CASES } from "./election-cases.ts";
import { LEAD_CASES } from "./lead-cases.ts";
import { LIFECYCLE_CASES } from "./lifecycle-cases.ts";
import { OBSERVER_CASES } from "./observer-cases.ts";
import { Stage } from "./stage.ts";
import {
  type ConformanceCase,
  ConformanceFailure,
  type ConformanceTools,
  type MakeWorld,
  plays,
  type RunnerContext,
} from "./world.ts";

export {
  type ConformanceCase,
  ConformanceFailure,
  type ConformanceTools,
  type ConformanceWorld,
  type Fault,
  type MakeWorld,
  type RunnerContext,
} from "./world.ts";

const CASES: readonly Case[] = [...ELECTION_CASES, ...OBSERVER_CASES, ...LIFECYCLE_CASES, ...LEAD_CASES];

export function conformanceCases(make: MakeWorld, tools: ConformanceTools): ConformanceCase[] {
  return CASES.map((one, index) => ({
    name: one.name,
    needs: one.needs ?? [],
    // Without a parameter that counts: jest takes the first one for a callback.
    run: (...[context]: [RunnerContext?]) => play(one, `conformance-${index + 1}`, make, tools, context),
  }));
}

async function play(
  one: Case,
  scope: string,
  make: MakeWorld,
  tools: ConformanceTools,
  context: RunnerContext | undefined,
): Promise<void> {
  const world = await make();
  const missing = (one.needs ?? []).filter((fault) => !plays(world, fault));
  if (missing.length > 0) {
    await world.dispose();
    const reason = `this world can't ${missing.join(", ")}`;
    if (typeof context?.skip !== "function") {
      throw new ConformanceFailure(
        `skipped: ${reason}, and this runner passed no context to skip with. Leave the case out by its \`needs\`.`,
      );
    }
    context.skip(reason);
    return;
  }
  const stage = new Stage(scope, world, tools);
  try {
    await one.play(stage);
  } catch (error) {
    // What the case has found is the news, not what then went wrong behind the scenes.
    await stage.takeDown().catch(() => undefined);
    throw error;
  }
  await stage.takeDown();
}
