// What must be true of one elector in one life of a node: the grammar of its transitions, what its gate may do between
// them, when a term may begin and end, and who may run at once.

import { BEAT_RETRY_MS_MAX, LAST_CHANCE_MS } from "../../core/kit/limits.ts";
import type { NotLeaderReason } from "../../core/kit/errors.ts";
import type { Transition } from "../../core/trust/transitions.ts";
import type { Instant, Timing } from "../../core/trust/window.ts";
import type { Oracle } from "./oracle.ts";

/** Before which another may stand: `campaigning` again after a campaign that was given up. */
const FOLLOWS: Record<Transition["kind"] | "nothing", readonly Transition["kind"][]> = {
  nothing: ["campaigning"],
  campaigning: ["leading", "campaigning"],
  leading: ["suspended", "ended"],
  suspended: ["resumed", "ended"],
  resumed: ["suspended", "ended"],
  ended: ["campaigning"],
};
/** A term whose time is over must end within so long beyond what the machine may take, while the instance runs. */
const OVERDUE_SLACK_MS = 200;
/** Between two looks the instance may have been stopped: no more than this of the gap counts as running. */
const LOOK_GAP_MS_MAX = 30;
const ROUNDING_MS = 2;

/** What may close a gate from outside. */
export type Disturbance = "wall-jump" | "sleep" | "pause";

export interface InstanceRules {
  readonly timing: Timing;
  readonly drainMs: number;
  /** How long a trust window lasts at most in true time, on the slowest clock. */
  readonly trustTrueMsMax: number;
}

export class Instance {
  readonly node: string;
  readonly #oracle: Oracle;
  readonly #rules: InstanceRules;
  #last: Transition | undefined;
  #proved: Instant | undefined;
  #provedAtMs = 0;
  #lostEpoch = 0;
  #ledEpoch = 0;
  /** The highest that the elector has said to its user … */
  #observedEpoch = 0;
  /** … or led in, when it asked for the scope the last time. */
  #floor = 0;
  #refusedSuspended: { readonly epoch: number; readonly transitions: number; readonly jumps: number } | undefined;
  #transitions = 0;
  #jumps = 0;
  #jumpsAtSending = 0;
  #jumpsAtProof = 0;
  #works = 0;
  #stoppedMs: number | undefined;
  #resignedMs = -Infinity;
  #overdueMs = 0;
  #lookedMs = 0;
  #disturbance: Disturbance | undefined;
  #beatFailed = false;
  #retryOwed = false;
  #owedMs = 0;

  constructor(node: string, oracle: Oracle, rules: InstanceRules) {
    this.node = node;
    this.#oracle = oracle;
    this.#rules = rules;
  }

  get leadingEpoch(): number | null {
    return this.#last !== undefined && "epoch" in this.#last && this.#last.kind !== "ended" ? this.#last.epoch : null;
  }

  transition(now: Instant, next: Transition, gateOpen: boolean): void {
    this.#transitions++;
    const last = this.#last;
    this.#last = next;
    if (!FOLLOWS[last?.kind ?? "nothing"].includes(next.kind)) {
      this.#fail(`transition ${next.kind} after ${last?.kind ?? "nothing"}`);
    }
    if (next.kind === "campaigning") return this.#campaigning();
    if (next.kind !== "leading" && last !== undefined && "epoch" in last && last.epoch !== next.epoch) {
      this.#fail(`transition ${next.kind} of epoch ${next.epoch} in the term of epoch ${last.epoch}`);
    }
    if (next.kind === "leading" && next.epoch <= this.#floor) {
      this.#fail(`it leads in epoch ${next.epoch}, and knew of epoch ${this.#floor} before it asked`);
    }
    if (next.kind === "leading") this.#ledEpoch = next.epoch;
    if (next.kind === "leading" && !gateOpen) this.#fail(`epoch ${next.epoch} begins with a closed gate`);
    if (next.kind === "suspended") this.#oracle.reached("suspended");
    if (next.kind === "resumed") this.#resumed(gateOpen);
    if (next.kind === "ended") this.#ended(now, next);
  }

  #campaigning(): void {
    if (this.#works > 0) this.#fail("campaigning while the work of the last term has not settled");
  }

  #resumed(gateOpen: boolean): void {
    this.#oracle.reached("resumed");
    if (!gateOpen) this.#fail("a gate is told as open again, and is closed");
  }

  #ended(now: Instant, next: Transition & { kind: "ended" }): void {
    this.#oracle.ended(next);
    const { timing, drainMs } = this.#rules;
    if (next.reason === "asked" && !this.#oracle.wasAsked(next.epoch)) {
      this.#fail(`epoch ${next.epoch} ended because somebody asked, and nobody did`);
    }
    const told = next.reason === "session-ended" || next.reason === "lease-gone" || next.reason === "unlocked";
    if (told && this.#lostEpoch < next.epoch) this.#fail(`epoch ${next.epoch} ended as lost, and nobody said so`);
    if (next.reason === "expired") {
      const silentMs = this.#silentMs(now);
      // A wall clock that said so for a moment was reason enough; a proof of this very moment came too late.
      const excused = this.#jumps !== this.#jumpsAtProof || this.#provedAtMs === now.monotonicMs;
      if (silentMs < timing.serverTimeoutMs && !excused) {
        this.#fail(`a term expired ${silentMs} ms after its last proof`);
      }
    }
    const letGo = next.reason === "resigned" || next.reason === "asked";
    const drainedMs = this.#stoppedMs === undefined ? 0 : now.monotonicMs - this.#stoppedMs;
    if (letGo && this.#works > 0 && drainedMs < drainMs) {
      this.#fail(`epoch ${next.epoch} was let go (${next.reason}) while its work had not settled`);
    }
    if (letGo) this.#resignedMs = now.monotonicMs;
    this.#proved = undefined;
    this.#beatFailed = false;
    this.#retryOwed = false;
    // The next term begins with its own count: no check runs between two terms that would set it back.
    this.#overdueMs = 0;
  }

  #silentMs(now: Instant): number {
    const proved = this.#proved;
    if (proved === undefined) return Infinity;
    return Math.max(now.monotonicMs - proved.monotonicMs, now.wallMs - proved.wallMs) + ROUNDING_MS;
  }

  proved(now: Instant, sentAt: Instant): void {
    if (this.leadingEpoch !== null && this.#silentMs(now) - ROUNDING_MS > this.#rules.timing.serverTimeoutMs) {
      this.#oracle.reached("last-chance-saved-a-term");
    }
    if (this.#beatFailed && this.leadingEpoch !== null) this.#oracle.reached("beat-failed-and-the-term-held");
    this.#beatFailed = false;
    if (this.#proved !== undefined && sentAt.monotonicMs <= this.#proved.monotonicMs) return;
    this.#proved = sentAt;
    this.#provedAtMs = now.monotonicMs;
    this.#jumpsAtProof = this.#jumpsAtSending;
  }

  abandoned(epoch: number | null): void {
    if (epoch !== null && epoch > this.#ledEpoch) this.#oracle.reached("late-grant-dropped");
  }

  beating(): void {
    this.#retryOwed = false;
    this.#jumpsAtSending = this.#jumps;
  }

  beatFailed(epoch: number): void {
    // One that fails while its scope is let go is owed nothing.
    if (this.leadingEpoch !== epoch) return;
    this.#beatFailed = true;
    this.#retryOwed = true;
    this.#owedMs = 0;
  }

  /** The backend has told the elector that this hold is lost. */
  lost(epoch: number): void {
    this.#lostEpoch = Math.max(this.#lostEpoch, epoch);
  }

  disturbed(by: Disturbance): void {
    this.#disturbance = by;
    if (by === "wall-jump") this.#jumps++;
  }

  /** The elector has said that somebody leads in it. */
  observed(epoch: number): void {
    this.#observedEpoch = Math.max(this.#observedEpoch, epoch);
  }

  asked(nowMs: number): void {
    this.#floor = Math.max(this.#observedEpoch, this.#ledEpoch);
    if (nowMs < this.#resignedMs + this.#rules.timing.holdBackMs - ROUNDING_MS) {
      this.#fail("a leader that resigned did not let another go first");
    }
  }

  gatePassed(epoch: number): void {
    this.#oracle.gatePassed(this.node, epoch);
    if (epoch <= this.#lostEpoch) this.#fail(`the gate is open for epoch ${epoch}, which is known to be lost`);
    if (this.leadingEpoch !== epoch || this.#last?.kind === "suspended") {
      this.#fail(`the gate is open for epoch ${epoch} after the transition ${this.#last?.kind ?? "nothing"}`);
    }
    this.#disturbance = undefined;
    const refused = this.#refusedSuspended;
    this.#refusedSuspended = undefined;
    if (refused?.epoch !== epoch || refused.jumps !== this.#jumps) return;
    if (this.#transitions < refused.transitions + 2 && this.#last?.kind !== "resumed") {
      this.#fail(`the gate closed and opened again in epoch ${epoch}, and no transition told of it`);
    }
  }

  gateRefused(reason: NotLeaderReason): void {
    this.#oracle.gateRefused(reason);
    const epoch = this.leadingEpoch;
    if (reason !== "suspended" || epoch === null) return;
    if (this.#disturbance !== undefined) this.#oracle.reached(`${this.#disturbance}-closed-a-gate`);
    this.#disturbance = undefined;
    this.#refusedSuspended ??= { epoch, transitions: this.#transitions, jumps: this.#jumps };
  }

  /** From a timer of the instance: it runs, so its elector's own timers do. */
  look(now: Instant): void {
    const { serverTimeoutMs, heartbeatMs } = this.#rules.timing;
    const gapMs = Math.min(LOOK_GAP_MS_MAX, now.monotonicMs - this.#lookedMs);
    this.#lookedMs = now.monotonicMs;
    this.#lookForRetry(gapMs);
    const overdue = this.leadingEpoch !== null && this.#silentMs(now) > serverTimeoutMs + LAST_CHANCE_MS;
    this.#overdueMs = overdue ? this.#overdueMs + gapMs : 0;
    // After a jump of the wall clock it is the next beat that finds out, and then it has its last chance.
    if (this.#overdueMs > 2 * heartbeatMs + LAST_CHANCE_MS + OVERDUE_SLACK_MS) {
      this.#fail("a term goes on without a proof after its last chance");
    }
  }

  /** Trap 42: a beat that failed is sent again soon, while its term lasts. */
  #lookForRetry(gapMs: number): void {
    if (!this.#retryOwed || this.leadingEpoch === null) return;
    this.#owedMs += gapMs;
    if (this.#owedMs > BEAT_RETRY_MS_MAX + OVERDUE_SLACK_MS) this.#fail("a beat failed and was not sent again");
  }

  workBegan(): void {
    this.#works++;
    this.#stoppedMs = undefined;
    if (this.#works > 1) this.#fail("two works run at once in one instance");
  }

  workEnded(): void {
    this.#works--;
  }

  /** The work has been asked to stop. */
  workStopped(now: Instant): void {
    this.#stoppedMs = now.monotonicMs;
  }

  #fail(text: string): void {
    this.#oracle.fail(this.node, text);
  }
}
