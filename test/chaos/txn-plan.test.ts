// The plan of `chaos txn`: whatever the number of iterations, everything that can happen is in it.

import { expect, test } from "vitest";
import { seededRandom } from "../../src/core/kit/random.ts";
import { OTHER_FAULTS, planOf } from "./txn-plan.ts";
import { COORDINATOR_POINTS, ISLAND_POINTS } from "./txn-points.ts";

test.each([1, 8, 9, 30, 100, 1_000])("of %i kills has every point and every other fault", (iterations) => {
  for (let seed = 0; seed < 20; seed++) {
    const steps = planOf(iterations, seededRandom(seed)).flat();
    const kills = steps.filter((step) => step.kind === "kill");
    expect(kills.length).toBeGreaterThanOrEqual(iterations);
    expect(new Set(kills.map(({ point }) => point))).toEqual(new Set(COORDINATOR_POINTS));
    expect(new Set(kills.flatMap(({ island }) => island ?? []))).toEqual(new Set(ISLAND_POINTS));
    expect(new Set(steps.flatMap((step) => (step.kind === "other" ? step.fault : [])))).toEqual(new Set(OTHER_FAULTS));
  }
});
