// A SQL server as the electors see it: sessions of their own, and clients lent for the transactions of `term.tx`.
//
//   open ──▶ ready: one query after the other ──▶ ended (once, for whatever reason)
//
// A session that has ended rejects every query. What rejects, rejects with an error whose SQLSTATE, if the server
// gave one, is its `sqlstate`; an error without it means that the connection broke, or was never there. `unsent: true`
// on it means that the statement certainly never left.

import type { TenureError } from "../../core/kit/errors.ts";

export interface SqlDriver {
  /** `host:port/database`, for messages: never a secret. */
  readonly where: string;
  /** Starts to connect; does not wait. */
  open(events: SqlEvents): SqlSession;
}

export interface SqlEvents {
  /** Called at most once, whoever ended it; not for a session that never became ready. */
  ended?: ((error: unknown) => void) | undefined;
  notified?: ((channel: string, payload: string) => void) | undefined;
}

export interface SqlSession {
  /** Resolves when the server takes statements; rejects when it can't be reached or refuses. */
  readonly ready: Promise<void>;
  /**
   * With values: one statement. Without: one or several, in one round trip; the rows are those of the last one that
   * has any. The next query waits for the answer of this one: it is the caller who queues.
   */
  query<Row extends object = SqlRow>(text: string, values?: readonly unknown[]): Promise<Row[]>;
  /** Says goodbye and closes; destroys the socket where the goodbye takes long. Never rejects. */
  end(): Promise<void>;
  /** Closes the socket at once, also while connecting; what waits is rejected. Safe to call twice. */
  destroy(): void;
}

/** Integers that may pass 2^31 come as text, bytes as a Uint8Array; bytes are given as one too. */
export type SqlRow = Readonly<Record<string, unknown>>;

export interface SqlError extends Error {
  readonly sqlstate: string;
}

/** Clients for the transactions of users; `Client` is whatever type their own code knows. */
export interface SqlLender<Client> {
  borrow(): Promise<SqlLoan<Client>>;
  close(): Promise<void>;
}

export interface SqlLoan<Client> {
  readonly client: Client;
  query<Row extends object = SqlRow>(text: string, values?: readonly unknown[]): Promise<Row[]>;
  /** Sends what ends a transaction, and resolves with what the server says that it did: a failed one answers ROLLBACK. */
  finish(text: string): Promise<"committed" | "rolled back">;
  /** `broken`: its state is not known, it must not be lent again. */
  giveBack(broken: boolean): void;
}

/**
 * Sessions for whoever is no elector: each was checked (a primary, of a version and with a schema that we know, no pooler in
 * the path) and told its timeouts before it is handed out.
 */
export interface SqlDesk {
  readonly where: string;
  /** `name`: what an operator sees of it. Rejects with a TenureError, retryable where it repairs itself. */
  connect(name: string, events: SqlEvents): Promise<SqlLane>;
  /** What a lane rejected with, as an error that says what to do. */
  fault(error: unknown): TenureError;
  /** Destroys sessions that are still being opened; those that were handed out belong to whoever has them. */
  close(): void;
}

/** A session on which statements wait for their turn. One that owes an answer for too long is destroyed (trap 39). */
export interface SqlLane {
  /** True as soon as it is known, also while a rejection is still on its way. */
  readonly hasEnded: boolean;
  /** Rejects as a session does. */
  ask<Row extends object = SqlRow>(text: string, values?: readonly unknown[], limitMs?: number): Promise<Row[]>;
  end(): Promise<void>;
  destroy(): void;
}
