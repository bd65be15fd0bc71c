// What `tenure run` and its guard tell each other: one JSON object a line, over one socket pair. The end of the
// stream is a message too: the other one is dead.
//
//   supervisor → guard    start, then deadline*, forward*, lost | stop | kill
//   guard → supervisor    ready, then started | failed, winding-up?, killed?, ended?, done
//                         seen, for each start and deadline: whoever does not say it is frozen
//
// `seen` is said before a start is acted on, so a guard that died without it has started nothing.
//
// Both are of one installation, started together, so there is no version; a line that makes no sense is our own
// mistake, and the guard answers it by killing.

import type { GuardPlan, GuardReason, Moment } from "../../core/supervise/guard.ts";
import { GUARD_LINE_CHARACTERS_MAX } from "./limits.ts";

/** Descriptor of the socket in the guard: the first after the three that the command inherits. */
export const GUARD_FD = 3;

export interface Start {
  readonly kind: "start";
  readonly deadline: Moment;
  readonly plan: GuardPlan;
  readonly command: string;
  readonly args: readonly string[];
  readonly environment: Readonly<Record<string, string>>;
}

export type ToGuard =
  | Start
  | { readonly kind: "deadline"; readonly deadline: Moment }
  | { readonly kind: "lost" }
  | { readonly kind: "stop"; readonly signal: NodeJS.Signals; readonly withinMs: number }
  | { readonly kind: "kill" }
  | { readonly kind: "forward"; readonly signal: NodeJS.Signals };

export interface Ended {
  readonly kind: "ended";
  /** One of the two is null. */
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
}

export type FromGuard =
  | { readonly kind: "ready" }
  /** The answer to `start` and `deadline`. */
  | { readonly kind: "seen" }
  /** `pid` is the group's number too. */
  | { readonly kind: "started"; readonly pid: number }
  /** The command could not be started. */
  | { readonly kind: "failed"; readonly code: string; readonly message: string }
  | { readonly kind: "winding-up"; readonly why: GuardReason }
  /** SIGKILL was sent. */
  | { readonly kind: "killed" }
  /** The command itself; others of its group may live until `done`. */
  | Ended
  /** `survivors`: members of the group that SIGKILL did not end in time. */
  | { readonly kind: "done"; readonly why: GuardReason; readonly survivors: number };

export function encode(message: ToGuard | FromGuard): string {
  return `${JSON.stringify(message)}\n`;
}

/** Cuts a stream into messages. */
export class Lines<Message> {
  #rest = "";

  take(chunk: string): Message[] {
    const lines = (this.#rest + chunk).split("\n");
    this.#rest = lines.pop() ?? "";
    if (this.#rest.length > GUARD_LINE_CHARACTERS_MAX) throw new RangeError("a line of the guard's pipe is too long");
    return lines.map((line) => JSON.parse(line) as Message);
  }
}

/**
 * This moment on the two clocks that all processes of a machine share; `performance.now()` counts from each
 * process's own start.
 */
export function moment(): Moment {
  return { monotonicMs: Number(process.hrtime.bigint()) / 1e6, wallMs: Date.now() };
}
