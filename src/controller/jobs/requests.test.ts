// Requests that are repeated, and requests about jobs that only the views have.

import { describe, expect, it } from "vitest";
import type { BookLimits } from "../../core/jobs/index.ts";
import { TenureError } from "../../core/kit/errors.ts";
import { systemDigest as digest } from "../../drivers/system/digest.ts";
import { ManualClock } from "../../engine/test-engine.ts";
import { MemoryLog, MemoryStore } from "../../logs/index.ts";
import type { Request } from "../../ports/jobs.ts";
import type { SiteJournal } from "../journal/site-journal.ts";
import { JobsStage, newFold, REQUEST, SPEC } from "./test-jobs.ts";
import { advance, drain, watch } from "../scopes/test-scopes.ts";

interface Stage {
  readonly stage: JobsStage;
  readonly clock: ManualClock;
  readonly fold: SiteJournal;
}

async function leading(limits: Partial<BookLimits> = {}): Promise<Stage> {
  const clock = new ManualClock();
  const fold = newFold(digest, limits);
  const stage = new JobsStage(clock, new MemoryLog(new MemoryStore(), fold), fold, digest);
  stage.leadership.set(1);
  await drain();
  return { stage, clock, fold };
}

async function failover({ leadership }: JobsStage, epoch: number): Promise<void> {
  leadership.set(null);
  leadership.set(epoch);
  await drain();
}

const keyed = (idempotencyKey: string, leaderEpoch?: number): Request => ({
  ...REQUEST,
  idempotencyKey,
  bodyHash: "00",
  leaderEpoch,
});

describe("a request under a key", () => {
  it("B6: that was done in an epoch which is over is answered as it was, not as stale", async () => {
    const { stage } = await leading();
    const done = await stage.service.submit(keyed("k", 1), [SPEC]);
    await failover(stage, 2);
    expect(await stage.service.submit(keyed("k", 1), [SPEC])).toEqual(done);
    await expect(stage.service.submit({ ...keyed("k", 1), bodyHash: "11" }, [SPEC])).rejects.toMatchObject({
      code: "IDEMPOTENCY_MISMATCH",
    });
    for (const request of [keyed("another", 1), { ...REQUEST, leaderEpoch: 1 }]) {
      const refused = watch(stage.service.submit(request, [SPEC]));
      await drain();
      expect(refused).toMatchObject({ code: "STALE_EPOCH" });
    }
    await expect(stage.service.submit(keyed("k", 3), [SPEC])).rejects.toMatchObject({ code: "NOT_LEADER" });
    expect(stage.service.stats().submitted).toBe(1);
  });

  it("B6: that was done is answered also where nothing new is taken any more", async () => {
    const { stage } = await leading();
    const done = await stage.service.submit(keyed("k"), [SPEC]);
    stage.refusal = new TenureError("QUOTA_EXCEEDED", "no room is left");
    expect(await stage.service.submit(keyed("k"), [SPEC])).toEqual(done);
    await expect(stage.service.submit(keyed("new"), [SPEC])).rejects.toMatchObject({ code: "QUOTA_EXCEEDED" });
  });

  it("B6: that found everything as it should be is remembered: repeated, it does not undo what others did since", async () => {
    const { stage } = await leading();
    const { service } = stage;
    await service.pauseQueue(REQUEST, "default", true);
    await service.pauseQueue(keyed("pause"), "default", true);
    await service.pauseQueue(REQUEST, "default", false);
    await service.pauseQueue(keyed("pause"), "default", true);
    expect(service.queues()).toEqual([]);

    const schedule = { name: "s", cron: "0 0 * * *", timeZone: "UTC", spec: SPEC, paused: false } as const;
    const put = { ...schedule, overlap: "allow", catchUp: "none" } as const;
    await service.putSchedule(REQUEST, put);
    await service.putSchedule(keyed("put"), put);
    await service.deleteSchedule(REQUEST, "s");
    await service.putSchedule(keyed("put"), put);
    expect(service.schedules()).toEqual([]);
  });

  it("B6: a second cancellation is answered the same when the job has ended meanwhile", async () => {
    const { stage } = await leading();
    const id = await stage.submit();
    const lease = await stage.leased("a");
    await stage.service.cancel(REQUEST, id);
    expect(await stage.service.cancel(keyed("k"), id)).toMatchObject({ state: "cancelling" });
    await stage.complete("a", lease, { outcome: { kind: "cancelled" } });
    expect(await stage.service.cancel(keyed("k"), id)).toMatchObject({ state: "cancelled" });
    await expect(stage.service.cancel(REQUEST, id)).rejects.toMatchObject({ code: "JOB_FINISHED" });
  });

  it("B6: that was done, about a job that is forgotten since, is told so", async () => {
    const { stage } = await leading({ finishedMax: 1 });
    stage.views.atPosition = Infinity;
    const [id, other] = await stage.service.submit(REQUEST, [SPEC, SPEC]);
    await stage.service.cancel(keyed("k"), id!);
    await stage.service.cancel(REQUEST, other!);
    await expect(stage.service.cancel(keyed("k"), id!)).rejects.toMatchObject({
      code: "NOT_FOUND",
      message: expect.stringContaining("was done before") as string,
    });
  });
});

describe("a job that only the views have", () => {
  /** One that was completed twice, and is not in the book any more; the views know of the first time only. */
  async function completedTwice(): Promise<Stage & { id: string }> {
    const made = await leading({ finishedMax: 1 });
    const { stage, fold } = made;
    const id = await stage.submit();
    await stage.complete("a", await stage.leased("a"));
    const first = stage.service.job(id)!;
    const position = fold.chain.sequence;
    await stage.service.retry(REQUEST, id);
    await stage.complete("a", await stage.leased("a"));
    await stage.submit();
    await stage.complete("a", await stage.leased("a"));
    expect(fold.book.known(id)).toBe(false);
    await stage.views.put(position, [first], [], []);
    return { ...made, id };
  }

  it("C8: is not decided on while the views are behind: it waits for them", async () => {
    const { stage, clock, fold, id } = await completedTwice();
    const cancelled = watch(stage.service.cancel(REQUEST, id));
    const retried = watch(stage.service.retry(REQUEST, id));
    await advance(clock, 100);
    expect([cancelled.state, retried.state]).toEqual(["pending", "pending"]);
    const latest = { ...(await stage.views.get(id)).job!, jobEpoch: 4 };
    await stage.views.put(fold.chain.sequence, [latest], [], []);
    await advance(clock, 100);
    expect(cancelled.code).toBe("JOB_FINISHED");
    // Its epoch goes on from where it was, and never back.
    expect(retried.value).toMatchObject({ state: "pending", jobEpoch: 5 });
  });

  it("is found by a request that came while this node was about to lead", async () => {
    const { stage, clock, fold, id } = await completedTwice();
    const latest = { ...(await stage.views.get(id)).job!, jobEpoch: 4 };
    await stage.views.put(fold.chain.sequence, [latest], [], []);
    stage.leadership.set(null, true);
    const cancelled = watch(stage.service.cancel(REQUEST, id));
    const retried = watch(stage.service.retry(REQUEST, id));
    await drain();
    stage.leadership.set(2);
    await drain();
    await advance(clock, 100);
    expect(cancelled.code).toBe("JOB_FINISHED");
    expect(retried.value).toMatchObject({ state: "pending", jobEpoch: 5 });
  });

  it("C8: is not decided on at all where they stay behind", async () => {
    const { stage, clock, fold, id } = await completedTwice();
    const before = fold.chain.sequence;
    const retried = watch(stage.service.retry(REQUEST, id));
    await advance(clock, 3_000);
    expect(retried.code).toBe("OVERLOADED");
    expect(fold.chain.sequence).toBe(before);
  });

  it("C8: is looked for again where it was sent once more and dropped while the views were asked", async () => {
    const { stage, clock, fold, id } = await completedTwice();
    const latest = { ...(await stage.views.get(id)).job!, jobEpoch: 4 };
    await stage.views.put(fold.chain.sequence, [latest], [], []);
    const found = Promise.withResolvers<void>();
    const get = stage.views.get.bind(stage.views);
    stage.views.get = async (jobId) => {
      const job = await get(jobId);
      await found.promise;
      return job;
    };
    const retried = watch(stage.service.retry(REQUEST, id));
    await drain();
    stage.views.get = get;
    await stage.service.retry(REQUEST, id);
    await stage.complete("a", await stage.leased("a"));
    await stage.submit();
    await stage.complete("a", await stage.leased("a"));
    expect(fold.book.known(id)).toBe(false);
    await stage.views.put(fold.chain.sequence, [{ ...latest, jobEpoch: 6 }], [], []);
    found.resolve();
    await drain();
    await advance(clock, 100);
    expect(retried.value).toMatchObject({ state: "pending", jobEpoch: 7 });
  });
});
