// As quorum.test.ts, with the clocks and timers of this process.

import { describe, it } from "vitest";
import { electorConformance } from "../../src/entry/testing.ts";
import { realQuorumWorld } from "./test-quorum-world.ts";

describe("coordinators, in real time", { concurrent: true }, () => {
  for (const { name, run } of electorConformance(realQuorumWorld)) it(name, run);
});
