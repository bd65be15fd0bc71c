// The door of the log's conformance suite: one list of cases for every log, for any test runner.
//
//   for (const { name, run } of logConformance(makeWorld)) test(name, run);

import { APPEND_CASES } from "./append-cases.ts";
import type { Case } from "./case-list.ts";
import { FAULT_CASES } from "./fault-cases.ts";
import { FENCE_CASES } from "./fence-cases.ts";
import { LogStage } from "./stage.ts";
import { SUBSCRIBE_CASES } from "./subscribe-cases.ts";
import {
  type LogConformanceCase,
  LogConformanceFailure,
  type MakeLogWorld,
  plays,
  type RunnerContext,
} from "./world.ts";

export { type LogConformanceCase, LogConformanceFailure, type LogWorld, type MakeLogWorld } from "./world.ts";

const CASES: readonly Case[] = [...APPEND_CASES, ...FENCE_CASES, ...SUBSCRIBE_CASES, ...FAULT_CASES];

export function logConformance(make: MakeLogWorld): LogConformanceCase[] {
  return CASES.map((one) => ({
    name: one.name,
    needs: one.needs ?? [],
    // Without a parameter that counts: jest takes the first one for a callback.
    run: (...[context]: [RunnerContext?]) => play(one, make, context),
  }));
}

async function play(one: Case, make: MakeLogWorld, context: RunnerContext | undefined): Promise<void> {
  const world = await make();
  const missing = (one.needs ?? []).filter((fault) => !plays(world, fault));
  if (missing.length > 0) {
    await world.dispose();
    const reason = `this world can't ${missing.join(", ")}`;
    if (typeof context?.skip !== "function") {
      throw new LogConformanceFailure(
        `skipped: ${reason}, and this runner passed no context to skip with. Leave the case out by its \`needs\`.`,
      );
    }
    context.skip(reason);
    return;
  }
  const stage = new LogStage(world);
  try {
    await one.play(stage);
    await stage.checkLedger();
  } finally {
    await world.dispose();
  }
}
