// One line of the log for everything that happens to a cluster: alerts raised and cleared, elections with their votes,
// failovers, transfers, changes of membership. `error` is a code of the registry, `code` its number in the specification.

import { assertNever } from "../../core/kit/assert.ts";
import { ERRORS, type ErrorCode } from "../../core/kit/errors.ts";
import { nodeIdOf, type PeerKey } from "../../core/kit/ids.ts";
import type { HealthOutput, KeptElection } from "../../core/health/index.ts";
import { isJoint, type Configuration } from "../../core/raft/index.ts";
import type { AlertView } from "../../ports/cluster.ts";
import type { LogFields, Logger } from "../../ports/logger.ts";

export function logOutput(logger: Logger, output: HealthOutput): void {
  switch (output.kind) {
    case "alert-raised": {
      const fields = { event: "alert-raised", ...alertFields(output.alert), ...codeFields(output.code) };
      if (output.alert.severity === "critical") logger.error(fields, output.alert.message);
      else logger.warn(fields, output.alert.message);
      return;
    }
    case "alert-cleared": {
      const fields = { event: "alert-cleared", ...alertFields(output.alert), lastedMs: Math.round(output.lastedMs) };
      return logger.info(fields, `${output.alert.name} is over`);
    }
    case "election":
      return logElection(logger, output.record, output.code);
    case "failover": {
      const { from, to, term } = output;
      return logger.warn({ event: "failover", from, to, term }, `${nodeIdOf(to)} leads after ${nodeIdOf(from)}`);
    }
    case "transfer": {
      const { success, message, oldLeaderId, newLeaderId } = output.result;
      const fields = { event: "transfer", success, from: oldLeaderId, to: newLeaderId, ...codeFields(output.code) };
      return success ? logger.info(fields, message) : logger.warn(fields, message);
    }
    case "term-stale": {
      const { peer, term, currentTerm, saidAtWallMs } = output;
      const fields = { event: "term-stale", peer, term, currentTerm, saidAtWallMs, ...codeFields(output.code) };
      return logger.info(fields, `${nodeIdOf(peer)} was heard leading term ${term}, which is over`);
    }
    case "step-down": {
      const { term, currentTerm, leader } = output;
      const fields = { event: "step-down", term, currentTerm, leader, ...codeFields(output.code) };
      return logger.warn(fields, `this node led term ${term}, which is over: ${nodeIdOf(leader)} leads`);
    }
    default:
      return assertNever(output, "logOutput");
  }
}

export function logConfiguration(logger: Logger, configuration: Configuration, index: number): void {
  const { voters, votersOutgoing, learners } = configuration;
  const fields = { event: "membership", index, voters: listed(voters), learners: listed(learners) };
  if (!isJoint(configuration)) return logger.info(fields, "the cluster has these members now");
  logger.info({ ...fields, votersOutgoing: listed(votersOutgoing) }, "the cluster changes its members");
}

function logElection(logger: Logger, record: KeptElection, code: ErrorCode | null): void {
  const fields = {
    event: "election",
    term: record.term,
    stage: record.stage,
    reason: record.reason,
    candidates: listed(record.candidates),
    granted: listed(record.votes.filter(({ granted }) => granted).map(({ voter }) => voter)),
    denied: listed(record.votes.filter(({ granted }) => !granted).map(({ voter }) => voter)),
    durationMs: Math.round(record.durationMs * 10) / 10,
    result: record.result,
    ...(record.repeated > 1 ? { repeated: record.repeated } : {}),
    ...codeFields(code),
  };
  const what = record.stage === "vote" ? "election" : "pre-vote";
  if (code === null) logger.info(fields, `${what} for term ${record.term}: ${record.result}`);
  else logger.warn(fields, `${what} for term ${record.term}: ${record.result}`);
}

function alertFields({ name, severity, nodeId }: AlertView): LogFields {
  // Not `node`: that is who logs, and the sink adds it to every line.
  return { alert: name, severity, about: nodeId };
}

export function codeFields(code: ErrorCode | null): LogFields {
  if (code === null) return {};
  const { number } = ERRORS[code];
  return number === null ? { error: code } : { error: code, code: number };
}

function listed(peers: readonly PeerKey[]): string {
  return peers.join(",");
}
