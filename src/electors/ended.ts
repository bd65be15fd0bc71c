// The promise that is `term.ended`. Work that awaits it waits for itself where it shall stop: the term ends after work has
// settled. So this promise knows whether it is being awaited.
//
// `await`, `Promise.race` and the like call `then` with a resolving function of the engine's own, which has no name; a user's
// `term.ended.then(cleanUp)`, which is fine, calls it with a function of theirs. What is awaited need not be awaited by work
// (a function that work has started and left alone may do it), so nobody is refused for it: it is a hint for work that does
// not stop.

import type { EndReason } from "../core/trust/transitions.ts";

export class Ended extends Promise<EndReason> {
  #isAwaited = false;

  /** What `then` returns is a plain promise. */
  static override get [Symbol.species](): PromiseConstructor {
    return Promise;
  }

  get isAwaited(): boolean {
    return this.#isAwaited;
  }

  // oxlint-disable-next-line unicorn/no-thenable -- a promise's own
  override then<A = EndReason, B = never>(
    fulfilled?: ((reason: EndReason) => A | PromiseLike<A>) | null,
    rejected?: ((error: unknown) => B | PromiseLike<B>) | null,
  ): Promise<A | B> {
    if (typeof fulfilled === "function" && isResolver(fulfilled)) this.#isAwaited = true;
    return super.then(fulfilled, rejected);
  }

  /** The engine's own would call `then` as an `await` does. */
  override finally(done?: (() => void) | null): Promise<EndReason> {
    return this.then((reason) => reason).finally(done);
  }
}

function isResolver(call: (reason: EndReason) => unknown): boolean {
  try {
    return call.name === "" && /\{\s*\[native code\]\s*\}$/.test(String(call));
  } catch {
    // A user's, that refuses to be read.
    return false;
  }
}
