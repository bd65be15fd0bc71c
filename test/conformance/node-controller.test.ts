// The conformance tests of specs/node-controller.md §9, under their own names, against three server processes on their own
// consensus; on Postgres: node-controller-postgres.test.ts. Mutations are real ones: jobs, leases, results, agents. What each does is
// in test-node-controller.ts; that each fails where its guard is taken out, in node-controller-guards.test.ts.

import { CALM_ELECTION, startTenureCluster } from "../servers/index.ts";
import { nodeControllerConformance } from "./test-node-controller-suite.ts";

nodeControllerConformance("their own consensus", async () => {
  const cluster = await startTenureCluster({ election: CALM_ELECTION });
  return { cluster, end: () => cluster.end() };
});
