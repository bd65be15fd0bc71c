// Reads etcd's answers. Its JSON leaves out zeros, false and empty lists, and writes 64-bit integers as text. What has
// another shape is refused: a wrong epoch is worse than none.

import { TenureError } from "../../core/kit/errors.ts";
import { INTEGER_MAX } from "../../core/kit/limits.ts";
import { fromBase64 } from "./keys.ts";

export interface KeyValue {
  readonly key: string;
  readonly value: string;
  readonly createRevision: number;
  readonly modRevision: number;
  /** Text, because it has 63 bits; "0" for none. */
  readonly lease: string;
}

export interface Header {
  readonly revision: number;
  readonly raftTerm: number;
}

export interface RangeAnswer extends Header {
  readonly kvs: readonly KeyValue[];
  readonly more: boolean;
  readonly count: number;
}

export interface TxnAnswer extends Header {
  readonly succeeded: boolean;
  readonly responses: readonly Fields[];
}

export interface WatchMessage {
  /** `kv` is null where the key was deleted. */
  readonly events: readonly { readonly modRevision: number; readonly kv: KeyValue | null }[];
  /** The revisions that it asked for are gone: whoever watches must read again. */
  readonly compacted: boolean;
  /** Why etcd ended the watch, where it did for another reason. */
  readonly refusal: string | undefined;
}

export type Fields = Readonly<Record<string, unknown>>;

export function fieldsOf(value: unknown): Fields {
  if (typeof value !== "object" || value === null || Array.isArray(value)) throw malformed("an object is missing");
  return value as Fields;
}

export function headerOf(body: unknown): Header {
  const header = fieldsOf(fieldsOf(body)["header"]);
  return { revision: integer(header["revision"]), raftTerm: integer(header["raft_term"]) };
}

export function rangeOf(body: unknown, header: Header = headerOf(body)): RangeAnswer {
  const fields = fieldsOf(body);
  return {
    ...header,
    kvs: list(fields["kvs"]).map(keyValueOf),
    more: fields["more"] === true,
    count: integer(fields["count"]),
  };
}

export function txnOf(body: unknown): TxnAnswer {
  const fields = fieldsOf(body);
  return {
    ...headerOf(body),
    succeeded: fields["succeeded"] === true,
    responses: list(fields["responses"]).map(fieldsOf),
  };
}

/** What the n-th operation of a transaction read. */
export function rangeIn(answer: TxnAnswer, index: number): RangeAnswer {
  return rangeOf(fieldsOf(answer.responses[index])["response_range"], answer);
}

export function watchOf(message: unknown): WatchMessage {
  const fields = fieldsOf(message);
  const events = list(fields["events"]).map((one) => {
    const event = fieldsOf(one);
    const modRevision = integer(fieldsOf(event["kv"])["mod_revision"]);
    return { modRevision, kv: event["type"] === "DELETE" ? null : keyValueOf(event["kv"]) };
  });
  const compacted = integer(fields["compact_revision"]) > 0;
  const refusal = fields["canceled"] === true && !compacted ? text(fields["cancel_reason"]) : undefined;
  return { events, compacted, refusal };
}

export function keyValueOf(value: unknown): KeyValue {
  const fields = fieldsOf(value);
  return {
    key: fromBase64(text(fields["key"])),
    value: fromBase64(text(fields["value"])),
    createRevision: integer(fields["create_revision"]),
    modRevision: integer(fields["mod_revision"]),
    lease: integerText(fields["lease"]),
  };
}

/** 64 bits as text; absent is 0. */
export function integerText(value: unknown): string {
  const written = typeof value === "number" ? String(value) : (value ?? "0");
  if (typeof written !== "string" || !/^-?\d{1,19}$/.test(written)) throw malformed("a number is none");
  return written;
}

export function integer(value: unknown): number {
  const number = Number(integerText(value));
  if (Math.abs(number) > INTEGER_MAX) {
    throw new TenureError(
      "BACKEND_UNSUPPORTED",
      "etcd's revision is beyond 2^53-1, and could not be an exact epoch. Restore the cluster with lower revisions.",
    );
  }
  return number;
}

function list(value: unknown): readonly unknown[] {
  if (value === undefined) return [];
  if (!Array.isArray(value)) throw malformed("a list is none");
  return value;
}

function text(value: unknown): string {
  if (value === undefined) return "";
  if (typeof value !== "string") throw malformed("a text is none");
  return value;
}

export function malformed(what: string): TenureError {
  return new TenureError(
    "BACKEND_UNSUPPORTED",
    `the server's answer is not etcd's: ${what}. Point the endpoint at etcd's client port; etcd must be 3.4 or newer.`,
  );
}
