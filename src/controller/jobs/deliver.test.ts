// Jobs of transactions over islands, as the leader writes them: once for ever, in order, and never by a leader whose epoch is over.

import { describe, expect, it } from "vitest";
import { type BookLimits, decide } from "../../core/jobs/index.ts";
import { TenureError } from "../../core/kit/errors.ts";
import { wholeOf } from "../../core/kit/pieces.ts";
import { systemDigest as digest } from "../../drivers/system/digest.ts";
import { ManualClock } from "../../engine/test-engine.ts";
import { MemoryLog, MemoryStore } from "../../logs/index.ts";
import type { DeliveredJob } from "../../ports/transactions.ts";
import type { SiteJournal } from "../journal/site-journal.ts";
import { drain, watch } from "../scopes/test-scopes.ts";
import { DELIVERED_JOBS_MAX } from "./limits.ts";
import { JobsStage, newFold, SPEC } from "./test-jobs.ts";

interface Node {
  readonly stage: JobsStage;
  readonly fold: SiteJournal;
  /** Ids, in the order of their events. */
  readonly submitted: string[];
}

function node(store = new MemoryStore(), limits: Partial<BookLimits> = {}): Node {
  const fold = newFold(digest, limits);
  const submitted: string[] = [];
  fold.follow(({ event }) => {
    if (event.eventType === "build:submitted") submitted.push(event.entityId);
  });
  return { stage: new JobsStage(new ManualClock(), new MemoryLog(store, fold), fold, digest), fold, submitted };
}

async function leading(limits: Partial<BookLimits> = {}): Promise<Node> {
  const one = node(new MemoryStore(), limits);
  one.stage.leadership.set(1);
  await drain();
  return one;
}

function job(place: number, operation = 0, payload: string | null = null): DeliveredJob {
  const mark = `txn:t${place}:${operation}`;
  return { id: `job-${place}-${operation}`, by: "mover", spec: { ...SPEC, payload }, mark, place, operation };
}

describe("delivery of a transaction's jobs", () => {
  it("is answered when it is committed, and repeated it does nothing", async () => {
    const { stage, submitted } = await leading();
    stage.log.isHolding = true;
    const first = watch(stage.service.deliver([job(5), job(5, 1)]));
    await drain();
    expect([first.state, stage.service.job("job-5-0")]).toEqual(["pending", null]);
    stage.log.release();
    await drain();
    expect(first.state).toBe("resolved");
    await stage.service.deliver([job(5), job(5, 1)]);
    await stage.service.deliver([job(5, 1), job(6)]);
    expect(submitted).toEqual(["job-5-0", "job-5-1", "job-6-0"]);
  });

  it("wakes an agent that waits", async () => {
    const { stage } = await leading();
    const polled = watch(stage.poll("a", { waitMs: 10_000 }));
    await drain();
    await stage.service.deliver([job(5)]);
    await drain();
    expect(polled.value?.leases).toMatchObject([{ jobId: "job-5-0" }]);
  });

  it("is refused on a node that does not lead, and by the log where the epoch is over: nothing is written", async () => {
    const store = new MemoryStore();
    const [deposed, next] = [node(store), node(store)];
    await expect(deposed.stage.service.deliver([job(5)])).rejects.toMatchObject({ code: "NOT_LEADER" });
    deposed.stage.leadership.set(1);
    await drain();
    await deposed.stage.service.deliver([job(5)]);
    // It has not heard of its successor.
    next.stage.leadership.set(2);
    await drain();
    await next.stage.service.deliver([job(5), job(6)]);
    await expect(deposed.stage.service.deliver([job(6), job(7)])).rejects.toMatchObject({ code: "NOT_LEADER" });
    await next.stage.service.deliver([job(6), job(7)]);
    expect(next.submitted).toEqual(["job-5-0", "job-6-0", "job-7-0"]);
  });

  it("whose outcome is unknown is repeated by the next leader, and is there once", async () => {
    const { stage, submitted } = await leading();
    stage.log.isHolding = true;
    const lost = watch(stage.service.deliver([job(5)]));
    await drain();
    stage.log.answer({ outcome: "unknown" });
    await drain();
    expect(lost.code).toBe("OUTCOME_UNKNOWN");
    stage.log.release();
    await stage.service.deliver([job(5)]);
    await stage.service.deliver([job(5)]);
    expect(submitted).toEqual(["job-5-0"]);
  });

  it("that finds no room is refused for now, and nothing overtakes what waits", async () => {
    const { stage, submitted } = await leading({ liveMax: 1 });
    await stage.submit();
    const first = watch(stage.service.deliver([job(5), job(6)]));
    const second = watch(stage.service.deliver([job(7)]));
    const lease = await stage.leased("a");
    await stage.complete("a", lease);
    await drain();
    // By then there was room for the second.
    expect([first.code, second.code]).toEqual(["OVERLOADED", "OVERLOADED"]);
    await stage.service.deliver([job(5)]);
    expect(submitted.slice(1)).toEqual(["job-5-0"]);
  });

  it("is refused for now where the disk is low, as new jobs are", async () => {
    const { stage, submitted } = await leading();
    stage.refusal = new TenureError("DISK_FULL", "no room is left");
    await expect(stage.service.deliver([job(5)])).rejects.toMatchObject({ code: "DISK_FULL", retryable: true });
    stage.refusal = null;
    await stage.service.deliver([job(5)]);
    expect(submitted).toEqual(["job-5-0"]);
  });

  it("goes on while the cluster is paused: the jobs wait, and nobody is given one", async () => {
    const { stage } = await leading();
    stage.isPaused = true;
    await stage.service.deliver([job(5)]);
    expect((await stage.poll("a")).leases).toEqual([]);
    expect(stage.service.whyPending("job-5-0")).toEqual({ reason: "cluster-paused" });
    stage.isPaused = false;
    stage.service.resumed();
    expect(await stage.leased("a")).toMatchObject({ jobId: "job-5-0" });
  });

  it("of very many and very large ones is cut into appends, in order", async () => {
    const { stage, submitted } = await leading();
    const many = Array.from({ length: 2 * DELIVERED_JOBS_MAX + 3 }, (_, at) => job(5, at));
    const large = Array.from({ length: 64 }, (_, at) => job(6, at, "x".repeat(60_000)));
    await stage.service.deliver([...many, ...large]);
    expect(submitted).toEqual([...many, ...large].map(({ id }) => id));
  });

  it("is known to a node that begins with a snapshot", async () => {
    const { stage, fold } = await leading();
    await stage.service.deliver([job(5), job(6)]);
    const other = node();
    const { chain } = fold;
    other.fold.restore(wholeOf(fold.snapshot()), { position: chain.sequence, epoch: 1 });
    expect(other.fold.book.snapshot()).toEqual(fold.book.snapshot());
    const again = { kind: "deliver", jobs: [job(5), job(6), job(6, 1)] } as const;
    const decision = decide<"deliver">(other.fold.book, again, {
      nowMs: 1,
      skippedMs: 0,
      wallMs: 1,
      leaderEpoch: 2,
      random: () => 0,
      newId: () => "id",
      newJobId: () => "id",
      leaseHash: (leaseId) => leaseId,
    });
    expect(decision).toMatchObject({ kind: "decided", drafts: [{ entityId: "job-6-1" }] });
  });
});
