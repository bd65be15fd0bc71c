// The leader of the transaction coordinators keeps every promise of an elector: coordinators of production, which are killed, frozen and cut off.

import { describe, it } from "vitest";
import { electorConformance } from "../../src/entry/testing.ts";
import { quorumWorld } from "./test-quorum-world.ts";

describe("coordinators", () => {
  for (const { name, run } of electorConformance(quorumWorld)) it(name, run);
});
