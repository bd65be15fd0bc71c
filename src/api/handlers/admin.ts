// What operators steer. Each call is written down (audit.ts), whatever comes of it.

import { toSnake } from "../../contract/index.ts";
import type { MemberChange } from "../../ports/cluster.ts";
import type { Call, Handlers, Service } from "./handler.ts";
import { Refusal } from "../refusal.ts";

type Ids =
  | "transfer"
  | "resume"
  | "members"
  | "saveSnapshot"
  | "readSnapshot"
  | "storedSnapshot"
  | "diagnostics"
  | "audit"
  | "askResign";

export function adminHandlers(service: Service): Pick<Handlers, Ids> {
  const { cluster, scopes, audit, counters, clock } = service;
  return {
    transfer: async ({ body }) => {
      const result = await cluster.transfer(body.target ?? null, body.force ?? false);
      const answer = toSnake(result);
      if (!result.success) throw new Refusal("ERR_LEADER_TRANSFER_FAILED", result.message, answer);
      return { body: answer };
    },
    resume: async () => {
      await cluster.resume();
      const { clusterId, isPaused } = cluster.view();
      return { body: toSnake({ clusterId, isPaused }) };
    },
    members: async ({ body }) => ({ body: toSnake(await cluster.changeMember(memberChange(body))) }),
    saveSnapshot: async () => ({ body: { ...toSnake(await cluster.saveSnapshot()), role: cluster.currentRole() } }),
    readSnapshot: oneAtATime(async () => {
      const snapshot = await cluster.readSnapshot();
      if (snapshot === null)
        throw new Refusal("NOT_FOUND", "This node has no snapshot yet. POST to the same path makes one.");
      const { index, term } = snapshot.view;
      return {
        body: snapshot.bytes,
        contentType: "application/octet-stream",
        headers: { "x-tenure-snapshot-index": String(index), "x-tenure-snapshot-term": String(term) },
      };
    }),
    storedSnapshot: ({ body }) => {
      const { backend } = cluster.view();
      if (backend !== "raft") throw new Refusal("NOT_SUPPORTED", "The database keeps this site's log: back that up.");
      counters.lastBackupAtMs = clock.wallMs();
      return { body: { index: body.index, at_ms: counters.lastBackupAtMs } };
    },
    diagnostics: () => {
      const { nodeId, version } = cluster.view();
      const { config, ...rest } = service.diagnostics();
      // The names in a configuration are the user's own: labels, node ids.
      return { body: { ...toSnake({ nodeId, version, ...rest }), config } };
    },
    audit: () => ({ body: { records: audit.records().map((record) => toSnake(record)) } }),
    askResign: async ({ params, body }) => {
      const asked = await scopes.askResign(params.scope, body.force ?? false);
      return { body: { epoch: asked?.epoch ?? null } };
    },
  };
}

function memberChange({ op, node_id: nodeId, promote, force }: Call<"members">["body"]): MemberChange {
  if (promote !== undefined && op !== "add") {
    throw new Refusal("BAD_REQUEST", "promote goes with op add only.", { field: "promote" });
  }
  if (op === "remove" || op === "replace") return { op, nodeId, force: force ?? false };
  if (force !== undefined)
    throw new Refusal("BAD_REQUEST", "force goes with op remove or replace.", { field: "force" });
  return op === "add" ? { op, nodeId, promote: promote ?? false } : { op, nodeId };
}

/** A snapshot may have hundreds of megabytes, and stays in memory until its client has gone. */
function oneAtATime(read: Handlers["readSnapshot"]): Handlers["readSnapshot"] {
  let isBusy = false;
  return async (call) => {
    if (isBusy) throw new Refusal("OVERLOADED", "A snapshot is being read already. Retry when that is done.");
    isBusy = true;
    const free = (): void => {
      isBusy = false;
    };
    call.gone.addEventListener("abort", free, { once: true });
    if (call.gone.aborted) free();
    return read(call);
  };
}
