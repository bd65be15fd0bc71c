// What the committed records of the state log make of scopes and values, in a model of its own: which epoch of a scope is held, and what a
// value is, after each record.

import type { StateChange } from "../../../core/state/index.ts";
import type { ValueEvent } from "../../../core/values/index.ts";

export interface HoldMoment {
  readonly position: number;
  /** Null: nobody holds it. */
  readonly hold: { readonly epoch: number; readonly session: string } | null;
}

export interface ValueMoment {
  readonly position: number;
  /** Null: there is none. */
  readonly text: string | null;
}

export interface SeenChange {
  readonly name: string;
  readonly version: number;
  readonly kind: "put" | "deleted";
}

const decoder = new TextDecoder();
const NEVER_HELD: HoldMoment = { position: 0, hold: null };
const NEVER_THERE: ValueMoment = { position: 0, text: null };

export class ValueHistory {
  readonly #scopes = new Map<string, HoldMoment[]>();
  readonly #values = new Map<string, ValueMoment[]>();
  readonly changes: SeenChange[] = [];

  get names(): Iterable<string> {
    return this.#values.keys();
  }

  get scopes(): Iterable<string> {
    return this.#scopes.keys();
  }

  /** The records up to this position make this of it. */
  valueAt(name: string, position: number): ValueMoment {
    return this.#values.get(name)?.findLast((one) => one.position <= position) ?? NEVER_THERE;
  }

  holdAt(scope: string, position: number): HoldMoment {
    return this.#scopes.get(scope)?.findLast((one) => one.position <= position) ?? NEVER_HELD;
  }

  versionAt(name: string, position: number): number {
    return versionOf(this.valueAt(name, position));
  }

  /** All that it was from this position on, the moment there included. */
  valuesSince(name: string, from: number): readonly ValueMoment[] {
    const later = this.#values.get(name)?.filter(({ position }) => position > from) ?? [];
    return [this.valueAt(name, from), ...later];
  }

  holdsSince(scope: string, from: number): readonly HoldMoment[] {
    const later = this.#scopes.get(scope)?.filter(({ position }) => position > from) ?? [];
    return [this.holdAt(scope, from), ...later];
  }

  /** What was changed above one version and up to another. */
  between(prefix: string, after: number, through: number): readonly SeenChange[] {
    return this.changes.filter(({ name, version }) => version > after && version <= through && name.startsWith(prefix));
  }

  /** Names and versions, by name. */
  list(prefix: string, position: number): readonly string[] {
    return [...this.names]
      .filter((name) => name.startsWith(prefix) && this.versionAt(name, position) > 0)
      .toSorted()
      .map((name) => `${name}@${this.versionAt(name, position)}`);
  }

  take(change: StateChange, position: number): void {
    switch (change.kind) {
      case "value-put":
      case "value-deleted":
        return this.#value(change, position);
      case "granted":
        return put(this.#scopes, change.scope, { position, hold: { epoch: position, session: change.session } });
      case "resign-requested":
        return;
      case "txn-staged":
      case "txn-prepared":
      case "txn-decided":
      case "txn-delivered":
      case "txn-settled":
      case "txn-fence":
      case "txn-dropped":
        return;
      default:
        put(this.#scopes, change.scope, { position, hold: null });
    }
  }

  #value(event: ValueEvent, position: number): void {
    const isPut = event.kind === "value-put";
    put(this.#values, event.name, { position, text: isPut ? decoder.decode(event.data) : null });
    this.changes.push({ name: event.name, version: position, kind: isPut ? "put" : "deleted" });
  }
}

/** 0: there is none. */
export function versionOf({ text, position }: ValueMoment): number {
  return text === null ? 0 : position;
}

function put<T>(all: Map<string, T[]>, key: string, moment: T): void {
  const moments = all.get(key) ?? [];
  moments.push(moment);
  all.set(key, moments);
}
