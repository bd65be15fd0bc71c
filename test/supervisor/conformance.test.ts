// The conformance tests of specs/node-controller.md §9 once more, through the supervisor: each node is a supervisor with a
// controller and, while it does not lead, a worker.

import { afterAll, beforeAll, describe, test } from "vitest";
import { CALM_ELECTION, startPostgres, startTenureCluster, type TenureCluster } from "../servers/index.ts";
import {
  epochIncrements,
  jobEpochRejects,
  oldLeaderCommitsNothing,
  onlyOneLeads,
  SERVER_TIMEOUT_MS,
  standbyRejects,
} from "../conformance/test-node-controller.ts";

const SUPERVISED = { capacity: 1 };

describe.each(["their own consensus", "Postgres"])("specs/node-controller.md §9, supervised, on %s", (name) => {
  let cluster: TenureCluster;
  const ends: (() => Promise<void>)[] = [];

  beforeAll(async () => {
    if (name === "Postgres") {
      const server = await startPostgres({ settings: { fsync: "off" } });
      ends.push(() => server.end());
      const backend = `${server.url()}?tenure_server_timeout_ms=${SERVER_TIMEOUT_MS}`;
      cluster = await startTenureCluster({ backend, supervised: SUPERVISED });
    } else cluster = await startTenureCluster({ election: CALM_ELECTION, supervised: SUPERVISED });
    ends.push(() => cluster.end());
  }, 120_000);

  afterAll(async () => {
    for (const end of ends.toReversed()) await end();
  });

  test("1) Standby rejects mutating endpoints with 409 NOT_LEADER.", () => standbyRejects(cluster));
  test("2) Only one node can hold leader lock at a time.", () => onlyOneLeads(cluster));
  test("3) leader_epoch increments on leadership acquisition.", () => epochIncrements(cluster));
  test("4) Old leader cannot commit results after losing leadership (STALE_EPOCH).", () =>
    oldLeaderCommitsNothing(cluster));
  test("5) job_epoch rejects stale work (STALE_EPOCH).", () => jobEpochRejects(cluster));
});
