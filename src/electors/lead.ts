// `lead`: run work while leading, sentence by sentence as ports/elector.ts promises it.
//
//   campaign ──▶ work runs ──returns or throws, or resigns and does so──▶ resign ──▶ its outcome
//      ▲            │ └──caller aborts, or close──▶ signal aborts, drain ──▶ resign ──▶ reject with the reason
//      │            ├──an operator asks──▶ signal aborts, drain ──▶ resign ──▶ again, or reject (onLost: "throw")
//      │            └──the term ends──▶ signal aborts, drain, outcome dropped ──▶ again, or reject (onLost: "throw")
//      └────────────────────────────────────────────────────────────────────────────┘
//
// Work that throws behind a closed gate (a process that was frozen) is judged when that is known: the term was over, as
// above; or the gate opens again, then work that was refused by it runs again in the same term, and any other error counts.
//
// Invariant: no campaign starts before the previous work has settled, so that two works never run at once; work that
// does not settle within `drainMs` rejects with TERM_OVERRUN, and keeps the elector occupied until it does.

import { assertNever } from "../core/kit/assert.ts";
import { NotLeaderError, TenureError } from "../core/kit/errors.ts";
import { DRAIN_MS } from "../core/kit/limits.ts";
import type { EndReason } from "../core/trust/transitions.ts";
import type { Clock } from "../ports/clock.ts";
import type { LeadOptions } from "../ports/elector.ts";
import type { HeldTerm } from "./term.ts";

export interface Leadership<T extends HeldTerm> {
  readonly clock: Clock;
  /** Whether the gate is open at this moment. */
  isOpen(): boolean;
  /** Aborts when the elector is being closed. */
  readonly closing: AbortSignal;
  campaign(signal: AbortSignal | undefined): Promise<T>;
  /** No other work may start before this settles. */
  occupy(work: Promise<unknown>): void;
}

/** How often a closed gate is looked at. */
const LOOK_MS = 20;

type Outcome<R> = (
  | { readonly kind: "value"; readonly value: R }
  | { readonly kind: "error"; readonly error: unknown }
) & {
  /** The term was over when work settled: the outcome is dropped. */
  readonly late: boolean;
};
type Event<R> =
  | Outcome<R>
  | { readonly kind: "ended"; readonly reason: EndReason }
  | { readonly kind: "stop" }
  | { readonly kind: "asked" };

/** What follows from one run of the work. */
type Step<R> = { readonly kind: "done"; readonly value: R } | { readonly kind: "next-term" | "same-term" };

export async function lead<T extends HeldTerm, R>(
  on: Leadership<T>,
  work: (term: T) => Promise<R> | R,
  options: LeadOptions = {},
): Promise<R> {
  for (;;) {
    const term = await on.campaign(options.signal);
    let step: Step<R>;
    do step = await runOnce(on, term, work, options);
    while (step.kind === "same-term");
    if (step.kind === "done") return step.value;
  }
}

async function runOnce<T extends HeldTerm, R>(
  on: Leadership<T>,
  term: T,
  work: (term: T) => Promise<R> | R,
  { signal, onLost = "recampaign", drainMs = DRAIN_MS }: LeadOptions,
): Promise<Step<R>> {
  const outcome = settle(() => work(term), term);
  on.occupy(outcome);
  const again = (reason: EndReason): Step<R> => {
    if (onLost === "throw") throw lost(term, reason);
    return { kind: "next-term" };
  };
  const event = await firstOf(on, term, outcome, signal);
  switch (event.kind) {
    case "value":
      await term.resign();
      return { kind: "done", value: event.value };
    case "error": {
      // Behind a closed gate everything fails, and the term may be over without our knowing: first find out.
      const fate = await fateOf(on, term, signal);
      if (fate === "over") return again(await term.ended);
      if (fate === "open" && isSuspension(event.error)) return { kind: "same-term" };
      await term.resign();
      if (fate === "asked") return again("asked");
      throw fate === "stop" ? reasonOf(signal, on.closing) : event.error;
    }
    case "stop": {
      const reason = reasonOf(signal, on.closing);
      term.windUp(reason);
      const drained = await settlesWithin(on.clock, outcome, drainMs);
      await term.resign();
      throw drained ? reason : overrun(term, drainMs);
    }
    case "asked": {
      const drained = await settlesWithin(on.clock, outcome, drainMs);
      await term.resign();
      if (!drained) throw overrun(term, drainMs);
      return again("asked");
    }
    case "ended":
      if (!(await settlesWithin(on.clock, outcome, drainMs))) throw overrun(term, drainMs);
      // Only the work itself can have resigned here: then it was done, and its outcome is what it says.
      if (event.reason === "resigned") return { kind: "done", value: unwrap(await outcome) };
      return again(event.reason);
    default:
      return assertNever(event, "lead");
  }
}

async function firstOf<R>(
  on: Leadership<HeldTerm>,
  term: HeldTerm,
  outcome: Promise<Outcome<R>>,
  signal: AbortSignal | undefined,
): Promise<Event<R>> {
  const stop = stopOf([signal, on.closing]);
  const ended = term.ended.then((reason) => ({ kind: "ended", reason }) as const);
  const asked = term.asked.then(() => ({ kind: "asked" }) as const);
  const first: Event<R> = await Promise.race([outcome, ended, stop.happened, asked]);
  stop.forget();
  // Work that settles inside the abort itself may win the race against the end that caused it.
  return "late" in first && first.late ? ended : first;
}

/** Waits while the gate is closed, until it opens or the term is over; that takes at most the server timeout. */
async function fateOf(
  on: Leadership<HeldTerm>,
  term: HeldTerm,
  signal: AbortSignal | undefined,
): Promise<"open" | "over" | "stop" | "asked"> {
  for (;;) {
    if (term.isOver) return "over";
    if (signal?.aborted === true || on.closing.aborted) return "stop";
    if (term.signal.aborted) return "asked";
    if (on.isOpen()) return "open";
    const { promise, resolve } = Promise.withResolvers<void>();
    on.clock.setTimer(on.clock.monotonicMs() + LOOK_MS, resolve);
    await promise;
  }
}

/** The gate was closed when the work asked it: no mistake of the work's. */
function isSuspension(error: unknown): boolean {
  return NotLeaderError.is(error) && error.reason === "suspended";
}

function unwrap<R>(outcome: Outcome<R>): R {
  if (outcome.kind === "error") throw outcome.error;
  return outcome.value;
}

async function settle<R>(work: () => Promise<R> | R, term: HeldTerm): Promise<Outcome<R>> {
  try {
    return { kind: "value", value: await work(), late: term.isOver };
  } catch (error) {
    return { kind: "error", error, late: term.isOver };
  }
}

function stopOf(signals: readonly (AbortSignal | undefined)[]): {
  readonly happened: Promise<{ readonly kind: "stop" }>;
  forget(): void;
} {
  const { promise, resolve } = Promise.withResolvers<{ readonly kind: "stop" }>();
  const stop = (): void => resolve({ kind: "stop" });
  for (const signal of signals) {
    if (signal?.aborted === true) stop();
    signal?.addEventListener("abort", stop, { once: true });
  }
  const forget = (): void => {
    for (const signal of signals) signal?.removeEventListener("abort", stop);
  };
  return { happened: promise, forget };
}

function settlesWithin(clock: Clock, outcome: Promise<unknown>, limitMs: number): Promise<boolean> {
  const { promise, resolve } = Promise.withResolvers<boolean>();
  const timer = clock.setTimer(clock.monotonicMs() + limitMs, () => resolve(false));
  void outcome.then(() => {
    timer.cancel();
    resolve(true);
  });
  return promise;
}

/** What the caller is told: its own reason where it aborted, else that the elector was closed. */
export function reasonOf(signal: AbortSignal | undefined, closing: AbortSignal): unknown {
  return signal?.aborted === true ? signal.reason : closing.reason;
}

function overrun(term: HeldTerm, drainMs: number): TenureError {
  return new TenureError(
    "TERM_OVERRUN",
    `the term of epoch ${term.epoch} for scope "${term.scope}" is over, and its work went on for more than ${drainMs} ms. Make it stop when term.signal aborts; until it settles, this elector does not campaign.`,
  );
}

function lost(term: HeldTerm, reason: EndReason): NotLeaderError {
  return new NotLeaderError(
    "not-leading",
    `the term of epoch ${term.epoch} for scope "${term.scope}" was lost (${reason}) before its work was done.`,
  );
}
