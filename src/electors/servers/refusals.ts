// What an answer that is not 200 means for whoever asked, and what to do next.
//
//   moved       the node does not lead: it was not done, and the leader may be named
//   locked      it was not done: a transaction over islands locks the value, for as long as it is not decided. Ask the same node again
//   elsewhere   it was not done, or it does not matter how often it is done: ask again, or another node
//   unknown     it may have been done
//   refused     for good: no other node would say anything else

import { type ErrorCode, ERRORS, TenureError } from "../../core/kit/errors.ts";
import type { ServersAnswer } from "../../ports/backends/servers.ts";
import { REFUSAL_CHARS_MAX } from "../limits.ts";
import { conflictIn } from "./answers.ts";

export type Refusal =
  | { readonly kind: "moved"; readonly nodeId: string | null; readonly url: string | null; readonly error: TenureError }
  | { readonly kind: "locked" | "elsewhere" | "unknown" | "refused"; readonly error: TenureError };

/** Definite, and of the request itself: nothing was done, and no other node would say anything else. */
const OF_REQUEST: readonly ErrorCode[] = [
  "BAD_REQUEST",
  "NOT_FOUND",
  "NOT_SUPPORTED",
  "PAYLOAD_TOO_LARGE",
  "QUOTA_EXCEEDED",
  "STALE_EPOCH",
  "TLS_REQUIRED",
];
/** Said before anything was proposed. The other retryable ones may come after it. */
const NOT_DONE: readonly ErrorCode[] = [
  "ERR_NO_LEADER",
  "TRANSFER_IN_PROGRESS",
  "UNCOMMITTED_LIMIT",
  "READS_LIMIT",
  "RATE_LIMITED",
  "REQUEST_TIMEOUT",
  "OVERLOADED",
  "DISK_FULL",
  "CLUSTER_PAUSED",
  "TOO_STALE",
  // The node does not know yet which keys there are.
  "CALLER_UNCONFIRMED",
  // The node is stopping, and took nothing any more.
  "BACKEND_UNAVAILABLE",
];

export function refusalOf({ status, body }: ServersAnswer, url: string): Refusal {
  const code = codeOf(body["error"]);
  const said = `${url} answered HTTP ${status}: ${wordsOf(body)}`;
  // That nobody knows the key is the cluster's word only from its leader: another node may not have heard of it yet.
  const isOwnWord = status === 401 && body["role"] !== "LEADER";
  if (status === 401 || status === 403)
    return { kind: isOwnWord ? "elsewhere" : "refused", error: denied(status, said) };
  if (code === "NOT_LEADER") {
    const error = new TenureError("BACKEND_UNAVAILABLE", `${said}. The leader is looked for.`);
    return { kind: "moved", nodeId: textOrNull(body["leader_id"]), url: textOrNull(body["leader_url"]), error };
  }
  if (code === "VERSION_CONFLICT") return { kind: "refused", error: conflictIn(body) };
  if (code === "txn_locked") return { kind: "locked", error: new TenureError(code, said) };
  if (code !== undefined && OF_REQUEST.includes(code)) return { kind: "refused", error: new TenureError(code, said) };
  if (code !== undefined && NOT_DONE.includes(code)) return { kind: "elsewhere", error: unavailable(said) };
  if (code === "OUTCOME_UNKNOWN" || status >= 500 || status === 429)
    return { kind: "unknown", error: unavailable(said) };
  if (code !== undefined && ERRORS[code].retryable) return { kind: "unknown", error: unavailable(said) };
  const advice = "This client and this server do not understand each other; are they of one version?";
  return { kind: "refused", error: new TenureError("BACKEND_UNSUPPORTED", `${said}. ${advice}`) };
}

function denied(status: number, said: string): TenureError {
  const advice =
    status === 401
      ? 'Give the key that the nodes know (option "key"; TENURE_API_KEY for commands), or a client certificate.'
      : "The key is known, but its role does not allow this: leading needs the role client, asking others to resign operator.";
  return new TenureError("PERMISSION_DENIED", `${said}. ${advice}`);
}

function unavailable(said: string): TenureError {
  return new TenureError("BACKEND_UNAVAILABLE", `${said}. If that lasts: tenure cluster status.`);
}

function codeOf(value: unknown): ErrorCode | undefined {
  return typeof value === "string" && Object.hasOwn(ERRORS, value) ? (value as ErrorCode) : undefined;
}

function wordsOf(body: Readonly<Record<string, unknown>>): string {
  const { error, message } = body;
  const words = [error, message].filter((one): one is string => typeof one === "string").join(": ");
  const line = words.replaceAll(/[^\x20-\x7e]+/g, " ").trim();
  return (line === "" ? "no reason" : line.slice(0, REFUSAL_CHARS_MAX)).replace(/\.$/, "");
}

function textOrNull(value: unknown): string | null {
  return typeof value === "string" && value !== "" ? value : null;
}
