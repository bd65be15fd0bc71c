import { describe, expect, it } from "vitest";
import { TenureError } from "../core/kit/errors.ts";
import { KEY_WAIT_MS, TURNOVER_WAIT_MS, VIEWS_WAIT_MS } from "../core/kit/timeouts.ts";
import { createAgent } from "../entry/agent.ts";
import { checkSettings, type JobContext } from "./settings.ts";
import { settled } from "../loops/test-clock.ts";
import { TestDesk } from "./test-desk.ts";

const UNREACHABLE = new TenureError("BACKEND_UNAVAILABLE", "nobody answers");

/** A handler that settles when the test says so. */
function held() {
  const end = Promise.withResolvers<unknown>();
  const seen: { context: JobContext | null } = { context: null };
  const handler = (_job: unknown, context: JobContext): Promise<unknown> => {
    seen.context = context;
    return end.promise;
  };
  return { handler, end, seen };
}

describe("options of createAgent", () => {
  const options = { name: "a", urls: "http://127.0.0.1:1", handlers: { work: () => null } };

  it.each([
    ["capcity", 'createAgent: there is no option "capcity"; did you mean capacity?'],
    ["kye", 'createAgent: there is no option "kye"; did you mean key?'],
    ["concurrency", /^createAgent: there is no option "concurrency"; there are name, .*capacity.*, leaderWaitMs\.$/],
  ])("that do not exist are refused, for plain JavaScript too: %s", (name, message) => {
    expect(() => createAgent({ ...options, [name]: 1 })).toThrow(
      expect.objectContaining({
        code: "CONFIG_INVALID",
        message: typeof message === "string" ? message : (expect.stringMatching(message) as string),
      }),
    );
  });

  it("that do exist are taken, the client's among them", () => {
    const client = { key: "k", fetch: () => Promise.reject(new Error("no network")), timeoutMs: 1, leaderWaitMs: 1 };
    expect(() => createAgent({ ...options, ...client, capacity: 2, labels: {}, platform: "linux" })).not.toThrow();
  });
});

describe("leases", () => {
  it("trap 52: are renewed three times in their duration, whatever the handler and the parked poll do", async () => {
    const desk = new TestDesk();
    const { handler, seen } = held();
    await desk.start(handler, { capacity: 2 });
    await desk.give();
    await desk.clock.advance(60_000);
    const times = desk.beats.filter(({ call }) => call.renew.length === 1).map(({ atMs }) => atMs);
    expect(times.length).toBeGreaterThanOrEqual(20);
    for (const [at, time] of times.entries()) if (at > 0) expect(time - times[at - 1]!).toBeLessThanOrEqual(3_000);
    expect(seen.context?.signal.aborted).toBe(false);
  });

  it("trap 45: are over after an hour in which the machine slept: the attempt ends at once, and not when its timer is due", async () => {
    const desk = new TestDesk();
    const { handler, seen } = held();
    await desk.start(handler, { leaseMs: 60_000 });
    await desk.give();
    await desk.clock.advance(1_000);
    expect(seen.context?.signal.aborted).toBe(false);
    desk.renewal = UNREACHABLE;
    desk.clock.jumpWall(3_600_000);
    await desk.clock.advance(1_000);
    expect(seen.context?.signal.reason).toMatchObject({ reason: "lease-lost" });
    expect(seen.context?.lost.aborted).toBe(true);
  });

  it("trap 45: go on where the machine slept, and the cluster has renewed them since", async () => {
    const desk = new TestDesk();
    const { handler, seen } = held();
    await desk.start(handler);
    await desk.give();
    desk.clock.jumpWall(5_000);
    await desk.clock.advance(60_000);
    expect(seen.context?.signal.aborted).toBe(false);
  });

  it("trap 45: are not begun where the machine slept while the answer was on its way", async () => {
    const desk = new TestDesk();
    const { handler, seen } = held();
    await desk.start(handler);
    desk.clock.jumpWall(3_600_000);
    await desk.give();
    expect(seen.context).toBeNull();
    expect(desk.sent).toMatchObject([{ outcome: { kind: "handed-back" } }]);
  });

  it("trap 51: end a margin before what was sent last and confirmed, counted from its sending", async () => {
    const desk = new TestDesk();
    const { handler, seen } = held();
    await desk.start(handler);
    // The call that brings it was sent 2 s ago.
    await desk.clock.advance(2_000);
    desk.renewal = UNREACHABLE;
    await desk.give();
    await desk.clock.advance(6_099);
    expect(seen.context?.signal.aborted).toBe(false);
    await desk.clock.advance(2);
    expect(seen.context?.signal.reason).toMatchObject({ reason: "lease-lost" });
  });

  it("a job whose attempt takes too long is aborted, and fails as timed out", async () => {
    const desk = new TestDesk();
    const { handler, seen, end } = held();
    await desk.start(handler);
    await desk.give({ timeoutMs: 500 });
    await desk.clock.advance(501);
    expect(seen.context?.signal.reason).toMatchObject({ reason: "timed-out" });
    end.reject(new Error("aborted"));
    await settled();
    expect(desk.sent).toMatchObject([{ outcome: { kind: "failed", retry: true } }]);
  });

  it.each([
    ["cancelled", "cancelled", [{ outcome: { kind: "cancelled" } }]],
    ["lost", "lease-lost", []],
  ] as const)("what the cluster calls %s is aborted", async (renewal, reason, sent) => {
    const desk = new TestDesk();
    const { handler, seen, end } = held();
    const agent = await desk.start(handler);
    await desk.give();
    desk.renewal = renewal;
    await desk.clock.advance(3_000);
    expect(seen.context?.signal.reason).toMatchObject({ reason });
    end.reject(new Error("aborted"));
    await settled();
    expect(desk.sent).toMatchObject(sent);
    expect(agent.running).toBe(0);
  });
});

describe("a job that may be another agent's", () => {
  it("trap 51: is told so also while its handler still ends what was cancelled", async () => {
    const desk = new TestDesk();
    const { handler, seen } = held();
    await desk.start(handler);
    await desk.give();
    desk.renewal = "cancelled";
    await desk.clock.advance(3_000);
    const lost = seen.context?.lost;
    expect(lost?.aborted).toBe(false);
    desk.renewal = UNREACHABLE;
    await desk.clock.advance(9_000);
    expect(seen.context?.signal.reason).toMatchObject({ reason: "cancelled" });
    expect(lost?.reason).toMatchObject({ reason: "lease-lost" });
  });

  it("is told so also when its handler asks late", async () => {
    const desk = new TestDesk();
    const { handler, seen } = held();
    await desk.start(handler);
    await desk.give();
    desk.renewal = "lost";
    await desk.clock.advance(3_000);
    expect(seen.context?.lost.reason).toMatchObject({ reason: "lease-lost" });
  });
});

describe("results", () => {
  it("a server that refuses them late is heard: an attempt lasts longer than all that a server waits", async () => {
    const desk = new TestDesk();
    await desk.start(() => "done");
    await desk.give();
    expect(desk.attemptMs).toBeGreaterThan(KEY_WAIT_MS + TURNOVER_WAIT_MS + VIEWS_WAIT_MS);
  });

  it("are sent until they are answered", async () => {
    const desk = new TestDesk();
    let calls = 0;
    desk.answer = () =>
      ++calls < 4
        ? new TenureError("OUTCOME_UNKNOWN", "it may be")
        : { ok: true, state: "completed", isRepeated: true };
    const agent = await desk.start(() => "done");
    await desk.give();
    expect(agent.running).toBe(1);
    await desk.clock.advance(2_000);
    expect(desk.sent).toHaveLength(4);
    expect(new Set(desk.sent.map((one) => JSON.stringify(one))).size, "always the same").toBe(1);
    expect(agent.running).toBe(0);
  });

  it("D16: behind a change of leaders the lease is renewed first, and then the result goes out with the new epoch", async () => {
    const desk = new TestDesk();
    const { handler, end } = held();
    desk.answer = ({ leaderEpoch }) =>
      leaderEpoch === desk.leaderEpoch
        ? { ok: true, state: "completed", isRepeated: false }
        : { ok: false, code: "STALE_EPOCH", message: "", leaderEpoch: desk.leaderEpoch };
    await desk.start(handler);
    await desk.give();
    await desk.clock.advance(100);
    const beats = desk.beats.length;
    desk.leaderEpoch = 2;
    end.resolve("done");
    await settled();
    expect(desk.sent.map(({ leaderEpoch }) => leaderEpoch)).toEqual([1, 2]);
    expect(desk.beats.length).toBe(beats + 1);
  });

  it("D16: one that the old leader had committed is not sent again", async () => {
    const desk = new TestDesk();
    const { handler, end } = held();
    desk.answer = () => ({ ok: false, code: "STALE_EPOCH", message: "", leaderEpoch: 2 });
    const agent = await desk.start(handler);
    await desk.give();
    desk.renewal = "committed";
    end.resolve("done");
    await settled();
    expect(desk.sent).toHaveLength(1);
    expect(agent.running).toBe(0);
  });

  it("one of an older lease is stale for good", async () => {
    const desk = new TestDesk();
    desk.answer = () => ({ ok: false, code: "STALE_EPOCH", message: "", leaderEpoch: 1 });
    const agent = await desk.start(() => "done");
    await desk.give();
    expect([desk.sent.length, agent.running]).toEqual([1, 0]);
  });

  it("one that the cluster refuses for what it says becomes a failure that says so", async () => {
    const desk = new TestDesk();
    desk.answer = ({ outcome }) =>
      outcome.kind === "completed"
        ? new TenureError("BAD_REQUEST", "result must be JSON")
        : { ok: true, state: "failed", isRepeated: false };
    const agent = await desk.start(() => 2 ** 60);
    await desk.give();
    expect(desk.sent).toMatchObject([{}, { outcome: { kind: "failed", retry: false } }]);
    expect(agent.running).toBe(0);
  });

  it("wait for what the handler has printed", async () => {
    const desk = new TestDesk();
    const { handler, seen, end } = held();
    await desk.start(handler);
    await desk.give();
    await desk.clock.advance(50);
    seen.context?.log("one ");
    seen.context?.log("two");
    desk.renewal = UNREACHABLE;
    end.resolve(null);
    await settled();
    expect(desk.sent).toEqual([]);
    desk.renewal = "renewed";
    await desk.clock.advance(1_000);
    expect(desk.beats.at(-1)?.call.logs).toMatchObject([{ chunk: { offset: 0, text: "one two" } }]);
    expect(desk.sent).toHaveLength(1);
  });
});

describe("logs", () => {
  it.each([100, 20])(
    "cost nobody a lease where the way takes only %i bytes in a millisecond, and arrive all the same",
    async (bytesPerMs) => {
      const desk = new TestDesk();
      const { handler, seen, end } = held();
      await desk.start(handler);
      await desk.give();
      desk.bytesPerMs = bytesPerMs;
      const text = `${"x".repeat(1_023)}\n`.repeat(400);
      seen.context?.log(text);
      await desk.clock.advance(120_000);
      expect(seen.context?.signal.aborted).toBe(false);
      expect([...desk.logs.values()].join("")).toHaveLength(text.length);
      end.resolve(null);
      await settled();
      expect(desk.sent).toHaveLength(1);
    },
  );

  it("C5: go on where the cluster's ends when a part of them was refused", async () => {
    const desk = new TestDesk();
    const { handler, seen } = held();
    await desk.start(handler);
    await desk.give();
    seen.context?.log("first. ");
    await desk.clock.advance(200);
    desk.renewal = new TenureError("BAD_REQUEST", "this can't be taken");
    seen.context?.log("refused. ");
    await desk.clock.advance(200);
    desk.renewal = "renewed";
    for (const text of ["second. ", "third."]) {
      seen.context?.log(text);
      await desk.clock.advance(1_000);
    }
    expect([...desk.logs.values()]).toEqual(["first. second. third."]);
  });
});

describe("an agent", () => {
  it("asks for as much as it has room for", async () => {
    const desk = new TestDesk();
    const { handler } = held();
    await desk.start(handler, { capacity: 3 });
    await desk.give();
    await desk.give();
    await desk.give();
    expect(desk.polls.map(({ max }) => max)).toEqual([3, 2, 1]);
    expect(desk.polls.at(-1)?.waitMs).toBeLessThanOrEqual(3_000);
  });

  it("runs a lease once, however often it is given", async () => {
    const desk = new TestDesk();
    const runs: string[] = [];
    const { handler } = held();
    await desk.start(
      (job, context) => {
        runs.push(job.id);
        return handler(job, context);
      },
      { capacity: 3 },
    );
    await desk.give();
    await desk.giveAgain();
    await desk.give();
    expect(runs).toEqual(["job-1", "job-2"]);
  });

  it("backs off where nobody answers: a minute costs some dozens of calls, and goes on when somebody does", async () => {
    const desk = new TestDesk();
    const errors: Error[] = [];
    const { handler, seen } = held();
    await desk.start(handler, { onError: (error) => errors.push(error) });
    desk.pollError = UNREACHABLE;
    await desk.give();
    desk.renewal = UNREACHABLE;
    // Its lease is over long before: the handler is notified, and what it holds is not asked for again and again.
    await desk.clock.advance(60_000);
    expect(seen.context?.signal.reason).toMatchObject({ reason: "lease-lost" });
    expect(errors.length).toBeGreaterThan(20);
    expect(errors.length).toBeLessThan(120);
    desk.renewal = "renewed";
    const before = desk.beats.length;
    await desk.clock.advance(2_000);
    expect(desk.beats.length).toBeGreaterThan(before);
  });

  it("numbers its polls, and says which was answered last; beats have no numbers", async () => {
    const desk = new TestDesk();
    const { handler } = held();
    await desk.start(handler, { capacity: 4 });
    const numbers = (): (number | undefined)[][] => desk.polls.map(({ poll, answered }) => [poll, answered]);
    await desk.give();
    // What was given to the next two is lost with their answers.
    desk.pollError = new TenureError("OUTCOME_UNKNOWN", "it may be");
    await desk.give();
    await desk.clock.advance(60);
    desk.pollError = null;
    await desk.clock.advance(1_000);
    await desk.give();
    expect(numbers().slice(0, 3)).toEqual([
      [1, 0],
      [2, 1],
      [3, 2],
    ]);
    const failed = numbers().slice(2, -2);
    expect(failed.map(([, answered]) => answered)).toEqual(failed.map(() => 2));
    expect(numbers().at(-2)).toEqual([desk.polls.length - 1, 2]);
    expect(numbers().at(-1)).toEqual([desk.polls.length, desk.polls.length - 1]);
    await desk.clock.advance(9_000);
    for (const { call } of desk.beats) expect([call.poll, call.answered]).toEqual([undefined, undefined]);
  });

  it("that was replaced aborts what it has and ends with the reason", async () => {
    const desk = new TestDesk();
    const { handler, seen } = held();
    const agent = await desk.start(handler);
    await desk.give();
    desk.renewal = new TenureError("STALE_EPOCH", "Another process has taken over");
    await desk.clock.advance(3_000);
    expect(await agent.ended).toMatchObject({ code: "STALE_EPOCH" });
    expect(seen.context?.signal.reason).toMatchObject({ reason: "lease-lost" });
    const calls = desk.beats.length + desk.polls.length;
    await desk.clock.advance(60_000);
    expect(desk.beats.length + desk.polls.length, "and says nothing more").toBe(calls);
  });

  it("that stops hands back what does not end, and leaves no timer", async () => {
    const desk = new TestDesk();
    const { handler } = held();
    const agent = await desk.start(handler);
    await desk.give();
    const stopped = agent.stop({ drainMs: 1_000 });
    await desk.clock.advance(3_000);
    await stopped;
    expect(desk.sent).toMatchObject([{ outcome: { kind: "handed-back" } }]);
    expect(desk.clock.pending).toBe(0);
  });

  it("says at once what is wrong with its options", () => {
    const handlers = { work: () => null };
    for (const wrong of [{ name: "" }, { capacity: 0 }, { leaseMs: 10 }, { handlers: {} }, { platform: "a b" }]) {
      expect(() => checkSettings({ name: "a", handlers, ...wrong })).toThrow(/This agent can't run/);
    }
  });
});
