// `tenure/testing`: a backend in virtual time for the tests of those who use Tenure, and the conformance suite for
// those who write another backend. The timers are bound at import, so that a test's fake timers can't stop them.

import { type ConformanceCase, conformanceCases, type MakeWorld } from "../electors/conformance/index.ts";
import { memoryBackend, type TestBackend, type TestBackendOptions } from "../electors/memory/index.ts";
import { createElector } from "./index.ts";

export type {
  ConformanceCase,
  ConformanceFailure,
  ConformanceWorld,
  Fault,
  MakeWorld,
  RunnerContext,
} from "../electors/conformance/index.ts";
export type { TestBackend, TestBackendOptions, TestResource } from "../electors/memory/index.ts";

const afterMicrotasks = setImmediate;
const later = setTimeout;
const clock = performance;

/** Scopes in memory, time moved by hand: `advance`, `kill`, `freeze`, `thaw`, `cut`, `heal`. */
export function testBackend(options: TestBackendOptions = {}): TestBackend {
  return memoryBackend(options, () => new Promise((resolve) => void afterMicrotasks(resolve)));
}

/** Every promise of an elector as a case that any runner can register; `make` is called once for each case. */
export function electorConformance(make: MakeWorld): ConformanceCase[] {
  return conformanceCases(make, {
    createElector,
    realNowMs: () => clock.now(),
    realSleep: (ms) => new Promise((resolve) => void later(resolve, ms)),
  });
}
