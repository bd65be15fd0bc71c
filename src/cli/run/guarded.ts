// One command and its guard, as the supervisor (`tenure run`) sees them.
//
//   warming ──ready──▶ warm ──start──▶ guarded ──done──▶ over
//      └──────dismissed or died─────────┴──▶ over
//
// Invariants: `over` is reported once, and only when no member of the command's group lives (or SIGKILL did not help); a
// guard that dies, is late with a kill that is due, or does not answer, is replaced by this process: the command's group
// is killed from here. Which of two ends came first is the guard's to say, if it still can.

import { type ChildProcess, spawn } from "node:child_process";
import type { Duplex } from "node:stream";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { assertNever } from "../../core/kit/assert.ts";
import type { GuardReason, Moment } from "../../core/supervise/guard.ts";
import { childrenOf, livingMembers, signalGroup } from "../../drivers/processes/index.ts";
import {
  encode,
  type Ended,
  type FromGuard,
  GUARD_FD,
  Lines,
  moment,
  type Start,
  type ToGuard,
} from "./guard-protocol.ts";
import * as limits from "./limits.ts";

/** Next to this file, with this file's extension: unbuilt and built. */
const GUARD_FILE = fileURLToPath(new URL(`./guard${import.meta.url.endsWith(".ts") ? ".ts" : ".js"}`, import.meta.url));

export type GuardedStart = Omit<Start, "kind">;

export type Over =
  /** The command could not be started. */
  | { readonly kind: "failed"; readonly code: string; readonly message: string }
  /** It ran, and the whole group is gone; `code` and `signal` are the command's own. */
  | {
      readonly kind: "ran";
      readonly why: GuardReason;
      readonly code: number | null;
      readonly signal: NodeJS.Signals | null;
      readonly ranMs: number;
      readonly survivors: number;
    }
  /**
   * The guard died or froze, and the command was killed from here. `windingUp`: what had been decided before.
   * `started`: false if there was no command yet, nor will there be.
   */
  | {
      readonly kind: "guard-died";
      readonly windingUp: GuardReason | undefined;
      readonly ranMs: number;
      readonly started: boolean;
    };

export class GuardedCommand {
  /** Resolves to false if the guard could not be started, died before it was ready, or took too long. */
  readonly ready: Promise<boolean>;
  readonly over: Promise<Over>;
  readonly #guard: ChildProcess | undefined;
  readonly #pipe: Duplex | undefined;
  readonly #trustMs: number;
  readonly #lines = new Lines<FromGuard>();
  readonly #becameReady: (ready: boolean) => void;
  readonly #becameOver: (over: Over) => void;
  #started: (GuardedStart & { readonly atMs: number }) | undefined;
  #group: number | undefined;
  #failure: (FromGuard & { kind: "failed" }) | undefined;
  #ended: Ended | undefined;
  #done: (FromGuard & { kind: "done" }) | undefined;
  #windingUp: GuardReason | undefined;
  /** When the guard must have killed: at the first of the two. */
  #deadlineMs = Infinity;
  #limitMs = Infinity;
  #watch: NodeJS.Timeout | undefined;
  /** Questions without an answer; being started is one, and `ready` its answer. */
  #unanswered = 1;
  /**
   * How often we looked since then: not what a clock says, because while we stood still ourselves the answer may have
   * come and not been read, or the guard may have stood still with us.
   */
  #looks = 0;
  #sawStart = false;
  #windUp: (why: GuardReason) => void = () => undefined;
  #isOver = false;

  /** `trustMs`: a guard that has read no deadline for so long would kill as soon as it went on. */
  constructor(scope: string, trustMs: number) {
    this.#trustMs = trustMs;
    const ready = Promise.withResolvers<boolean>();
    const over = Promise.withResolvers<Over>();
    this.ready = ready.promise;
    this.over = over.promise;
    this.#becameReady = ready.resolve;
    this.#becameOver = over.resolve;
    this.#guard = spawnGuard(scope);
    this.#guard?.once("error", () => this.#concludeOnce());
    this.#guard?.once("close", () => this.#concludeOnce());
    // Out of file descriptors, Node gives a child that has no streams at all.
    const streams = this.#guard?.stdio;
    this.#pipe = streams?.[GUARD_FD] as Duplex | undefined;
    if (this.#pipe === undefined) this.#concludeOnce();
    else this.#listen(this.#pipe);
    this.#watchGuard();
  }

  get isOver(): boolean {
    return this.#isOver;
  }

  /** Called once, when the guard says by itself that the command is to end. */
  onWindingUp(told: (why: GuardReason) => void): void {
    this.#windUp = told;
  }

  start(start: GuardedStart): void {
    this.#started = { ...start, atMs: moment().monotonicMs };
    this.#deadlineMs = start.deadline.monotonicMs;
    this.#watchGuard();
    this.#ask({ kind: "start", ...start });
  }

  /** Leadership was proven again. */
  extend(deadline: Moment): void {
    this.#deadlineMs = Math.max(this.#deadlineMs, deadline.monotonicMs);
    if (this.#pipe !== undefined && this.#pipe.writableLength < limits.GUARD_UNREAD_BYTES_MAX)
      this.#ask({ kind: "deadline", deadline });
  }

  lost(): void {
    this.#dueWithin("lost", this.#graceMs());
    this.#send({ kind: "lost" });
  }

  /** Ends the command in a friendly way, or a guard that has none. */
  stop(signal: NodeJS.Signals, withinMs: number): void {
    if (this.#started === undefined) return this.dismiss();
    this.#dueWithin("asked", withinMs);
    this.#send({ kind: "stop", signal, withinMs });
  }

  kill(): void {
    this.#dueWithin("asked", 0);
    this.#send({ kind: "kill" });
  }

  forward(signal: NodeJS.Signals): void {
    this.#send({ kind: "forward", signal });
  }

  /** Ends a guard that has no command, even a frozen one. */
  dismiss(): void {
    if (this.#started === undefined) this.#signalGuard("SIGKILL");
  }

  #listen(pipe: Duplex): void {
    pipe.setEncoding("utf8");
    pipe.on("data", (chunk: string) => {
      for (const message of this.#lines.take(chunk)) this.#receive(message);
    });
    // Its end is seen as the guard's end.
    pipe.on("error", () => undefined);
  }

  #dueWithin(why: GuardReason, withinMs: number): void {
    this.#windingUp ??= why;
    this.#limitMs = Math.min(this.#limitMs, moment().monotonicMs + withinMs);
  }

  #graceMs(): number {
    const plan = this.#started?.plan;
    return plan?.onLose === "stop" ? plan.graceMs : 0;
  }

  #ask(question: ToGuard & { kind: "start" | "deadline" }): void {
    this.#unanswered++;
    this.#send(question);
  }

  #send(message: ToGuard): void {
    if (this.#pipe?.writable === true) this.#pipe.write(encode(message));
  }

  #receive(message: FromGuard): void {
    switch (message.kind) {
      case "ready":
        // A spare guard is asked nothing until it is started.
        if (this.#started === undefined) clearInterval(this.#watch);
        this.#answered();
        return this.#becameReady(true);
      case "seen":
        this.#sawStart = true;
        return this.#answered();
      case "started":
        this.#group = message.pid;
        return;
      case "failed":
        this.#failure = message;
        return;
      case "winding-up":
        // An echo, if we asked for it.
        if (this.#windingUp !== undefined) return;
        this.#dueWithin(message.why, this.#graceMs());
        return this.#windUp(message.why);
      case "killed":
        // It has done its duty; a large process may take a while to be gone.
        this.#deadlineMs = Infinity;
        this.#limitMs = moment().monotonicMs + limits.UNKILLABLE_AFTER_MS + limits.GUARD_LATE_MS;
        return;
      case "ended":
        this.#ended = message;
        return;
      case "done":
        // The guard has nothing left to do but to exit, and nobody waits for that.
        this.#done = message;
        return this.#concludeOnce();
      default:
        return assertNever(message, "GuardedCommand.receive");
    }
  }

  #answered(): void {
    this.#unanswered--;
    this.#looks = 0;
  }

  #watchGuard(): void {
    clearInterval(this.#watch);
    if (this.#isOver) return;
    // After the pipe was read: what a guard has said in time counts, however late we are to hear it.
    this.#watch = setInterval(() => setImmediate(() => this.#lookAfterGuard()), limits.GUARD_CHECK_MS);
  }

  /** A frozen guard is killed, which does work; then its work is done here, as for one that died by itself. */
  #lookAfterGuard(): void {
    const dueMs = Math.min(this.#deadlineMs, this.#limitMs);
    const isLate = moment().monotonicMs >= dueMs + limits.GUARD_LATE_MS;
    if (this.#done !== undefined || this.#isOver || !(this.#isSilent() || isLate)) return;
    // It may go on at this very moment; and if it stands still in the middle of starting the command (a slow disk), it
    // has a child that it never told us about.
    this.#signalGuard("SIGSTOP");
    if (this.#started !== undefined && this.#guard?.pid !== undefined) this.#group ??= childrenOf(this.#guard.pid)[0];
    if (this.#group !== undefined && this.#ended === undefined) signalGroup(this.#group, "SIGKILL");
    this.#signalGuard("SIGKILL");
  }

  /** A child that was never born has no number, and `kill` would take that for our own group. */
  #signalGuard(signal: NodeJS.Signals): void {
    if (this.#guard?.pid !== undefined) this.#guard.kill(signal);
  }

  #isSilent(): boolean {
    if (this.#unanswered === 0) return false;
    // Nothing runs while a guard gets ready, so trust does not limit that.
    const withinMs =
      this.#started === undefined ? limits.GUARD_ANSWER_MS_MAX : Math.min(limits.GUARD_ANSWER_MS_MAX, this.#trustMs);
    return ++this.#looks * limits.GUARD_CHECK_MS > withinMs;
  }

  #concludeOnce(): void {
    if (this.#isOver) return;
    this.#isOver = true;
    clearInterval(this.#watch);
    this.#becameReady(false);
    void this.#concluded().then(this.#becameOver);
  }

  async #concluded(): Promise<Over> {
    const ranMs = this.#started === undefined ? 0 : moment().monotonicMs - this.#started.atMs;
    if (this.#failure !== undefined) return this.#failure;
    if (this.#done !== undefined) {
      const { code = null, signal = null } = this.#ended ?? {};
      return { kind: "ran", why: this.#done.why, code, signal, ranMs, survivors: this.#done.survivors };
    }
    if (this.#group !== undefined) await killGroup(this.#group);
    return { kind: "guard-died", windingUp: this.#windingUp, ranMs, started: this.#sawStart };
  }
}

/** Undefined if that was refused at once; most refusals come later, as an event. */
function spawnGuard(scope: string): ChildProcess | undefined {
  // NODE_OPTIONS is meant for the command, if it is a Node program; a debugger or a hook has no business here.
  const { NODE_OPTIONS: _, ...environment } = process.env;
  const stdio = ["inherit", "inherit", "inherit", "pipe"] as const;
  try {
    return spawn(process.execPath, [GUARD_FILE, scope], { stdio: [...stdio], env: environment, detached: true });
  } catch {
    return undefined;
  }
}

async function killGroup(group: number): Promise<void> {
  const sinceMs = moment().monotonicMs;
  while (livingMembers(group) > 0 && moment().monotonicMs - sinceMs < limits.UNKILLABLE_AFTER_MS) {
    signalGroup(group, "SIGKILL");
    await sleep(limits.GONE_EVERY_MS);
  }
}
