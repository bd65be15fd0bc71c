// What an agent's calls say and are told, beyond the leases themselves.

import { describe, expect, it } from "vitest";
import { systemDigest as digest } from "../../drivers/system/digest.ts";
import { ManualClock } from "../../engine/test-engine.ts";
import { MemoryLog, MemoryStore } from "../../logs/index.ts";
import type { SiteJournal } from "../journal/site-journal.ts";
import { JobsStage, newFold } from "./test-jobs.ts";
import { advance, drain } from "../scopes/test-scopes.ts";

async function leading(): Promise<{ stage: JobsStage; fold: SiteJournal; clock: ManualClock }> {
  const clock = new ManualClock();
  const fold = newFold(digest);
  const stage = new JobsStage(clock, new MemoryLog(new MemoryStore(), fold), fold, digest);
  stage.leadership.set(1);
  await drain();
  return { stage, fold, clock };
}

describe("log chunks", () => {
  it("C5: are answered with where the log ends, also where they were not taken", async () => {
    const { stage } = await leading();
    await stage.submit();
    const { jobId, jobEpoch, leaseId } = await stage.leased("a");
    const ref = { jobId, jobEpoch, leaseId };
    const chunk = (offset: number, text: string) => ({ ...ref, chunk: { offset, text } });
    const ends = async (...logs: ReturnType<typeof chunk>[]) =>
      (await stage.poll("a", { renew: [ref], logs, max: 0 })).logEnds;
    expect(await ends(chunk(0, "one"), chunk(3, "two"))).toEqual([3, 6]);
    expect(await ends(chunk(9, "behind a gap"))).toEqual([6]);
    expect(await ends()).toEqual([]);
    expect(await ends({ ...chunk(6, "x"), jobEpoch: 9 })).toEqual([null]);
  });
});

describe("an agent that an operator drains", () => {
  it("hears nothing while it waits, is given what waits when it is undone, and keeps what it had", async () => {
    const { stage } = await leading();
    await stage.submit();
    const lease = await stage.leased("a");
    const request = { caller: "op", idempotencyKey: null, bodyHash: "" };
    await stage.service.drainAgent(request, "agent-a", true);
    expect(stage.service.agents()).toMatchObject([{ state: "draining", running: 1 }]);
    const jobId = await stage.submit();
    expect(stage.service.whyPending(jobId)).toMatchObject({ reason: "no-agent" });
    expect((await stage.poll("a")).leases).toEqual([]);
    const waiting = stage.poll("a", { waitMs: 5_000 });
    await drain();
    expect(await stage.complete("a", lease)).toMatchObject({ ok: true });
    await stage.service.drainAgent(request, "agent-a", false);
    expect((await waiting).leases).toMatchObject([{ jobId }]);
    await expect(stage.service.drainAgent(request, "nobody", true)).rejects.toMatchObject({ code: "NOT_FOUND" });
  });

  it("is counted as one that is there by the next leader too", async () => {
    const { stage, clock } = await leading();
    await stage.submit();
    await stage.leased("a");
    await stage.service.drainAgent({ caller: "op", idempotencyKey: null, bodyHash: "" }, "agent-a", true);
    stage.leadership.set(null);
    stage.leadership.set(2);
    await drain();
    // Nobody hears of it: it goes offline as any other, and comes back draining.
    await advance(clock, 100_000);
    expect(stage.service.agents()).toMatchObject([{ state: "offline" }]);
    await stage.poll("a");
    expect(stage.service.agents()).toMatchObject([{ state: "draining" }]);
  });
});

describe("a lease's id and an agent's session", () => {
  it("D2: are in no event, and nowhere in the state: who reads all of it can't end the job", async () => {
    const { stage, fold } = await leading();
    const events: string[] = [];
    fold.follow(({ bytes }) => void events.push(new TextDecoder().decode(bytes)));
    await stage.submit();
    await stage.submit();
    const secret = "the-session-of-a-process";
    const lease = await stage.leased(secret);
    const { jobId, jobEpoch, leaseId, leaderEpoch } = lease;
    const ref = { jobId, jobEpoch, leaseId };
    await stage.poll(secret, { renew: [ref], max: 0, logs: [{ ...ref, chunk: { offset: 0, text: "x" } }] });
    const text = events.join("\n");
    const seen = JSON.parse(events.find((one) => one.includes("build:assigned"))!) as {
      payload: { leaseHash: string; sessionHash: string };
    };
    const state = new TextDecoder().decode(fold.book.snapshot()) + JSON.stringify(stage.service.agents());
    for (const one of [text, state, JSON.stringify(stage.service.job(jobId))]) {
      expect(one).not.toContain(leaseId);
      // Its name has the session in it, as the stage makes them.
      expect(one.replaceAll(`agent-${secret}`, "")).not.toContain(secret);
    }
    const { leaseHash, sessionHash } = seen.payload;
    for (const [session, known] of [
      [sessionHash, leaseHash],
      [sessionHash, leaseId],
      [secret, leaseHash],
    ] as const) {
      const outcome = { kind: "completed", result: "forged" } as const;
      const forged = { jobId, jobEpoch, leaseId: known, leaderEpoch, outcome };
      expect(await stage.service.results(session, [forged])).toMatchObject([{ ok: false, code: "STALE_EPOCH" }]);
    }
    expect(await stage.complete(secret, lease)).toMatchObject({ ok: true, isRepeated: false });
    expect(await stage.complete(secret, lease)).toMatchObject({ ok: true, isRepeated: true });
  });

  it("D2: what is renewed is answered by the ids that the agent knows", async () => {
    const { stage } = await leading();
    await stage.submit();
    const { jobId, jobEpoch, leaseId } = await stage.leased("a");
    const renew = [
      { jobId, jobEpoch, leaseId },
      { jobId, jobEpoch, leaseId: "another" },
    ];
    expect((await stage.poll("a", { renew, max: 0 })).renewed).toMatchObject([
      { leaseId, outcome: "renewed" },
      { leaseId: "another", outcome: "lost" },
    ]);
  });
});
