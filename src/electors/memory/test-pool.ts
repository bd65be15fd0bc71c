// A pool for tests whose clients know transactions and Tenure's fence, and nothing else: every other statement is answered by
// the test's own function, or with no rows. What is committed is kept, what is rolled back is not.
//
//   free ──begin──▶ open ──commit──▶ free: its statements are kept
//                   open ──a statement fails──▶ failed ──commit, rollback──▶ free: nothing is kept
//                   open ──a newer epoch is granted──▶ ended: every statement is refused, as after the next leader's bump
//
// A real bump waits a moment for a fenced transaction before it ends the session; this one never waits.

import type { Store } from "./store.ts";

/** Answers a statement with its rows. What it throws fails the statement, as the server's error does. */
export type TestQuery = (
  text: string,
  values: readonly unknown[],
) => readonly object[] | PromiseLike<readonly object[]>;

export interface TestStatement {
  readonly text: string;
  readonly values: readonly unknown[];
}

export interface TestResult<Row extends object = Record<string, unknown>> {
  rows: Row[];
  rowCount: number | null;
  command: string;
  fields: never[];
}

/** As a client of `pg`. */
export interface TestClient {
  // oxlint-disable-next-line typescript/no-unnecessary-type-parameters -- as in `pg`: the caller knows the row's type
  query<Row extends object = Record<string, unknown>>(
    text: string | TestQueryConfig,
    values?: unknown[],
  ): Promise<TestResult<Row>>;
  on(event: string, listener: (argument: never) => void): unknown;
  release(destroy?: boolean | Error): void;
}

export interface TestQueryConfig {
  readonly text: string;
  readonly values?: unknown[] | undefined;
  readonly rowMode?: string | undefined;
}

/** A fence that a transaction holds. */
interface Fence {
  readonly scope: string;
  readonly epoch: number;
}

/** What a transaction, or a part of it since a savepoint, can take back. */
interface Kept {
  readonly statements: readonly TestStatement[];
  readonly fences: readonly Fence[];
  readonly mark: string;
}

const NOTHING: Kept = { statements: [], fences: [], mark: "" };

const BEGIN = /^(?:begin|start\s+transaction)\b/i;
const COMMIT = /^(?:commit|end)\b/i;
const ROLLBACK_TO = /^rollback\s+to\s+(?:savepoint\s+)?"?([^\s";]+)"?/i;
const ROLLBACK = /^(?:rollback|abort)\b/i;
const SAVEPOINT = /^savepoint\s+"?([^\s";]+)"?/i;
const RELEASE = /^release\s+(?:savepoint\s+)?"?([^\s";]+)"?/i;
// What electors/postgres sends: fence/fence.ts, and postgres/schema/schema.ts.
const FENCE = /^(begin [^;]*; )?call ("\w+")\.tenure_fence\('(-?\d+)'::bigint, '(\d+)'::bigint\)$/;
const SHOW_MARK = /^show tenure\.fence; \/\* \w+ \*\/$/;
const DECLARE_OPEN = /^declare tenure_open cursor/;
const CLOSE_OPEN = /^close tenure_open(?:; |$)/;

/** Named so that Drizzle, which asks for the class's name, takes it for a pool. */
export class TestPool {
  /** Statements of transactions that were committed, and those outside of any, in order. */
  readonly committed: TestStatement[] = [];
  /** By which `tenure/drizzle` knows a pool. Sessions are not kept, so none is in it. */
  readonly totalCount = 0;
  readonly #store: Store;
  readonly #answer: TestQuery;
  readonly #scopes = new Map<string, string>();

  constructor(store: Store, answer: TestQuery = () => []) {
    this.#store = store;
    this.#answer = answer;
  }

  async connect(): Promise<TestClient> {
    return new TestSession({
      store: this.#store,
      answer: this.#answer,
      committed: this.committed,
      scopeOf: (key) => this.#scopes.get(key),
    });
  }

  /** On a session of its own, outside of any transaction. */
  async query<Row extends object = Record<string, unknown>>(
    text: string | TestQueryConfig,
    values?: unknown[],
  ): Promise<TestResult<Row>> {
    return (await this.connect()).query<Row>(text, values);
  }

  on(_event: string, _listener: (argument: never) => void): this {
    return this;
  }

  async end(): Promise<void> {}

  /** A lock key for a scope; the fence of `term.tx` names scopes by it. */
  keyOf(scope: string): bigint {
    const known = [...this.#scopes].find(([, name]) => name === scope);
    const key = known?.[0] ?? String(this.#scopes.size + 1);
    this.#scopes.set(key, scope);
    return BigInt(key);
  }
}

interface SessionTools {
  readonly store: Store;
  readonly answer: TestQuery;
  readonly committed: TestStatement[];
  readonly scopeOf: (key: string) => string | undefined;
}

/** A query that sends by itself, as pg-cursor's does. `tenure/kysely` asks with one for the session's emitter, and sends nothing. */
interface Submittable {
  submit(emitter: object): unknown;
  handleError(error: unknown, emitter: object): void;
}

class TestSession implements TestClient {
  readonly #tools: SessionTools;
  /** The session's end is noticed, and emitted, by the next statement. */
  readonly #listeners: ((argument: never) => void)[] = [];
  /** As much of pg's connection as the adapters use. */
  readonly #emitter = { emit: (_event: string): boolean => false, stream: { destroy: (): void => undefined } };
  #state: "free" | "open" | "failed" = "free";
  #kept = NOTHING;
  #savepoints: { readonly name: string; readonly kept: Kept }[] = [];
  /** The cursor by which `term.tx` knows its transaction again. */
  #hasCursor = false;

  constructor(tools: SessionTools) {
    this.#tools = tools;
  }

  async query<Row extends object>(given: string | TestQueryConfig, values?: unknown[]): Promise<TestResult<Row>> {
    if (isSubmittable(given)) return this.#submit<Row>(given);
    const config = typeof given === "string" ? { text: given } : given;
    const text = config.text.trim();
    const { fences } = this.#kept;
    if (fences.some(({ scope, epoch }) => this.#tools.store.isOvertaken(scope, epoch))) {
      this.#emitter.emit("end");
      for (const listener of this.#listeners) listener(undefined as never);
      // As pg says it of a client whose session was ended: nothing was sent.
      throw new Error(
        "the next leader has ended this session: Client has encountered a connection error and is not queryable",
      );
    }
    try {
      const done = this.#steer(text) ?? this.#fence(text);
      if (done !== undefined) return resultOf<Row>(done.command, done.rows ?? []);
      return await this.#ask<Row>({ ...config, text }, values ?? config.values ?? []);
    } catch (error) {
      if (this.#state === "open") this.#state = "failed";
      throw error;
    }
  }

  on(event: string, listener: (argument: never) => void): this {
    if (event === "end") this.#listeners.push(listener);
    return this;
  }

  release(_destroy?: boolean | Error): void {
    this.#end();
  }

  #submit<Row extends object>(query: Submittable): TestResult<Row> {
    const error = query.submit(this.#emitter);
    if (!(error instanceof Error)) throw new Error("the pool of a test backend takes texts, and no cursors or streams");
    query.handleError(error, this.#emitter);
    return resultOf<Row>("", []);
  }

  /** What begins, ends and divides transactions. */
  #steer(text: string): { readonly command: string; readonly rows?: readonly object[] } | undefined {
    const close = CLOSE_OPEN.exec(text)?.[0];
    if (close !== undefined) return this.#closeOpen(text.slice(close.length));
    if (BEGIN.test(text) && !FENCE.test(text)) return this.#begin();
    if (COMMIT.test(text)) return this.#finish(this.#state !== "failed");
    const back = ROLLBACK_TO.exec(text)?.[1];
    if (back !== undefined) return this.#rollBackTo(back);
    if (ROLLBACK.test(text)) return this.#finish(false);
    if (this.#state === "failed") throw abortedError();
    const name = SAVEPOINT.exec(text)?.[1];
    if (name !== undefined) return this.#savepoint(name);
    const released = RELEASE.exec(text)?.[1];
    if (released !== undefined) {
      this.#savepoints = this.#savepoints.slice(0, this.#indexOf(released));
      return { command: "RELEASE" };
    }
    if (!DECLARE_OPEN.test(text)) return undefined;
    this.#hasCursor = this.#state === "open";
    return { command: "DECLARE CURSOR" };
  }

  /** `term.tx` sends COMMIT in the same text, the adapters leave it to their library. */
  #closeOpen(rest: string): { readonly command: string; readonly rows?: readonly object[] } | undefined {
    if (rest === "" && this.#state === "failed") throw abortedError();
    if (!this.#hasCursor) throw serverError("34000", 'cursor "tenure_open" does not exist');
    this.#hasCursor = false;
    return rest === "" ? { command: "CLOSE CURSOR" } : this.#steer(rest);
  }

  /** What Tenure itself sends: the start of `term.tx`, and both statements of `term.fence`. */
  #fence(text: string): { readonly command: string; readonly rows?: readonly object[] } | undefined {
    if (SHOW_MARK.test(text)) return { command: "SHOW", rows: [{ "tenure.fence": this.#kept.mark }] };
    const [, begin, schema, key, epoch] = FENCE.exec(text) ?? [];
    if (key === undefined) return undefined;
    const begun = begin === undefined ? { command: "CALL" } : this.#begin();
    const fence = { scope: this.#tools.scopeOf(key) ?? "", epoch: Number(epoch) };
    this.#hold(fence, `${schema}/${key}/${epoch}`);
    return begun;
  }

  async #ask<Row extends object>(config: TestQueryConfig, values: readonly unknown[]): Promise<TestResult<Row>> {
    const statement = { text: config.text, values: [...values] };
    const rows = await this.#tools.answer(statement.text, statement.values);
    if (this.#state === "free") this.#tools.committed.push(statement);
    else this.#kept = { ...this.#kept, statements: [...this.#kept.statements, statement] };
    const shaped = config.rowMode === "array" ? rows.map((row) => Object.values(row) as object) : rows;
    return resultOf<Row>(config.text.split(/\s/, 1)[0]!.toUpperCase(), shaped);
  }

  /** Outside of a transaction a fence is let in and gone at once, as on a server. */
  #hold(fence: Fence, mark: string): void {
    const { scope, epoch } = fence;
    if (!this.#tools.store.isInForce(scope, epoch)) {
      const detail = `scope "${scope}", epoch ${epoch}`;
      throw Object.assign(serverError("TN001", `epoch ${epoch} of scope "${scope}" is over or never was`), { detail });
    }
    if (this.#state === "free") return;
    this.#kept = { ...this.#kept, fences: [...this.#kept.fences, fence], mark };
  }

  #begin(): { readonly command: string } {
    if (this.#state === "free") this.#state = "open";
    return { command: "BEGIN" };
  }

  #finish(isCommit: boolean): { readonly command: string } {
    if (isCommit) this.#tools.committed.push(...this.#kept.statements);
    this.#end();
    return { command: isCommit ? "COMMIT" : "ROLLBACK" };
  }

  #end(): void {
    this.#state = "free";
    this.#kept = NOTHING;
    this.#savepoints = [];
    this.#hasCursor = false;
  }

  #savepoint(name: string): { readonly command: string } {
    if (this.#state === "free") throw serverError("25P01", "SAVEPOINT can only be used in transaction blocks");
    this.#savepoints.push({ name, kept: this.#kept });
    return { command: "SAVEPOINT" };
  }

  #rollBackTo(name: string): { readonly command: string } {
    const at = this.#indexOf(name);
    this.#kept = this.#savepoints[at]!.kept;
    this.#savepoints = this.#savepoints.slice(0, at + 1);
    this.#state = "open";
    return { command: "ROLLBACK" };
  }

  #indexOf(savepoint: string): number {
    const at = this.#savepoints.findLastIndex(({ name }) => name === savepoint);
    if (at < 0) throw serverError("3B001", `savepoint "${savepoint}" does not exist`);
    return at;
  }
}

function resultOf<Row extends object>(command: string, rows: readonly object[]): TestResult<Row> {
  return { rows: [...rows] as Row[], rowCount: rows.length, command, fields: [] };
}

function isSubmittable(given: unknown): given is Submittable {
  return typeof given === "object" && given !== null && "submit" in given && typeof given.submit === "function";
}

function abortedError(): Error {
  return serverError("25P02", "current transaction is aborted, commands ignored until end of transaction block");
}

/** As pg gives it: with a severity, by which it is known for the server's. */
function serverError(code: string, message: string): Error {
  return Object.assign(new Error(message), { code, severity: "ERROR" });
}
