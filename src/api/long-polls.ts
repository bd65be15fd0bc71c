// Requests that wait on purpose. Each ends for one of four reasons: what it waited for came, its time is over, its client
// has gone, the server stops. The signal aborts for the last three.

import type { Clock } from "../ports/clock.ts";

export type EndOfPoll = "time" | "gone" | "stop";

export interface LongPoll {
  readonly signal: AbortSignal;
  /** Null while it goes on, or when what it waited for has come. */
  readonly ended: EndOfPoll | null;
  /** Must be called, whatever came. */
  close(): void;
}

export class LongPolls {
  readonly #clock: Clock;
  readonly #open = new Set<(why: EndOfPoll) => void>();
  #stopped = false;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** `waitMs` null: whoever is waited for counts the time. `gone` aborts when the client does. */
  open(waitMs: number | null, gone: AbortSignal): LongPoll {
    const controller = new AbortController();
    let ended: EndOfPoll | null = null;
    const end = (why: EndOfPoll): void => {
      ended ??= why;
      controller.abort(why);
    };
    const leave = (): void => end("gone");
    const timer =
      waitMs === null ? undefined : this.#clock.setTimer(this.#clock.monotonicMs() + waitMs, () => end("time"));
    this.#open.add(end);
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
        gone.removeEventListener("abort", leave);
        this.#open.delete(end);
      },
    };
  }

  /** Ends all that are open, and all that will be. */
  stop(): void {
    this.#stopped = true;
    for (const end of this.#open) end("stop");
  }
}
