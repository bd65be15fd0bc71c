import { describe, expect, it } from "vitest";
import type { ValueItem } from "../../client/index.ts";
import { itemText, valueObject, valuesTable, valueText } from "./view.ts";

const CURSOR = { name: "cursor", value: { at: 7 }, version: 41, updatedAtMs: 1_700_000_000_000 };
const FENCED = { ...CURSOR, name: "led", scope: "payer", epoch: 12, version: 42 };

describe("values as they are printed", () => {
  it("as JSON on one line that moves no cursor and means the same", () => {
    const hostile = { "a\u202eb": "\u001b[2J\u2028\u{e0001}\u0085é😀" };
    const text = valueText(hostile);
    expect(text).not.toMatch(/[\p{Cc}\p{Cf}\u2028\u2029]/u);
    expect(JSON.parse(text)).toEqual(hostile);
    expect(text).toContain("é😀");
    expect(valueText(null)).toBe("null");
  });

  it("a table with who wrote them, and long ones cut", () => {
    const long = { ...CURSOR, name: "long\u001b", value: "x".repeat(100) };
    expect(valuesTable([CURSOR, FENCED, long])).toBe(
      [
        "NAME    VERSION  UPDATED                   WRITTEN BY         VALUE\n",
        'cursor  41       2023-11-14T22:13:20.000Z  -                  {"at":7}\n',
        'led     42       2023-11-14T22:13:20.000Z  epoch 12 of payer  {"at":7}\n',
        `long?   41       2023-11-14T22:13:20.000Z  -                  "${"x".repeat(59)}…\n`,
      ].join(""),
    );
  });

  it("an object, with nulls for what is not known", () => {
    expect(valueObject(CURSOR)).toEqual({
      name: "cursor",
      value: { at: 7 },
      version: 41,
      updated_at: "2023-11-14T22:13:20.000Z",
      scope: null,
      epoch: null,
      pending_txn: null,
    });
    expect(valueObject(FENCED)).toMatchObject({ scope: "payer", epoch: 12 });
    expect(valueObject({ ...CURSOR, pendingTxn: "t1" })).toMatchObject({ pending_txn: "t1" });
  });

  it("changes, a line each", () => {
    const put: ValueItem = { kind: "put", ...CURSOR };
    const deleted: ValueItem = { kind: "deleted", name: "cursor", version: 43, updatedAtMs: CURSOR.updatedAtMs };
    const missed: ValueItem = { kind: "deleted", name: "cursor", version: null, updatedAtMs: null };
    const lines = [put, deleted, missed, { kind: "current", version: 43 } as const];
    expect(lines.map((item) => itemText(item, false))).toEqual([
      '2023-11-14T22:13:20.000Z  41  cursor  {"at":7}\n',
      "2023-11-14T22:13:20.000Z  43  cursor  deleted\n",
      "-  -  cursor  deleted\n",
      null,
    ]);
    const { pending_txn: _, ...content } = valueObject(CURSOR);
    expect(lines.map((item) => JSON.parse(itemText(item, true)!) as unknown)).toEqual([
      { kind: "put", ...content },
      { kind: "deleted", name: "cursor", version: 43, updated_at: "2023-11-14T22:13:20.000Z" },
      { kind: "deleted", name: "cursor", version: null, updated_at: null },
      { kind: "current", version: 43 },
    ]);
  });
});
