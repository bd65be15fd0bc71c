// Leadership transfer as the one sees it that gives leadership away (thesis §3.10, design D7), and priority,
// which is a transfer that the leader starts by itself (D8). What a transfer is and when it moves on is in
// transfer.ts. It is not part of the leader, because its last phase comes after: the old leader has stepped down
// and waits to hear who leads.
//
// Invariants: one transfer at a time; each ends with exactly one event that tells its result.

import { assertNever } from "../../kit/assert.ts";
import type { PeerKey } from "../../kit/ids.ts";
import type { Leader } from "./leader.ts";
import type { ServerState } from "../state.ts";
import { ACCEPTED, refused, type Refusal } from "../step-result.ts";
import { Transfer, type TransferPhase } from "../transfer.ts";
import type { Configuration, StepResult } from "../types.ts";

export class LeaderTransfer {
  readonly #state: Readonly<ServerState>;
  #transfer: Transfer | null = null;
  /** How many targets were asked to campaign, in that term. */
  #told = { term: 0, count: 0 };
  /** When this node last gave leadership away for priority's sake. */
  #priorityActedMs = -Infinity;
  #yieldDueMs = -Infinity;

  constructor(state: Readonly<ServerState>) {
    this.#state = state;
  }

  get phase(): TransferPhase | null {
    return this.#transfer?.phase ?? null;
  }

  get deadlineMs(): number {
    return this.#transfer === null ? Infinity : this.#transfer.deadlineMs;
  }

  /** Why nothing may be proposed now; null when it may. */
  refusesWrites(): Refusal | null {
    if (this.#transfer?.blocksWrites(this.#state.term) !== true) return null;
    const why = `leadership is being handed to ${this.#transfer.target}; retry in a moment`;
    return refused("TRANSFER_IN_PROGRESS", why);
  }

  start(leader: Leader, wanted: PeerKey | null, force: boolean): StepResult {
    const { peer: self, term, nowMs, config, configuration } = this.#state;
    if (this.#transfer !== null) {
      return refused("TRANSFER_IN_PROGRESS", `a transfer to ${this.#transfer.target} is under way`);
    }
    const target = wanted ?? leader.bestTarget();
    const progress = target === null ? undefined : leader.progress.get(target);
    if (target === null || progress === undefined || target === self || !configuration.voters.includes(target)) {
      const why =
        target === null
          ? "no other voter is healthy and willing to lead"
          : `${target} is not another voter of this cluster`;
      return refused("TRANSFER_TARGET_INVALID", why);
    }
    if (progress.unhealthy) {
      const why = `${target} has not answered for a while; leadership stays here`;
      return refused("TRANSFER_TARGET_INVALID", why);
    }
    const forced = force || !config.transferLogSync;
    const attempt = this.#told.term === term ? this.#told.count : 0;
    this.#transfer = new Transfer(target, term, forced, attempt, nowMs + config.transferTimeoutMs);
    this.continue(leader);
    return ACCEPTED;
  }

  /** The target may have more of the log than before. */
  continue(leader: Leader): void {
    const transfer = this.#transfer;
    if (transfer === null) return;
    const { nowMs, config, log } = this.#state;
    const match = leader.progress.get(transfer.target)?.match ?? 0;
    if (transfer.mayHandOver(match, log.lastIndex)) {
      transfer.phase = "handing-over";
      transfer.deadlineMs = nowMs + config.electionTimeoutMaxMs;
    }
    if (transfer.mayTimeoutNow(match, log.lastIndex)) {
      transfer.timeoutNowSent = true;
      this.#told = { term: transfer.term, count: transfer.attempt + 1 };
      leader.sendTimeoutNow(transfer.target, transfer.force, transfer.attempt);
    }
  }

  /** An unhealthy follower is never a target (design D4), also when it became one after the transfer began. */
  watchTarget(leader: Leader): void {
    if (this.#transfer?.phase !== "catching-up" || leader.progress.get(this.#transfer.target)?.unhealthy !== true)
      return;
    this.#end(false, "the target has not answered for a while; leadership stays here");
  }

  timePassed(): void {
    const transfer = this.#transfer;
    if (transfer === null || this.#state.nowMs < transfer.deadlineMs) return;
    switch (transfer.phase) {
      case "catching-up":
        return this.#end(false, "the target did not catch up in time; leadership stays here");
      case "handing-over":
        if (!transfer.timeoutNowSent)
          return this.#end(false, "the target did not catch up in time; leadership stays here");
        return this.#endUnknown("the target was told to take over and was not heard of in time; it may yet do so");
      case "awaiting":
        return this.#endUnknown("stepped down, but no new leader was heard of in time");
      default:
        return assertNever(transfer.phase, "LeaderTransfer.timePassed");
    }
  }

  /** One that answers an earlier transfer says nothing of this one, whose target may yet campaign. */
  refusedBy(target: PeerKey, attempt: number): void {
    const transfer = this.#transfer;
    if (transfer?.target !== target || transfer.attempt !== attempt || !transfer.timeoutNowSent) return;
    if (transfer.phase === "awaiting") return;
    this.#end(false, "the target was refused by the others, so nothing changed; leadership stays here");
  }

  configurationCommitted(configuration: Configuration): void {
    if (this.#transfer === null || configuration.voters.includes(this.#transfer.target)) return;
    this.#end(false, "the target is no voter any more");
  }

  leadershipEnded(successor: PeerKey | null): void {
    const transfer = this.#transfer;
    if (transfer === null) return;
    if (transfer.phase === "handing-over" && transfer.timeoutNowSent) {
      transfer.phase = "awaiting";
      transfer.deadlineMs = this.#state.nowMs + this.#state.config.electionTimeoutMaxMs;
    } else {
      this.#end(false, "leadership was lost before the hand-over", successor);
    }
  }

  leaderKnown(leader: PeerKey): void {
    if (this.#transfer?.phase !== "awaiting") return;
    const success = leader === this.#transfer.target;
    this.#end(success, success ? "leadership was handed over" : `${leader} was elected instead`);
  }

  /** The target was asked to campaign, and nothing can take that back. */
  #endUnknown(message: string): void {
    this.#end(false, message, this.#state.leader, true);
  }

  #end(success: boolean, message: string, newLeaderId: PeerKey | null = this.#state.leader, isUnknown = false): void {
    const { peer: oldLeaderId, outbox } = this.#state;
    this.#transfer = null;
    outbox.emit({ kind: "transfer", result: { success, message, oldLeaderId, newLeaderId, isUnknown } });
  }

  /** A leader that is not willing any more leads on until somebody who is can take over. */
  yieldUnwilling(leader: Leader): void {
    const { nowMs, config, willing } = this.#state;
    if (willing || this.#transfer !== null || nowMs < this.#yieldDueMs || leader.bestTarget() === null) return;
    // One that was refused, or fell through, is not tried again at every beat: writes stop while it lasts.
    this.#yieldDueMs = nowMs + config.electionTimeoutMaxMs;
    this.start(leader, null, false);
  }

  /** Design D8: to a preferred voter that was caught up for long, and not too often, also over terms. */
  preferPriority(leader: Leader): void {
    const { peer: self, nowMs, config, configuration } = this.#state;
    if (!config.enablePriority || this.#transfer !== null) return;
    const { priorityStableMs, priorityIntervalMs } = this.#state.limits;
    if (nowMs < leader.sinceMs + priorityStableMs || nowMs < this.#priorityActedMs + priorityIntervalMs) return;
    for (const peer of configuration.voters) {
      const progress = leader.progress.get(peer)!;
      if (peer === self || progress.priority <= config.nodePriority || !progress.willing) continue;
      if (nowMs - progress.caughtUpSinceMs < priorityStableMs) continue;
      this.#priorityActedMs = nowMs;
      this.start(leader, peer, false);
      return;
    }
  }
}
