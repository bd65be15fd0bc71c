// The backend in memory keeps every promise of an elector, with answers at once and with answers that take time.

import { describe, it } from "vitest";
import { electorConformance } from "../../src/entry/testing.ts";
import { memoryWorld } from "./test-worlds.ts";

describe("memory, answers at once", () => {
  for (const { name, run } of electorConformance(() => memoryWorld())) it(name, run);
});

describe("memory, each way takes 20 ms", () => {
  for (const { name, run } of electorConformance(() => memoryWorld({ latencyMs: 20 }))) it(name, run);
});
