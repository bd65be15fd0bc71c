// This server's cluster as other islands know it, in transactions.

import { canonicalJson } from "../../core/events/index.ts";
import { payloadProblem, specProblem } from "../../core/jobs/decide/spec-problem.ts";
import type { JobSpec } from "../../core/jobs/model.ts";
import { TenureError } from "../../core/kit/errors.ts";
import { INTEGER_MAX } from "../../core/kit/limits.ts";
import type { Island } from "../../controller/transactions/transactions.ts";
import type { ServicesWorld } from "./assemble.ts";

/** At whichever of its nodes. A cluster that was restored or recovered has another id, and is another island. */
export function islandOf({ digest, site, newJobId }: Pick<ServicesWorld, "digest" | "site" | "newJobId">): Island {
  return { backendHash: digest.sha256Hex(`tenure-backend\n${site.clusterId}`), newJobId, problemOf };
}

/** As when jobs are submitted: what is prepared can be committed. */
function problemOf(spec: JobSpec): string | null {
  try {
    return specProblem(spec) ?? payloadProblem(canonicalJson(spec.payload, INTEGER_MAX));
  } catch (error) {
    if (!TenureError.is(error)) throw error;
    return error.message;
  }
}
