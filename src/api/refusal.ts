// What a handler throws to be answered with an error of the registry, and what any thrown thing is answered with.
// Invariants: a definite failure is never reported for an unknown outcome (trap 66): a write that ends in something
// unforeseen is OUTCOME_UNKNOWN. No stack and no foreign message leaves the process.

import { type ErrorBody, errorBody, type LeaderFields, notLeaderBody, statusOf } from "../contract/index.ts";
import { type ErrorCode, TenureError } from "../core/kit/errors.ts";
import type { ClusterView } from "../ports/cluster.ts";

const RETRY_AFTER_S = 1;

/** A TenureError with fields for the answer's body. */
export class Refusal extends TenureError {
  readonly details: Readonly<Record<string, unknown>>;
  /** Where it is known; else the answer says a second. */
  readonly retryAfterS: number | undefined;

  constructor(code: ErrorCode, message: string, details: Readonly<Record<string, unknown>> = {}, retryAfterS?: number) {
    super(code, message);
    this.details = details;
    this.retryAfterS = retryAfterS;
  }
}

export interface ErrorAnswer {
  readonly status: number;
  readonly body: ErrorBody;
  readonly headers: Readonly<Record<string, string>>;
  /** Not of the registry: a mistake of ours, worth a log line. */
  readonly isFault: boolean;
}

export function stopping(nodeId: string): Refusal {
  return new Refusal("BACKEND_UNAVAILABLE", `Node ${nodeId} is stopping. Send the request to another node.`);
}

/** How far a request has come. While it arrives, it can't have done anything. */
export type Stage = "arriving" | "reading" | "writing";

/** `isFenced`: of a route whose NOT_LEADER is the node-controller specification's. */
export function answerTo(error: unknown, stage: Stage, isFenced: boolean, view: () => ClusterView): ErrorAnswer {
  if (!TenureError.is(error)) {
    const known = stage === "arriving" ? frameworkRefusal(error) : undefined;
    if (known !== undefined) return answered(known, known.details);
    return { ...answered(fault(stage), {}), isFault: true };
  }
  switch (error.code) {
    case "NOT_LEADER":
    case "ERR_NO_LEADER":
      return leaderless(error, isFenced, view());
    case "TRANSFER_IN_PROGRESS":
      // Design D17: nothing was written, and this node is about to lead no more.
      return isFenced ? handingOver(view()) : answered(error, {});
    default:
      return answered(error, error instanceof Refusal ? error.details : fieldOf(error));
  }
}

/** Services name it too: a check that needs their state is theirs. */
function fieldOf({ field }: TenureError): Readonly<Record<string, unknown>> {
  return field === undefined ? {} : { field };
}

function handingOver(view: ClusterView): ErrorAnswer {
  return leaderless(new TenureError("NOT_LEADER", "handing over"), true, { ...view, role: "DRAINING" });
}

export function leadershipOf({ nodeId, role, leader, term }: ClusterView): LeaderFields {
  // Design D17: who hands over knows no leader any more.
  if (leader === null || role === "DRAINING")
    return { leaderId: null, leaderUrl: null, leaderEpoch: null, nodeId, role };
  return { leaderId: leader.nodeId, leaderUrl: leader.url, leaderEpoch: term, nodeId, role };
}

export function noLeader({ nodeId, term, backend }: ClusterView): Refusal {
  const why =
    backend === "postgres"
      ? `Node ${nodeId} knows no leader: the database does not answer, or the next one is taking over`
      : `Node ${nodeId} knows no leader in term ${term}: an election is running, or a majority is out of reach`;
  return new Refusal("ERR_NO_LEADER", `${why}. Retry; if it lasts, look at ${culprit(backend)}.`, {
    node_id: nodeId,
    term,
  });
}

/** Where to look when nobody leads for long. */
function culprit(backend: ClusterView["backend"]): string {
  return backend === "postgres" ? "the database and at the way to it (tenure doctor)" : "the other nodes";
}

function leaderless(error: TenureError, isFenced: boolean, view: ClusterView): ErrorAnswer {
  if (!isFenced && view.role !== "DRAINING" && (view.leader === null || error.code === "ERR_NO_LEADER")) {
    const refusal = noLeader(view);
    return answered(refusal, refusal.details);
  }
  const leadership = leadershipOf(view);
  const message =
    leadership.leaderId === null
      ? view.role === "DRAINING"
        ? `Node ${view.nodeId} is handing its leadership over. Retry in a moment.`
        : `Node ${view.nodeId} does not lead, and knows nobody who does. Retry in a moment; if it lasts, look at ${culprit(view.backend)}.`
      : leadership.leaderId === view.nodeId
        ? `Node ${view.nodeId} was elected and has not begun yet. Retry in a moment.`
        : `Node ${view.nodeId} does not lead; ${leadership.leaderId} does. Send the request there.`;
  const body = notLeaderBody(message, leadership);
  const isSoon = leadership.leaderId === null || leadership.leaderId === view.nodeId;
  return { status: statusOf("NOT_LEADER"), body, headers: isSoon ? retryAfter() : {}, isFault: false };
}

function answered(error: TenureError, details: Readonly<Record<string, unknown>>): ErrorAnswer {
  const status = statusOf(error.code);
  const headers: Record<string, string> = [429, 503, 507].includes(status) ? retryAfter() : {};
  if (status === 401) headers["www-authenticate"] = 'X-API-Key realm="tenure"';
  return { status, body: errorBody(error.code, error.message, details), headers, isFault: false };
}

function retryAfter(): Record<string, string> {
  return { "retry-after": String(RETRY_AFTER_S) };
}

function fault(stage: Stage): Refusal {
  return stage === "writing"
    ? new Refusal(
        "OUTCOME_UNKNOWN",
        "Something unforeseen happened, and whether this was done is not known. Look before you repeat it; the node's log says more.",
      )
    : new Refusal("INTERNAL", "Something unforeseen happened; nothing was changed. The node's log says more.");
}

/** What Fastify refuses by itself, before any handler of ours. */
function frameworkRefusal(error: unknown): Refusal | undefined {
  const { code, statusCode } = (error ?? {}) as { code?: unknown; statusCode?: unknown };
  switch (code) {
    case "FST_ERR_CTP_BODY_TOO_LARGE":
      return new Refusal("PAYLOAD_TOO_LARGE", "The body is larger than this API takes. Send less.");
    case "FST_ERR_CTP_INVALID_MEDIA_TYPE":
      return new Refusal("BAD_REQUEST", 'The body must be JSON: send it with "Content-Type: application/json".', {
        field: "content-type",
      });
    case "FST_ERR_CTP_INVALID_CONTENT_LENGTH":
      return new Refusal("BAD_REQUEST", "The body is not as long as Content-Length says.", { field: "content-length" });
    case "FST_ERR_BAD_URL":
    case "FST_ERR_MAX_PARAM_LENGTH":
    case "FST_ERR_ASYNC_CONSTRAINT":
      return new Refusal(
        "BAD_REQUEST",
        "The path is not well-formed, or a part of it is too long: check its percent-encoding.",
        {
          field: "path",
        },
      );
    default:
      // A body that broke off, a length that lies: the client's, whatever Fastify calls it.
      if (typeof statusCode !== "number" || statusCode < 400 || statusCode > 499) return undefined;
      return new Refusal("BAD_REQUEST", "The request did not arrive whole, or is not well-formed.", { field: "body" });
  }
}
