import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { JobClasses } from "../state/job-class.ts";
import { Ranked } from "../state/ranked.ts";
import type { JobRecord } from "../state/records.ts";
import { spec } from "../test-desk.ts";
import { hashOf } from "../../kit/keyed/text-map.ts";
import { anyText } from "../../../../test/any-text.ts";
import { IdIndex } from "./id-index.ts";
import { Interned } from "./interned.ts";
import { Packs } from "./packs.ts";
import { Shelf } from "./shelf.ts";
import { Slots } from "./slots.ts";

const POLICY = { id: "p", attemptsMax: 3, lossesMax: 2, baseMs: 1, maxMs: 2, timeoutMs: null, retentionMs: 3 };

const text = fc.oneof(anyText(), fc.constant("\uFEFFmarked"));
const when = fc.option(fc.nat(2 ** 50));

const lease = { leaseId: "l", jobEpoch: 1, leaderEpoch: 2, attempt: 1, agent: "a", session: "s", ttlMs: 5 };
const run = { ...lease, assignedAtMs: 7, startedAtMs: null, logBytes: 0, poll: 0 };
const ended = { ...run, endedAtMs: 9, end: "failed", reported: "failed", stateAfter: "pending" } as const;

const record = (classes: JobClasses, id: string, number: number): fc.Arbitrary<JobRecord> =>
  fc
    .record({
      kind: fc.constantFrom("build", "test"),
      labels: fc.constantFrom({}, { zone: "a" }),
      priority: fc.integer({ min: -3, max: 3 }),
      payload: fc.json(),
      key: fc.option(text),
      notBeforeMs: when,
      schedule: fc.option(text),
      by: text,
      submittedAtMs: fc.nat(2 ** 50),
      readyAtMs: when,
      traces: fc.constantFrom("none", "failed", "lost"),
      state: fc.constantFrom<JobRecord["state"][]>("pending", "pending", "assigned", "completed"),
    })
    .map((one): JobRecord => {
      const { kind, labels, priority, key, state, traces } = one;
      const isRetried = traces !== "none";
      return {
        ticket: {
          id,
          number,
          priority,
          class: classes.of(spec({ kind, labels })),
          policy: POLICY,
          payload: one.payload,
          notBeforeMs: one.notBeforeMs,
          concurrencyKey: key,
          concurrencyLimit: key === null ? 0 : 4,
          submittedAtMs: one.submittedAtMs,
          submittedBy: one.by,
          schedule: one.schedule,
          bytes: 100 + one.payload.length,
        },
        state,
        jobEpoch: isRetried ? 2 : 0,
        failures: traces === "failed" ? 1 : 0,
        losses: traces === "lost" ? 1 : 0,
        attempt: isRetried ? 1 : 0,
        readyAtMs: one.readyAtMs ?? one.submittedAtMs,
        run: state === "assigned" ? run : null,
        progress: isRetried ? { share: 0.5, message: "half", atMs: 8 } : null,
        ended: isRetried ? [ended] : [],
        finishedAtMs: state === "completed" ? 10 : null,
        finishedBy: state === "completed" ? 11 : 0,
        result: state === "completed" ? "1" : null,
        error: traces === "failed" ? { message: "no", detail: { ["__proto__"]: [1] } } : null,
      };
    });

describe("the shelf", () => {
  it("gives back what was put there, like a map, while jobs come, change and go", () => {
    const classes = new JobClasses(new Slots());
    const ids = ["a", "b", "c", "ä", "a long id that is longer than most of them are", "日本"];
    const move = fc.nat(ids.length - 1).chain((at) =>
      fc.record({
        id: fc.constant(ids[at] as string),
        what: fc.oneof({ weight: 3, arbitrary: record(classes, ids[at] as string, at + 1) }, fc.constant(undefined)),
      }),
    );
    fc.assert(
      fc.property(fc.array(move, { maxLength: 60 }), fc.boolean(), (moves, isHeld) => {
        const shelf = new Shelf();
        const map = new Map<string, JobRecord>();
        if (isHeld) shelf.hold();
        for (const { id, what } of moves) {
          const before = map.get(id);
          // Number and priority are of the job, and stay.
          const after =
            what === undefined || before === undefined
              ? what
              : { ...what, ticket: { ...what.ticket, priority: before.ticket.priority } };
          if (after === undefined) {
            shelf.delete(id);
            map.delete(id);
          } else {
            shelf.set(id, after);
            map.set(id, after);
          }
          expect(shelf.size).toBe(map.size);
        }
        for (const id of ids) expect(shelf.get(id)).toEqual(map.get(id));
        expect([...shelf.keys()].sort()).toEqual([...map.keys()].sort());
        expect([...shelf.values()].map(({ ticket }) => ticket.id).sort()).toEqual([...map.keys()].sort());
        if (isHeld) shelf.letGo();
        for (const id of ids) expect(shelf.get(id)).toEqual(map.get(id));
        expect([...shelf.keys()].length).toBe(map.size);
      }),
      { numRuns: 300 },
    );
  });

  it("reads a packed job that it has not seen lately", () => {
    const classes = new JobClasses(new Slots());
    const shelf = new Shelf();
    // More than it remembers, of a hundred shapes.
    const shapes = fc.sample(record(classes, "", 0), { numRuns: 100, seed: 1 });
    const all = Array.from({ length: 5_000 }, (_, at) => {
      const one = shapes[at % shapes.length] as JobRecord;
      const ticket = { ...one.ticket, id: `job-${at}`, number: at + 1 };
      return { ...one, ticket, state: "pending", run: null, finishedAtMs: null, finishedBy: 0, result: null } as const;
    });
    for (const one of all) shelf.set(one.ticket.id, one);
    for (const one of all) expect(shelf.get(one.ticket.id)).toEqual(one);
  });

  it("keeps the id of a job that has gone for whoever holds it, and gives its slot to nobody else", () => {
    const classes = new JobClasses(new Slots());
    const shelf = new Shelf();
    const [one, other] = ["one", "other"].map((id, at) => fc.sample(record(classes, id, at), 1)[0] as JobRecord);
    shelf.set("one", one as JobRecord);
    const slot = shelf.slotOf("one");
    shelf.hold();
    shelf.delete("one");
    shelf.set("other", other as JobRecord);
    expect(shelf.idAt(slot)).toBe("one");
    expect(shelf.slotOf("other")).not.toBe(slot);
    expect([...shelf.keys()]).toEqual(["other"]);
    shelf.letGo();
    shelf.set("one", one as JobRecord);
    expect(shelf.slotOf("one")).toBe(slot);
  });

  it("what went while it was held does not go in one turn when that ends, but a few with each job that comes or goes", () => {
    const classes = new JobClasses(new Slots());
    const shelf = new Shelf();
    const [one] = fc.sample(record(classes, "one", 1), 1) as [JobRecord];
    const put = (at: number): void =>
      shelf.set(`j-${at}`, { ...one, ticket: { ...one.ticket, id: `j-${at}`, number: at } });
    for (let at = 0; at < 1_000; at++) put(at);
    shelf.hold();
    for (let at = 0; at < 1_000; at++) shelf.delete(`j-${at}`);
    shelf.letGo();
    expect([shelf.size, shelf.left]).toEqual([0, 1_000]);
    let most = 0;
    for (let at = 1_000; shelf.left > 0 && at < 2_000; at++) {
      const before = shelf.left;
      put(at);
      most = Math.max(most, before - shelf.left);
    }
    expect([shelf.left, most <= 8]).toEqual([0, true]);
    expect(shelf.slots.end, "their slots are taken again").toBe(1_000);
  });
});

describe("packs", () => {
  it("stay what they are while others go and chunks are moved together, and holes stay below half", () => {
    const slots = new Slots();
    const packs = new Packs(slots);
    const sizes = new Map<number, number>();
    const taken: number[] = [];
    const bytesOf = (slot: number, size: number): Uint8Array => new Uint8Array(size).fill(slot % 251);
    let random = 1;
    const next = (below: number): number => (random = (Math.imul(random, 1_103_515_245) + 12_345) >>> 0) % below;
    let live = 0;
    for (let round = 0; round < 20_000; round++) {
      // Mostly small; now and then one that needs a chunk of its own.
      if (sizes.size < 500 || next(2) === 0) {
        const slot = slots.take(round, 0, 0);
        const size = next(500) === 0 ? 400_000 : 200 + next(20_000);
        packs.put(slot, bytesOf(slot, size));
        sizes.set(slot, size);
        taken.push(slot);
        live += size;
      } else {
        const slot = taken[next(taken.length)] as number;
        taken.splice(taken.indexOf(slot), 1);
        packs.drop(slot);
        slots.free(slot);
        live -= sizes.get(slot) as number;
        sizes.delete(slot);
      }
      if (round % 1_000 === 0) expect(packs.heldBytes).toBeLessThan(2 * live + 24 * 256 * 1024);
    }
    for (const [slot, size] of sizes) expect(Buffer.compare(packs.get(slot), bytesOf(slot, size)), `${slot}`).toBe(0);
    for (const slot of sizes.keys()) packs.drop(slot);
    expect(packs.heldBytes).toBeLessThanOrEqual(256 * 1024);
  });
});

describe("the index of ids", () => {
  it("finds exactly what is in it, also where hashes clash", () => {
    const move = fc.record({ at: fc.nat(60), isIn: fc.boolean() });
    fc.assert(
      fc.property(fc.array(move, { maxLength: 400 }), fc.constantFrom(1, 4, 2 ** 31), (moves, spread) => {
        const textOf = (at: number): string => `text-${at}`;
        // In one table, and few places of it.
        const hash = (at: number): number => ((hashOf(textOf(at)) >>> 0) % spread) << 8;
        const index = new IdIndex(hash, (slot, wanted) => textOf(slot) === wanted);
        const inside = new Set<number>();
        for (const { at, isIn } of moves) {
          if (isIn && !inside.has(at)) {
            index.add(at, hash(at));
            inside.add(at);
          } else if (!isIn && inside.delete(at)) index.remove(at, hash(at));
          for (let one = 0; one <= 60; one++)
            expect(index.find(textOf(one), hash(one))).toBe(inside.has(one) ? one : -1);
        }
      }),
      { numRuns: 40 },
    );
  });
});

describe("what many have in common", () => {
  it("is there once, and goes with the last that has it", () => {
    const interned = new Interned<string>();
    const [a, b] = [interned.use("a"), interned.use("b")];
    expect(interned.use("a")).toBe(a);
    interned.drop(a);
    expect(interned.at(a)).toBe("a");
    interned.drop(a);
    expect(interned.size).toBe(1);
    expect(interned.use("c")).toBe(a);
    expect([interned.at(a), interned.at(b)]).toEqual(["c", "b"]);
  });
});

describe("slots", () => {
  it("are ordered by rank, by number and by time", () => {
    const slots = new Slots();
    const [low, high, late] = [slots.take(1, 0, 0), slots.take(2, 5, 0), slots.take(3, 0, 0)];
    const sorted = (order: (one: number, other: number) => number): number[] => {
      const ranked = new Ranked<number>(order);
      for (const slot of [late, high, low]) ranked.add(slot);
      return [...ranked];
    };
    expect(sorted(slots.rank)).toEqual([high, low, late]);
    expect(sorted(slots.byNumber)).toEqual([low, high, late]);
    slots.setDueMs(low, 30);
    slots.setDueMs(high, 20);
    slots.setDueMs(late, 20);
    expect(sorted(slots.byDueTime)).toEqual([high, late, low]);
  });
});
