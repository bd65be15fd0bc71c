import { expect, test } from "vitest";
import type { KeyValue } from "./answers.ts";
import { holderOf, holderText, leaderOf, transitionOf, transitionText } from "./records.ts";

function kv(value: string): KeyValue {
  return { key: "k", value, createRevision: 9, modRevision: 9, lease: "1" };
}

test("a holder is read as it was written", () => {
  const holder = { identity: "me", metadata: { zone: "a" }, acquiredAtMs: 5 };
  expect(holderOf(kv(holderText(holder)))).toEqual(holder);
});

test("a transition is read as it was written; without an epoch it has that of its own revision", () => {
  const record = { atMs: 5, epoch: 4, identity: "me", reason: "resigned", heldMs: 3 };
  expect(transitionOf(kv(transitionText(record)))).toEqual(record);
  expect(transitionOf(kv(transitionText({ ...record, epoch: 0 })))).toEqual({ ...record, epoch: 9 });
});

test.each(["", "nonsense", "null", "[]", '"text"', '{"identity":5,"metadata":[1]}', '{"metadata":{"a":1}}'])(
  "a value that somebody else wrote still has an epoch: %s",
  (value) => {
    expect(leaderOf(kv(value))).toEqual({ epoch: 9, identity: "(not written by Tenure)", metadata: {} });
    expect(transitionOf(kv(value))).toMatchObject({ epoch: 9, reason: "unknown" });
  },
);
