import { expect, test } from "vitest";
import { integer, integerText, keyValueOf, rangeOf, txnOf, watchOf } from "./answers.ts";

test("what etcd leaves out is zero, false or empty", () => {
  expect(rangeOf({ header: {} })).toEqual({ revision: 0, raftTerm: 0, kvs: [], more: false, count: 0 });
  expect(txnOf({ header: {} })).toMatchObject({ succeeded: false, responses: [] });
  expect(keyValueOf({})).toEqual({ key: "", value: "", createRevision: 0, modRevision: 0, lease: "0" });
  expect(watchOf({})).toEqual({ events: [], compacted: false, refusal: undefined });
});

test("integers are exact up to 2^53-1, and leases beyond", () => {
  expect(integer("9007199254740991")).toBe(Number.MAX_SAFE_INTEGER);
  expect(() => integer("9007199254740992")).toThrow("2^53-1");
  expect(integerText("7587869134343232523")).toBe("7587869134343232523");
});

test.each([["x"], ["1.5"], [""], [{}], [1.5], ["99999999999999999999"]])("%j is no integer", (value) => {
  expect(() => integer(value)).toThrow(expect.objectContaining({ code: "BACKEND_UNSUPPORTED" }));
});

test("a deletion has no value", () => {
  const put = { kv: { key: btoa("k"), value: btoa("v"), create_revision: "2", mod_revision: "2" } };
  const deletion = { type: "DELETE", kv: { key: btoa("k"), mod_revision: "3" } };
  const { events } = watchOf({ events: [put, deletion] });
  expect(events).toMatchObject([
    { modRevision: 2, kv: { value: "v" } },
    { modRevision: 3, kv: null },
  ]);
});

test("a watch that was compacted is told from one that was refused", () => {
  expect(watchOf({ canceled: true, compact_revision: "9" })).toMatchObject({ compacted: true, refusal: undefined });
  expect(watchOf({ canceled: true, cancel_reason: "no" })).toMatchObject({ compacted: false, refusal: "no" });
  expect(watchOf({ canceled: true })).toMatchObject({ compacted: false, refusal: "" });
});

test.each([[null], ["text"], [[]], [{ header: [] }], [{ header: {}, kvs: {} }], [{ header: {}, kvs: [{ key: 1 }] }]])(
  "an answer of another shape is refused: %j",
  (body) => {
    expect(() => rangeOf(body)).toThrow(expect.objectContaining({ code: "BACKEND_UNSUPPORTED" }));
  },
);
