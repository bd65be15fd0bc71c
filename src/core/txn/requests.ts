// What calls must hold whatever the state: what they name is written to the log.

import {
  CLUSTER_ID_BYTES_MAX,
  PEER_KEY_BYTES_MAX,
  TXN_BY_BYTES_MAX,
  TXN_MESSAGE_BYTES_MAX,
  TXN_PARTICIPANTS_MAX,
  TXN_STAGED_MS_MAX,
  TXN_TIMEOUT_MS_MAX,
  TXN_TIMEOUT_MS_MIN,
  UTF8_BYTES_PER_UNIT_MAX,
} from "../kit/limits.ts";
import { isBackendHash } from "./home.ts";
import { isTxnId } from "./id.ts";
import { TXN_CODE_BYTES_MAX } from "./limits.ts";
import type { TcFence, TxnHeader, TxnReason, TxnRequest } from "./model.ts";
import type { Refusal } from "./operations.ts";

const encoder = new TextEncoder();

export function headerProblem({ id, home, participants, digest, timeoutMs, by }: TxnHeader): Refusal | null {
  if (!isTxnId(id)) return wrongId();
  if (!isBackendHash(home)) return { code: "invalid_home", message: "home is no backend hash." };
  const isOutOfOrder = participants.some((one, at) => at > 0 && one <= participants[at - 1]!);
  if (participants.length > TXN_PARTICIPANTS_MAX || !participants.every(isBackendHash) || isOutOfOrder) {
    const message = `Participants must be at most ${TXN_PARTICIPANTS_MAX} backend hashes, in order, each once.`;
    return { code: "invalid_participants", message };
  }
  if (!isBackendHash(digest)) return { code: "BAD_REQUEST", message: "digest is no SHA-256." };
  if (!isInteger(timeoutMs, TXN_TIMEOUT_MS_MIN, TXN_TIMEOUT_MS_MAX)) {
    const message = `timeout_ms must be an integer from ${TXN_TIMEOUT_MS_MIN} to ${TXN_TIMEOUT_MS_MAX}.`;
    return { code: "invalid_timeout", message };
  }
  return byProblem(by);
}

export function fenceProblem({ clusterId, term, recoveredBy }: TcFence): Refusal | null {
  if (!isInteger(term, 1, Number.MAX_SAFE_INTEGER)) return { code: "invalid_term", message: "The term is no integer." };
  const isBad = !isText(clusterId, CLUSTER_ID_BYTES_MAX) || clusterId === "";
  if (!isBad && (recoveredBy === null || isText(recoveredBy, PEER_KEY_BYTES_MAX))) return null;
  return { code: "BAD_REQUEST", message: "The call does not say of which cluster of coordinators its term is." };
}

export function stageProblem({
  id,
  home,
  by,
  expiresInMs,
}: Extract<TxnRequest, { readonly kind: "stage" }>): Refusal | null {
  if (!isTxnId(id)) return wrongId();
  if (!isBackendHash(home)) return { code: "invalid_home", message: "home is no backend hash." };
  if (!isInteger(expiresInMs, 1, TXN_STAGED_MS_MAX))
    return { code: "invalid_timeout", message: `expires_in_ms must be an integer from 1 to ${TXN_STAGED_MS_MAX}.` };
  return byProblem(by);
}

/** As the log takes it. */
export function clippedReason({ code, message, backendHash }: TxnReason): TxnReason {
  const most = Math.floor(TXN_MESSAGE_BYTES_MAX / UTF8_BYTES_PER_UNIT_MAX);
  return {
    code: isText(code, TXN_CODE_BYTES_MAX) ? code : "INTERNAL",
    message: message.slice(0, most).toWellFormed(),
    backendHash: isBackendHash(backendHash) ? backendHash : null,
  };
}

function byProblem(by: string): Refusal | null {
  if (isText(by, TXN_BY_BYTES_MAX)) return null;
  return { code: "BAD_REQUEST", message: `A client's name is well-formed text of at most ${TXN_BY_BYTES_MAX} bytes.` };
}

function wrongId(): Refusal {
  return { code: "invalid_txn_id", message: "The id of a transaction is a UUID of version 7, in lower case." };
}

function isText(text: unknown, bytesMax: number): text is string {
  return typeof text === "string" && text.isWellFormed() && encoder.encode(text).length <= bytesMax;
}

function isInteger(value: unknown, from: number, to: number): value is number {
  return typeof value === "number" && Number.isSafeInteger(value) && value >= from && value <= to;
}
