// `tenure run` at work: campaign, run the command while leading, and release the scope when nothing of it lives.
//
//   waiting ──won──▶ commanding ──command over──▶ finished, or commanding again (--forever, or the gate reopened)
//      ▲                  │
//      └────term lost─────┘        a stop signal leads to finished from anywhere
//
// Invariants: the work of a term settles only when the command's group is gone, so the scope is let go after that and
// never before (trap 48); nothing is started once a stop signal came or an outcome is known; one command at a time.

import { constants } from "node:os";
import { setTimeout as sleep } from "node:timers/promises";
import { assertNever } from "../../core/kit/assert.ts";
import { ERRORS, TenureError } from "../../core/kit/errors.ts";
import type { GuardPlan, Moment } from "../../core/supervise/guard.ts";
import { Restarts } from "../../core/supervise/restarts.ts";
import type { Elector, Term } from "../../ports/elector.ts";
import { moment } from "./guard-protocol.ts";
import type { RunFlags } from "./flags.ts";
import { GuardedCommand, type Over } from "./guarded.ts";
import { EXTEND_EVERY_MS, EXTENSION_MS_MIN, GATE_EVERY_MS, GUARD_ATTEMPTS_MAX, SETTLE_MS_MAX } from "./limits.ts";
import type { Notices } from "./notices.ts";

const EXIT_SOFTWARE = 70;
const EXIT_NEVER_WON = 75;
const EXIT_LOST = 76;
const EXIT_NOT_RUNNABLE = 126;
const EXIT_NOT_FOUND = 127;
const EXIT_SIGNAL = 128;

export interface SessionOptions {
  readonly flags: RunFlags;
  readonly plan: GuardPlan;
  /** How long a proof of leadership lasts. */
  readonly trustMs: number;
  readonly elector: Elector;
  readonly notices: Notices;
  readonly environment: Readonly<Record<string, string | undefined>>;
  /** For whoever does not want to wait for a clean end. */
  readonly exitNow: (code: number) => void;
}

export class RunSession {
  readonly #options: SessionOptions;
  readonly #finished = new AbortController();
  readonly #restarts = new Restarts();
  #outcome: number | undefined;
  #stopSignal: NodeJS.Signals | undefined;
  #won = false;
  #spare: GuardedCommand | undefined;
  #command: GuardedCommand | undefined;
  #guardsLost = 0;

  constructor(options: SessionOptions) {
    this.#options = options;
  }

  /** The exit code. */
  async run(): Promise<number> {
    const { elector, flags, plan } = this.#options;
    if (flags.enabled) this.#warmUp();
    const waiting = flags.waitMs === undefined ? undefined : setTimeout(() => this.#neverWon(), flags.waitMs);
    const drainMs = this.#drainMs() + plan.graceMs + SETTLE_MS_MAX;
    try {
      await elector.lead((term) => this.#commandFor(term), { signal: this.#finished.signal, drainMs });
    } catch (error) {
      if (this.#outcome === undefined) this.#outcome = this.#refused(error);
    } finally {
      clearTimeout(waiting);
      this.#spare?.dismiss();
    }
    return this.#outcome ?? EXIT_SOFTWARE;
  }

  /** A signal to `tenure run`. */
  signalled(signal: NodeJS.Signals): void {
    const { notices } = this.#options;
    const stops = signal === "SIGTERM" || signal === "SIGINT";
    const idleStops = this.#command === undefined && (signal === "SIGHUP" || signal === "SIGQUIT");
    if (!stops && !idleStops) return this.#command?.forward(signal);
    const code = EXIT_SIGNAL + constants.signals[signal];
    if (this.#stopSignal !== undefined) {
      notices.say("stopping", `${signal} again: ${this.#command === undefined ? "not waiting any more" : "killing"}`);
      return this.#command === undefined ? this.#options.exitNow(this.#outcome ?? code) : this.#command.kill();
    }
    this.#stopSignal = signal;
    notices.say("stopping", this.#command === undefined ? `by ${signal}` : `${signal} is passed on to the command`);
    if (this.#command === undefined) this.#finish(code);
    else this.#command.stop(signal, this.#drainMs());
  }

  // ---- one term ----------------------------------------------------------------------------------------

  async #commandFor(term: Term): Promise<void> {
    const { notices, flags } = this.#options;
    this.#won = true;
    notices.say("leading", `"${flags.scope}" in epoch ${term.epoch}`, { epoch: term.epoch });
    while (this.#outcome === undefined && !term.signal.aborted) {
      const over = await this.#runOnce(term);
      if (over === undefined) break;
      await this.#judge(over, term);
    }
    // Ready before the next term is won.
    if (this.#outcome === undefined) this.#warmUp();
  }

  /** Undefined if nothing was started: the term is over, or somebody wants us to end. */
  async #runOnce(term: Term): Promise<Over | undefined> {
    const { flags, plan, environment } = this.#options;
    const guarded = await this.#takeGuard();
    const deadline = guarded === undefined ? undefined : await this.#openGate(term);
    if (guarded === undefined || deadline === undefined) return undefined;
    this.#spare = undefined;
    this.#command = guarded;
    guarded.onWindingUp((why) => {
      if (why === "deadline") this.#sayLost(term, "it was not proven again in time");
    });
    const variables = { ...environment, TENURE_SCOPE: term.scope, TENURE_EPOCH: String(term.epoch) };
    guarded.start({ deadline, plan, command: flags.command, args: flags.args, environment: defined(variables) });
    const lost = (): void => guarded.lost();
    term.signal.addEventListener("abort", lost, { once: true });
    let last = deadline;
    const extending = setInterval(() => {
      const next = this.#deadline();
      if (next === undefined || next.monotonicMs < last.monotonicMs + EXTENSION_MS_MIN) return;
      guarded.extend(next);
      last = next;
    }, EXTEND_EVERY_MS);
    const over = await guarded.over;
    clearInterval(extending);
    term.signal.removeEventListener("abort", lost);
    this.#command = undefined;
    return over;
  }

  /** What follows from the end of a command. */
  async #judge(over: Over, term: Term): Promise<void> {
    const { flags, notices } = this.#options;
    switch (over.kind) {
      case "failed":
        notices.say("error", `${flags.command} can't be started: ${over.message}`, { code: over.code });
        return this.#finish(over.code === "ENOENT" ? EXIT_NOT_FOUND : EXIT_NOT_RUNNABLE);
      case "guard-died":
        if (over.windingUp !== undefined) return this.#ended(over.windingUp, exitCode(null, "SIGKILL"), over.ranMs);
        if (!over.started) return this.#guardLost();
        this.#guardsLost = 0;
        notices.say("error", "the guard process died or froze, so the command was killed");
        return this.#ended("ended", EXIT_SOFTWARE, over.ranMs);
      case "ran":
        this.#guardsLost = 0;
        if (over.survivors > 0) {
          notices.say(
            "error",
            `${over.survivors} processes of the command's group survive SIGKILL (they are in uninterruptible sleep, or of another user)`,
          );
        }
        if (over.why !== "too-late" || term.signal.aborted)
          return this.#ended(over.why, exitCode(over.code, over.signal), over.ranMs);
        // The gate was open when we asked; by the time the guard looked, it was not open for long enough.
        return undefined;
      default:
        return assertNever(over, "RunSession.judge");
    }
  }

  async #ended(why: (Over & { kind: "ran" })["why"], code: number, ranMs: number): Promise<void> {
    const { flags, notices } = this.#options;
    // A command that was asked to end has ended, whatever else happened meanwhile.
    if (this.#stopSignal !== undefined) return this.#finish(code);
    if (why === "lost" || why === "deadline" || why === "too-late") {
      if (flags.mode === "once") this.#finish(EXIT_LOST);
      return;
    }
    if (flags.mode !== "forever" || why !== "ended") return this.#finish(code);
    const delayMs = this.#restarts.delayMs(ranMs);
    notices.say("restarting", `the command ended with ${code}; it starts again in ${delayMs} ms`, { exit: code });
    this.#warmUp();
    await sleep(delayMs, undefined, { signal: this.#finished.signal }).catch(() => undefined);
  }

  // ---- guards and deadlines ------------------------------------------------------------------------------

  #warmUp(): void {
    this.#spare ??= new GuardedCommand(this.#options.flags.scope, this.#options.trustMs);
  }

  async #takeGuard(): Promise<GuardedCommand | undefined> {
    for (let attempt = 0; attempt < GUARD_ATTEMPTS_MAX; attempt++) {
      if (this.#outcome !== undefined) return undefined;
      if (attempt > 0) this.#sayGuardLost();
      this.#warmUp();
      const spare = this.#spare;
      if ((await spare?.ready) === true && !spare!.isOver) return spare;
      if (this.#spare === spare) this.#spare = undefined;
    }
    this.#noGuard();
    return undefined;
  }

  /** Nothing was started, so another guard may try. */
  #guardLost(): void {
    if (++this.#guardsLost >= GUARD_ATTEMPTS_MAX) return this.#noGuard();
    this.#sayGuardLost();
  }

  #sayGuardLost(): void {
    const text = "the guard process died or froze before it started the command; another one is tried";
    this.#options.notices.say("warning", text);
  }

  #noGuard(): void {
    if (this.#outcome !== undefined) return;
    const why = "is the machine out of memory, processes or file descriptors, or does somebody stop them?";
    this.#options.notices.say("error", `no guard process could be started; ${why}`);
    this.#finish(EXIT_SOFTWARE);
  }

  /** Waits until the gate is open for longer than the grace. Undefined if that will not be, or nobody wants it. */
  async #openGate(term: Term): Promise<Moment | undefined> {
    const { plan, elector } = this.#options;
    const warningMs = plan.onLose === "stop" ? plan.graceMs : 0;
    for (;;) {
      if (this.#outcome !== undefined || term.signal.aborted) return undefined;
      const deadline = this.#deadline();
      if (deadline !== undefined && elector.gate.remainingMs > warningMs) return deadline;
      await sleep(GATE_EVERY_MS);
    }
  }

  /** The clocks are read before the gate is asked: so the sum is never later than the gate's own end. */
  #deadline(): Moment | undefined {
    const now = moment();
    const leftMs = this.#options.elector.gate.remainingMs;
    return leftMs > 0 ? { monotonicMs: now.monotonicMs + leftMs, wallMs: now.wallMs + leftMs } : undefined;
  }

  #drainMs(): number {
    return this.#options.flags.drainMs ?? this.#options.plan.graceMs;
  }

  // ---- ends ------------------------------------------------------------------------------------------------

  #finish(code: number): void {
    this.#outcome ??= code;
    // Nothing is started any more, so nobody need wait for a guard to get ready.
    this.#spare?.dismiss();
    this.#finished.abort();
  }

  #neverWon(): void {
    if (this.#won) return;
    const { flags, notices } = this.#options;
    notices.say("error", `"${flags.scope}" was not won within ${flags.waitMs} ms (--wait)`);
    this.#finish(EXIT_NEVER_WON);
  }

  #refused(error: unknown): number {
    if (!TenureError.is(error)) throw error;
    this.#options.notices.say("error", error.message, { code: error.code });
    return ERRORS[error.code].exit;
  }

  #sayLost(term: Term, why: string): void {
    const { notices, plan } = this.#options;
    const how = plan.onLose === "stop" ? `SIGTERM, and SIGKILL within ${plan.graceMs} ms` : "SIGKILL";
    notices.say("lost", `epoch ${term.epoch}: ${why}; the command gets ${how}`, { epoch: term.epoch });
  }
}

function exitCode(code: number | null, signal: NodeJS.Signals | null): number {
  if (code !== null) return code;
  return signal === null ? EXIT_SOFTWARE : EXIT_SIGNAL + constants.signals[signal];
}

function defined(variables: Readonly<Record<string, string | undefined>>): Record<string, string> {
  return Object.fromEntries(
    Object.entries(variables).filter((entry): entry is [string, string] => entry[1] !== undefined),
  );
}
