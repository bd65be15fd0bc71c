// What all mutations of jobs share: the leader's epoch that a request may name, and the key under which it may be repeated.

import { type Call, type Service } from "./handler.ts";
import { requestText, type RouteId } from "../../contract/index.ts";
import { TenureError } from "../../core/kit/errors.ts";
import { IDEMPOTENCY_KEY_BYTES_MAX } from "../../core/kit/limits.ts";
import type { Request } from "../../ports/jobs.ts";
import { Refusal } from "../refusal.ts";

const IDEMPOTENCY_KEY = new RegExp(`^[\\x21-\\x7e]{1,${IDEMPOTENCY_KEY_BYTES_MAX}}$`);

/**
 * Runs `work` where the epoch that the request names is the active one (node-controller specification §7.2): here at once,
 * and in the leader's decision again, for leadership may change in between. A STALE_EPOCH always says which one is active.
 */
export async function fenced<T>(service: Service, leaderEpoch: number | undefined, work: () => Promise<T>): Promise<T> {
  if (leaderEpoch !== undefined) checkActive(service, leaderEpoch);
  try {
    return await work();
  } catch (error) {
    if (!TenureError.is(error) || error.code !== "STALE_EPOCH") throw error;
    throw new Refusal("STALE_EPOCH", error.message, { leader_epoch: service.cluster.view().term });
  }
}

function checkActive(service: Service, leaderEpoch: number): void {
  const { role, term } = service.cluster.view();
  if (role === "STANDBY" || leaderEpoch === term) return;
  // Somebody else leads, and this node has not heard of it yet.
  if (leaderEpoch > term)
    throw new TenureError("NOT_LEADER", `This node leads in epoch ${term}, and ${leaderEpoch} has begun.`);
  const text = `leader_epoch ${leaderEpoch} is over, and ${term} is active. It is not done now; look at what the new leader says before you repeat it.`;
  throw new Refusal("STALE_EPOCH", text, { leader_epoch: term });
}

/** What `fenced` checks at once: not under a key, for what was done in an epoch that is over is answered as it was. */
export function unkeyedEpoch({ idempotencyKey, leaderEpoch }: Request): number | undefined {
  return idempotencyKey === null ? leaderEpoch : undefined;
}

/** Throws BAD_REQUEST for an Idempotency-Key that is none. */
export function requestOf(service: Service, call: Call<RouteId>, leaderEpoch: number | undefined): Request {
  const key = call.header("idempotency-key");
  const caller = call.caller.name;
  if (key === undefined) return { caller, idempotencyKey: null, bodyHash: "", leaderEpoch };
  if (!IDEMPOTENCY_KEY.test(key)) {
    throw new Refusal(
      "BAD_REQUEST",
      `Idempotency-Key must be 1 to ${IDEMPOTENCY_KEY_BYTES_MAX} printable ASCII characters without spaces, and be given once.`,
      { field: "Idempotency-Key" },
    );
  }
  // What is repeated after a failover names another epoch, and is the same request.
  const { leader_epoch: _epoch, ...asked } = (call.body ?? {}) as Record<string, unknown>;
  const text = requestText(call.method, call.path, asked);
  return { caller, idempotencyKey: key, bodyHash: service.sha256(text), leaderEpoch };
}
