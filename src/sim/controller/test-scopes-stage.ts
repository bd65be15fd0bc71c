// A scopes' service on a log in memory, for its tests: they stand in its own room, which knows neither logs nor clocks.

import { ScopesStage } from "../../controller/scopes/test-scopes.ts";
import type { StateServiceOptions } from "../../controller/state/state.ts";
import { StateFold } from "../../core/state/index.ts";
import { ManualClock } from "../../loops/test-clock.ts";
import { MemoryLog, MemoryStore } from "../../logs/index.ts";

export function stageOn(
  store = new MemoryStore(),
  clock = new ManualClock(),
  scopesMax?: number,
  more: Partial<StateServiceOptions> = {},
): ScopesStage {
  const applied = new StateFold(scopesMax);
  return new ScopesStage(clock, new MemoryLog(store, applied), applied, more);
}

export async function leading(): Promise<{ stage: ScopesStage; clock: ManualClock; store: MemoryStore }> {
  const store = new MemoryStore();
  const clock = new ManualClock();
  const stage = stageOn(store, clock);
  await stage.lead(1);
  return { stage, clock, store };
}
