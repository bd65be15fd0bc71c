import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { Notes, Table } from "./table.ts";

interface Value {
  readonly value: number;
}

type Move = { readonly kind: "set" | "commit" | "rollback"; readonly key: string; readonly at: number };

const move: fc.Arbitrary<Move> = fc.record({
  kind: fc.constantFrom("set" as const, "set", "set", "commit", "rollback"),
  key: fc.constantFrom("a", "b"),
  at: fc.nat(9),
});

describe("a table with notes", () => {
  it("is what a list of all its changes would be, at the head, at what is applied, and to a snapshot", () => {
    fc.assert(
      fc.property(fc.array(move, { maxLength: 60, size: "max" }), fc.nat(60), (moves, snapshotAt) => {
        const notes = new Notes();
        const seen = new Map<string, Value | undefined>();
        const table = new Table<Value>(notes, (before, after) => {
          // The change is told as from what was told last.
          const key = (after ?? before)!.value % 2 === 0 ? "a" : "b";
          expect(before).toBe(seen.get(key));
          seen.set(key, after);
        });
        /** The oracle: one state of everything after each event. */
        let states: ReadonlyMap<string, Value>[] = [new Map()];
        let applied = 0;
        let frozen: ReadonlyMap<string, Value> = states[0]!;
        let kept = table.beginSnapshot();
        for (const [at, { kind, key, at: number }] of moves.entries()) {
          if (at === snapshotAt) {
            table.endSnapshot(kept);
            [kept, frozen] = [table.beginSnapshot(), states[applied]!];
          }
          const head = states.length - 1;
          const to = applied + (number % (head - applied + 1));
          if (kind === "commit") notes.commit((applied = to));
          else if (kind === "rollback") {
            notes.rollback(to);
            states = states.slice(0, to + 1);
          } else {
            const next = new Map(states[head]);
            const value = number < 3 ? undefined : { value: 2 * at + (key === "a" ? 0 : 1) };
            if (value === undefined) next.delete(key);
            else next.set(key, value);
            states.push(next);
            if (value === undefined && !states[head]!.has(key)) continue;
            notes.propose(states.length - 1);
            table.set(key, value);
            notes.propose(0);
          }
          for (const one of ["a", "b"]) {
            expect(table.get(one)).toBe(states.at(-1)!.get(one));
            expect(table.applied(one)).toBe(states[applied]!.get(one));
            expect(table.asBegun(kept, one)).toBe(frozen.get(one));
          }
          expect(new Set(table.appliedValues())).toEqual(new Set(states[applied]!.values()));
          expect(table.size).toBe(states.at(-1)!.size);
        }
        notes.rollback(applied);
        expect(notes.size).toBe(0);
        expect([...table.noted()]).toEqual([]);
      }),
      { numRuns: 60 },
    );
  });
});
