import { describe, expect, it } from "vitest";
import { InvariantError } from "../../core/kit/assert.ts";
import { DiskError } from "./disk-faults.ts";
import { type Boot, World } from "./world.ts";

function world(start: (boot: Boot) => void, extra: { restartAfterExitMs?: number } = {}): World {
  const made = new World({ seed: "process", nodes: ["n1"], start, ...extra });
  made.start("n1");
  return made;
}

describe("process", () => {
  it("holds timers and calls while paused and runs them in order at resume, its clock going on", async () => {
    const seen: string[] = [];
    let boot!: Boot;
    const sim = world((given) => (boot = given));
    const startMs = boot.clock.monotonicMs();
    for (const at of [30, 10, 20]) {
      boot.clock.setTimer(startMs + at, () => seen.push(`${at} at ${Math.round(boot.clock.monotonicMs() - startMs)}`));
    }
    await sim.run(5);
    expect(sim.pause("n1")).toBe(true);
    await sim.run(15);
    sim.call("n1", () => seen.push("call"));
    await sim.run(100);
    expect(seen).toEqual([]);
    sim.resume("n1");
    sim.call("n1", () => seen.push("late call"));
    await sim.run(101);
    expect(seen).toEqual(["10 at 100", "call", "20 at 100", "30 at 100", "late call"]);
  });

  it("trap 45: while its machine sleeps monotonic time stands still, wall time goes on, and timers wait", async () => {
    const seen: string[] = [];
    let boot!: Boot;
    const sim = world((given) => (boot = given));
    const { process } = sim.node("n1");
    const [startMs, wallMs] = [boot.clock.monotonicMs(), boot.clock.wallMs()];
    boot.clock.setTimer(startMs + 3, () => process.sleep());
    boot.clock.setTimer(startMs + 10, () => {
      const passedMs = [boot.clock.monotonicMs() - startMs, boot.clock.wallMs() - wallMs].map(Math.round);
      seen.push(`after ${passedMs.join(" and ")} ms, at ${sim.nowMs.toFixed(0)}`);
    });
    await sim.run(103);
    expect(process.sleep()).toBe(false);
    expect(sim.resume("n1")).toBe(true);
    await sim.run(109);
    expect(seen).toEqual([]);
    await sim.run(200);
    expect(seen).toEqual(["after 10 and 110 ms, at 110"]);

    sim.node("n1").process.sleep();
    sim.crash("n1");
    sim.start("n1");
    const againMs = boot.clock.monotonicMs();
    await sim.run(210);
    expect(boot.clock.monotonicMs() - againMs).toBeCloseTo(10);
  });

  it("trap 71: a turn that is charged for makes its clocks go on, and what comes due meanwhile wait until it is over", async () => {
    const seen: string[] = [];
    let boot!: Boot;
    const sim = world((given) => (boot = given));
    const { process } = sim.node("n1");
    const [startMs, wallMs] = [boot.clock.monotonicMs(), boot.clock.wallMs()];
    const see = (what: string): void => {
      const passedMs = [boot.clock.monotonicMs() - startMs, boot.clock.wallMs() - wallMs].map(Math.round);
      seen.push(`${what}: ${passedMs.join(" and ")} ms, at ${sim.nowMs.toFixed(0)}`);
    };
    boot.clock.setTimer(startMs + 10, () => {
      see("begins");
      expect([process.charge(30), process.charge(20)]).toEqual([30, 50]);
      see("ends");
      boot.clock.setTimer(boot.clock.monotonicMs() + 5, () => see("next"));
    });
    boot.clock.setTimer(startMs + 20, () => {
      see("timer");
      process.charge(2);
    });
    await sim.run(40);
    sim.call("n1", () => see("call"));
    await sim.run(100);
    expect(seen).toEqual([
      "begins: 10 and 10 ms, at 10",
      "ends: 60 and 60 ms, at 10",
      "timer: 60 and 60 ms, at 60",
      "call: 62 and 62 ms, at 62",
      "next: 65 and 65 ms, at 65",
    ]);

    process.charge(1_000);
    sim.crash("n1");
    sim.start("n1");
    expect(process.aheadMs).toBe(0);
  });

  it("lets what runs first at resume cancel a timer that was held", async () => {
    const seen: string[] = [];
    let boot!: Boot;
    const sim = world((given) => (boot = given));
    const nowMs = boot.clock.monotonicMs();
    boot.clock.setTimer(nowMs + 1, () => second.cancel());
    const second = boot.clock.setTimer(nowMs + 2, () => seen.push("second"));
    sim.pause("n1");
    await sim.run(10);
    sim.resume("n1");
    await sim.run(20);
    expect(seen).toEqual([]);
  });

  it("drops everything of a life at its crash, held or pending, and makes its handles inert", async () => {
    const seen: string[] = [];
    const boots: Boot[] = [];
    const sim = world((boot) => boots.push(boot));
    const old = boots[0] as Boot;
    const nowMs = old.clock.monotonicMs();
    old.clock.setTimer(nowMs + 1, () => seen.push("held timer"));
    old.clock.setTimer(nowMs + 50, () => seen.push("pending timer"));
    void old.disk.list("x").then(() => seen.push("disk"));
    sim.call("n1", () => seen.push("call"));
    sim.pause("n1");
    await sim.run(10);
    sim.crash("n1");
    old.clock.setTimer(nowMs, () => seen.push("timer of the dead"));
    void old.disk.list("x").then(() => seen.push("disk of the dead"));
    sim.start("n1");
    old.fatal(new Error("from the dead"));
    await sim.run(100);
    expect(seen).toEqual([]);
    expect(sim.findings).toEqual([]);
    expect(sim.node("n1").process.lives).toBe(2);
  });

  it("fires timers by its own clock, exactly so when the rate changes half way", async () => {
    let boot!: Boot;
    const sim = world((given) => (boot = given));
    const startMs = boot.clock.monotonicMs();
    let firedMs = 0;
    boot.clock.setTimer(startMs + 100, () => (firedMs = sim.nowMs));
    await sim.run(50);
    sim.node("n1").process.setClockRate(0.8);
    await sim.run(200);
    expect(firedMs).toBeCloseTo(50 + 50 / 0.8, 6);
    expect(boot.clock.monotonicMs() - startMs).toBeCloseTo(50 + 150 * 0.8, 6);
  });

  it("never shows a timer a time before its own, at any rate", async () => {
    let boot!: Boot;
    const sim = world((given) => (boot = given));
    for (let i = 1; i <= 500; i++) {
      sim.node("n1").process.setClockRate(0.8 + (i % 41) / 100);
      const atMs = boot.clock.monotonicMs() + i / 7;
      let shownMs = 0;
      boot.clock.setTimer(atMs, () => (shownMs = boot.clock.monotonicMs()));
      await sim.runFor(200);
      expect(shownMs).toBeGreaterThanOrEqual(atMs);
    }
  });

  it("jumps its wall clock without touching the monotonic one", async () => {
    let boot!: Boot;
    const sim = world((given) => (boot = given));
    const [wallMs, monotonicMs] = [boot.clock.wallMs(), boot.clock.monotonicMs()];
    sim.node("n1").process.jumpWall(-60_000);
    expect(boot.clock.wallMs()).toBe(wallMs - 60_000);
    expect(boot.clock.monotonicMs()).toBe(monotonicMs);
  });

  it("reports an exception of its code as a finding with the node's name, and ends the process and the run", async () => {
    const sim = world((boot) => {
      boot.clock.setTimer(boot.clock.monotonicMs() + 5, () => {
        throw new InvariantError("terms grow", "");
      });
    });
    expect(await sim.run(100)).toBe("halted");
    expect(sim.findings).toMatchObject([{ node: "n1", error: { invariant: "terms grow" } }]);
    expect(sim.findings[0]?.atMs).toBeCloseTo(5, 6);
    expect(sim.node("n1").process.state).toBe("crashed");
  });

  it("reports what a process throws while it is started, before any run", async () => {
    const sim = world(() => {
      throw new Error("at start");
    });
    expect(await sim.run(100)).toBe("halted");
    expect(sim.findings).toMatchObject([{ atMs: 0, node: "n1" }]);
    expect(await sim.run(100)).toBe("time");
  });

  it("takes a failed sync for an exit, not a finding, and starts the process again where it is told to", async () => {
    const sim = world(
      (boot) => {
        if (boot.life === 1)
          boot.clock.setTimer(boot.clock.monotonicMs() + 5, () => boot.fatal(new DiskError("EIO", "fsync")));
      },
      { restartAfterExitMs: 20 },
    );
    expect(await sim.run(100)).toBe("time");
    expect(sim.findings).toEqual([]);
    expect(sim.exits).toMatchObject([{ node: "n1", error: { code: "EIO" } }]);
    expect(sim.node("n1").process.lives).toBe(2);
  });
});
