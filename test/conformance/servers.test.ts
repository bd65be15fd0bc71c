// The servers backend keeps every promise of an elector, against a cluster of three real servers.

import { afterAll, beforeAll, describe, it } from "vitest";
import { electorConformance } from "../../src/entry/testing.ts";
import { CLIENT_KEY, startTenureCluster, type TenureCluster } from "../servers/index.ts";
import { clusterWorld } from "../servers-backend/test-world.ts";

/** Three processes from source, on a machine with other tests on it. */
const START_MS_MAX = 60_000;

describe("a cluster of Tenure's own servers", { concurrent: true }, () => {
  let cluster: TenureCluster;

  beforeAll(async () => {
    cluster = await startTenureCluster();
  }, START_MS_MAX);

  afterAll(() => cluster?.end());

  for (const { name, run } of electorConformance(() => clusterWorld(cluster.urls, CLIENT_KEY))) it(name, run);
});
