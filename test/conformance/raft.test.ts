// The embedded Raft keeps every promise of an elector: engines of production on virtual time, with every fault.

import { describe, it } from "vitest";
import { electorConformance } from "../../src/entry/testing.ts";
import { raftWorld } from "./test-raft-world.ts";

describe("raft, five engines on virtual time", () => {
  for (const { name, run } of electorConformance(raftWorld)) it(name, run);
});
