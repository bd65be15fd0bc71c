// A session of `pg` that a library uses, watched for the time of one fenced transaction: how it ends, and how COMMIT ends.
//
// - `pg` emits `error` on a client that the server ends while nothing is asked. A pool listens only to its idle clients, so a
//   checked-out client without a listener ends the whole process (trap 78). Whoever watches a session has seen to that before.
// - A refusal of COMMIT counts only if the same session answers the ROLLBACK afterwards (core/kit/sql-outcome.ts): libraries send it.

import { mustLive, type SqlLife } from "../../../core/kit/sql-life.ts";
import { endsSession, outcomeOfCommit, type SqlOutcome, withSqlstate } from "../../../core/kit/sql-outcome.ts";
import { usedAfterwards } from "./own-transaction.ts";

export class PgSession {
  readonly #life: SqlLife;
  /** What statements were rejected with; a library may throw the same object, or wrap it. */
  readonly #rejections = new WeakSet<object>();
  #isSettled = false;
  #commit: { readonly error: unknown } | "none" | "confirmed" = "none";
  #isRolledBack = false;

  constructor(life: SqlLife) {
    this.#life = life;
  }

  /** The session is idle and outside of any transaction. */
  get isClean(): boolean {
    return !this.#life.hasEnded && (this.#commit === "confirmed" || this.#isRolledBack);
  }

  settle(): void {
    this.#isSettled = true;
  }

  /** A statement of ours. */
  async run<T>(send: () => Promise<T>): Promise<T> {
    try {
      // The driver would know it too, but not say that COMMIT was never sent.
      mustLive(this.#life);
      return await send();
    } catch (error) {
      if (typeof error === "object" && error !== null) this.#rejections.add(error);
      throw withSqlstate(error);
    }
  }

  /** A statement of the library, or of `work` through it. */
  async pass<T>(text: unknown, send: () => Promise<T>): Promise<T> {
    if (!this.#isSettled) return this.run(send);
    const word = typeof text === "string" ? text.trim().toLowerCase() : "";
    if (word !== "commit" && word !== "rollback") throw usedAfterwards();
    try {
      const result = await this.run(send);
      if (word === "commit") this.#commit = "confirmed";
      else this.#isRolledBack = true;
      return result;
    } catch (error) {
      if (word === "commit") this.#commit = { error };
      throw error;
    }
  }

  isSessionEnd(error: unknown): boolean {
    if (typeof error !== "object" || error === null || !this.#rejections.has(error)) return false;
    return this.#life.hasEnded || endsSession(error);
  }

  outcome(rejection: unknown): { readonly outcome: SqlOutcome; readonly error: unknown } {
    if (typeof this.#commit === "string") return { outcome: "unknown", error: rejection };
    const { error } = this.#commit;
    const outcome = outcomeOfCommit(error);
    return { outcome: outcome === "refused" && !this.#isRolledBack ? "unknown" : outcome, error };
  }
}
