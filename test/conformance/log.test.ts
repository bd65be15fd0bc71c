// Both logs keep every promise of ports/log.ts: in memory, after a line that takes time and loses answers; on Raft, with
// engines of production on simulated machines that are cut off, crash and come back.

import { describe, it } from "vitest";
import { logConformance } from "../../src/logs/conformance/index.ts";
import { memoryLogWorld, raftLogWorld } from "./test-log-worlds.ts";

describe("memory", () => {
  for (const { name, run } of logConformance(() => memoryLogWorld())) it(name, run);
});

describe("raft", () => {
  for (const { name, run } of logConformance(() => raftLogWorld())) it(name, run);
});
