// A term: one leader's time, as its user holds it. It is over once, and says why.
// States: held → (winding up: the signal has aborted, the hold goes on) → over.
// Invariants: the signal aborts exactly once; `ended` resolves exactly once and never rejects.

import { assert } from "../core/kit/assert.ts";
import type { EndReason } from "../core/trust/transitions.ts";
import type { CheckOptions, LeaderGate, Term } from "../ports/elector.ts";
import { Ended } from "./ended.ts";

export interface TermOptions {
  readonly scope: string;
  readonly epoch: number;
  readonly gate: LeaderGate;
  /** Ends the term and resolves once the scope is free, or surely will be. */
  readonly resign: (epoch: number) => Promise<void>;
}

export class HeldTerm implements Term {
  readonly scope: string;
  readonly epoch: number;
  readonly ended: Ended;
  /** Settles when an operator has asked for the end of this term. */
  readonly asked: Promise<void>;
  readonly #options: TermOptions;
  readonly #controller = new AbortController();
  readonly #end: (reason: EndReason) => void;
  readonly #ask: () => void;
  #over = false;

  constructor(options: TermOptions) {
    this.scope = options.scope;
    this.epoch = options.epoch;
    this.#options = options;
    // The executor runs at once.
    let end: ((reason: EndReason) => void) | undefined;
    this.ended = new Ended((resolve) => {
      end = resolve;
    });
    assert(end !== undefined, "a promise's executor runs at once");
    this.#end = end;
    const asked = Promise.withResolvers<void>();
    this.asked = asked.promise;
    this.#ask = asked.resolve;
  }

  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  get isOver(): boolean {
    return this.#over;
  }

  /** Somebody awaits `ended`, and it has not come. */
  get endIsAwaited(): boolean {
    return !this.#over && this.ended.isAwaited;
  }

  check(options?: CheckOptions): number {
    this.#options.gate.ensureEpoch(this.epoch, options);
    return this.epoch;
  }

  resign(): Promise<void> {
    return this.#options.resign(this.epoch);
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.resign();
  }

  /** The work is asked to stop, while it may still write what it must. */
  windUp(reason: unknown): void {
    if (!this.#controller.signal.aborted) this.#controller.abort(reason);
  }

  ask(): void {
    this.windUp(new DOMException(`an operator asked the leader of epoch ${this.epoch} to step down`, "AbortError"));
    this.#ask();
  }

  finish(reason: EndReason): void {
    assert(!this.#over, "a term ends once");
    this.#over = true;
    this.windUp(new DOMException(`the term of epoch ${this.epoch} is over: ${reason}`, "AbortError"));
    this.#end(reason);
  }
}
