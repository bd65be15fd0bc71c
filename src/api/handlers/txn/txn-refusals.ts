// Why nothing came of a call about a transaction, in words for whoever called, and who may call in whose name.

import { TenureError } from "../../../core/kit/errors.ts";
import { parseSpiffeId } from "../../../core/kit/spiffe.ts";
import type { BackendHash } from "../../../core/txn/model.ts";
import { ON_BEHALF_OF_HEADER, TXN_FORWARDED_HEADER } from "../../../core/txn/wire-calls.ts";
import type { TxnCaller } from "../../../ports/transactions.ts";
import { Refusal } from "../../refusal.ts";
import type { Caller } from "../../traffic/callers.ts";

interface Called {
  readonly caller: Caller;
  readonly header: (name: string) => string | undefined;
}

/** A server says for whom it calls, and that it forwards. What others say of that is not looked at. */
export function txnCallerOf({ caller, header }: Called): TxnCaller {
  const { name } = caller;
  if (caller.how !== "certificate" || caller.identity?.kind !== "server") return { by: name, isForwarded: false };
  const isForwarded = (header(TXN_FORWARDED_HEADER) ?? "").trim() !== "";
  const by = header(ON_BEHALF_OF_HEADER);
  if (by === undefined) return { by: name, isForwarded };
  if (parseSpiffeId(by) !== undefined) return { by, isForwarded };
  const text =
    "X-Tenure-On-Behalf-Of must be the name in a client's certificate, spiffe://<trust domain>/<kind>/<name>.";
  throw new Refusal("BAD_REQUEST", text, { field: "X-Tenure-On-Behalf-Of" });
}

export function noPart(nodeId: string): Refusal {
  return new Refusal(
    "tc_unavailable",
    `Node ${nodeId} takes no part in transactions over islands. Give its cluster coordinators to join ([tc] join, --join), or ask another node.`,
  );
}

export function otherIsland(target: BackendHash, own: BackendHash): Refusal {
  return new Refusal(
    "txn_backend_mismatch",
    `The call is for the island ${target}, and this node is of ${own}: nothing was done. GET /v1/tc/rm/list says who is where.`,
  );
}

export function tooLarge(bytes: number, bytesMax: number): Refusal {
  return new Refusal(
    "PAYLOAD_TOO_LARGE",
    `The operations have ${bytes} bytes as JSON, and those of one transaction may have ${bytesMax}. Make several transactions of it, or keep large things elsewhere.`,
  );
}

export function unknownHere(id: string): Refusal {
  return new Refusal(
    "txn_not_found",
    `This island has no part in a transaction ${id}, as far as this node knows; or what became of it is forgotten.`,
  );
}

export function notByForce(name: string): Refusal {
  return new Refusal(
    "tc_forbidden",
    `The certificate ${JSON.stringify(name)} may ask home about a transaction, and may not end it by force: that is an operator's to do, spiffe://<trust domain>/operator/<name>.`,
  );
}

/** With where the coordinators' leader is, as far as it is known. */
export function toldOn(error: unknown): unknown {
  if (!TenureError.is(error) || !("leaderEndpoint" in error) || typeof error.leaderEndpoint !== "string") return error;
  return new Refusal(error.code, error.message, { leader_endpoint: error.leaderEndpoint });
}
