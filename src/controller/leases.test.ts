import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { Leases } from "./leases.ts";

describe("leases", () => {
  it("that started and ended do not pile up until they are due, and the live ones still end in time", () => {
    const leases = new Leases();
    leases.start("kept", 1, 60_000, 0);
    for (let epoch = 2; epoch < 20_000; epoch++) {
      leases.start("s", epoch, 600_000, epoch);
      leases.end("s", epoch);
    }
    expect(leases.kept).toBeLessThanOrEqual(2 * leases.size + 1_025);
    expect(leases.takeOver(59_999, 9, 1)).toEqual([]);
    expect(leases.takeOver(60_000, 9, 1).map(({ key }) => key)).toEqual(["kept"]);
  });

  it("end as a list that looks at every lease says, whatever is renewed and ended, and however often the process stalls", () => {
    const step = fc.oneof(
      fc.record({ kind: fc.constant("start" as const), scope: fc.nat(5), ttlMs: fc.integer({ min: 1, max: 50 }) }),
      fc.record({ kind: fc.constantFrom("touch" as const, "end" as const), scope: fc.nat(5) }),
      fc.record({ kind: fc.constant("stall" as const), ms: fc.integer({ min: 1, max: 40 }) }),
      fc.record({ kind: fc.constant("pass" as const), ms: fc.nat(30) }),
    );
    fc.assert(
      fc.property(fc.array(step, { maxLength: 80 }), (steps) => {
        const leases = new Leases();
        const dumb = new Map<string, { endMs: number; ttlMs: number; epoch: number; hasGrace: boolean }>();
        let nowMs = 0;
        let epoch = 0;
        for (const one of steps) {
          if (one.kind === "pass") {
            nowMs += one.ms;
            const due = [...dumb].filter(([, { endMs }]) => endMs <= nowMs).map(([scope]) => scope);
            const over = leases.takeOver(nowMs, 100, 1);
            expect(over.map(({ key }) => key).toSorted()).toEqual(due.toSorted());
            for (const lease of over) leases.end(lease.key, lease.epoch);
            for (const scope of due) dumb.delete(scope);
          } else if (one.kind === "stall") {
            nowMs += one.ms;
            leases.stalled(one.ms);
            for (const lease of dumb.values()) {
              lease.endMs += one.ms + (lease.hasGrace ? 0 : Math.min(lease.ttlMs, 1_000));
              lease.hasGrace = true;
            }
          } else {
            const scope = `s${one.scope}`;
            const known = dumb.get(scope);
            if (one.kind === "start") {
              leases.start(scope, ++epoch, one.ttlMs, nowMs);
              dumb.set(scope, { endMs: nowMs + one.ttlMs, ttlMs: one.ttlMs, epoch, hasGrace: false });
            } else if (one.kind === "touch") {
              leases.touch(scope, known?.epoch ?? 0, nowMs);
              if (known !== undefined) Object.assign(known, { endMs: nowMs + known.ttlMs, hasGrace: false });
            } else {
              leases.end(scope, known?.epoch ?? 0);
              dumb.delete(scope);
            }
          }
          expect(leases.size).toBe(dumb.size);
        }
      }),
    );
  });

  it("trap 29: of a process that stood still go on where they were, and have a moment more", () => {
    const leases = new Leases();
    leases.start("s", 1, 15_000, 0);
    leases.stalled(60_000);
    expect(leases.takeOver(75_999, 1, 1)).toEqual([]);
    expect(leases.takeOver(76_000, 1, 1)).toHaveLength(1);
  });

  it("end also where the process stutters all the time: a stall is not a renewal", () => {
    const leases = new Leases();
    leases.start("s", 1, 15_000, 0);
    let nowMs = 0;
    for (; nowMs < 60_000; nowMs += 600) {
      leases.stalled(100);
      if (leases.takeOver(nowMs, 1, 1).length > 0) break;
    }
    expect(nowMs).toBeGreaterThan(15_000);
    expect(nowMs).toBeLessThan(20_000);
  });

  it("of another epoch are neither renewed nor ended", () => {
    const leases = new Leases();
    leases.start("s", 7, 10, 0);
    leases.touch("s", 6, 9);
    leases.end("s", 6);
    expect(leases.takeOver(10, 1, 1)).toMatchObject([{ key: "s", epoch: 7 }]);
  });

  it("come again after a while when nothing ends them, and at most so many at once", () => {
    const leases = new Leases();
    for (const scope of ["a", "b", "c"]) leases.start(scope, 1, 10, 0);
    expect(leases.takeOver(10, 2, 5)).toHaveLength(2);
    expect(leases.takeOver(10, 2, 5)).toHaveLength(1);
    expect(leases.takeOver(14, 9, 5)).toHaveLength(0);
    expect(leases.takeOver(15, 9, 5)).toHaveLength(3);
  });
});
