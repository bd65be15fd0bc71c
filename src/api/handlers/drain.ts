// A node taken out by an operator, or in again. Unlike the rest of what steers it is about the node that is asked, whoever leads.

import { toSnake } from "../../contract/index.ts";
import { TenureError } from "../../core/kit/errors.ts";
import type { Jobs } from "../../ports/jobs.ts";
import type { Handlers, Service } from "./handler.ts";
import { leadershipOf, Refusal } from "../refusal.ts";

export function drainHandlers(service: Service, jobs: Jobs | undefined): Pick<Handlers, "drainNode"> {
  return {
    drainNode: async ({ params, body }) => {
      const { cluster, nodeId } = service;
      if (params.node_id !== nodeId) {
        const text = `This is ${nodeId}, and ${params.node_id} can be drained by itself alone. Ask it at its own URL (GET /v1/cluster).`;
        throw new Refusal("MEMBER_UNKNOWN", text, { node_id: nodeId });
      }
      const { drain: isDraining = true, force = false } = body;
      const drained = (): Promise<void> => cluster.drain(isDraining, force);
      const isLeading = isDraining && cluster.currentRole() === "LEADER";
      await (isLeading && jobs !== undefined ? whileQuiet(jobs, drained) : drained());
      const view = cluster.view();
      const { leaderId, leaderEpoch } = leadershipOf(view);
      return { body: toSnake({ nodeId, isDraining: view.isDraining, role: view.role, leaderId, leaderEpoch }) };
    },
  };
}

/** Design D17: no new leases while leadership is handed over; where that comes to nothing, leases again, unless an operator wants none. */
async function whileQuiet(jobs: Jobs, work: () => Promise<void>): Promise<void> {
  setQuiet(jobs, true);
  try {
    await work();
  } finally {
    setQuiet(jobs, false);
  }
}

/** Of this leader's term: where that is over there is nothing to say. */
function setQuiet(jobs: Jobs, isQuiet: boolean): void {
  try {
    jobs.setDraining(isQuiet, "hand-over");
  } catch (error) {
    if (!TenureError.is(error) || error.code !== "NOT_LEADER") throw error;
  }
}
