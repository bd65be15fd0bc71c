// The elector machine: when to ask for a scope, when to beat, when trust is gone, when a term is over. The same for
// every backend; it decides, electors/elector.ts does.
//
//            want                    (backoff over)            granted
//   idle ─────────▶ waiting ─────────────────────▶ acquiring ─────────▶ leading ──lost, expired──▶ idle
//    ▲                 ▲                              │  │                 │
//    │                 └── refused, retryable ────────┘  │ refused for     │ resign
//    │◀────────────────────────────────────────────────┘  good: give up  ▼
//    └───────────────────────────── released, or too slow: abandoned ── releasing
//
// Inside `leading` the gate is open while the trust window is (window.ts). It may close and open again: `suspended`,
// `resumed`, same epoch. The term is over when the backend says so, or when no proof came for the whole server
// timeout and a last beat was not answered either (a process that was stopped learns first that time has passed).
//
// Invariants: one transition for each change, in order; a term has one `leading` and one `ended`; answers that belong
// to an earlier attempt or epoch change nothing; a grant that is lost, or whose window is over, before it arrives never
// becomes a term; epochs only grow: a grant that is not above every epoch known before never becomes one either, and ends the
// campaign for good, for a backend that was restored from an older state can't say who led since.

import { assert, assertNever } from "../kit/assert.ts";
import { BEAT_RETRY_MS_MAX, HEARTBEAT_JITTER, LAST_CHANCE_MS } from "../kit/limits.ts";
import type { Random } from "../kit/random.ts";
import type { EndReason, Transition } from "./transitions.ts";
import { type Deadline, deadlineOf, type Instant, latest, remainingMs, type Timing, trustMs } from "./window.ts";

export type MachineInput =
  | { readonly kind: "time" }
  | { readonly kind: "want" }
  | { readonly kind: "unwant" }
  | { readonly kind: "granted"; readonly attempt: number; readonly epoch: number; readonly sentAt: Instant }
  | { readonly kind: "refused"; readonly attempt: number; readonly retryable: boolean }
  /** Somebody leads, or led, in this epoch. */
  | { readonly kind: "heard"; readonly epoch: number }
  | { readonly kind: "beaten"; readonly epoch: number; readonly sentAt: Instant; readonly resignRequested: boolean }
  | { readonly kind: "beat-failed"; readonly epoch: number }
  | { readonly kind: "lost"; readonly epoch: number; readonly reason: EndReason }
  | { readonly kind: "resign"; readonly epoch: number }
  | { readonly kind: "released"; readonly epoch: number }
  | { readonly kind: "release-failed"; readonly epoch: number };

export type Effect =
  | { readonly kind: "acquire"; readonly attempt: number }
  | { readonly kind: "abandon" }
  | { readonly kind: "beat"; readonly epoch: number }
  | { readonly kind: "release"; readonly epoch: number }
  /** An operator wants the leader to wind up and resign. */
  | { readonly kind: "asked"; readonly epoch: number }
  /** The backend refused for a reason that a retry does not repair. */
  | { readonly kind: "give-up" }
  /** Granted was an epoch that is not above what was known: the backend has forgotten. Given up, too. */
  | { readonly kind: "rewound"; readonly epoch: number; readonly known: number }
  | { readonly kind: "transition"; readonly transition: Transition };

type State =
  | { readonly kind: "idle" }
  | { readonly kind: "waiting"; readonly untilMs: number }
  | Acquiring
  | Leading
  | { readonly kind: "releasing"; readonly epoch: number; readonly untilMs: number };

interface Acquiring {
  readonly kind: "acquiring";
  readonly attempt: number;
  /** The highest epoch known when it began. One that is heard of later may be of somebody who came after this grant. */
  readonly floor: number;
  /** The news of a loss may overtake the grant that it belongs to. */
  lostEpoch: number | null;
}

interface Leading {
  readonly kind: "leading";
  readonly epoch: number;
  readonly startedMs: number;
  /** When the request left that proved the hold last. */
  provedAt: Instant;
  deadline: Deadline;
  suspended: boolean;
  /** An operator wants this leader to go. It goes when its work has wound up, not before (trap 48). */
  asked: boolean;
  beating: boolean;
  nextBeatMs: number;
  /** Timers run on the monotonic clock alone: what the wall clock ended must be looked for (trap 45). */
  lookMs: number;
  /** When we noticed that the server timeout has passed without a proof. */
  expiredMs: number | null;
}

export interface MachineOptions {
  readonly scope: string;
  readonly identity: string;
  readonly timing: Timing;
  readonly random: Random;
}

const OVER: Deadline = { monotonicMs: -Infinity, wallMs: -Infinity };

export class Machine {
  readonly #options: MachineOptions;
  #state: State = { kind: "idle" };
  #wanted = false;
  #attempts = 0;
  #failures = 0;
  /** The highest that was granted here, or heard of. */
  #knownEpoch = 0;
  #holdBackUntilMs = -Infinity;
  #effects: Effect[] = [];

  constructor(options: MachineOptions) {
    this.#options = options;
  }

  /** The epoch of the present term, and until when it may be trusted. */
  get hold(): { readonly epoch: number; readonly deadline: Deadline; readonly provedAt: Instant } | null {
    return this.#state.kind === "leading" ? this.#state : null;
  }

  get phase(): State["kind"] {
    return this.#state.kind;
  }

  /** When `step` wants to be called with the time, on the monotonic clock. */
  get wakeMs(): number {
    const state = this.#state;
    switch (state.kind) {
      case "idle":
      case "acquiring":
        return Infinity;
      case "waiting":
      case "releasing":
        return state.untilMs;
      case "leading":
        return this.#leadingWakeMs(state);
      default:
        return assertNever(state, "Machine.wakeMs");
    }
  }

  /** Takes time first: what the clock ended is over before an answer can say something else. */
  step(now: Instant, input: MachineInput): Effect[] {
    this.#effects = [];
    this.#passTime(now);
    this.#take(now, input);
    this.#passTime(now);
    return this.#effects;
  }

  #take(now: Instant, input: MachineInput): void {
    switch (input.kind) {
      case "time":
        return;
      case "want":
        return this.#want(now);
      case "unwant":
        return this.#unwant();
      case "granted":
        return this.#granted(now, input.attempt, input.epoch, input.sentAt);
      case "refused":
        return this.#refused(now, input.attempt, input.retryable);
      case "heard":
        this.#knownEpoch = Math.max(this.#knownEpoch, input.epoch);
        return;
      case "beaten":
        return this.#beaten(now, input);
      case "beat-failed":
        return this.#beatFailed(now, input.epoch);
      case "lost":
        if (this.#leads(input.epoch)) this.#end(now, input.reason);
        else if (this.#state.kind === "acquiring") this.#state.lostEpoch = input.epoch;
        return;
      case "resign":
        if (this.#leads(input.epoch)) this.#release(now);
        return;
      case "released":
      case "release-failed":
        return this.#released(input.epoch, input.kind === "released");
      default:
        return assertNever(input, "Machine.step");
    }
  }

  #want(now: Instant): void {
    assert(!this.#wanted && this.#state.kind !== "leading", "a scope is wanted once at a time");
    this.#wanted = true;
    if (this.#state.kind === "idle") this.#wait(now, 0);
    this.#transition(now, { kind: "campaigning" });
  }

  #unwant(): void {
    this.#wanted = false;
    if (this.#state.kind === "acquiring") this.#effects.push({ kind: "abandon" });
    if (this.#state.kind === "acquiring" || this.#state.kind === "waiting") this.#state = { kind: "idle" };
  }

  #wait(now: Instant, forMs: number): void {
    this.#state = { kind: "waiting", untilMs: Math.max(now.monotonicMs + forMs, this.#holdBackUntilMs) };
  }

  #granted(now: Instant, attempt: number, epoch: number, sentAt: Instant): void {
    if (this.#state.kind !== "acquiring" || this.#state.attempt !== attempt) return;
    if (epoch <= this.#state.floor) return this.#rewound(epoch, this.#state.floor);
    const deadline = deadlineOf(sentAt, trustMs(this.#options.timing));
    if (this.#state.lostEpoch === epoch || remainingMs(deadline, now.monotonicMs, now.wallMs) === 0) {
      this.#effects.push({ kind: "abandon" });
      this.#backOff(now);
      return;
    }
    this.#failures = 0;
    this.#knownEpoch = Math.max(this.#knownEpoch, epoch);
    this.#wanted = false;
    this.#state = {
      kind: "leading",
      epoch,
      startedMs: now.monotonicMs,
      provedAt: sentAt,
      deadline,
      suspended: false,
      asked: false,
      beating: false,
      nextBeatMs: sentAt.monotonicMs + this.#heartbeatMs(),
      lookMs: now.monotonicMs,
      expiredMs: null,
    };
    this.#transition(now, { kind: "leading", epoch });
  }

  #refused(now: Instant, attempt: number, retryable: boolean): void {
    if (this.#state.kind !== "acquiring" || this.#state.attempt !== attempt) return;
    // Whatever the attempt left behind (a half-open session, a queued request) must not be granted later.
    this.#effects.push({ kind: "abandon" });
    if (retryable) return this.#backOff(now);
    this.#wanted = false;
    this.#state = { kind: "idle" };
    this.#effects.push({ kind: "give-up" });
  }

  #rewound(epoch: number, known: number): void {
    this.#effects.push({ kind: "abandon" });
    this.#wanted = false;
    this.#state = { kind: "idle" };
    this.#effects.push({ kind: "rewound", epoch, known });
  }

  #backOff(now: Instant): void {
    const { retryMinMs, retryMaxMs } = this.#options.timing;
    const ceilingMs = Math.min(retryMaxMs, retryMinMs * 2 ** Math.min(this.#failures, 16));
    this.#failures++;
    this.#wait(now, this.#options.random.between(ceilingMs / 2, ceilingMs));
  }

  #beaten(now: Instant, input: MachineInput & { kind: "beaten" }): void {
    const state = this.#state;
    if (state.kind !== "leading" || state.epoch !== input.epoch) return;
    state.beating = false;
    state.nextBeatMs = input.sentAt.monotonicMs + this.#heartbeatMs();
    state.provedAt = latest(state.provedAt, input.sentAt);
    state.deadline = deadlineOf(state.provedAt, trustMs(this.#options.timing));
    if (remainingMs(this.#expiryOf(state), now.monotonicMs, now.wallMs) > 0) state.expiredMs = null;
    if (state.suspended) this.#resume(now, state);
    if (input.resignRequested && !state.asked) {
      state.asked = true;
      this.#effects.push({ kind: "asked", epoch: state.epoch });
    }
  }

  #resume(now: Instant, state: Leading): void {
    if (remainingMs(state.deadline, now.monotonicMs, now.wallMs) > 0) {
      state.suspended = false;
      this.#transition(now, { kind: "resumed", epoch: state.epoch });
    } else {
      // A proof that was late itself, or was sent before a clock jumped: the next one decides.
      state.deadline = OVER;
      state.nextBeatMs = now.monotonicMs;
    }
  }

  #beatFailed(now: Instant, epoch: number): void {
    const state = this.#state;
    if (state.kind !== "leading" || state.epoch !== epoch) return;
    state.beating = false;
    state.nextBeatMs = now.monotonicMs + Math.min(BEAT_RETRY_MS_MAX, this.#options.timing.heartbeatMs / 4);
  }

  #release(now: Instant): void {
    const state = this.#state;
    assert(state.kind === "leading", "only a leader lets go");
    const { epoch } = this.#ended(now, state.asked ? "asked" : "resigned");
    const { holdBackMs, releaseTimeoutMs } = this.#options.timing;
    this.#holdBackUntilMs = now.monotonicMs + holdBackMs;
    this.#state = { kind: "releasing", epoch, untilMs: now.monotonicMs + releaseTimeoutMs };
    this.#effects.push({ kind: "release", epoch });
  }

  #released(epoch: number, certain: boolean): void {
    if (this.#state.kind !== "releasing" || this.#state.epoch !== epoch) return;
    if (!certain) this.#effects.push({ kind: "abandon" });
    this.#state = this.#wanted ? { kind: "waiting", untilMs: this.#holdBackUntilMs } : { kind: "idle" };
  }

  #end(now: Instant, reason: EndReason): void {
    this.#ended(now, reason);
    this.#effects.push({ kind: "abandon" });
    this.#state = { kind: "idle" };
  }

  #ended(now: Instant, reason: EndReason): Leading {
    const state = this.#state;
    assert(state.kind === "leading", "only a term can end");
    const heldMs = Math.max(0, Math.round(now.monotonicMs - state.startedMs));
    this.#transition(now, { kind: "ended", epoch: state.epoch, reason, heldMs });
    return state;
  }

  #passTime(now: Instant): void {
    const state = this.#state;
    switch (state.kind) {
      case "idle":
      case "acquiring":
        return;
      case "waiting":
        if (now.monotonicMs < state.untilMs) return;
        this.#state = { kind: "acquiring", attempt: ++this.#attempts, floor: this.#knownEpoch, lostEpoch: null };
        this.#effects.push({ kind: "acquire", attempt: this.#attempts });
        return;
      case "releasing":
        if (now.monotonicMs >= state.untilMs) this.#released(state.epoch, false);
        return;
      case "leading":
        return this.#passLeading(now, state);
      default:
        return assertNever(state, "Machine.passTime");
    }
  }

  #passLeading(now: Instant, state: Leading): void {
    state.lookMs = now.monotonicMs + this.#options.timing.heartbeatMs;
    if (!state.suspended && remainingMs(state.deadline, now.monotonicMs, now.wallMs) === 0) {
      state.suspended = true;
      // A wall clock that is set right again must not open by itself what was told to be closed: a proof does.
      state.deadline = OVER;
      this.#transition(now, { kind: "suspended", epoch: state.epoch });
      // Whatever made us late, the quickest way to know is to ask now.
      state.nextBeatMs = Math.min(state.nextBeatMs, now.monotonicMs);
    }
    if (state.expiredMs === null && remainingMs(this.#expiryOf(state), now.monotonicMs, now.wallMs) === 0) {
      state.expiredMs = now.monotonicMs;
    }
    if (state.expiredMs !== null && now.monotonicMs >= state.expiredMs + LAST_CHANCE_MS) {
      return this.#end(now, "expired");
    }
    if (!state.beating && now.monotonicMs >= state.nextBeatMs) {
      state.beating = true;
      this.#effects.push({ kind: "beat", epoch: state.epoch });
    }
  }

  #leadingWakeMs(state: Leading): number {
    const beatMs = state.beating ? Infinity : state.nextBeatMs;
    const deadlineMs = state.suspended ? Infinity : state.deadline.monotonicMs;
    const endMs = state.expiredMs === null ? this.#expiryOf(state).monotonicMs : state.expiredMs + LAST_CHANCE_MS;
    return Math.min(beatMs, deadlineMs, endMs, state.lookMs);
  }

  #expiryOf(state: Leading): Deadline {
    return deadlineOf(state.provedAt, this.#options.timing.serverTimeoutMs);
  }

  #heartbeatMs(): number {
    const { heartbeatMs } = this.#options.timing;
    return heartbeatMs * this.#options.random.between(1 - HEARTBEAT_JITTER, 1 + HEARTBEAT_JITTER);
  }

  #leads(epoch: number): boolean {
    return this.#state.kind === "leading" && this.#state.epoch === epoch;
  }

  #transition(now: Instant, transition: Unplaced): void {
    const { scope, identity } = this.#options;
    this.#effects.push({ kind: "transition", transition: { ...transition, scope, identity, atMs: now.wallMs } });
  }
}

/** A transition without what is the same for all of one elector's. */
type Unplaced = Transition extends infer T
  ? T extends Transition
    ? Omit<T, "scope" | "identity" | "atMs">
    : never
  : never;
