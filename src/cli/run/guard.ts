// The guard process of `tenure run`: parent of the command, in a session of its own, so that neither a terminal nor
// a signal to its supervisor's group reaches it. It decides nothing: core/supervise/guard.ts does; this file reads
// the pipe and the clocks, spawns, signals, and looks whether the group is gone.
//
// It is started before leadership is won, so that winning it does not wait for a process to start, and serves one
// command. A signal that ends others (SIGTERM to a whole control group) must not end the guard before its command.

import { type ChildProcess, spawn } from "node:child_process";
import { Socket } from "node:net";
import { assert } from "../../core/kit/assert.ts";
import { Guard, type GuardEffect, type GuardInput, type GuardReason } from "../../core/supervise/guard.ts";
import { livingMembers, signalGroup } from "../../drivers/processes/index.ts";
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
import { GONE_EVERY_MS, GUARD_CHECK_MS, GUARD_FAREWELL_MS, UNKILLABLE_AFTER_MS } from "./limits.ts";

const EXIT_SOFTWARE = 70;

class GuardProcess {
  readonly #pipe = new Socket({ fd: GUARD_FD, readable: true, writable: true });
  readonly #lines = new Lines<ToGuard>();
  #guard: Guard | undefined;
  #start: Start | undefined;
  #child: ChildProcess | undefined;
  #group: number | undefined;
  #windingUp: GuardReason | undefined;
  #killedAtMs: number | undefined;
  #timer: NodeJS.Timeout | undefined;

  listen(): void {
    this.#pipe.setEncoding("utf8");
    this.#pipe.on("data", (chunk: string) => {
      for (const message of this.#lines.take(chunk)) this.#receive(message);
    });
    // Any end of the pipe means that the supervisor can't be trusted to extend the deadline any more.
    this.#pipe.on("end", () => this.#supervisorGone());
    this.#pipe.on("error", () => this.#supervisorGone());
    this.#pipe.on("close", () => this.#supervisorGone());
    this.#tell({ kind: "ready" });
  }

  /** Our own mistake: the command must not outlive it. */
  crash(error: unknown): never {
    if (this.#group !== undefined && this.#guard?.phase !== "done") signalGroup(this.#group, "SIGKILL");
    console.error("tenure: the guard failed, and killed the command:", error);
    process.exit(EXIT_SOFTWARE);
  }

  #receive(message: ToGuard): void {
    if (message.kind === "start" || message.kind === "deadline") this.#tell({ kind: "seen" });
    if (message.kind !== "start") return this.#step(message);
    assert(this.#guard === undefined, "a guard is started once");
    this.#start = message;
    this.#guard = new Guard(message.plan);
    this.#step({ kind: "start", deadline: message.deadline });
  }

  #supervisorGone(): void {
    if (this.#guard === undefined) process.exit(0);
    this.#step({ kind: "supervisor-gone" });
  }

  #step(input: GuardInput): void {
    if (this.#guard === undefined) return;
    for (const effect of this.#guard.step(moment(), input)) this.#carryOut(effect);
    this.#arm();
  }

  #arm(): void {
    clearTimeout(this.#timer);
    const untilMs = this.#guard?.untilMs(moment()) ?? null;
    if (this.#guard?.phase === "done" || (untilMs === null && this.#windingUp === undefined)) return;
    const delayMs = Math.min(untilMs ?? Infinity, this.#windingUp !== undefined ? GONE_EVERY_MS : GUARD_CHECK_MS);
    // Rounded up by Node to a whole millisecond at least, so that this does not spin.
    this.#timer = setTimeout(() => this.#look(), delayMs);
  }

  #look(): void {
    this.#step({ kind: "tick" });
    if (this.#windingUp !== undefined) this.#lookForTheEnd();
  }

  #carryOut(effect: GuardEffect): void {
    switch (effect.kind) {
      case "spawn":
        return this.#spawn();
      case "signal":
        return this.#signal(effect.signal as NodeJS.Signals);
      case "winding-up":
        this.#windingUp = effect.why;
        return this.#tell(effect);
      case "done":
        return this.#done(effect.why, 0);
      default:
        return effect satisfies never;
    }
  }

  #spawn(): void {
    const start = this.#start;
    assert(start !== undefined, "a command is spawned after its start");
    let child: ChildProcess;
    try {
      // `detached` makes it the leader of a session and of a group of its own.
      child = spawn(start.command, start.args, { stdio: "inherit", env: start.environment, detached: true });
    } catch (error) {
      // Some errors are thrown (a too long command line), others are told (no such file).
      return this.#failed(error as NodeJS.ErrnoException);
    }
    this.#child = child;
    child.once("error", (error: NodeJS.ErrnoException) => this.#failed(error));
    if (child.pid === undefined) return;
    this.#group = child.pid;
    this.#tell({ kind: "started", pid: child.pid });
    child.once("exit", (code, signal) => this.#ended({ kind: "ended", code, signal }));
  }

  #failed(error: NodeJS.ErrnoException): void {
    if (this.#group !== undefined) return;
    this.#tell({ kind: "failed", code: error.code ?? "UNKNOWN", message: error.message });
    // After the step that spawned, not within it.
    setImmediate(() => this.#step({ kind: "gone" }));
  }

  #ended(ended: Ended): void {
    this.#tell(ended);
    if (this.#lookForTheEnd()) return;
    this.#step({ kind: "ended" });
  }

  /** Once it was seen to be gone, the group's number belongs to nobody, and soon perhaps to somebody else. */
  #lookForTheEnd(): boolean {
    if (this.#group === undefined || this.#guard?.phase === "done") return true;
    // Our child is reaped by us: until then it is a member, alive or not.
    const reaped = this.#child?.exitCode !== null || this.#child?.signalCode !== null;
    const survivors = reaped ? livingMembers(this.#group) : 1;
    if (survivors === 0) {
      this.#step({ kind: "gone" });
      return true;
    }
    if (this.#killedAtMs !== undefined && moment().monotonicMs - this.#killedAtMs > UNKILLABLE_AFTER_MS)
      this.#done(this.#windingUp ?? "ended", survivors);
    return false;
  }

  #signal(signal: NodeJS.Signals): void {
    if (this.#group === undefined) return;
    signalGroup(this.#group, signal);
    // A stopped process keeps every other signal waiting until it is continued.
    if (signal !== "SIGKILL" && this.#windingUp !== undefined) signalGroup(this.#group, "SIGCONT");
    if (signal !== "SIGKILL" || this.#killedAtMs !== undefined) return;
    this.#killedAtMs = moment().monotonicMs;
    this.#tell({ kind: "killed" });
  }

  #done(why: GuardReason, survivors: number): void {
    clearTimeout(this.#timer);
    if (why === "supervisor-gone" && this.#group !== undefined)
      console.error(`tenure: \`tenure run\` is gone; its command (process group ${this.#group}) was killed`);
    if (this.#pipe.destroyed) process.exit(0);
    this.#pipe.end(encode({ kind: "done", why, survivors }), () => process.exit(0));
    // A supervisor that reads nothing has its kernel's buffer; nothing is left to guard.
    setTimeout(() => process.exit(0), GUARD_FAREWELL_MS);
  }

  #tell(message: FromGuard): void {
    if (this.#pipe.writable) this.#pipe.write(encode(message));
  }
}

const guard = new GuardProcess();
process.title = `tenure guard ${process.argv[2] ?? ""}`.trimEnd();
for (const signal of ["SIGTERM", "SIGINT", "SIGHUP", "SIGQUIT", "SIGUSR1", "SIGUSR2", "SIGPIPE"] as const)
  process.on(signal, () => undefined);
process.stderr.on("error", () => undefined);
process.on("uncaughtException", (error) => guard.crash(error));
guard.listen();
