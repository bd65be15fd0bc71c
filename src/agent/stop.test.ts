import { describe, expect, it } from "vitest";
import { TenureError } from "../core/kit/errors.ts";
import { settled } from "../loops/test-clock.ts";
import { TestDesk } from "./test-desk.ts";

const UNREACHABLE = new TenureError("BACKEND_UNAVAILABLE", "nobody answers");
const never = (): Promise<never> => new Promise(() => undefined);

describe("an agent that stops (trap 81)", () => {
  it("hands back what the answer in flight was to bring: a last poll that wants nothing says which was heard", async () => {
    const desk = new TestDesk();
    const agent = await desk.start(() => null, { capacity: 2 });
    await desk.give();
    expect(desk.polls.at(-1)).toMatchObject({ poll: 2, answered: 1 });
    await agent.stop();
    expect(desk.lasts).toMatchObject([{ max: 0, waitMs: 0, renew: [], poll: 3, answered: 1 }]);
    expect(await agent.ended).toBeNull();
    expect(desk.clock.pending).toBe(0);
  });

  it("does not begin a job that arrives in the moment of the stop, and spends neither of its budgets", async () => {
    const desk = new TestDesk();
    const runs: string[] = [];
    const agent = await desk.start((job) => runs.push(job.id));
    const given = desk.give();
    const stopped = agent.stop();
    await given;
    await stopped;
    expect(runs).toEqual([]);
    expect(desk.sent, "a result of it would be the first word about a job that never began").toEqual([]);
    expect(desk.lasts).toMatchObject([{ poll: 2, answered: 0 }]);
  });

  it("has no last poll where every one was answered", async () => {
    const desk = new TestDesk();
    const agent = await desk.start(never);
    await desk.give();
    const stopped = agent.stop({ drainMs: 0 });
    await desk.clock.advance(1_000);
    await stopped;
    expect(desk.lasts).toEqual([]);
    expect(desk.sent).toMatchObject([{ outcome: { kind: "handed-back" } }]);
  });

  it("asks again under another number where the last poll's outcome is not known", async () => {
    const desk = new TestDesk();
    const agent = await desk.start(() => null);
    const answers = [new TenureError("OUTCOME_UNKNOWN", "it may be"), UNREACHABLE, null];
    desk.lastAnswer = () => answers.shift() ?? null;
    const stopped = agent.stop();
    await desk.clock.advance(1_000);
    await stopped;
    expect(desk.lasts.map(({ poll, answered }) => [poll, answered])).toEqual([
      [2, 0],
      [3, 0],
      [4, 0],
    ]);
  });

  it.each([
    ["that can't be reached", () => UNREACHABLE],
    ["that says nothing", () => never()],
  ])("ends all the same with a cluster %s, after five seconds", async (_, lastAnswer) => {
    const desk = new TestDesk();
    const agent = await desk.start(() => null);
    desk.lastAnswer = lastAnswer;
    let isStopped = false;
    const stopped = agent.stop().then(() => (isStopped = true));
    await desk.clock.advance(4_900);
    expect(isStopped).toBe(false);
    await desk.clock.advance(200);
    await stopped;
    expect(await agent.ended).toBeNull();
    expect(desk.clock.pending).toBe(0);
    const calls = desk.lasts.length;
    await desk.clock.advance(60_000);
    expect(desk.lasts, "and says nothing more").toHaveLength(calls);
  });

  it("hands back while what runs still runs, so that nobody waits for the drain", async () => {
    const desk = new TestDesk();
    const agent = await desk.start(never, { capacity: 2 });
    await desk.give();
    void agent.stop({ drainMs: 8_000 });
    await settled();
    expect(desk.lasts).toHaveLength(1);
    expect(agent.running).toBe(1);
    await desk.clock.advance(10_000);
    expect(agent.running).toBe(0);
  });

  it("ends as replaced where the last poll says so", async () => {
    const desk = new TestDesk();
    const agent = await desk.start(() => null);
    desk.lastAnswer = () => new TenureError("STALE_EPOCH", "another process has the name");
    await agent.stop();
    expect(await agent.ended).toMatchObject({ code: "STALE_EPOCH" });
  });

  it("stops once, however often it is asked to", async () => {
    const desk = new TestDesk();
    const agent = await desk.start(() => null);
    await Promise.all([agent.stop(), agent.stop(), agent[Symbol.asyncDispose]()]);
    await agent.stop();
    expect(desk.lasts).toHaveLength(1);
  });
});

describe("an agent that is stopped while it starts", () => {
  it("waits for its registration, which would take the name from whoever starts next, and polls nothing", async () => {
    const desk = new TestDesk();
    const registered = Promise.withResolvers<void>();
    desk.registering = registered.promise;
    const agent = desk.make(() => null);
    const started = agent.start();
    let isStopped = false;
    const stopped = agent.stop().then(() => (isStopped = true));
    await desk.clock.advance(400);
    expect(isStopped).toBe(false);
    registered.resolve();
    await Promise.all([started, stopped]);
    expect(await agent.ended).toBeNull();
    expect([desk.polls.length, desk.lasts.length, desk.clock.pending]).toEqual([0, 0, 0]);
  });

  it("does not wait for longer than five seconds", async () => {
    const desk = new TestDesk();
    desk.registering = never();
    const agent = desk.make(() => null);
    const started = agent.start();
    const stopped = agent.stop();
    await desk.clock.advance(5_000);
    await Promise.all([started, stopped]);
    expect(desk.clock.pending).toBe(0);
  });

  it("does not register again where that failed", async () => {
    const desk = new TestDesk();
    desk.renewal = UNREACHABLE;
    const agent = desk.make(() => null);
    const started = agent.start();
    await desk.clock.advance(500);
    const calls = desk.beats.length;
    expect(calls).toBeGreaterThan(2);
    await Promise.all([agent.stop(), started]);
    await desk.clock.advance(10_000);
    expect(desk.beats).toHaveLength(calls);
    expect(desk.clock.pending).toBe(0);
  });

  it("or before it starts has ended, and starts no more", async () => {
    const agent = new TestDesk().make(() => null);
    await agent.stop();
    expect(await agent.ended).toBeNull();
    await expect(agent.start()).rejects.toMatchObject({ code: "CONFIG_INVALID" });
  });
});
