// Changes to the archive's files: one after the other, in the order in which they came.
//
//   usable ──▶ failed       one failed write ends it, and the process with it (trap 23); told once
//     └──────▶ closed

import { assert } from "../../core/kit/assert.ts";

export class Exclusive {
  readonly #failed: (error: unknown) => void;
  #state: "usable" | "failed" | "closed" = "usable";
  #last: Promise<unknown> = Promise.resolve();

  constructor(failed: (error: unknown) => void) {
    this.#failed = failed;
  }

  get isUsable(): boolean {
    return this.#state === "usable";
  }

  checkUsable(): void {
    assert(this.isUsable, "the archive is usable", () => this.#state);
  }

  run(work: () => Promise<void>): Promise<void> {
    return this.#behindOthers(async () => {
      this.checkUsable();
      try {
        await work();
      } catch (error) {
        this.#state = "failed";
        this.#failed(error);
        throw error;
      }
    });
  }

  /** Resolves when what is under way is over, however it ended. */
  idle(): Promise<void> {
    return this.#behindOthers(() => Promise.resolve());
  }

  /** The last work, also where another has failed. */
  close(work: () => Promise<void>): Promise<void> {
    if (this.isUsable) this.#state = "closed";
    return this.#behindOthers(work);
  }

  #behindOthers(work: () => Promise<void>): Promise<void> {
    const run = this.#last.then(work);
    this.#last = run.catch(() => undefined);
    return run;
  }
}
