// The conformance tests of specs/node-controller.md §9 against three server processes on Postgres (npm run test:long).

import { startPostgres, startTenureCluster } from "../servers/index.ts";
import { SERVER_TIMEOUT_MS } from "./test-node-controller.ts";
import { nodeControllerConformance } from "./test-node-controller-suite.ts";

nodeControllerConformance("Postgres", async () => {
  const server = await startPostgres({ settings: { fsync: "off" } });
  const cluster = await startTenureCluster({
    backend: `${server.url()}?tenure_server_timeout_ms=${SERVER_TIMEOUT_MS}`,
  });
  const end = async (): Promise<void> => {
    await cluster.end();
    await server.end();
  };
  return { cluster, end };
});
