// `lead`: run work while leading, sentence by sentence as ports/elector.ts promises it.
//
//   campaign ──▶ work runs ──returns or throws, or resigns and does so──▶ resign ──▶ its outcome
//      ▲            │ └──caller aborts, or close──▶ signal aborts, drain ──▶ resign ──▶ reject with the reason
//      │            ├──an operator asks──▶ signal aborts, drain ──▶ resign ──▶ again, or reject (onLost: "throw")
//      │            └──the term ends──▶ signal aborts, drain, outcome dropped ──▶ again, or reject (onLost: "throw")
//      ├────────────────────────────────────────────────────────────────────────────┘
//      └──pause, growing──── resign ◀──work throws what a retry may repair (retry.ts), with onError: "retry"
//
// A retry runs in a new epoch, never in the one that failed: the fence lets a new epoch begin only when no transaction of the old
// one is open any more, so that work which reads first learns what became of an unknown outcome (decision 40).
//
// Work that throws behind a closed gate (a process that was frozen) is judged when that is known: the term was over, as
// above; or the gate opens again, then work that was refused by it runs again in the same term, and any other error counts.
// The gate that refused it may be another elector's, and stay closed: there is a pause before each such run.
//
// Invariant: no campaign starts before the previous work has settled, so that two works never run at once; work that
// does not settle within `drainMs` rejects with TERM_OVERRUN, and keeps the elector occupied until it does.

import { assertNever } from "../core/kit/assert.ts";
import { NotLeaderError, TenureError } from "../core/kit/errors.ts";
import { DRAIN_MS } from "../core/kit/limits.ts";
import { Restarts } from "../core/supervise/restarts.ts";
import type { EndReason } from "../core/trust/transitions.ts";
import { sleep, within } from "../loops/time.ts";
import type { Clock } from "../ports/clock.ts";
import type { LeadOptions } from "../ports/elector.ts";
import { GATE_POLL_MS, SELF_WAIT_MS } from "./limits.ts";
import { isRetryable } from "./retry.ts";
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
  /** For the operator's log. */
  complain(what: string, error: unknown): void;
}

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

/** What follows from one run of the work. `error` is what it threw, if it did: the next run is given it. */
type Step<R> =
  | { readonly kind: "done"; readonly value: R }
  | { readonly kind: "next-term" | "same-term" | "retry"; readonly error: unknown };

export async function lead<T extends HeldTerm, R>(
  on: Leadership<T>,
  work: (term: T, lastError?: unknown) => Promise<R> | R,
  options: LeadOptions = {},
): Promise<R> {
  const { signal, onError = "throw" } = options;
  if (onError !== "throw" && onError !== "retry") throw misspelt(onError);
  const restarts = new Restarts();
  let lastError: unknown;
  // Nobody else is handed a second argument: a function that takes one for a purpose of its own was written before there was one.
  const run = (term: T): Promise<R> | R => (onError === "retry" ? work(term, lastError) : work(term));
  for (;;) {
    const term = await on.campaign(signal);
    const startedMs = on.clock.monotonicMs();
    let step: Step<R>;
    do {
      step = await runOnce(on, term, run, options);
      if (step.kind === "done") return step.value;
      lastError = step.error;
    } while (step.kind === "same-term");
    if (step.kind === "retry") {
      on.complain("work failed and is run again", step.error);
      await pause(on, signal, restarts.delayMs(on.clock.monotonicMs() - startedMs));
    }
  }
}

async function runOnce<T extends HeldTerm, R>(
  on: Leadership<T>,
  term: T,
  work: (term: T) => Promise<R> | R,
  { signal, onLost = "recampaign", onError, drainMs = DRAIN_MS }: LeadOptions,
): Promise<Step<R>> {
  const outcome = settle(() => work(term), term);
  on.occupy(outcome);
  const again = async (reason: EndReason): Promise<Step<R>> => {
    if (onLost === "throw") throw lost(term, reason);
    return { kind: "next-term", error: errorIn(await outcome) };
  };
  const event = await firstOf(on, term, outcome, signal);
  switch (event.kind) {
    case "value":
      await term.resign();
      return { kind: "done", value: event.value };
    case "error": {
      const isSuspended = isSuspension(event.error);
      if (isSuspended) await sleep(on.clock, GATE_POLL_MS);
      // Behind a closed gate everything fails, and the term may be over without our knowing: first find out.
      const fate = await fateOf(on, term, signal);
      if (fate === "over") return again(await term.ended);
      if (fate === "open" && isSuspended) return { kind: "same-term", error: event.error };
      await term.resign();
      if (fate === "asked") return again("asked");
      if (fate === "stop") throw reasonOf(signal, on.closing);
      if (onError === "retry" && isRetryable(event.error)) return { kind: "retry", error: event.error };
      throw event.error;
    }
    case "stop": {
      const reason = reasonOf(signal, on.closing);
      term.windUp(reason);
      const late = await drained(on, term, outcome, drainMs);
      await term.resign();
      throw late ?? reason;
    }
    case "asked": {
      const late = await drained(on, term, outcome, drainMs);
      await term.resign();
      if (late !== undefined) throw late;
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
    await sleep(on.clock, GATE_POLL_MS);
  }
}

/** A gate was closed when the work asked it: no mistake of the work's. */
function isSuspension(error: unknown): boolean {
  return NotLeaderError.is(error) && error.reason === "suspended";
}

function errorIn(outcome: Outcome<unknown>): unknown {
  return outcome.kind === "error" ? outcome.error : undefined;
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

/** Between a failure and the next campaign; a caller that stops does not wait for it. */
async function pause(on: Leadership<HeldTerm>, signal: AbortSignal | undefined, delayMs: number): Promise<void> {
  const stop = stopOf([signal, on.closing]);
  const isStopped = await settlesWithin(on.clock, stop.happened, delayMs);
  stop.forget();
  if (isStopped) throw reasonOf(signal, on.closing);
}

/** TERM_OVERRUN, if work that shall stop does not. It can't where it awaits the end of its own term: reported before that. */
async function drained(
  on: Leadership<HeldTerm>,
  term: HeldTerm,
  outcome: Promise<unknown>,
  drainMs: number,
): Promise<TenureError | undefined> {
  const firstMs = Math.min(SELF_WAIT_MS, drainMs / 2);
  if (await settlesWithin(on.clock, outcome, firstMs)) return undefined;
  if (term.endIsAwaited) on.complain("work does not stop", selfWait(term));
  return (await settlesWithin(on.clock, outcome, drainMs - firstMs)) ? undefined : overrun(term, drainMs);
}

function settlesWithin(clock: Clock, outcome: Promise<unknown>, limitMs: number): Promise<boolean> {
  const isSettled = outcome.then(() => true);
  return within(clock, limitMs, isSettled, false);
}

/** What the caller is told: its own reason where it aborted, else that the elector was closed. */
export function reasonOf(signal: AbortSignal | undefined, closing: AbortSignal): unknown {
  return signal?.aborted === true ? signal.reason : closing.reason;
}

function overrun(term: HeldTerm, drainMs: number): TenureError {
  const hint = term.endIsAwaited ? ` ${SELF_WAIT}` : "";
  return new TenureError(
    "TERM_OVERRUN",
    `the term of epoch ${term.epoch} for scope "${term.scope}" is over, and its work went on for more than ${drainMs} ms. Make it stop when term.signal aborts; until it settles, this elector does not campaign.${hint}`,
  );
}

const SELF_WAIT =
  "term.ended is being awaited: if that is inside work, each waits for the other, because the term ends only after work has settled. Wait for term.signal there; term.ended.then(…) without await is fine.";

function selfWait(term: HeldTerm): TenureError {
  return new TenureError(
    "TERM_OVERRUN",
    `the signal of epoch ${term.epoch} for scope "${term.scope}" has aborted, and work has not settled. ${SELF_WAIT}`,
  );
}

function misspelt(onError: unknown): TenureError {
  return new TenureError(
    "CONFIG_INVALID",
    `lead: onError is ${JSON.stringify(onError)}; it must be "throw" or "retry".`,
  );
}

function lost(term: HeldTerm, reason: EndReason): NotLeaderError {
  return new NotLeaderError(
    "not-leading",
    `the term of epoch ${term.epoch} for scope "${term.scope}" was lost (${reason}) before its work was done.`,
  );
}
