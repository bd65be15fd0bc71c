// The state log: records of scopes and values, all of each or nothing.

import { describe, expect, it } from "vitest";
import { wholeOf } from "../kit/pieces.ts";
import { encodeEvent, EPOCHS_PER_GENERATION, type ScopeEvent } from "../scopes/index.ts";
import { decideValue, type ValueEvent } from "../values/index.ts";
import { decodeRecord, encodeRecord, StateFold, StateHead, type StateRecord, withNewLine } from "./index.ts";

const FENCE = { scope: "s", epoch: 1 };

function granted(scope: string): ScopeEvent {
  return { kind: "granted", scope, session: "a", identity: "i", metadata: {}, ttlMs: 1_000, atMs: 5 };
}

function put(name: string, text = "1"): ValueEvent {
  return { kind: "value-put", name, data: new TextEncoder().encode(text), fence: FENCE, atMs: 6 };
}

function applied(fold: StateFold, ...records: readonly StateRecord[]): StateFold {
  for (const [at, record] of records.entries()) fold.apply({ position: at + 1, epoch: 1, data: encodeRecord(record) });
  return fold;
}

describe("a record", () => {
  it("of one event of a scope has the bytes that all releases read", () => {
    expect(encodeRecord([granted("s")])).toEqual(encodeEvent(granted("s")));
    expect(decodeRecord(encodeEvent(granted("s")))).toEqual({ kind: "changes", changes: [granted("s")] });
  });

  it("of a value, or of several changes, has version 2, at which a release that does not know it stops", () => {
    for (const record of [
      [put("a")],
      [granted("s"), put("a"), { kind: "value-deleted", name: "b", fence: null, atMs: 1 }],
    ]) {
      const bytes = encodeRecord(record as StateRecord);
      expect([...bytes.subarray(0, 3)]).toEqual([0x53, 2, record.length]);
      expect(decodeRecord(bytes)).toEqual({ kind: "changes", changes: record });
    }
  });

  it("keeps its form: bytes of version 2, for ever", () => {
    const bytes = encodeRecord([{ kind: "value-put", name: "n", data: Uint8Array.of(0x31), fence: FENCE, atMs: 3 }]);
    const name = [0, 0, 0, 1, 0x6e];
    const at = [0, 0, 0, 0, 0, 0, 0, 3];
    const fence = [1, 0, 0, 0, 1, 0x73, 0, 0, 0, 0, 0, 0, 0, 1];
    expect([...bytes]).toEqual([0x53, 2, 1, 1, 0, ...name, ...at, ...fence, 0, 0, 0, 1, 0x31]);
  });

  it("that was cut short, made longer or is of no known part is malformed; a later version is told apart", () => {
    const bytes = encodeRecord([granted("s"), put("a")]);
    for (let at = 0; at < bytes.length; at++) expect(decodeRecord(bytes.subarray(0, at)).kind).toBe("malformed");
    expect(decodeRecord(Uint8Array.of(...bytes, 0)).kind).toBe("malformed");
    expect(decodeRecord(Uint8Array.of(0x53, 2, 0)).kind).toBe("malformed");
    expect(decodeRecord(Uint8Array.of(0x53, 3))).toEqual({ kind: "later-version", version: 3 });
  });

  it("of version 2 with a change that this release does not know is a later release's, and never passed over", () => {
    const later = { kind: "later-version", version: 3 };
    expect(decodeRecord(Uint8Array.of(0x53, 2, 1, 9))).toEqual(later);
    expect(decodeRecord(Uint8Array.of(0x53, 2, 1, 1, 2))).toEqual(later);
    const nested = encodeRecord([granted("s"), put("a")]).slice();
    nested[nested.indexOf(0x53, 3) + 1] = 2;
    expect(decodeRecord(nested)).toEqual(later);
  });
});

describe("the fold", () => {
  it("changes all that a record names, or nothing of it; what can't be read or does not fit is counted", () => {
    const fold = applied(new StateFold(), [granted("s")]);
    const apply = (position: number, data: Uint8Array): void => fold.apply({ position, epoch: 1, data });
    apply(2, encodeRecord([put("a"), granted("s")]));
    apply(3, encodeRecord([put("a"), put("a", "2")]));
    apply(4, encodeRecord([{ kind: "value-deleted", name: "a", fence: null, atMs: 1 }]));
    apply(5, Uint8Array.of(1, 2, 3));
    expect([fold.values.size, fold.counts]).toEqual([0, { malformed: 1, unfit: 3 }]);
    apply(6, encodeRecord([put("a"), { kind: "resigned", scope: "s", epoch: 1, atMs: 1 }]));
    expect([fold.values.get("a")?.version, fold.scopes.get("s")?.hold]).toEqual([6, null]);
    expect(() => apply(7, Uint8Array.of(0x53, 3))).toThrow(expect.objectContaining({ code: "FORMAT_UNSUPPORTED" }));
  });

  it("without values has the snapshot that older releases read, and reads theirs", () => {
    const fold = applied(new StateFold(), [granted("s")]);
    expect(fold.snapshot()).toEqual(fold.scopes.snapshot());
    const restored = new StateFold();
    restored.restore(fold.scopes.snapshot());
    expect(restored.scopes.get("s")).toEqual(fold.scopes.get("s"));
  });

  it("with values is the same after its snapshot was restored, and one that can't be read is refused with a reason", () => {
    const fold = applied(new StateFold(), [granted("s")], [put("a")], [put("b", '{"x":1}')]);
    const bytes = wholeOf(fold.snapshot());
    expect([...bytes.subarray(0, 2)]).toEqual([0x54, 3]);
    const restored = new StateFold();
    restored.restore(bytes);
    expect(wholeOf(restored.snapshot())).toEqual(bytes);
    expect(restored.values.get("b")).toEqual(fold.values.get("b"));
    expect(restored.scopes.get("s")).toEqual(fold.scopes.get("s"));
    const later = bytes.slice();
    later[1] = 5;
    expect(() => new StateFold().restore(later)).toThrow(expect.objectContaining({ code: "FORMAT_UNSUPPORTED" }));
    for (const cut of [3, bytes.length - 9, bytes.length - 1]) {
      const refused = expect.objectContaining({ code: "SNAPSHOT_INVALID" });
      expect(() => new StateFold().restore(bytes.subarray(0, cut))).toThrow(refused);
    }
  });

  it("of a cluster that is restored or recovered keeps its values, and no version is ever used again", () => {
    const line = { generation: 0, place: 7, position: 2, session: "nobody" };
    const fold = applied(new StateFold(), [granted("s")], [put("a")]);
    const renewed = new StateFold();
    renewed.restore(withNewLine(wholeOf(fold.snapshot()), line));
    expect(renewed.values.get("a")?.version).toBe(2);
    renewed.apply({ position: 3, epoch: 2, data: encodeRecord([put("a", "2")]) });
    expect(renewed.values.get("a")?.version).toBeGreaterThan(2 * EPOCHS_PER_GENERATION);
  });

  it("of a cluster that is restored or recovered fences out the epochs of before: they may have ended after the backup was taken", () => {
    const line = { generation: 0, place: 7, position: 1, session: "nobody" };
    const fold = applied(new StateFold(), [granted("s")]);
    const write = {
      kind: "put",
      name: "a",
      data: Uint8Array.of(0x31),
      ifVersion: null,
      fence: FENCE,
      atMs: 1,
    } as const;
    expect(decideValue(new StateHead(fold), write).kind).toBe("event");
    const renewed = new StateFold();
    renewed.restore(withNewLine(wholeOf(fold.snapshot()), line));
    // Its holder can't renew it any more, and it is granted to nobody until its lease is over; but whether it was in force nobody knows.
    expect(renewed.scopes.get("s")?.hold?.epoch).toBe(FENCE.epoch);
    expect(decideValue(new StateHead(renewed), write)).toEqual({ kind: "stale", fence: FENCE });
    const resigned = { kind: "resigned", scope: "s", epoch: 1, atMs: 1 } as const;
    for (const [at, change] of [resigned, granted("s")].entries())
      renewed.apply({ position: 2 + at, epoch: 2, data: encodeRecord([change]) });
    const { epoch } = renewed.scopes.get("s")!.hold!;
    expect(decideValue(new StateHead(renewed), { ...write, fence: { scope: "s", epoch } }).kind).toBe("event");
  });
});
