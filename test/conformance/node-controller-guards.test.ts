// That the conformance tests of specs/node-controller.md §9 can fail: each is run against three server processes whose guard
// was taken out (test-guards.ts), and must fail by its own assertion, not because a server died or somebody waited in vain.
// The tests about other guards pass on the same servers: what fails is what was taken out.

import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from "vitest";
import type { Edit } from "../../src/sim/mutants/patch.ts";
import {
  CALM_ELECTION,
  type PostgresServer,
  startPostgres,
  startTenureCluster,
  type TenureCluster,
} from "../servers/index.ts";
import { writePlant } from "../servers/planted.ts";
import { type BackendName, MISSING_GUARDS, type TestNumber } from "./test-guards.ts";
import {
  epochIncrements,
  jobEpochRejects,
  oldLeaderCommitsNothing,
  onlyOneLeads,
  SERVER_TIMEOUT_MS,
  standbyRejects,
} from "./test-node-controller.ts";

const TESTS: Readonly<Record<TestNumber, (cluster: TenureCluster) => Promise<void>>> = {
  1: standbyRejects,
  2: onlyOneLeads,
  3: epochIncrements,
  4: oldLeaderCommitsNothing,
  5: jobEpochRejects,
};

let postgres: PostgresServer;
let databases = 0;

beforeAll(async () => {
  postgres = await startPostgres({ settings: { fsync: "off" } });
});

afterAll(() => postgres?.end());

async function clusterWith(backend: BackendName, edits: readonly Edit[]): Promise<TenureCluster> {
  const cluster = await startTenureCluster({
    ...(backend === "Postgres"
      ? {
          backend: `${await postgres.createDatabase(`guard_${++databases}`)}?tenure_server_timeout_ms=${SERVER_TIMEOUT_MS}`,
        }
      : { election: CALM_ELECTION }),
    prepare: (node) => {
      node.nodeFlags = writePlant(join(node.home, "plant.mjs"), edits);
    },
  });
  onTestFinished(() => cluster.end());
  return cluster;
}

const BACKENDS: readonly BackendName[] = ["their own consensus", "Postgres"];

describe.each(BACKENDS)("specs/node-controller.md §9 without a guard, on %s", (backend) => {
  test.each(MISSING_GUARDS)("$name: $fails) fails", async ({ edits, fails, by, passes }) => {
    const cluster = await clusterWith(backend, edits[backend]);
    for (const other of passes) await TESTS[other](cluster);
    const failure = await TESTS[fails](cluster).then(
      () => null,
      (error: unknown) => error,
    );
    expect(failure, `test ${fails} must not pass without its guard`).toBeInstanceOf(Error);
    const { name, message } = failure as Error;
    expect({ name, message }).toEqual({ name: "AssertionError", message: expect.stringMatching(by) });
  });
});
