// What of a list or of a stream is new to who watches: also over a history that was rewritten.

import { describe, expect, it } from "vitest";
import type { StoredValue, ValueItem } from "../../ports/stored-values.ts";
import { EPOCHS_PER_GENERATION } from "../scopes/index.ts";
import { WatchedValues } from "./watched-values.ts";

function stored(name: string, value: string, version: number): StoredValue {
  return { name, value, version, updatedAtMs: 1 };
}

/** Whoever applies each item. */
function reader(watched: WatchedValues) {
  const has = new Map<string, unknown>();
  const apply = (items: readonly (ValueItem | undefined)[]): void => {
    for (const item of items) {
      if (item?.kind === "put") has.set(item.name, item.value);
      else if (item?.kind === "deleted") has.delete(item.name);
    }
  };
  const list = (asOf: number, ...values: readonly StoredValue[]): void => {
    watched.beginList();
    apply(watched.page({ values, asOf }));
    apply(watched.endList());
  };
  const put = (value: StoredValue): void => apply([watched.take(String(value.version), { kind: "put", ...value })]);
  return { has, list, put };
}

describe("a watch", () => {
  it("over a restored cluster ends with what there is, also where the backup has an older content (trap 82)", () => {
    const { has, list, put } = reader(new WatchedValues(undefined));
    list(50, stored("cursor", "of the backup", 50));
    put(stored("cursor", "lost with the old cluster", 100));
    expect(has.get("cursor")).toBe("lost with the old cluster");
    // Restored from a backup as of version 60: versions of values are as they were there, and the stream was reset.
    list(3 * EPOCHS_PER_GENERATION, stored("cursor", "of the backup", 50));
    expect(has.get("cursor")).toBe("of the backup");
    put(stored("cursor", "new", 3 * EPOCHS_PER_GENERATION + 1));
    expect(has.get("cursor")).toBe("new");
  });

  it("goes on after versions of 16 digits, up to the largest there may be", () => {
    const watched = new WatchedValues(undefined);
    const { list, put } = reader(watched);
    const version = 10 ** 15;
    list(version);
    put(stored("a", "1", version + 1));
    expect(watched.point).toBe(version + 1);
    watched.take(String(Number.MAX_SAFE_INTEGER), undefined);
    expect(watched.point).toBe(Number.MAX_SAFE_INTEGER);
    watched.take("9999999999999999", undefined);
    expect(watched.point).toBe(Number.MAX_SAFE_INTEGER);
  });

  it("after a version keeps nothing of changes that can't come again, however many names there were", () => {
    const watched = new WatchedValues(10);
    for (let version = 11; version < 1_011; version++) {
      const name = `job/${version}`;
      expect(watched.take(String(version), { kind: "put", ...stored(name, "queued", version) })).toBeDefined();
    }
    expect(watched.kept).toBe(0);
    // Of a record of several changes that was cut after the first: that one is not given twice.
    expect(watched.take(undefined, { kind: "put", ...stored("a", "1", 2_000) })).toBeDefined();
    // It goes on at a node that is behind.
    for (const id of ["1010", "1500"]) expect(watched.take(id, undefined)).toBeUndefined();
    expect(watched.take(undefined, { kind: "put", ...stored("a", "1", 2_000) })).toBeUndefined();
    expect(watched.take("2000", { kind: "put", ...stored("b", "1", 2_000) })).toBeDefined();
    expect(watched.kept).toBe(0);
  });
});
