// Requests that wait on purpose. Each ends for one of five reasons: what it waited for came, its time is over, its client
// has gone, the server stops, whoever asked would be let in no more (its key was revoked, its certificate has expired, its connection
// has retired). The signal aborts for the last four.

import type { Clock, Timer } from "../../ports/clock.ts";
import { CERTIFICATE_CHECK_MS_MAX } from "../limits.ts";

/** How long whoever calls may stay. */
export interface Admission {
  /** Whether the caller would still be let in. */
  readonly isStillAdmitted: () => boolean;
  /** By the wall clock, unless something happens: Infinity where nothing has an end. */
  readonly admittedForMs: () => number;
}

export type EndOfPoll = "time" | "gone" | "stop" | "refused";

export interface LongPoll {
  readonly signal: AbortSignal;
  /** Null while it goes on, or when what it waited for has come. */
  readonly ended: EndOfPoll | null;
  /** Must be called, whatever came. */
  close(): void;
}

export class LongPolls {
  readonly #clock: Clock;
  /** With whether it may go on. */
  readonly #open = new Map<(why: EndOfPoll) => void, () => boolean>();
  #stopped = false;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** `waitMs` null: whoever is waited for counts the time. `gone` aborts when the client does. */
  open(waitMs: number | null, gone: AbortSignal, admission: Admission): LongPoll {
    const controller = new AbortController();
    let ended: EndOfPoll | null = null;
    const end = (why: EndOfPoll): void => {
      ended ??= why;
      controller.abort(why);
    };
    const leave = (): void => end("gone");
    const timer =
      waitMs === null ? undefined : this.#clock.setTimer(this.#clock.monotonicMs() + waitMs, () => end("time"));
    const expiry = this.#watchExpiry(admission, end);
    this.#open.set(end, admission.isStillAdmitted);
    gone.addEventListener("abort", leave, { once: true });
    if (gone.aborted) leave();
    if (this.#stopped) end("stop");
    return {
      signal: controller.signal,
      get ended() {
        return ended;
      },
      close: () => {
        timer?.cancel();
        expiry.cancel();
        gone.removeEventListener("abort", leave);
        this.#open.delete(end);
      },
    };
  }

  #watchExpiry({ isStillAdmitted, admittedForMs }: Admission, end: (why: EndOfPoll) => void): Timer {
    let timer: Timer | undefined;
    const arm = (): void => {
      const forMs = admittedForMs();
      if (forMs > CERTIFICATE_CHECK_MS_MAX) return;
      timer = this.#clock.setTimer(this.#clock.monotonicMs() + Math.max(1, forMs), () => {
        // The wall clock may be a moment late, or may have been set back meanwhile.
        if (isStillAdmitted()) arm();
        else end("refused");
      });
    };
    arm();
    return { cancel: () => timer?.cancel() };
  }

  /** Who may call has changed: ends those that would be let in no more. */
  review(): void {
    for (const [end, isStillAdmitted] of this.#open) if (!isStillAdmitted()) end("refused");
  }

  /** Ends all that are open, and all that will be. */
  stop(): void {
    this.#stopped = true;
    for (const end of this.#open.keys()) end("stop");
  }
}
