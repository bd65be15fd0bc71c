// The timeline of a demonstration: what the engines report, in words for somebody who sees Raft for the first time.
// The Raft term is called "epoch" here, as everywhere where users read (design D1).

import { assertNever } from "../../core/kit/assert.ts";
import { nodeIdOf } from "../../core/kit/ids.ts";
import type { ElectionRecord, RaftEvent } from "../../core/raft/index.ts";

export type RecordKind = "fault" | "election" | "leader" | "write" | "recovery" | "problem";

export interface TimelineRecord {
  readonly atMs: number;
  /** Null: the client, or the cluster as a whole. */
  readonly node: string | null;
  readonly kind: RecordKind;
  readonly text: string;
}

type Told = Pick<TimelineRecord, "kind" | "text">;

export class Narrator {
  /** The epoch that each node leads as far as it knows; what it steps down from. */
  readonly #leads = new Map<string, number>();

  /** Null where the event would only repeat what another line says. */
  tell(node: string, event: RaftEvent): Told | null {
    switch (event.kind) {
      case "election":
        return election(event.record);
      case "established":
        return {
          kind: "leader",
          text: `leads epoch ${event.term}: its first entry is committed (index ${event.index}), writes are open`,
        };
      case "role":
        return this.#role(node, event);
      case "transfer":
        return event.result.success ? null : { kind: "problem", text: `transfer failed: ${event.result.message}` };
      case "leader-suspect":
      case "follower-unresponsive":
      case "follower-recovered":
      case "configuration":
        return null;
      default:
        return assertNever(event, "event of a timeline");
    }
  }

  #role(node: string, { role, term, leader }: Extract<RaftEvent, { kind: "role" }>): Told | null {
    const led = this.#leads.get(node);
    if (role === "leader") this.#leads.set(node, term);
    else this.#leads.delete(node);
    if (led === undefined || role === "leader") return null;
    const why = term > led ? `epoch ${term} has begun` : "it has lost its quorum";
    const now = leader === null ? "" : `, follows ${nodeIdOf(leader)}`;
    return { kind: "leader", text: `steps down from epoch ${led}: ${why}${now}` };
  }

  /** A process that died leads nothing. */
  died(node: string): void {
    this.#leads.delete(node);
  }
}

const REASONS: Record<ElectionRecord["reason"], string> = {
  timeout: "no leader heard for an election timeout",
  "leader-gone": "leader gone (connection reset, re-dial refused)",
  transfer: "takes over on the leader's request",
  requested: "was asked to campaign",
};

function election({ stage, result, term, reason, candidate, votes, durationMs }: ElectionRecord): Told | null {
  const names = (granted: boolean): string[] =>
    votes.flatMap((vote) => (vote.granted === granted ? [nodeIdOf(vote.voter)] : []));
  const yes = names(true).join(", ") || "nobody";
  const no = names(false).length === 0 ? "" : `, no from ${names(false).join(", ")}`;
  if (stage === "pre-vote") {
    if (result === "superseded") return null;
    const outcome = result === "won" ? "" : ` (${result})`;
    return { kind: "election", text: `${REASONS[reason]}; pre-vote for epoch ${term}: yes from ${yes}${no}${outcome}` };
  }
  // A transfer has no pre-vote that would say why there is an election.
  const why = reason === "transfer" ? `${REASONS[reason]}; ` : "";
  const outcome = result === "won" ? `elected in ${durationMs.toFixed(1)} ms` : result;
  return { kind: "election", text: `${why}vote for epoch ${term}: ${yes} for ${nodeIdOf(candidate)}${no}; ${outcome}` };
}
