// Answers to agents that got lost, between a leader and the next, or on the way: what was given in them comes back with the
// next call, and late calls get nothing.

import { describe, expect, it } from "vitest";
import { TenureError } from "../../core/kit/errors.ts";
import { systemDigest as digest } from "../../drivers/system/digest.ts";
import { ManualClock } from "../../engine/test-engine.ts";
import { MemoryLog, MemoryStore } from "../../logs/index.ts";
import type { AgentInfo, LeaseAnswer, LeaseCall } from "../../ports/jobs.ts";
import { JobsStage, newFold, SPEC, REQUEST } from "./test-jobs.ts";
import { advance, drain, type Outcome, watch } from "../scopes/test-scopes.ts";

async function leading(store = new MemoryStore(), epoch = 1, clock = new ManualClock()) {
  const fold = newFold(digest);
  const stage = new JobsStage(clock, new MemoryLog(store, fold), fold, digest, `node-${epoch}`);
  stage.leadership.set(epoch);
  await drain();
  return { stage, clock, store };
}

function agentOf(name: string, change: Partial<AgentInfo> = {}): AgentInfo {
  return { name, session: name, kinds: ["work"], labels: {}, platform: "linux", capacity: 2, ...change };
}

const A = agentOf("a");

/** Nobody hears what is answered. */
async function unheard(stage: JobsStage, call: Partial<LeaseCall>): Promise<LeaseAnswer> {
  return stage.poll("a", { agent: A, max: 2, ...call });
}

function parked(stage: JobsStage, agent: AgentInfo, call: Partial<LeaseCall> = {}): Outcome<LeaseAnswer> {
  return watch(stage.poll(agent.session, { agent, waitMs: 60_000, max: 2, ...call }));
}

describe("jobs in an answer that got lost", () => {
  it("trap 66: between two leaders come back with the next call, at once, under higher epochs, and cost nothing", async () => {
    const { stage, store, clock } = await leading();
    const ids = await stage.service.submit(REQUEST, [
      { ...SPEC, lossesMax: 0, attemptsMax: 1 },
      { ...SPEC, lossesMax: 0, attemptsMax: 1 },
    ]);
    stage.log.isHolding = true;
    const first = watch(unheard(stage, { poll: 1, answered: 0 }));
    await drain();
    // Written, and the node does not lead any more when it is.
    stage.leadership.set(null);
    stage.log.release();
    await drain();
    const next = (await leading(store, 2, clock)).stage;
    expect(next.service.stats().byState).toMatchObject({ assigned: 2 });
    const { leases } = await unheard(next, { poll: 2, answered: 0 });
    expect(leases).toMatchObject(ids.map((jobId) => ({ jobId, jobEpoch: 3, attempt: 2, leaderEpoch: 2 })));
    expect(next.service.job(ids[0]!)).toMatchObject({ losses: 0, failures: 0, attempts: [{ end: "undelivered" }, {}] });
    // Had it come after all: what is done by it is refused.
    const stale = first.value!.leases[0]!;
    expect(await next.complete("a", stale, { leaderEpoch: 2 })).toMatchObject({ ok: false, code: "STALE_EPOCH" });
    expect(await next.complete("a", leases[0]!)).toMatchObject({ ok: true, state: "completed" });
  });

  it("take up the agent's capacity where its calls have no numbers, until those leases are over", async () => {
    const { stage, clock } = await leading();
    await stage.service.submit(REQUEST, [SPEC, SPEC]);
    await unheard(stage, {});
    expect((await unheard(stage, {})).leases).toEqual([]);
    await advance(clock, 11_000);
    expect((await unheard(stage, {})).leases).toHaveLength(2);
  });

  it("go to others who wait, too", async () => {
    const { stage } = await leading();
    const ids = await stage.service.submit(REQUEST, [SPEC, SPEC]);
    await unheard(stage, { poll: 1, answered: 0 });
    const other = parked(stage, agentOf("b", { capacity: 1 }));
    await drain();
    const { leases } = await unheard(stage, { poll: 2, answered: 0 });
    expect(other.value?.leases).toMatchObject([{ jobId: ids[0] }]);
    expect(leases).toMatchObject([{ jobId: ids[1] }]);
  });

  it("go to others who wait also where the leader is asked by one that it gives nothing to", async () => {
    const { stage } = await leading();
    await stage.submit();
    await unheard(stage, { poll: 1, answered: 0 });
    const other = parked(stage, agentOf("b"));
    await drain();
    const gone = new AbortController();
    gone.abort();
    await stage.poll("a", { agent: A, poll: 2, answered: 0 }, gone.signal);
    await drain();
    expect(other.value?.leases).toHaveLength(1);
  });

  it("come back while the leader is drained, and are nobody's then", async () => {
    const { stage } = await leading();
    const id = await stage.submit();
    await unheard(stage, { poll: 1, answered: 0 });
    stage.service.setDraining(true);
    expect((await unheard(stage, { poll: 2, answered: 0 })).leases).toEqual([]);
    expect(stage.service.job(id)).toMatchObject({ state: "pending", losses: 0 });
  });

  it("are those of a call that waited for them, too", async () => {
    const { stage } = await leading();
    const first = parked(stage, A, { poll: 1, answered: 0 });
    await drain();
    const id = await stage.submit();
    await drain();
    expect(first.value?.leases).toMatchObject([{ jobId: id }]);
    expect((await unheard(stage, { poll: 2, answered: 0 })).leases).toMatchObject([{ jobId: id, jobEpoch: 3 }]);
    // What this call was given itself stays, however often it is handed out to those who wait.
    expect((await unheard(stage, { poll: 3, answered: 2 })).leases).toEqual([]);
    expect(stage.service.job(id)).toMatchObject({ state: "assigned", jobEpoch: 3 });
  });

  it("are counted anew: the end of the lost lease is nothing to the next one", async () => {
    const { stage, clock } = await leading();
    const id = await stage.submit({ timeoutMs: 9_000 });
    await unheard(stage, { poll: 1, answered: 0 });
    await advance(clock, 6_000);
    await unheard(stage, { poll: 2, answered: 0 });
    await advance(clock, 6_000);
    expect(stage.service.job(id)).toMatchObject({ state: "assigned", jobEpoch: 3 });
    await advance(clock, 6_000);
    expect(stage.service.job(id)?.attempts.map(({ end }) => end)).toEqual(["undelivered", "timed-out"]);
  });
});

describe("a call that says what was answered", () => {
  it("is answered when it is committed what comes back, also where nothing can be given", async () => {
    const { stage } = await leading();
    const id = await stage.submit();
    await unheard(stage, { poll: 1, answered: 0 });
    stage.service.setDraining(true);
    stage.log.isHolding = true;
    const next = watch(unheard(stage, { poll: 2, answered: 0 }));
    await drain();
    expect(next.state).toBe("pending");
    stage.log.answer(new TenureError("UNCOMMITTED_LIMIT", "too much waits"));
    await drain();
    // So the agent says it again.
    expect(next.code).toBe("UNCOMMITTED_LIMIT");
    expect(stage.service.job(id)?.state).toBe("assigned");
    stage.log.release();
    await unheard(stage, { poll: 3, answered: 0 });
    expect(stage.service.job(id)?.state).toBe("pending");
  });

  it("is not answered by a leader that may be none any more: another may have given what this one knows nothing of", async () => {
    const { stage } = await leading();
    await stage.poll("a", { agent: A, max: 0 });
    stage.leadership.isConfirming = false;
    await expect(unheard(stage, { poll: 2, answered: 0 })).rejects.toMatchObject({ code: "OUTCOME_UNKNOWN" });
    const waiting = parked(stage, A, { poll: 4, answered: 2 });
    await drain();
    expect(waiting.code).toBe("OUTCOME_UNKNOWN");
    // Where none is missing there is nothing to confirm.
    expect((await unheard(stage, { poll: 5, answered: 4 })).leases).toEqual([]);
  });
});

describe("a call that comes late", () => {
  it("behind a later one of its process, or once more, is given nothing and takes nothing away", async () => {
    const { stage } = await leading();
    const [id] = await stage.service.submit(REQUEST, [SPEC, SPEC]);
    await unheard(stage, { poll: 3, answered: 0, max: 1 });
    for (const poll of [1, 2, 3]) {
      const late = unheard(stage, { poll, answered: 0 });
      await expect(late).rejects.toMatchObject({ code: "OUTCOME_UNKNOWN", message: expect.stringContaining("late") });
    }
    expect(stage.service.job(id!)).toMatchObject({ state: "assigned", jobEpoch: 1 });
    expect(stage.service.stats().byState).toMatchObject({ pending: 1, assigned: 1 });
    // Another process under the name counts from 1 again.
    const again = await stage.poll("a2", { agent: agentOf("a", { session: "a2" }), poll: 1, answered: 0 });
    expect(again.leases).toHaveLength(1);
  });

  it("to the next leader is given nothing either, as long as what the later one was given goes on", async () => {
    const { stage, store, clock } = await leading();
    await stage.service.submit(REQUEST, [SPEC, SPEC]);
    await unheard(stage, { poll: 3, answered: 0, max: 1 });
    stage.leadership.set(null);
    const next = (await leading(store, 2, clock)).stage;
    await expect(unheard(next, { poll: 2, answered: 0 })).rejects.toMatchObject({ code: "OUTCOME_UNKNOWN" });
    expect((await unheard(next, { poll: 4, answered: 3 })).leases).toHaveLength(1);
  });

  it("does not wait on: the later one ends it, and what comes is the later one's", async () => {
    const { stage } = await leading();
    await stage.submit();
    const earlier = parked(stage, A, { poll: 1, answered: 0, renew: [] });
    await drain();
    const [lease] = earlier.value!.leases;
    const forgotten = parked(stage, A, { poll: 2, answered: 1, renew: [lease!] });
    await drain();
    expect(forgotten.state).toBe("pending");
    // Answered at once, so it is not parked in the other's place.
    await unheard(stage, { poll: 3, answered: 1 });
    await drain();
    expect([forgotten.value?.leases, stage.service.waiting]).toEqual([[], 0]);
    const id = await stage.submit();
    expect(stage.service.job(id)?.state).toBe("pending");
  });

  it("is not parked where a later one came while it was waiting for what it had reported", async () => {
    const { stage } = await leading();
    stage.log.isHolding = true;
    const earlier = parked(stage, A, { poll: 1, answered: 0 });
    await drain();
    const later = watch(unheard(stage, { poll: 2, answered: 0 }));
    await drain();
    stage.log.release();
    await drain();
    expect([earlier.value?.leases, later.value?.leases, stage.service.waiting]).toEqual([[], [], 0]);
  });
});
