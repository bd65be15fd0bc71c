// The five conformance tests of specs/node-controller.md §9, as one suite for any cluster.

import { afterAll, beforeAll, describe, test } from "vitest";
import type { TenureCluster } from "../servers/index.ts";
import {
  epochIncrements,
  jobEpochRejects,
  oldLeaderCommitsNothing,
  onlyOneLeads,
  standbyRejects,
} from "./test-node-controller.ts";

export interface Stage {
  readonly cluster: TenureCluster;
  end(): Promise<void>;
}

export function nodeControllerConformance(name: string, start: () => Promise<Stage>): void {
  describe(`specs/node-controller.md §9, on ${name}`, () => {
    let stage: Stage;

    beforeAll(async () => {
      stage = await start();
    }, 120_000);

    afterAll(() => stage?.end());

    test("1) Standby rejects mutating endpoints with 409 NOT_LEADER.", () => standbyRejects(stage.cluster));
    test("2) Only one node can hold leader lock at a time.", () => onlyOneLeads(stage.cluster));
    test("3) leader_epoch increments on leadership acquisition.", () => epochIncrements(stage.cluster));
    test("4) Old leader cannot commit results after losing leadership (STALE_EPOCH).", () =>
      oldLeaderCommitsNothing(stage.cluster));
    test("5) job_epoch rejects stale work (STALE_EPOCH).", () => jobEpochRejects(stage.cluster));
  });
}
