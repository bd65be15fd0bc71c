// What clients of a key-value store asked and were told, as one observer saw it: the input of the checker.
//
// Times are of one clock, that of whoever wrote the history down. An operation took effect at one moment between
// `startedAt` and `endedAt`. One without a definite answer (`endedAt` null) took effect at some moment after
// `startedAt`, however late, or never. What was definitely refused did not happen and has no place in a history.

import { assertNever } from "../../src/core/kit/assert.ts";

export interface Operation {
  /** Where it is in the history, for messages. */
  readonly id: number;
  readonly client: string;
  readonly key: string;
  readonly startedAt: number;
  readonly endedAt: number | null;
  readonly action: Action;
}

/** A value is null where the key was never written. */
export type Action =
  | { readonly kind: "put"; readonly value: string }
  | { readonly kind: "get"; readonly value: string | null }
  /** `succeeded` says nothing where `endedAt` is null. */
  | { readonly kind: "cas"; readonly expected: string; readonly value: string; readonly succeeded: boolean };

/** Builds a history while it happens: `begin` when the request leaves, `end` with what was told. */
export class History {
  readonly #operations: Operation[] = [];
  readonly #open = new Map<number, Pending>();
  #nextId = 0;

  begin(client: string, key: string, ask: Ask, at: number): number {
    const id = this.#nextId++;
    this.#open.set(id, { client, key, ask, at });
    return id;
  }

  /** `told`: the value of a get, whether a cas succeeded; nothing for a put. */
  end(id: number, told: string | boolean | null, at: number): void {
    const { ask, ...rest } = this.#take(id);
    this.#operations.push({ id, ...named(rest), endedAt: at, action: actionOf(ask, told) });
  }

  unknown(id: number): void {
    const { ask, ...rest } = this.#take(id);
    if (ask.kind !== "get") this.#operations.push({ id, ...named(rest), endedAt: null, action: actionOf(ask, true) });
  }

  /** It certainly did not happen. */
  refused(id: number): void {
    this.#take(id);
  }

  /** Everything so far; what is still open counts as unknown. */
  operations(): readonly Operation[] {
    for (const id of this.#open.keys()) this.unknown(id);
    return this.#operations;
  }

  #take(id: number): Pending {
    const pending = this.#open.get(id);
    if (pending === undefined) throw new RangeError(`operation ${id} is not open`);
    this.#open.delete(id);
    return pending;
  }
}

export type Ask =
  | { readonly kind: "put"; readonly value: string }
  | { readonly kind: "get" }
  | { readonly kind: "cas"; readonly expected: string; readonly value: string };

interface Pending {
  readonly client: string;
  readonly key: string;
  readonly ask: Ask;
  readonly at: number;
}

function named({ client, key, at }: Omit<Pending, "ask">): Pick<Operation, "client" | "key" | "startedAt"> {
  return { client, key, startedAt: at };
}

function actionOf(ask: Ask, told: string | boolean | null): Action {
  switch (ask.kind) {
    case "put":
      return ask;
    case "get":
      return { kind: "get", value: told as string | null };
    case "cas":
      return { ...ask, succeeded: told === true };
    default:
      return assertNever(ask, "actionOf");
  }
}
