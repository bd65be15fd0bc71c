// Who asks which home when: bounded, in turns, and no home delays another one.

import { describe, expect, it } from "vitest";
import { seededRandom } from "../../core/kit/random.ts";
import { ManualClock, settled, WorkedClock } from "../../loops/test-clock.ts";
import { type Asked, Inquiries } from "./inquiries.ts";
import { TXN_INQUIRIES_AT_ONCE, TXN_RETRY_MS_MAX, TXN_RETRY_MS_MIN } from "./limits.ts";

class Bench {
  readonly clock: ManualClock;
  readonly asked: { readonly id: string; readonly atMs: number }[] = [];
  readonly inquiries: Inquiries;
  /** Undefined: the question is under way until the test answers. */
  answer: (id: string) => Asked | undefined = () => "done";
  #held: { readonly id: string; readonly settle: (answer: Asked) => void }[] = [];

  constructor(clock = new ManualClock()) {
    this.clock = clock;
    this.inquiries = new Inquiries({
      clock,
      random: seededRandom("inquiries"),
      ask: (id) => {
        this.asked.push({ id, atMs: clock.nowMs - 1_000 });
        const answer = this.answer(id);
        return answer === undefined
          ? new Promise((settle) => this.#held.push({ id, settle }))
          : Promise.resolve(answer);
      },
    });
  }

  get ids(): string[] {
    return this.asked.map(({ id }) => id);
  }

  get held(): number {
    return this.#held.length;
  }

  async release(answer: Asked, count = Infinity): Promise<void> {
    for (const { settle } of this.#held.splice(0, count)) settle(answer);
    await settled();
  }
}

describe("a home is asked", () => {
  it("when the time of a transaction is over, and not before; what is decided meanwhile is not asked about", async () => {
    const bench = new Bench();
    bench.inquiries.start("a", "home", 1_000);
    bench.inquiries.start("b", "home", 2_000);
    bench.inquiries.start("c", "home", 3_000);
    bench.inquiries.drop("b");
    await bench.clock.advance(999);
    expect(bench.ids).toEqual([]);
    await bench.clock.advance(5_000);
    expect(bench.asked).toEqual([
      { id: "a", atMs: 1_000 },
      { id: "c", atMs: 3_000 },
    ]);
    expect(bench.clock.pending).toBe(0);
  });

  it("at once on a hint, once however many hints come", async () => {
    const bench = new Bench();
    bench.answer = () => undefined;
    bench.inquiries.start("a", "home", 60_000);
    const attempts = [bench.inquiries.now("a"), bench.inquiries.now("a")];
    expect(bench.ids).toEqual(["a"]);
    await bench.release("done");
    await Promise.all(attempts);
    await bench.inquiries.now("unknown");
    expect(bench.ids).toEqual(["a"]);
  });

  it("again after a pause that doubles up to its bound, as long as it is silent", async () => {
    const bench = new Bench();
    bench.answer = () => "silent";
    bench.inquiries.start("a", "home", 0);
    await bench.clock.advance(120_000);
    const pauses = bench.asked.slice(1).map(({ atMs }, at) => atMs - bench.asked[at]!.atMs);
    expect(Math.min(...pauses)).toBeGreaterThanOrEqual(TXN_RETRY_MS_MIN);
    expect(Math.max(...pauses)).toBeLessThanOrEqual(TXN_RETRY_MS_MAX);
    expect(Math.max(...pauses.slice(0, 3))).toBeLessThanOrEqual(8 * TXN_RETRY_MS_MIN);
    expect(new Set(pauses).size).toBe(pauses.length);
    expect(pauses.length).toBeGreaterThan(20);
    bench.answer = () => "done";
    await bench.clock.advance(TXN_RETRY_MS_MAX);
    const { length } = bench.asked;
    bench.inquiries.drop("a");
    await bench.clock.advance(120_000);
    expect(bench.asked.length).toBe(length);
  });

  it("by so many at once at most, one after the other has an answer, and each in its turn", async () => {
    const bench = new Bench();
    bench.answer = () => undefined;
    const count = 3 * TXN_INQUIRIES_AT_ONCE;
    for (let at = 0; at < count; at++) bench.inquiries.start(`t${at}`, "home", 10);
    await bench.clock.advance(10);
    expect(bench.held).toBe(TXN_INQUIRIES_AT_ONCE);
    await bench.release("done", 1);
    expect(bench.held).toBe(TXN_INQUIRIES_AT_ONCE);
    while (bench.held > 0) await bench.release("done");
    expect(bench.ids.toSorted()).toEqual(Array.from({ length: count }, (_, at) => `t${at}`).toSorted());
  });

  it("that is silent delays no other one, and its many failures together are one", async () => {
    const bench = new Bench();
    bench.answer = (id) => (id.startsWith("dead") ? "silent" : "done");
    for (let at = 0; at < 1_000; at++) bench.inquiries.start(`dead${at}`, "dead", 10);
    for (let at = 0; at < 1_000; at++) bench.inquiries.start(`live${at}`, "live", 10);
    await bench.clock.advance(10);
    expect(bench.ids.filter((id) => id.startsWith("live"))).toHaveLength(1_000);
    const first = bench.ids.filter((id) => id.startsWith("dead")).length;
    expect(first).toBeLessThanOrEqual(TXN_INQUIRIES_AT_ONCE);
    await bench.clock.advance(TXN_RETRY_MS_MIN * 2);
    expect(bench.ids.filter((id) => id.startsWith("dead")).length).toBeGreaterThan(first);
    // It comes back: all of them are asked about, without another pause.
    bench.answer = () => "done";
    await bench.clock.advance(TXN_RETRY_MS_MAX);
    expect(new Set(bench.ids).size).toBe(2_000);
  });

  it("that answers and does not decide is asked about the others without a pause", async () => {
    const bench = new Bench();
    bench.answer = (id) => (id === "odd" ? "refused" : "done");
    bench.inquiries.start("odd", "home", 10);
    for (let at = 0; at < 100; at++) bench.inquiries.start(`t${at}`, "home", 10);
    await bench.clock.advance(10);
    expect(new Set(bench.ids).size).toBe(101);
    await bench.clock.advance(60_000);
    const odd = bench.ids.filter((id) => id === "odd").length;
    expect(odd).toBeGreaterThan(8);
    expect(odd).toBeLessThan(240);
  });

  it("no more when the leadership is over, whatever is due or under way", async () => {
    const bench = new Bench();
    bench.answer = () => undefined;
    bench.inquiries.start("a", "home", 10);
    bench.inquiries.start("b", "home", 20);
    await bench.clock.advance(10);
    bench.inquiries.end();
    await bench.release("silent");
    await bench.clock.advance(60_000);
    expect([bench.ids, bench.clock.pending]).toEqual([["a"], 0]);
  });

  it("in slices: what is due together takes no turn of the loop as a whole", async () => {
    const clock = new WorkedClock();
    const bench = new Bench(clock);
    for (let at = 0; at < 2_000; at++) bench.inquiries.start(`t${at}`, `home${at}`, 10);
    clock.perLookMs = 0.1;
    clock.nowMs += 10;
    clock.fireNext();
    expect(bench.asked.length).toBeLessThan(100);
    clock.perLookMs = 0;
    await clock.advance(1_000);
    expect(bench.asked.length).toBe(2_000);
  });
});
