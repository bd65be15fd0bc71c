// Of a site's own lines the last GENERATIONS_KEPT_MAX are remembered; peers keep all that they have. A head of a line that was not remembered at
// all would be "unclear" and clear nobody, so that its peer would hold the gate closed after every start.

import { expect, test } from "vitest";
import { findingOf } from "../../../core/mesh/gate/index.ts";
import { systemDigest as digest } from "../../../drivers/system/digest.ts";
import { GENERATIONS_KEPT_MAX } from "../limits.ts";
import { OwnSiteStage } from "./test-own-site.ts";

test("a peer that has the first of many generations does not hold the gate closed for ever", async () => {
  const stage = new OwnSiteStage(digest);
  stage.ring("n1");
  const { line } = stage.fold.lines!.generations[0]!;
  for (let count = 1; count <= GENERATIONS_KEPT_MAX; count++) {
    stage.recover();
    stage.ring("n1");
  }
  const own = stage.lineAt("n1");
  expect(findingOf({ line, size: 1, root: "0".repeat(64) }, await own.partAt(line, 1), false)).toMatchObject({
    kind: "part",
  });
});
