// What the guard of one command does and when: the decisions, without processes, pipes and clocks. The guard is the
// command's parent, has its process group to itself and knows until when the command may run.
//
//   idle ──start──▶ running ──lost, stop, deadline near, command ended──▶ stopping ──time is up──▶ killed ──▶ done
//     │                └───────────deadline, supervisor gone, kill──────────────────────────────────▲
//     └──start too late, supervisor gone──▶ done        (stopping ──gone──▶ done)
//
// Invariants: nothing is spawned without an open deadline, and only once; a step at or past the deadline, by either
// clock, leaves the group killed; so does the end of the supervisor; what has begun to stop never runs on, however
// far the deadline moves; nothing is sent to a group that was seen to be gone, because its number may be another's.

import { assert, assertNever } from "../kit/assert.ts";

/** One moment, or one deadline, on the two clocks that all processes of a machine share. */
export interface Moment {
  readonly monotonicMs: number;
  readonly wallMs: number;
}

export interface GuardPlan {
  /** `stop`: SIGTERM first, SIGKILL when the grace is over. `kill`: SIGKILL. */
  readonly onLose: "stop" | "kill";
  readonly graceMs: number;
}

export type GuardInput =
  /** The command may be started, and run until the deadline. */
  | { readonly kind: "start"; readonly deadline: Moment }
  /** Leadership was proven again. An earlier deadline than the present one changes nothing. */
  | { readonly kind: "deadline"; readonly deadline: Moment }
  /** Leadership is lost for sure. */
  | { readonly kind: "lost" }
  /** Somebody wants the command to end: it gets this signal, and `withinMs` before SIGKILL. */
  | { readonly kind: "stop"; readonly signal: string; readonly withinMs: number }
  | { readonly kind: "kill" }
  | { readonly kind: "forward"; readonly signal: string }
  | { readonly kind: "supervisor-gone" }
  /** The command itself has ended, others of its group live. */
  | { readonly kind: "ended" }
  /** No member of the group lives. */
  | { readonly kind: "gone" }
  | { readonly kind: "tick" };

export type GuardEffect =
  | { readonly kind: "spawn" }
  /** To the whole group. */
  | { readonly kind: "signal"; readonly signal: string }
  /** From now on, look whether the group is gone. */
  | { readonly kind: "winding-up"; readonly why: GuardReason }
  | { readonly kind: "done"; readonly why: GuardReason };

/**
 * What made the command end, the first of them if there are several. `ended`: it did so by itself. `asked`: by
 * `stop` or `kill`. `too-late`: it was never started, because the deadline was too near.
 */
export type GuardReason = "ended" | "deadline" | "lost" | "asked" | "supervisor-gone" | "too-late";

type State =
  | { readonly phase: "idle" }
  | { readonly phase: "running"; readonly deadline: Moment }
  /** Killed at the first of the two: `deadline` may still grow, `limit` never. */
  | { readonly phase: "stopping"; readonly deadline: Moment; readonly limit: Moment; readonly why: GuardReason }
  | { readonly phase: "killed"; readonly why: GuardReason }
  | { readonly phase: "done" };

export class Guard {
  readonly #plan: GuardPlan;
  #state: State = { phase: "idle" };

  constructor(plan: GuardPlan) {
    assert(plan.graceMs >= 0, "the grace is not negative");
    this.#plan = plan;
  }

  get phase(): State["phase"] {
    return this.#state.phase;
  }

  /** How long nothing happens by itself; null for ever. Waking earlier is harmless, waking later is not. */
  untilMs(now: Moment): number | null {
    const state = this.#state;
    switch (state.phase) {
      case "running":
        return Math.max(0, remainingMs(state.deadline, now) - this.#warningMs());
      case "stopping":
        return stopLeftMs(state, now);
      case "idle":
      case "killed":
      case "done":
        return null;
      default:
        return assertNever(state, "Guard.untilMs");
    }
  }

  /** `now` is read before the call and after the input came. */
  step(now: Moment, input: GuardInput): GuardEffect[] {
    const effects = this.#take(now, input);
    effects.push(...this.#watchTime(now));
    return effects;
  }

  #take(now: Moment, input: GuardInput): GuardEffect[] {
    switch (input.kind) {
      case "start":
        return this.#start(now, input.deadline);
      case "deadline":
        this.#extend(input.deadline);
        return [];
      case "lost":
        return this.#plan.onLose === "kill" ? this.#kill("lost") : this.#stop(now, "lost");
      case "stop":
        return this.#stop(now, "asked", input.signal, input.withinMs);
      case "kill":
        return this.#kill("asked");
      case "forward":
        return this.#isAlive() ? [{ kind: "signal", signal: input.signal }] : [];
      case "supervisor-gone":
        return this.#state.phase === "idle" ? this.#finish("supervisor-gone") : this.#kill("supervisor-gone");
      case "ended":
        return this.#plan.onLose === "kill" ? this.#kill("ended") : this.#stop(now, "ended");
      case "gone":
        return this.#gone();
      case "tick":
        return this.#state.phase === "killed" ? [{ kind: "signal", signal: "SIGKILL" }] : [];
      default:
        return assertNever(input, "Guard.step");
    }
  }

  #start(now: Moment, deadline: Moment): GuardEffect[] {
    assert(this.#state.phase === "idle" || this.#state.phase === "done", "a guard starts one command, once");
    if (this.#state.phase === "done") return [];
    if (remainingMs(deadline, now) <= this.#warningMs()) return this.#finish("too-late");
    this.#state = { phase: "running", deadline };
    return [{ kind: "spawn" }];
  }

  #extend(deadline: Moment): void {
    const state = this.#state;
    if (state.phase !== "running" && state.phase !== "stopping") return;
    if (deadline.monotonicMs > state.deadline.monotonicMs) this.#state = { ...state, deadline };
  }

  /** Time passes in every step, whatever its input: a guard that was frozen looks at the clock first. */
  #watchTime(now: Moment): GuardEffect[] {
    const state = this.#state;
    if (state.phase === "stopping") return stopLeftMs(state, now) <= 0 ? this.#kill(state.why) : [];
    if (state.phase !== "running") return [];
    const leftMs = remainingMs(state.deadline, now);
    if (leftMs <= 0) return this.#kill("deadline");
    return leftMs <= this.#warningMs() ? this.#stop(now, "deadline") : [];
  }

  #stop(now: Moment, why: GuardReason, signal = "SIGTERM", withinMs = this.#plan.graceMs): GuardEffect[] {
    const state = this.#state;
    const limit = after(now, withinMs);
    if (state.phase === "running") {
      this.#state = { phase: "stopping", deadline: state.deadline, limit, why };
      return [
        { kind: "winding-up", why },
        { kind: "signal", signal },
      ];
    }
    if (state.phase !== "stopping") return [];
    // A loss during a friendly stop must not leave the command the longer time of the stop.
    if (limit.monotonicMs < state.limit.monotonicMs) this.#state = { ...state, limit };
    return [];
  }

  #kill(why: GuardReason): GuardEffect[] {
    const state = this.#state;
    if (!this.#isAlive()) return [];
    const first = state.phase === "stopping" || state.phase === "killed" ? state.why : why;
    this.#state = { phase: "killed", why: first };
    const killed: GuardEffect = { kind: "signal", signal: "SIGKILL" };
    return state.phase === "running" ? [{ kind: "winding-up", why }, killed] : [killed];
  }

  #gone(): GuardEffect[] {
    const state = this.#state;
    if (!this.#isAlive()) return [];
    return this.#finish(state.phase === "stopping" || state.phase === "killed" ? state.why : "ended");
  }

  #finish(why: GuardReason): GuardEffect[] {
    this.#state = { phase: "done" };
    return [{ kind: "done", why }];
  }

  #isAlive(): boolean {
    return this.#state.phase !== "idle" && this.#state.phase !== "done";
  }

  /** How long before the deadline the command is told. */
  #warningMs(): number {
    return this.#plan.onLose === "stop" ? this.#plan.graceMs : 0;
  }
}

/**
 * By the clock that says less: monotonic time stands still while a machine sleeps, wall time may be set back. The
 * arithmetic of core/trust/window.ts, and here once more because rooms of the core import core/kit only; these moments
 * are of the machine's clocks besides, those of one process's.
 */
export function remainingMs(deadline: Moment, now: Moment): number {
  return Math.max(0, Math.min(deadline.monotonicMs - now.monotonicMs, deadline.wallMs - now.wallMs));
}

function after(now: Moment, ms: number): Moment {
  return { monotonicMs: now.monotonicMs + ms, wallMs: now.wallMs + ms };
}

function stopLeftMs(state: { readonly deadline: Moment; readonly limit: Moment }, now: Moment): number {
  return Math.min(remainingMs(state.deadline, now), remainingMs(state.limit, now));
}
