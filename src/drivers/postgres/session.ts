// One session over a client of `pg`.
//
//   opening ──▶ ready ──▶ ended        destroy() leads to ended from anywhere, also while connecting (trap 39)
//
// Invariants: `ended` is reported at most once, and only after ready; a FATAL answer ends the session at once, not when the
// socket closes; after the end nothing is sent; a client that arrives after the end is closed, never used.

import { assert } from "../../core/kit/assert.ts";
import { endsSession, withSqlstate } from "../../core/kit/sql-outcome.ts";
import type { SqlEvents, SqlRow, SqlSession } from "../../ports/backends/sql.ts";
import { type PgClient, run } from "./client.ts";
import { GOODBYE_MS } from "./limits.ts";

/** A connection in the making. `client` resolves when it takes queries. */
export interface PgConnection {
  readonly client: Promise<PgClient>;
  end(): Promise<void>;
  /** At once, whatever state it is in; safe to call twice. */
  destroy(): void;
}

type State =
  | { readonly kind: "opening" }
  | { readonly kind: "ready"; readonly client: PgClient }
  | { readonly kind: "ended"; readonly error: unknown };

export class PgSession implements SqlSession {
  readonly ready: Promise<void>;
  readonly #connection: PgConnection;
  readonly #events: SqlEvents;
  #state: State = { kind: "opening" };
  /**
   * Rejects what waits when the session ends: pg itself tells nobody while a pool's client is being destroyed. One for
   * each question: what a session of months would race against must not live as long as the session.
   */
  #stop: ((error: unknown) => void) | undefined;

  constructor(connection: PgConnection, events: SqlEvents) {
    this.#connection = connection;
    this.#events = events;
    this.ready = this.#stoppable(this.#open());
    // Whoever waits for it hears of it; whoever destroyed it first does not need to.
    this.ready.catch(() => undefined);
  }

  async #open(): Promise<void> {
    try {
      const client = await this.#connection.client;
      if (this.#state.kind === "ended") return;
      client.on("error", (error) => this.#ended(error));
      client.on("end", () => this.#ended(new Error("the server closed the connection")));
      client.on("notification", ({ channel, payload }) => {
        if (this.#state.kind === "ready") this.#events.notified?.(channel, payload ?? "");
      });
      this.#state = { kind: "ready", client };
    } catch (error) {
      this.#ended(error);
      throw withSqlstate(error);
    }
  }

  async query<Row extends object = SqlRow>(text: string, values?: readonly unknown[]): Promise<Row[]> {
    await this.ready;
    if (this.#state.kind !== "ready") throw this.#endError();
    assert(this.#stop === undefined, "one query at a time on one session");
    try {
      return (await this.#stoppable(run(this.#state.client, text, values))) as Row[];
    } catch (error) {
      if (endsSession(error)) this.#ended(error);
      throw error;
    }
  }

  #stoppable<R>(work: Promise<R>): Promise<R> {
    return new Promise<R>((resolve, reject) => {
      this.#stop = reject;
      const done = (): void => {
        this.#stop = undefined;
      };
      work.finally(done).then(resolve, reject);
    });
  }

  async end(): Promise<void> {
    if (this.#state.kind !== "ready") {
      this.destroy();
      return;
    }
    this.#close(new Error("the session was ended"));
    const timer = setTimeout(() => this.#connection.destroy(), GOODBYE_MS);
    try {
      await this.#connection.end();
    } catch {
      this.#connection.destroy();
    } finally {
      clearTimeout(timer);
    }
  }

  destroy(): void {
    this.#close(new Error("the session was destroyed"));
    this.#connection.destroy();
  }

  #ended(error: unknown): void {
    if (!this.#close(withSqlstate(error))) return;
    this.#connection.destroy();
  }

  #close(error: unknown): boolean {
    if (this.#state.kind === "ended") return false;
    const wasReady = this.#state.kind === "ready";
    this.#state = { kind: "ended", error };
    this.#stop?.(error);
    if (wasReady) this.#events.ended?.(error);
    return true;
  }

  #endError(): Error {
    const cause = this.#state.kind === "ended" ? this.#state.error : undefined;
    return new Error("the session has ended", { cause });
  }
}
