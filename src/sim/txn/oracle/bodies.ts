// What clients asked for, by number: every value that a transaction puts names the number of its body, so that a record says by itself whose it is.

import { homeOf } from "../../../core/txn/home.ts";
import type { BackendHash, TxnOperation, TxnRequire } from "../../../core/txn/model.ts";
import type { TxnBody } from "../../../ports/transactions.ts";

export type BodyKind =
  | "transfer"
  | "inside"
  | "move"
  | "fenced"
  | "staged"
  | "conflicting"
  | "jobs"
  | "mixed"
  | "probe";

export interface Asked {
  readonly number: number;
  readonly kind: BodyKind;
  readonly id: string;
  /** As the rules choose it. */
  readonly home: BackendHash;
  readonly require: readonly (TxnRequire & { readonly backendHash: BackendHash })[];
  readonly participants: ReadonlyMap<BackendHash, readonly TxnOperation[]>;
  readonly timeoutMs: number;
}

/** What such a value holds. */
export interface Marked {
  /** Undefined: not written by a transaction. */
  readonly body?: number;
  readonly balance?: number;
}

export function askedOf(number: number, kind: BodyKind, body: TxnBody): Asked {
  const participants = new Map(body.participants.map(({ backendHash, operations }) => [backendHash, operations]));
  const home = homeOf(body)!;
  const { id, require } = body;
  return { number, kind, id, home, require, participants, timeoutMs: body.timeoutMs ?? 5_000 };
}

export function markOf(data: Uint8Array): Marked {
  return JSON.parse(new TextDecoder().decode(data)) as Marked;
}

/** Null: none of these is a value that is put. */
export function bodyOf(operations: readonly TxnOperation[]): number | null {
  for (const one of operations) {
    if (one.kind !== "value-put") continue;
    const { body } = markOf(one.data);
    if (body !== undefined) return body;
  }
  return null;
}

/** In words that are equal where the operations are. */
export function textOf(operation: TxnOperation): string {
  const plain =
    operation.kind === "value-put" ? { ...operation, data: new TextDecoder().decode(operation.data) } : operation;
  return canonical(plain);
}

export function canonical(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(canonical).join()}]`;
  if (typeof value !== "object" || value === null) return JSON.stringify(value) ?? "null";
  const fields = Object.entries(value).toSorted(([one], [other]) => (one < other ? -1 : 1));
  return `{${fields.map(([name, field]) => `${name}:${canonical(field)}`).join()}}`;
}
