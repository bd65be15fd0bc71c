// One end of a connection, as TCP gives it: in order, without gaps, and stalled rather than lossy. What is not
// acknowledged is sent again; a cut shorter than the patience of the sender is a delay, a longer one is the end.
// States: open → closed, once: by `destroy`, by the other end's reset, or by giving up (only an end that has patience).
// Invariants: bodies are delivered once and in order; nothing is delivered or sent after the end.

import type { Clock, Timer } from "../../ports/clock.ts";
import type { Answer, Frame, Push, Request } from "./messages.ts";

const RESEND_AFTER_MS = 80;

export interface LineOptions {
  readonly name: string;
  readonly clock: Clock;
  readonly send: (frame: Frame) => void;
  readonly received: (body: Request | Answer | Push) => void;
  /** Not called after `destroy`. */
  readonly broken: () => void;
  /** How long data may stay unacknowledged; Infinity: this end never finds out by itself. */
  readonly patienceMs: number;
}

export class Line {
  readonly #options: LineOptions;
  readonly #unacknowledged: { readonly frame: Frame & { kind: "data" }; readonly sinceMs: number }[] = [];
  #sent = 0;
  #received = 0;
  #open = true;
  #timer: Timer | undefined;

  constructor(options: LineOptions) {
    this.#options = options;
  }

  send(body: Request | Answer | Push): void {
    if (!this.#open) return;
    const { name, clock } = this.#options;
    const frame: Frame & { kind: "data" } = { kind: "data", line: name, sequence: ++this.#sent, body };
    this.#unacknowledged.push({ frame, sinceMs: clock.monotonicMs() });
    this.#options.send(frame);
    this.#arm();
  }

  take(frame: Exclude<Frame, { kind: "plain" }>): void {
    if (!this.#open) return;
    switch (frame.kind) {
      case "reset":
        return this.#break();
      case "ack":
        while ((this.#unacknowledged[0]?.frame.sequence ?? Infinity) <= frame.sequence) this.#unacknowledged.shift();
        return;
      case "data":
        if (frame.sequence > this.#received + 1) return;
        this.#options.send({ kind: "ack", line: frame.line, sequence: frame.sequence });
        if (frame.sequence <= this.#received) return;
        this.#received++;
        this.#options.received(frame.body);
    }
  }

  /** As closing a socket: the other end is told if it can be reached now, and not again. */
  destroy(): void {
    if (!this.#open) return;
    this.#close();
    this.#options.send({ kind: "reset", line: this.#options.name });
  }

  #arm(): void {
    if (this.#timer !== undefined) return;
    const { clock } = this.#options;
    this.#timer = clock.setTimer(clock.monotonicMs() + RESEND_AFTER_MS, () => this.#resend());
  }

  #resend(): void {
    this.#timer = undefined;
    const oldest = this.#unacknowledged[0];
    if (!this.#open || oldest === undefined) return;
    const { clock, patienceMs } = this.#options;
    if (clock.monotonicMs() - oldest.sinceMs > patienceMs) {
      this.#options.send({ kind: "reset", line: this.#options.name });
      return this.#break();
    }
    for (const { frame } of this.#unacknowledged) this.#options.send(frame);
    this.#arm();
  }

  #break(): void {
    this.#close();
    this.#options.broken();
  }

  #close(): void {
    this.#open = false;
    this.#timer?.cancel();
  }
}
