// What an operator does with this site's place in the mesh, and the evidence of forks that is known here.

import { type MESH_OPERATOR_ROUTES, toSnake } from "../../contract/index.ts";
import { TenureError } from "../../core/kit/errors.ts";
import type { MeshLines } from "../../ports/mesh/lines.ts";
import type { DepartureView, MeshLinks } from "../../ports/mesh/links.ts";
import type { Request } from "../../ports/jobs.ts";
import type { Call, Handlers, Service } from "./handler.ts";
import { standalone } from "./mesh-lines.ts";
import { fenced } from "./mutation.ts";

type Ids = keyof typeof MESH_OPERATOR_ROUTES;

/** `lines`: undefined where this site is standalone. */
export function meshOperatorHandlers(
  service: Service,
  lines: MeshLines | undefined,
  links: MeshLinks | undefined,
): Pick<Handlers, Ids> {
  const presence = async (
    { caller, body: { leader_epoch: leaderEpoch } }: Call<"meshLeave" | "meshJoin">,
    change: (links: MeshLinks, request: Request) => Promise<DepartureView>,
  ) => {
    checkLeads(service);
    if (links === undefined) throw standalone();
    const request = { caller: caller.name, idempotencyKey: null, bodyHash: "", leaderEpoch };
    return { body: toSnake(await fenced(service, leaderEpoch, () => change(links, request))) as object };
  };
  return {
    meshLeave: (call) => presence(call, (own, request) => own.leave(request)),
    meshJoin: (call) => presence(call, (own, request) => own.join(request)),
    meshResume: async ({ caller, body: { new_line: isNewLine = false, leader_epoch: leaderEpoch } }) => {
      checkLeads(service);
      const mesh = known(lines);
      const request = { caller: caller.name, idempotencyKey: null, bodyHash: "", leaderEpoch };
      const gate = await fenced(service, leaderEpoch, () => mesh.resume(request, isNewLine));
      return { body: { gate: toSnake(gate) } };
    },
    meshEvidence: async ({ query, inTurn }) => {
      const mesh = known(lines);
      return { body: { forks: await inTurn(() => mesh.forks(query.site ?? null)) } };
    },
  };
}

function checkLeads({ cluster, nodeId }: Service): void {
  if (cluster.currentRole() !== "LEADER") throw new TenureError("NOT_LEADER", `${nodeId} does not lead`);
}

function known(lines: MeshLines | undefined): MeshLines {
  if (lines === undefined) throw standalone();
  return lines;
}
