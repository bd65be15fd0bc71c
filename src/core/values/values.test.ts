// Values: what a command does, and that all of it is kept.

import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { ByteReader, ByteWriter } from "../kit/bytes.ts";
import { VALUE_BYTES_MAX, VALUES_BYTES_MAX, VALUES_MAX } from "../kit/limits.ts";
import { wholeOf } from "../kit/pieces.ts";
import { decideValue, NO_LOCKS, type ValueCommand, type ValueEvent, ValuesFold, ValuesHead } from "./index.ts";
import { readValueEvent, writeValueEvent } from "./value-codec.ts";

const bytes = (text: string): Uint8Array => new TextEncoder().encode(text);
const name = fc.constantFrom("a", "a/1", "a/2", "b", "é");
const fence = fc.option(fc.record({ scope: fc.constantFrom("s", "t"), epoch: fc.integer({ min: 1, max: 3 }) }));
const ifVersion = fc.option(fc.integer({ min: 0, max: 40 }));
const atMs = fc.nat();
const data = fc.json().map(bytes);
const command: fc.Arbitrary<ValueCommand> = fc.oneof(
  fc.record({ kind: fc.constant("put" as const), name, data, ifVersion, fence, atMs }),
  fc.record({ kind: fc.constant("delete" as const), name, ifVersion, fence, atMs }),
);
const event: fc.Arbitrary<ValueEvent> = fc.oneof(
  fc.record({ kind: fc.constant("value-put" as const), name, data, fence, atMs }),
  fc.record({ kind: fc.constant("value-deleted" as const), name, fence, atMs }),
);

const HELD: Readonly<Record<string, number>> = { s: 2 };
const heldEpoch = (scope: string): number | null => HELD[scope] ?? null;

function put(to: string, text = "1", more: Partial<ValueCommand> = {}): ValueCommand {
  return { kind: "put", name: to, data: bytes(text), ifVersion: null, fence: null, atMs: 1, ...more };
}

function remove(from: string, more: Partial<ValueCommand> = {}): ValueCommand {
  return { kind: "delete", name: from, ifVersion: null, fence: null, atMs: 1, ...more } as ValueCommand;
}

/** Decides one after the other, at positions that follow each other. */
function play(commands: readonly ValueCommand[], values = new ValuesFold(), from = 0): ValuesFold {
  let position = from;
  for (const one of commands) {
    const decision = decideValue({ values, heldEpoch, ...NO_LOCKS }, one);
    if (decision.kind !== "event") continue;
    expect(values.fits(decision.event)).toBe(true);
    values.evolve(decision.event, ++position);
  }
  return values;
}

const named = (values: ValuesFold, prefix = "", after: string | null = null): string[] =>
  [...values.from(prefix, after)].map((one) => one.name);

describe("a command", () => {
  it("with a fence is refused where that epoch is not held: it is over, it never was, or nobody holds the scope", () => {
    const values = play([put("a")]);
    for (const wrong of [
      { scope: "s", epoch: 1 },
      { scope: "s", epoch: 3 },
      { scope: "t", epoch: 1 },
    ])
      for (const one of [put("a", "2", { fence: wrong }), remove("a", { fence: wrong })])
        expect(decideValue({ values, heldEpoch, ...NO_LOCKS }, one)).toEqual({ kind: "stale", fence: wrong });
    const right = { scope: "s", epoch: 2 };
    expect(decideValue({ values, heldEpoch, ...NO_LOCKS }, put("a", "2", { fence: right })).kind).toBe("event");
  });

  it("of a version is refused where the value has another one, and says which; 0 is of none", () => {
    const values = play([put("a")]);
    const decide = (one: ValueCommand) => decideValue({ values, heldEpoch, ...NO_LOCKS }, one);
    expect(decide(put("a", "2", { ifVersion: 0 }))).toMatchObject({ kind: "conflict", current: { version: 1 } });
    expect(decide(put("a", "2", { ifVersion: 2 })).kind).toBe("conflict");
    expect(decide(put("b", "2", { ifVersion: 1 }))).toEqual({ kind: "conflict", current: null });
    expect(decide(remove("b", { ifVersion: 3 })).kind).toBe("conflict");
    expect(decide(put("a", "2", { ifVersion: 1 })).kind).toBe("event");
    expect(decide(put("b", "2", { ifVersion: 0 })).kind).toBe("event");
  });

  it("a value that was deleted and written again has another version: nobody takes it for the first one", () => {
    const values = play([put("a"), remove("a"), put("a")]);
    expect(values.get("a")?.version).toBe(3);
    expect(decideValue({ values, heldEpoch, ...NO_LOCKS }, put("a", "2", { ifVersion: 1 })).kind).toBe("conflict");
  });

  it("to delete what is not there does nothing", () => {
    expect(decideValue({ values: new ValuesFold(), heldEpoch, ...NO_LOCKS }, remove("a"))).toEqual({ kind: "nothing" });
  });

  it("is refused where there is no room, counted by values and by bytes; what takes another one's place is not", () => {
    const values = new ValuesFold();
    for (let at = 0; at < VALUES_MAX; at++)
      values.evolve({ kind: "value-put", name: `n${at}`, data: bytes("1"), fence: null, atMs: 1 }, at + 1);
    expect(decideValue({ values, heldEpoch, ...NO_LOCKS }, put("one more"))).toEqual({ kind: "full", what: "values" });
    expect(decideValue({ values, heldEpoch, ...NO_LOCKS }, put("n7", "2")).kind).toBe("event");
    const large = new ValuesFold();
    const content = new Uint8Array(VALUE_BYTES_MAX);
    for (let at = 0; large.bytes + VALUE_BYTES_MAX + 3 <= VALUES_BYTES_MAX; at++)
      large.evolve({ kind: "value-put", name: `${100 + at}`, data: content, fence: null, atMs: 1 }, at + 1);
    const next = { ...put("999"), data: content } as ValueCommand;
    expect(decideValue({ values: large, heldEpoch, ...NO_LOCKS }, next)).toEqual({ kind: "full", what: "bytes" });
    expect(decideValue({ values: large, heldEpoch, ...NO_LOCKS }, { ...next, name: "100" }).kind).toBe("event");
  });
});

describe("the fold", () => {
  it("restored from its snapshot is the same, and stays the same", () => {
    const some = fc.array(command, { maxLength: 30 });
    fc.assert(
      fc.property(some, some, (before, after) => {
        const values = play(before);
        const restored = new ValuesFold();
        restored.restore(wholeOf(values.snapshot()));
        expect([...restored.from("", null)]).toEqual([...values.from("", null)]);
        expect([restored.size, restored.bytes]).toEqual([values.size, values.bytes]);
        expect([...play(after, restored, 30).from("", null)]).toEqual([...play(after, values, 30).from("", null)]);
        expect(wholeOf(restored.snapshot())).toEqual(wholeOf(values.snapshot()));
      }),
    );
  });

  it("a snapshot is of the moment in which it was taken, whatever is written while it is read", () => {
    const values = play([put("a"), put("b")]);
    const taken = values.snapshot();
    play([put("a", "2"), remove("b"), put("c")], values, 2);
    const restored = new ValuesFold();
    restored.restore(wholeOf(taken));
    expect([...restored.from("", null)].map(({ name: of, version }) => [of, version])).toEqual([
      ["a", 1],
      ["b", 2],
    ]);
  });

  it("lists by prefix and after a name, as one who looks at all of them would", () => {
    const commands = fc.array(command, { maxLength: 30 });
    const prefix = fc.constantFrom("", "a", "a/", "b", "zz", "é");
    fc.assert(
      fc.property(commands, prefix, fc.option(fc.constantFrom("", "a", "a/1", "a/9", "b")), (some, begin, after) => {
        const values = play(some);
        const all = named(values).filter((one) => one.startsWith(begin) && (after === null || one > after));
        expect(named(values, begin, after)).toEqual(all);
      }),
    );
  });

  it("can't be restored from what is cut short, out of order or too long", () => {
    const whole = wholeOf(play([put("a"), put("b")]).snapshot());
    const restored = (of: Uint8Array) => () => new ValuesFold().restore(of);
    for (let at = 1; at < whole.length; at++) expect(restored(whole.subarray(0, at))).toThrow(/malformed|truncated/);
    expect(restored(Uint8Array.of(...whole, 0))).toThrow(/after the values/);
    const twice = whole.slice();
    twice[twice.lastIndexOf(0x62)] = 0x61;
    expect(restored(twice)).toThrow(/out of order/);
  });
});

describe("an event", () => {
  it("is read as it was written; cut short or made longer it is none", () => {
    fc.assert(
      fc.property(event, fc.nat(), (one, at) => {
        const writer = new ByteWriter();
        writeValueEvent(writer, one);
        const written = writer.finish();
        const reader = new ByteReader(written);
        expect(readValueEvent(reader)).toEqual(one);
        expect(reader.remainingBytes).toBe(0);
        expect(() => readValueEvent(new ByteReader(written.subarray(0, at % written.length)))).toThrow();
      }),
    );
  });
});

describe("the head", () => {
  it("decides as the fold will when all of it is applied, whatever is appended, applied and given up", () => {
    const step = fc.oneof(command, fc.constantFrom("apply" as const, "give up" as const));
    fc.assert(
      fc.property(fc.array(step, { maxLength: 40 }), (steps) => {
        const fold = new ValuesFold();
        const head = new ValuesHead<null>(fold);
        const underWay: { readonly event: ValueEvent; readonly position: number }[] = [];
        let position = 0;
        for (const one of steps) {
          if (one === "give up") {
            head.clear();
            position -= underWay.splice(0).length;
          } else if (one === "apply") {
            const next = underWay.shift();
            if (next === undefined) continue;
            fold.evolve(next.event, next.position);
            head.applied(next.event.name, next.position);
          } else {
            const decision = decideValue({ values: head, heldEpoch, ...NO_LOCKS }, one);
            if (decision.kind !== "event") continue;
            head.push(decision.event, ++position, position, null);
            underWay.push({ event: decision.event, position });
          }
          const later = new ValuesFold();
          later.restore(wholeOf(fold.snapshot()));
          for (const { event: next, position: at } of underWay) later.evolve(next, at);
          expect([head.size, head.bytes]).toEqual([later.size, later.bytes]);
          for (const one of ["a", "a/1", "b", "é"]) expect(head.get(one)).toEqual(later.get(one));
        }
      }),
    );
  });
});
