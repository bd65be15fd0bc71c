// `tenure/testing`: a backend in virtual time for the tests of those who use Tenure, and the conformance suite for
// those who write another backend. The timers are bound at import, so that a test's fake timers can't stop them.

import { type ConformanceCase, conformanceCases, type MakeWorld } from "../electors/conformance/index.ts";
import { memoryBackend, type TestBackendOptions, type TestClient } from "../electors/memory/index.ts";
import type { TestBackend as MemoryBackend } from "../electors/memory/index.ts";
import { fenceOf, type PostgresTerm } from "../electors/postgres/index.ts";
import { serversTerm, type ServersTerm } from "../electors/servers/index.ts";
import { poolLender } from "../drivers/postgres/index.ts";
import { createElector } from "./index.ts";

export type {
  ConformanceCase,
  ConformanceFailure,
  ConformanceWorld,
  Fault,
  MakeWorld,
  RunnerContext,
} from "../electors/conformance/index.ts";
export type {
  TestBackendOptions,
  TestClient,
  TestPool,
  TestQuery,
  TestQueryConfig,
  TestResource,
  TestResult,
  TestStatement,
  TestValues,
} from "../electors/memory/index.ts";

/**
 * Its terms have `tx` and `fence`, as those of `tenure/postgres`, and `get`, `put` and `delete`, as those of `tenure/servers`; `Client` is the type
 * that the code under test knows.
 */
export type TestBackend<Client = TestClient> = MemoryBackend<PostgresTerm<Client> & ServersTerm>;

const afterMicrotasks = setImmediate;
const later = setTimeout;
const clock = performance;

/**
 * Scopes in memory, time moved by hand: `advance`, `kill`, `freeze`, `thaw`, `cut`, `heal`; transactions without a database.
 * For code that is written for a pool of `pg`: `testBackend<PoolClient>()`. The client has its `query` and `release`.
 */
export function testBackend<Client = TestClient>(options: TestBackendOptions = {}): TestBackend<Client> {
  let nonces = 0;
  const backend: TestBackend = memoryBackend(
    options,
    () => new Promise((resolve) => void afterMicrotasks(resolve)),
    (pool, values) => {
      const fence = fenceOf({
        lender: poolLender(() => pool.connect()),
        where: "the test backend",
        schema: "public",
        lockKeyOf: (scope) => pool.keyOf(scope),
        nonce: () => String(++nonces).padStart(16, "0"),
      });
      return (hold) => ({ ...fence(hold), ...serversTerm(values, hold) });
    },
  );
  return backend as unknown as TestBackend<Client>;
}

/** Every promise of an elector as a case that any runner can register; `make` is called once for each case. */
export function electorConformance(make: MakeWorld): ConformanceCase[] {
  return conformanceCases(make, {
    createElector,
    realNowMs: () => clock.now(),
    realSleep: (ms) => new Promise((resolve) => void later(resolve, ms)),
  });
}
