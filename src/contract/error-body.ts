// An error as the API answers it: the registry's status, the code, what happened and what next, the specification's
// number where it has one, and for NOT_LEADER who does lead, as far as this node knows.

import { type ErrorCode, ERRORS } from "../core/kit/errors.ts";

export interface ErrorBody {
  readonly error: ErrorCode;
  readonly message: string;
  /** 4001–4006. */
  readonly code?: number;
  /** The field that is wrong, of a BAD_REQUEST. */
  readonly field?: string;
  readonly [detail: string]: unknown;
}

/** Who leads, as one node sees it; nulls where it does not know. */
export interface LeaderFields {
  readonly leaderId: string | null;
  readonly leaderUrl: string | null;
  readonly leaderEpoch: number | null;
  readonly nodeId: string;
  readonly role: "LEADER" | "STANDBY" | "DRAINING";
}

export function errorBody(
  code: ErrorCode,
  message: string,
  details: Readonly<Record<string, unknown>> = {},
): ErrorBody {
  const number = ERRORS[code].number;
  return { error: code, message, ...(number === null ? {} : { code: number }), ...details };
}

/** The specified fields, all of them, whatever is known. */
export function notLeaderBody(
  message: string,
  { leaderId, leaderUrl, leaderEpoch, nodeId, role }: LeaderFields,
): ErrorBody {
  return errorBody("NOT_LEADER", message, {
    leader_id: leaderId,
    leader_url: leaderUrl,
    leader_epoch: leaderEpoch,
    node_id: nodeId,
    role,
  });
}

export function statusOf(code: ErrorCode): number {
  return ERRORS[code].http;
}
