import { describe, expect, it } from "vitest";
import { VirtualTime } from "./virtual-time.ts";

const settle = (): Promise<void> => new Promise((resolve) => void setImmediate(resolve));

describe("virtual time", () => {
  it("fires in order of time, then of scheduling", async () => {
    const time = new VirtualTime(settle);
    const fired: string[] = [];
    time.schedule(20, () => fired.push(`c at ${time.nowMs}`));
    time.schedule(10, () => fired.push(`a at ${time.nowMs}`));
    time.schedule(10, () => fired.push(`b at ${time.nowMs}`));
    await time.advance(15);
    expect(fired).toEqual(["a at 10", "b at 10"]);
    expect(time.nowMs).toBe(15);
    await time.advance(5);
    expect(fired).toEqual(["a at 10", "b at 10", "c at 20"]);
  });

  it("lets a long chain of promises settle before the next event", async () => {
    const time = new VirtualTime(settle);
    const order: string[] = [];
    const chain = async (): Promise<void> => {
      for (let i = 0; i < 100; i++) await Promise.resolve();
      order.push("chain");
    };
    time.schedule(1, () => void chain());
    time.schedule(1, () => order.push("next"));
    await time.advance(1);
    expect(order).toEqual(["chain", "next"]);
  });

  it("fires what an event schedules within the same advance", async () => {
    const time = new VirtualTime(settle);
    const fired: number[] = [];
    const again = (): void => {
      fired.push(time.nowMs);
      time.schedule(time.nowMs + 10, again);
    };
    time.schedule(10, again);
    await time.advance(35);
    expect(fired).toEqual([10, 20, 30]);
  });

  it("does not fire what was cancelled, also by an event of the same instant", async () => {
    const time = new VirtualTime(settle);
    let fired = false;
    const victim = { cancel: () => {} };
    time.schedule(5, () => victim.cancel());
    Object.assign(
      victim,
      time.schedule(5, () => (fired = true)),
    );
    await time.advance(10);
    expect(fired).toBe(false);
  });

  it("serves advances that overlap one after the other", async () => {
    const time = new VirtualTime(settle);
    const fired: number[] = [];
    time.schedule(10, () => fired.push(time.nowMs));
    time.schedule(20, () => fired.push(time.nowMs));
    await Promise.all([time.advance(10), time.advance(10)]);
    expect(fired).toEqual([10, 20]);
    expect(time.nowMs).toBe(20);
  });

  it("refuses to go back, or nowhere", async () => {
    const time = new VirtualTime(settle);
    for (const ms of [-1, Number.NaN, Infinity])
      await expect(time.advance(ms)).rejects.toMatchObject({ code: "CONFIG_INVALID" });
    expect(time.nowMs).toBe(0);
  });

  it("names a timer that arms itself without moving time", async () => {
    const time = new VirtualTime(() => Promise.resolve());
    const again = (): void => void time.schedule(time.nowMs, again);
    again();
    await expect(time.advance(1)).rejects.toThrow("a timer arms itself again at once");
  });
});
