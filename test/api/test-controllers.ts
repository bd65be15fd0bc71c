// A registry of sites in memory, as ports/mesh/controllers.ts promises it: the service itself, over a journal that commits at once where the
// test's node leads.

import { ControllersFold } from "../../src/controller/mesh/controllers-fold.ts";
import { RegistryService } from "../../src/controller/mesh/registry.ts";
import { CommittedAtOnce } from "../../src/controller/keys/test-journal.ts";
import { TenureError } from "../../src/core/kit/errors.ts";
import { systemClock } from "../../src/drivers/system/clock.ts";
import { systemDigest } from "../../src/drivers/system/digest.ts";
import { verifyEd25519 } from "../../src/drivers/system/signatures.ts";
import type { TestCluster } from "./test-cluster.ts";

export const OWN = { controllerId: "c-test", name: "test", url: () => "http://127.0.0.1:1", version: "0.0.0" };

export class TestControllers extends RegistryService {
  readonly fold: ControllersFold;

  constructor(cluster: TestCluster) {
    const fold = new ControllersFold();
    const written = new CommittedAtOnce(fold);
    const nobody = { current: null, now: () => null, next: async () => null!, serving: () => null! };
    super({
      fold,
      journal: {
        change: async (make) => {
          if (cluster.role !== "LEADER") throw new TenureError("NOT_LEADER", "this node does not lead");
          await written.change(make);
        },
        serve: () => nobody,
      },
      clock: systemClock,
      digest: systemDigest,
      verify: verifyEd25519,
      own: OWN,
      ttlMs: 300_000,
      checkMs: 60_000,
      lineState: () => null,
      unready: () => [],
      isLinked: () => false,
    });
    this.fold = fold;
  }

  fingerprint(): string {
    return this.fold.snapshot() ?? "";
  }
}
