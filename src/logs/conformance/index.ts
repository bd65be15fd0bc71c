// The door of the log's conformance suite: one list of cases for every log, for any test runner.
//
//   for (const { name, run } of logConformance(makeWorld)) test(name, run);

import { type RunnableCase, runnable } from "../../loops/conformance.ts";
import { APPEND_CASES } from "./append-cases.ts";
import { FAULT_CASES } from "./fault-cases.ts";
import { FENCE_CASES } from "./fence-cases.ts";
import { type Case, LogStage } from "./stage.ts";
import { SUBSCRIBE_CASES } from "./subscribe-cases.ts";
import { type LogFault, type MakeLogWorld, plays } from "./world.ts";

export type { LogWorld, MakeLogWorld } from "./world.ts";

const CASES: readonly Case[] = [...APPEND_CASES, ...FENCE_CASES, ...SUBSCRIBE_CASES, ...FAULT_CASES];

export function logConformance(make: MakeLogWorld): RunnableCase<LogFault>[] {
  return runnable(CASES, {
    make,
    plays,
    play: async (one, world) => {
      const stage = new LogStage(world);
      try {
        await one.play(stage);
        await stage.checkLedger();
      } finally {
        await world.dispose();
      }
    },
  });
}
