// What operators do with agents, queues, leases and keys. Each call is audited.

import { toSnake } from "../../contract/index.ts";
import { TenureError } from "../../core/kit/errors.ts";
import { parseSpiffeId } from "../../core/kit/spiffe.ts";
import type { Request } from "../../ports/jobs.ts";
import type { Handlers, JobsParts, Service } from "./handler.ts";
import { fenced, requestOf, unkeyedEpoch } from "./mutation.ts";
import { beFresh } from "./reads.ts";
import { Refusal } from "../refusal.ts";

type Ids =
  | "removeAgent"
  | "drainAgent"
  | "pauseQueue"
  | "resumeQueue"
  | "drain"
  | "createKey"
  | "keys"
  | "revokeKey"
  | "revokeCertificate"
  | "revokedCertificates";

const SHA256_OF_NOTHING = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";

export function steeringHandlers(service: Service, parts: JobsParts): Pick<Handlers, Ids> {
  const { jobs, keys, certificates } = parts;
  return {
    removeAgent: async (call) => {
      const request = requestOf(service, call, call.query.leader_epoch);
      await fenced(service, unkeyedEpoch(request), () => jobs.removeAgent(request, call.params.name));
      return { body: {} };
    },
    drainAgent: async (call) => {
      const { drain = true, leader_epoch: leaderEpoch } = call.body;
      const request = requestOf(service, call, leaderEpoch);
      await fenced(service, unkeyedEpoch(request), () => jobs.drainAgent(request, call.params.name, drain));
      return { body: {} };
    },
    pauseQueue: async (call) => {
      const request = requestOf(service, call, call.body.leader_epoch);
      await fenced(service, unkeyedEpoch(request), () => jobs.pauseQueue(request, call.params.queue, true));
      return { body: {} };
    },
    resumeQueue: async (call) => {
      const request = requestOf(service, call, call.body.leader_epoch);
      await fenced(service, unkeyedEpoch(request), () => jobs.pauseQueue(request, call.params.queue, false));
      return { body: {} };
    },
    drain: async ({ body }) => {
      const isDraining = body.drain ?? true;
      await fenced(service, body.leader_epoch, async () => {
        const { role, nodeId } = service.cluster.view();
        if (role === "STANDBY") throw new TenureError("NOT_LEADER", `${nodeId} does not lead`);
        jobs.setDraining(isDraining);
      });
      return { body: { is_draining: isDraining, leader_epoch: service.cluster.view().term } };
    },
    createKey: async (call) => {
      const { name, role, sha256, leader_epoch: leaderEpoch } = call.body;
      const request = unkeyed(call.caller.name, leaderEpoch);
      if (sha256 === SHA256_OF_NOTHING) {
        throw new Refusal("BAD_REQUEST", "sha256 is the hash of an empty key: it was not set when it was hashed.", {
          field: "sha256",
        });
      }
      if (service.keys.some((one) => one.name === name || one.sha256 === sha256)) {
        throw new Refusal(
          "KEY_EXISTS",
          "A key of this node's configuration has that name, or is that key. Take another.",
        );
      }
      return { body: toSnake(await fenced(service, leaderEpoch, () => keys.create(request, { name, role, sha256 }))) };
    },
    keys: async ({ query }) => {
      await beFresh(service, query);
      return { body: { keys: keys.list().map((key) => toSnake(key)) } };
    },
    revokeKey: async (call) => {
      const request = unkeyed(call.caller.name, call.query.leader_epoch);
      await fenced(service, call.query.leader_epoch, () => keys.revoke(request, call.params.name));
      return { body: {} };
    },
    revokeCertificate: async (call) => {
      const { sha256, id, not_after_ms: notAfterMs, leader_epoch: leaderEpoch } = call.body;
      const request = unkeyed(call.caller.name, leaderEpoch);
      const revoke = () => certificates.revoke(request, { sha256, id: noMember(service, id), notAfterMs });
      return { body: toSnake(await fenced(service, leaderEpoch, revoke)) };
    },
    revokedCertificates: async ({ query }) => {
      await beFresh(service, query);
      return { body: { certificates: certificates.revoked().map((one) => toSnake(one)) } };
    },
  };
}

/** Who is a member is said in one place (decision 42). A server of another island, or one that was removed, is a caller like any other. */
function noMember({ cluster }: Service, id: string): string {
  const { kind, name } = parseSpiffeId(id) ?? {};
  if (kind !== "server" || !cluster.view().members.some(({ nodeId }) => nodeId === name)) return id;
  const why = `Node ${name} is a member of this cluster: it is taken out with tenure member remove, and its certificate is not revoked. Nothing was done.`;
  throw new Refusal("BAD_REQUEST", why, { field: "id" });
}

/** Keys are what they are called: whoever repeats a change of one has it once. */
function unkeyed(caller: string, leaderEpoch: number | undefined): Request {
  return { caller, idempotencyKey: null, bodyHash: "", leaderEpoch };
}
