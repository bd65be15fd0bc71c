// The conformance tests of specs/node-controller.md §9, under their own names, against three server processes: on their own
// consensus, and on Postgres. Mutations are real ones: jobs, leases, results, agents. What each does is in
// test-node-controller.ts; that each fails where its guard is taken out, in node-controller-guards.test.ts.

import { afterAll, beforeAll, describe, test } from "vitest";
import {
  CALM_ELECTION,
  type PostgresServer,
  startPostgres,
  startTenureCluster,
  type TenureCluster,
} from "../servers/index.ts";
import {
  epochIncrements,
  jobEpochRejects,
  oldLeaderCommitsNothing,
  onlyOneLeads,
  SERVER_TIMEOUT_MS,
  standbyRejects,
} from "./test-node-controller.ts";

interface Stage {
  readonly cluster: TenureCluster;
  end(): Promise<void>;
}

const STAGES: Readonly<Record<string, () => Promise<Stage>>> = {
  "their own consensus": async () => {
    const own = await startTenureCluster({ election: CALM_ELECTION });
    return { cluster: own, end: () => own.end() };
  },
  Postgres: async () => {
    const server: PostgresServer = await startPostgres({ settings: { fsync: "off" } });
    const url = `${server.url()}?tenure_server_timeout_ms=${SERVER_TIMEOUT_MS}`;
    const site = await startTenureCluster({ backend: url });
    const end = async (): Promise<void> => {
      await site.end();
      await server.end();
    };
    return { cluster: site, end };
  },
};

describe.each(Object.keys(STAGES))("specs/node-controller.md §9, on %s", (name) => {
  let stage: Stage;

  beforeAll(async () => {
    stage = await STAGES[name]!();
  }, 120_000);

  afterAll(() => stage?.end());

  test("1) Standby rejects mutating endpoints with 409 NOT_LEADER.", () => standbyRejects(stage.cluster));
  test("2) Only one node can hold leader lock at a time.", () => onlyOneLeads(stage.cluster));
  test("3) leader_epoch increments on leadership acquisition.", () => epochIncrements(stage.cluster));
  test("4) Old leader cannot commit results after losing leadership (STALE_EPOCH).", () =>
    oldLeaderCommitsNothing(stage.cluster));
  test("5) job_epoch rejects stale work (STALE_EPOCH).", () => jobEpochRejects(stage.cluster));
});
