// Why a voter refused a call for a lease, and a leader a change of the registry, in words for whoever reads the log of the caller.

import { assertNever } from "../../core/kit/assert.ts";
import { GENERATION_TERMS } from "../../core/lease/limits.ts";
import type { LeaseRefusal, VoterAnswer, VoterRequest } from "../../core/lease/model.ts";
import { REFUSAL_CODES, refusalFields } from "../../core/lease/wire-answers.ts";
import type { Coordinators, RegistryAnswer } from "../../ports/coordinators.ts";
import { Refusal } from "../refusal.ts";

interface Refused {
  readonly caller: string;
  readonly request: VoterRequest;
  readonly answer: VoterAnswer;
  readonly leader: string;
}

/** An error from whose body the caller makes the voter's whole answer again. */
export function refusedLease(
  coordinators: Coordinators,
  caller: string,
  request: VoterRequest,
  answer: VoterAnswer,
  reason: LeaseRefusal,
): Refusal {
  const { leader } = coordinators.view();
  const shown = leader === null ? "another coordinator" : `${leader.peer} in term ${leader.term}`;
  const where = leader === null || leader.endpoint === null ? {} : { leader_endpoint: leader.endpoint };
  const text = TEXTS[reason]({ caller, request, answer, leader: shown });
  return new Refusal(REFUSAL_CODES[reason], text, { ...refusalFields(answer, reason), ...where });
}

const TEXTS: Readonly<Record<LeaseRefusal, (refused: Refused) => string>> = {
  "identity-mismatch": ({ caller, request }) =>
    `The certificate is that of ${caller}, and the call is for ${request.holder}. A server asks for its own leases only.`,
  "other-voter": ({ request, answer }) =>
    `The call is for ${request.voter}, and this is ${answer.voter}: another node, or another disk. GET /v1/tc/leader says who answers here.`,
  "cluster-mismatch": ({ request, answer }) =>
    `This voter is in the cluster ${answer.clusterId}, or in another recovery of it than the caller, who is in ${request.clusterId}. Give one of the two up: tenure tc discard.`,
  "roster-missing": () => "The call has no roster. A lease is granted and renewed with the caller's roster only.",
  "generation-over": ({ request }) =>
    `Term ${request.term} is of the generation ${generation(request.term)}, and a later one was entered by tenure tc recover. Wait to be admitted there.`,
  impossible: ({ request }) =>
    `Term ${request.term} contradicts the roster: that is of another generation or of a later term, or ${request.holder} is no voter of it.`,
  "invalid-ttl": () => "ttl_ms must be a whole number from 1 on.",
  "term-stale": ({ request, answer }) =>
    `Term ${request.term} is over, or was given to another candidate: this voter is in term ${answer.term}. Campaign in a later one.`,
  "roster-stale": ({ answer }) =>
    `This voter has stored a later roster (term ${answer.roster?.term}, version ${answer.roster?.version}). Campaign again when it is known.`,
  "lease-active": ({ leader }) => `The lease of ${leader} is in force at this voter. Wait until it ends.`,
  "not-holder": ({ request }) =>
    `${request.holder} does not hold term ${request.term} at this voter: it was never granted, was released, or is over.`,
};

function generation(term: number): number {
  return Math.floor(term / GENERATION_TERMS);
}

export function refusedChange(nodeId: string, answer: Exclude<RegistryAnswer, { kind: "done" }>): Refusal {
  switch (answer.kind) {
    case "not-replicated":
      return notReplicated(answer.missing);
    case "not-leader":
      return notLeader(nodeId, answer.leaderEndpoint);
    case "full":
      return new Refusal(
        "QUOTA_EXCEEDED",
        "The registry has as many endpoints as it takes: nothing has changed. Unregister those that are gone (GET /v1/tc/rm/list).",
      );
    case "other-backend":
      return new Refusal(
        "invalid_backend_hash",
        "The server at this endpoint is of another island: nothing has changed. Register it with the backend_hash that GET /v1/tc/leader shows there.",
        { field: "backend_hash" },
      );
    case "unknown":
      return new Refusal(
        "OUTCOME_UNKNOWN",
        "The leader was lost while the change was under way: it may have been made. Look (GET /v1/tc/rm/list), and repeat it: that does no harm.",
      );
    default:
      return assertNever(answer, "refusedChange");
  }
}

function notReplicated(missing: readonly string[]): Refusal {
  const who = missing.length === 0 ? "A listed member" : missing.join(", ");
  return new Refusal(
    "tc_rm_replication_failed",
    `${who} did not answer, or did not store the change: nothing has changed. Repeat it when all members answer (GET /v1/tc/cluster/list).`,
    { missing },
  );
}

function notLeader(nodeId: string, endpoint: string | null): Refusal {
  const where =
    endpoint === null ? "Nobody is known to lead. Repeat the call in a moment." : `Send the call to ${endpoint}.`;
  const text = `Node ${nodeId} does not lead the coordinators, and does not forward this call. ${where}`;
  return new Refusal("tc_not_leader", text, endpoint === null ? {} : { leader_endpoint: endpoint });
}
