// Whatever handlers and `onError` do (trap 80): the process lives, other jobs go on, and the agent's end is reported.

import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { TenureError } from "../core/kit/errors.ts";
import { HOSTILE } from "../core/kit/test-hostile.ts";
import type { ResultCall } from "../ports/jobs.ts";
import type { Agent } from "./agent.ts";
import { Beats } from "./beats.ts";
import { settled } from "../loops/test-clock.ts";
import { TestDesk } from "./test-desk.ts";

const UNREACHABLE = new TenureError("BACKEND_UNAVAILABLE", "nobody answers");
const BLOCK_MS = 2_000;
const unhandled: unknown[] = [];
const hear = (error: unknown): void => void unhandled.push(error);

beforeEach(() => {
  unhandled.length = 0;
  process.on("unhandledRejection", hear);
});

afterEach(async () => {
  await new Promise((resolve) => void setImmediate(resolve));
  process.off("unhandledRejection", hear);
  expect(unhandled, "nobody heard of these, and the process would have ended").toEqual([]);
});

/** What a callback does, with the agent that calls it. */
interface Stage {
  readonly desk: TestDesk;
  readonly agent: () => Agent;
}
type Deed = (stage: Stage) => unknown;

const DEEDS: Readonly<Record<string, Deed>> = {
  ...Object.fromEntries(
    Object.entries(HOSTILE).flatMap(([name, make]): [string, Deed][] => [
      [
        `throws ${name}`,
        () => {
          throw make();
        },
      ],
      // oxlint-disable-next-line prefer-promise-reject-errors -- that is the point
      [`rejects later with ${name}`, () => Promise.resolve().then(() => Promise.reject(make()))],
      [`returns ${name}`, () => make()],
    ]),
  ),
  "never settles": () => new Promise(() => undefined),
  "blocks the thread for two seconds": ({ desk }) => desk.clock.stop(BLOCK_MS),
  "stops the agent": ({ agent }) => void agent().stop(),
  "stops the agent and waits for it": ({ agent }) => agent().stop({ drainMs: 1_000 }),
};
const ENDS_IT = /^stops/;

async function staged(make: (stage: Stage) => Parameters<TestDesk["start"]>): Promise<Stage> {
  const desk = new TestDesk();
  const running: { agent?: Agent } = {};
  const stage: Stage = { desk, agent: () => running.agent as Agent };
  running.agent = await desk.start(...make(stage));
  return stage;
}

function outcomesOf({ desk }: Stage): Record<string, ResultCall["outcome"]["kind"]> {
  return Object.fromEntries(desk.sent.map(({ jobId, outcome }) => [jobId, outcome.kind]));
}

/** It ends when it is asked to, and says so. */
async function ends({ desk, agent }: Stage): Promise<void> {
  const stopped = agent().stop({ drainMs: 1_000 });
  await desk.clock.advance(20_000);
  await stopped;
  expect(await agent().ended).toBeNull();
  expect(agent().running).toBe(0);
  expect(desk.clock.pending).toBe(0);
}

describe("a handler that", () => {
  it.each(Object.entries(DEEDS))("%s ends its own job at most", async (name, deed) => {
    const stage = await staged((self) => [
      (job) => (job.id === "job-1" ? deed(self) : "done"),
      { capacity: 2, leaseMs: 9_000 },
    ]);
    await stage.desk.give();
    await stage.desk.clock.advance(100);
    if (!ENDS_IT.test(name)) {
      await stage.desk.give();
      await stage.desk.clock.advance(3_000);
      expect(outcomesOf(stage)).toMatchObject({ "job-2": "completed" });
    }
    await ends(stage);
    expect(outcomesOf(stage)["job-1"], "and says what became of it").toBeDefined();
  });

  it("rejects long after its job was cancelled, handed back, or lost, is heard by nobody and harms nobody", async () => {
    for (const renewal of ["cancelled", "lost", "renewed"] as const) {
      const end = Promise.withResolvers<void>();
      const stage = await staged(() => [() => end.promise, {}]);
      await stage.desk.give();
      stage.desk.renewal = renewal;
      await stage.desk.clock.advance(3_000);
      await ends(stage);
      end.reject(Object.create(null));
      await settled();
    }
  });
});

describe("an onError that", () => {
  it.each(Object.entries(DEEDS))("%s changes nothing", async (name, deed) => {
    let calls = 0;
    const stage = await staged((self) => [
      () => "done",
      {
        leaseMs: 60_000,
        onError: () => {
          calls++;
          return deed(self) as void;
        },
      },
    ]);
    stage.desk.pollError = UNREACHABLE;
    // The answer brings a job, and all that follow are refused for a while: polls, beats and results.
    let refusals = 2;
    stage.desk.answer = () => (refusals-- > 0 ? UNREACHABLE : { ok: true, state: "completed", isRepeated: false });
    stage.desk.renewal = UNREACHABLE;
    await stage.desk.give();
    await stage.desk.clock.advance(1_000);
    expect(calls).toBeGreaterThan(0);
    stage.desk.pollError = null;
    stage.desk.renewal = "renewed";
    await stage.desk.clock.advance(5_000);
    expect(outcomesOf(stage)).toMatchObject({ "job-1": "completed" });
    if (!ENDS_IT.test(name)) {
      await stage.desk.give();
      expect(outcomesOf(stage), "later jobs are run as well").toMatchObject({ "job-2": "completed" });
    }
    await ends(stage);
  });

  it("throws while the agent registers delays nothing", async () => {
    const desk = new TestDesk();
    desk.renewal = UNREACHABLE;
    const agent = desk.make(() => null, {
      onError: () => {
        throw Object.create(null);
      },
    });
    const started = agent.start();
    await desk.clock.advance(500);
    desk.renewal = "renewed";
    await desk.clock.advance(3_000);
    await started;
    expect(desk.polls).toHaveLength(1);
  });
});

describe("a loop of the agent's own that fails", () => {
  it("ends the agent with the reason, and aborts what it has", async () => {
    const desk = new TestDesk();
    let signal: AbortSignal | undefined;
    const broken = Promise.withResolvers<void>();
    const run = vi.spyOn(Beats.prototype, "run").mockReturnValue(broken.promise);
    const agent = await desk.start((_job, context) => {
      ({ signal } = context);
      return new Promise(() => undefined);
    });
    run.mockRestore();
    await desk.give();
    broken.reject(new RangeError("a defect"));
    expect(await agent.ended).toMatchObject({
      code: "INTERNAL",
      message: expect.stringContaining("a defect") as string,
    });
    expect(signal?.reason).toMatchObject({ reason: "lease-lost" });
    await agent.stop();
    expect(desk.clock.pending).toBe(0);
  });
});
