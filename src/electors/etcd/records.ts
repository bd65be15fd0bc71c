// What is written in the values: who holds a scope, and what happened to it. JSON, snake_case. Others may write there
// too, by hand or by mistake, so reading never fails.

import type { Leader } from "../../ports/elector.ts";
import type { TransitionRecord } from "../../ports/backends/scope-admin.ts";
import type { KeyValue } from "./answers.ts";
import { parseJson } from "../../core/kit/parse-json.ts";

export interface Holder {
  readonly identity: string;
  readonly metadata: Readonly<Record<string, string>>;
  /** The holder's wall time. */
  readonly acquiredAtMs: number | null;
}

const STRANGER = "(not written by Tenure)";

export function holderText(holder: Holder): string {
  return JSON.stringify({
    identity: holder.identity,
    metadata: holder.metadata,
    acquired_at_ms: holder.acquiredAtMs,
  });
}

export function holderOf(kv: KeyValue): Holder {
  const fields = parse(kv.value);
  const { identity, metadata, acquired_at_ms: acquiredAtMs } = fields;
  const pairs = typeof metadata === "object" && metadata !== null ? Object.entries(metadata) : [];
  return {
    identity: typeof identity === "string" ? identity : STRANGER,
    metadata: Object.fromEntries(pairs.filter((pair): pair is [string, string] => typeof pair[1] === "string")),
    acquiredAtMs: numberOr(acquiredAtMs, null),
  };
}

export function leaderOf(kv: KeyValue | null): Leader | null {
  if (kv === null) return null;
  const { identity, metadata } = holderOf(kv);
  return { epoch: kv.createRevision, identity, metadata };
}

/** An epoch of 0 stands for the revision that writes the record: nobody knows it before. */
export function transitionText(record: TransitionRecord): string {
  const { atMs, epoch, identity, reason, heldMs } = record;
  return JSON.stringify({ at_ms: atMs, epoch, identity, reason, held_ms: heldMs });
}

export function transitionOf(kv: KeyValue): TransitionRecord {
  const { at_ms: atMs, epoch, identity, reason, held_ms: heldMs } = parse(kv.value);
  const written = numberOr(epoch, 0);
  return {
    atMs: numberOr(atMs, 0),
    epoch: written === 0 ? kv.createRevision : written,
    identity: typeof identity === "string" ? identity : STRANGER,
    reason: typeof reason === "string" ? reason : "unknown",
    heldMs: numberOr(heldMs, null),
  };
}

function parse(text: string): Readonly<Record<string, unknown>> {
  try {
    const parsed: unknown = parseJson(text);
    return typeof parsed === "object" && parsed !== null ? (parsed as Record<string, unknown>) : {};
  } catch {
    return {};
  }
}

function numberOr<T>(value: unknown, otherwise: T): number | T {
  return typeof value === "number" && Number.isFinite(value) ? value : otherwise;
}
