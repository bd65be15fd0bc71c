// Values on one node: the leader of the cluster decides, every node shows the applied state and its last changes.

import { canonicalJson } from "../../core/events/index.ts";
import { type ErrorCode, TenureError } from "../../core/kit/errors.ts";
import { INTEGER_MAX, VALUES_PAGE_BYTES_MAX } from "../../core/kit/limits.ts";
import type { Json } from "../../core/kit/json.ts";
import { parseJson } from "../../core/kit/parse-json.ts";
import { isOfValue, type StateFold, type StateRecord } from "../../core/state/index.ts";
import {
  checkValueName,
  checkValueTerms,
  type ValueCommand,
  valueData,
  type ValueState,
} from "../../core/values/index.ts";
import type { Clock } from "../../ports/clock.ts";
import type {
  ValueChanges,
  ValueDelete,
  ValueDeleted,
  ValuePut,
  Values,
  ValuesList,
  ValuesPage,
  ValuesStats,
  ValueView,
  ValueWriteOutcome,
} from "../../ports/values.ts";
import type { Door } from "../leadership/reign.ts";
import { LastChanges } from "./last-changes.ts";
import type { ValuesReign } from "./values-reign.ts";
import { ValueWatchers } from "./watchers.ts";

const decoder = new TextDecoder();

/** What became of a write that was refused; what is not here was never decided. */
const OUTCOMES: Readonly<Partial<Record<ErrorCode, ValueWriteOutcome>>> = {
  STALE_EPOCH: "stale",
  VERSION_CONFLICT: "conflict",
  txn_locked: "locked",
  QUOTA_EXCEEDED: "full",
  OUTCOME_UNKNOWN: "unknown",
};

export interface ValuesServiceOptions {
  readonly door: () => Door<{ readonly values: ValuesReign }>;
  /** What is applied on this node. */
  readonly applied: StateFold;
  /** Of the last record that is applied on this node. */
  readonly position: () => number;
  readonly clock: Clock;
  /** Why nothing is written; null: it is. */
  readonly refusesNew?: (() => TenureError | null) | undefined;
  /** Nodes that are not known to be of a release that reads records of values: such a record would stop them. */
  readonly unready: () => readonly string[];
}

export class ValuesService implements Values {
  readonly #options: ValuesServiceOptions;
  readonly #watchers = new ValueWatchers();
  readonly #writes: Record<ValueWriteOutcome, number> = {
    committed: 0,
    stale: 0,
    conflict: 0,
    locked: 0,
    full: 0,
    unknown: 0,
  };
  #last: LastChanges;

  constructor(options: ValuesServiceOptions) {
    this.#options = options;
    this.#last = new LastChanges(this.#asOf);
  }

  /** Safe to call twice. */
  close(): void {
    this.#watchers.close();
  }

  get stats(): ValuesStats {
    const { size, bytes } = this.#options.applied.values;
    return { values: size, bytes, watching: this.#watchers.total, writes: { ...this.#writes } };
  }

  // ---- what the leader decides ---------------------------------------------------------------------

  async put({ name, value, ifVersion, fence }: ValuePut): Promise<{ readonly version: number }> {
    checkValueName(name);
    checkValueTerms(ifVersion, fence);
    const data = valueData(canonicalJson(value, INTEGER_MAX));
    const version = await this.#change({ kind: "put", name, data, ifVersion, fence, atMs: this.#wallMs() });
    if (version === null) throw new TenureError("INTERNAL", "a value was written, and has no version");
    return { version };
  }

  async delete({ name, ifVersion, fence }: ValueDelete): Promise<ValueDeleted> {
    checkValueName(name);
    checkValueTerms(ifVersion, fence);
    const version = await this.#change({ kind: "delete", name, ifVersion, fence, atMs: this.#wallMs() });
    return { deleted: version !== null, version };
  }

  async #change(command: ValueCommand): Promise<number | null> {
    const refusal = this.#options.refusesNew?.() ?? null;
    if (refusal !== null) throw refusal;
    const { door } = this.#options;
    const reign = door().now() ?? (await door().next());
    try {
      const version = await reign.values.change(command, () => this.#admit());
      if (version !== null) this.#writes.committed++;
      return version;
    } catch (error) {
      const outcome = TenureError.is(error) ? OUTCOMES[error.code] : undefined;
      if (outcome !== undefined) this.#writes[outcome]++;
      throw error;
    }
  }

  /** In the turn in which it is appended. Throws where a member could not read it. */
  #admit(): void {
    const { applied, unready } = this.#options;
    // Who has one has read one: a node that could not would have stopped.
    const missing = applied.values.size > 0 ? [] : unready();
    if (missing.length > 0) throw notReady(missing);
  }

  #wallMs(): number {
    return Math.max(0, Math.floor(this.#options.clock.wallMs()));
  }

  // ---- what every node shows -----------------------------------------------------------------------

  get(name: string): ValueView | null {
    const { applied } = this.#options;
    const state = applied.values.get(name);
    return state === undefined ? null : viewOf(applied, state, {});
  }

  list({ prefix, after, limit }: ValuesList): ValuesPage {
    const values: ValueView[] = [];
    let bytes = 0;
    const { applied } = this.#options;
    for (const state of applied.values.from(prefix, after)) {
      bytes += state.data.length;
      const isFull = values.length >= limit || (values.length > 0 && bytes > VALUES_PAGE_BYTES_MAX);
      if (isFull) return { values, next: values.at(-1)!.name, asOf: this.#asOf };
      values.push(viewOf(applied, state, {}));
    }
    return { values, next: null, asOf: this.#asOf };
  }

  changes(prefix: string, after: number, limit: number): ValueChanges | null {
    const found = this.#last.after(prefix, after, limit);
    if (found === null) return null;
    const changes = found.changes.map(({ event, version }) => {
      if (event.kind === "value-deleted")
        return { kind: "deleted", name: event.name, version, updatedAtMs: event.atMs } as const;
      return viewOf(this.#options.applied, { ...event, version }, { kind: "put" } as const);
    });
    return { changes, through: Math.max(after, found.isAll ? this.#asOf : found.changes.at(-1)!.version) };
  }

  changed(prefix: string, after: number, signal: AbortSignal): Promise<number> {
    return this.#watchers.wait(prefix, after, this.#last.hasAfter(prefix, after), signal);
  }

  get #asOf(): number {
    const { applied, position } = this.#options;
    return applied.placeOf(position());
  }

  // ---- records -------------------------------------------------------------------------------------

  applied(record: StateRecord, position: number): void {
    const version = this.#options.applied.placeOf(position);
    const changes = record.filter(isOfValue);
    for (const change of changes) this.#last.push(change, version);
    for (const { name } of changes) this.#watchers.changed(name, version - 1);
  }

  /** A snapshot was restored: what came before it is not kept. */
  jumped(): void {
    this.#last = new LastChanges(this.#asOf);
    this.#watchers.allChanged();
  }
}

/**
 * The content is parsed when somebody looks at it, once: a change wakes all who watch in one turn of the loop, and one of them makes the frame for
 * all. With 1,000 who watched, one content of 64 KiB that was parsed for each took up to 1.8 s of that turn.
 */
function viewOf<More extends object>(applied: StateFold, state: ValueState, more: More): ValueView & More {
  const { name, data, version, atMs, fence } = state;
  let parsed: Json | undefined;
  return {
    ...more,
    name,
    get value(): Json {
      return (parsed ??= parseJson(decoder.decode(data)) as Json);
    },
    version,
    updatedAtMs: atMs,
    fence,
    pendingTxn: applied.lockedBy({ value: name }),
  };
}

function notReady(missing: readonly string[]): TenureError {
  const text = `Values are kept only where every node can read them, and ${missing.join(", ")} ${missing.length === 1 ? "is" : "are"} of another release, or not connected since this leader started. Upgrade and start them all (one that never comes back is taken out with \`tenure member remove\`), and repeat this. Nothing was written.`;
  return new TenureError("NOT_SUPPORTED", text);
}
