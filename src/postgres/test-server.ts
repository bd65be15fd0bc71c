// A Postgres for unit tests that says what it is told to: an answer for each statement, by what its text contains, and a
// log of what was asked. What nobody told it about is answered with no rows.

import type { SqlDriver, SqlEvents, SqlRow, SqlSession } from "../ports/backends/sql.ts";

type Say = (values: readonly unknown[]) => readonly SqlRow[] | Promise<readonly SqlRow[]>;

export class TestServer implements SqlDriver {
  readonly where = "test:5432/db";
  readonly asked: string[] = [];
  readonly sessions: TestSession[] = [];
  readonly says: Record<string, Say> = {
    server_version_num: () => [{ version: "180000", standby: "false" }],
  };

  open(events: SqlEvents): TestSession {
    const session = new TestSession(this, events);
    this.sessions.push(session);
    return session;
  }

  count(part: string): number {
    return this.asked.filter((text) => text.includes(part)).length;
  }
}

export class TestSession implements SqlSession {
  readonly ready = Promise.resolve();
  readonly events: SqlEvents;
  readonly #server: TestServer;
  readonly #pid: string;
  #hasEnded = false;

  constructor(server: TestServer, events: SqlEvents) {
    this.#server = server;
    this.events = events;
    this.#pid = String(server.sessions.length + 1);
  }

  async query<Row extends object = SqlRow>(text: string, values: readonly unknown[] = []): Promise<Row[]> {
    if (this.#hasEnded) throw new Error("the session has ended");
    this.#server.asked.push(text);
    if (text.includes("pg_backend_pid()::text as pid")) return [{ pid: this.#pid }] as unknown as Row[];
    const part = Object.keys(this.#server.says).find((one) => text.includes(one));
    const rows = part === undefined ? [] : await this.#server.says[part]?.(values);
    return [...(rows ?? [])] as unknown as Row[];
  }

  /** As when the server, or the network, ends it. */
  break(error: unknown = new Error("the server closed the connection")): void {
    if (this.#hasEnded) return;
    this.#hasEnded = true;
    this.events.ended?.(error);
  }

  async end(): Promise<void> {
    this.break();
  }

  destroy(): void {
    this.break();
  }
}
