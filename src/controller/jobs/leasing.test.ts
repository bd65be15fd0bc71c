import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { TenureError } from "../../core/kit/errors.ts";
import { systemDigest as digest } from "../../drivers/system/digest.ts";
import { ManualClock } from "../../engine/test-engine.ts";
import { MemoryLog, MemoryStore } from "../../logs/index.ts";
import type { AgentInfo, LeaseAnswer, LeaseCall } from "../../ports/jobs.ts";
import type { SiteJournal } from "../journal/site-journal.ts";
import { JobsStage, newFold, REQUEST, SPEC } from "./test-jobs.ts";
import { advance, drain, type Outcome, watch } from "../scopes/test-scopes.ts";

/** As the writer's: appends under way past which nothing new is taken. */
const APPENDS_MAX = 1_024;
const JOBS_APPEND_BYTES_MAX = 768 * 1024;

async function leading(): Promise<{ stage: JobsStage; clock: ManualClock; fold: SiteJournal }> {
  const clock = new ManualClock();
  const fold = newFold(digest);
  const stage = new JobsStage(clock, new MemoryLog(new MemoryStore(), fold), fold, digest);
  stage.leadership.set(1);
  await drain();
  return { stage, clock, fold };
}

function agentOf(name: string, change: Partial<AgentInfo> = {}): AgentInfo {
  return { name, session: name, kinds: ["work"], labels: {}, platform: "linux", capacity: 1, ...change };
}

function parked(stage: JobsStage, agent: AgentInfo, call: Partial<LeaseCall> = {}): Outcome<LeaseAnswer> {
  return watch(stage.poll(agent.session, { agent, waitMs: 60_000, ...call }));
}

/** So many appends are under way, each of a job that nobody here can do. */
async function fill(stage: JobsStage, appends: number): Promise<void> {
  stage.log.isHolding = true;
  while (stage.log.waiting < appends) {
    void watch(stage.submit({ kind: "other" }));
    // One turn each: what is decided together travels together.
    for (let turn = 0; turn < 4; turn++) await Promise.resolve();
  }
}

describe("a job that is ready", () => {
  it("is not kept from those behind by a process that was replaced while it waited; that one is woken", async () => {
    const { stage } = await leading();
    const old = parked(stage, agentOf("x", { session: "s1" }));
    await drain();
    const other = parked(stage, agentOf("b"));
    await drain();
    stage.log.isHolding = true;
    // Not even committed yet.
    const replaced = watch(stage.poll("s2", { agent: agentOf("x", { session: "s2" }), max: 0 }));
    await drain();
    expect([old.state, stage.service.waiting]).toEqual(["resolved", 1]);
    stage.log.release();
    await stage.submit();
    await drain();
    expect(replaced.state).toBe("resolved");
    expect(other.value?.leases).toHaveLength(1);
  });

  it("is not kept from those behind by an agent that was removed while it waited", async () => {
    const { stage } = await leading();
    const gone = parked(stage, agentOf("a"));
    const other = parked(stage, agentOf("b"));
    await drain();
    await stage.service.removeAgent(REQUEST, "a");
    await stage.submit();
    await drain();
    expect(gone.value?.leases).toEqual([]);
    expect(other.value?.leases).toHaveLength(1);
  });

  it("is not kept from those behind by an agent that is taken to have no room, and is given to it when it has", async () => {
    const { stage } = await leading();
    await stage.submit();
    // The answer is lost: the agent does not know what it has.
    const lease = await stage.leased("a", { agent: agentOf("a"), ttlMs: 600_000 });
    const full = parked(stage, agentOf("a"));
    const idle = parked(stage, agentOf("b"));
    await drain();
    await stage.submit();
    await drain();
    expect([full.state, idle.value?.leases.length]).toEqual(["pending", 1]);
    await stage.submit();
    await drain();
    expect(full.state).toBe("pending");
    await stage.complete("a", lease);
    await drain();
    expect(full.value?.leases).toHaveLength(1);
  });

  it("is given to the agent whose restart has freed it", async () => {
    const { stage } = await leading();
    const id = await stage.submit();
    await stage.poll("s1", { agent: agentOf("x", { session: "s1" }) });
    const again = parked(stage, agentOf("x", { session: "s2" }));
    await drain();
    expect(again.value?.leases).toMatchObject([{ jobId: id }]);
  });

  it("goes to others who wait where the restarted agent that freed it wants none", async () => {
    const { stage } = await leading();
    await stage.submit();
    await stage.poll("s1", { agent: agentOf("x", { session: "s1" }) });
    const other = parked(stage, agentOf("b"));
    await drain();
    await stage.poll("s2", { agent: agentOf("x", { session: "s2" }), max: 0 });
    await drain();
    expect(other.value?.leases).toHaveLength(1);
  });

  it("is given to those who wait as soon as draining is taken back", async () => {
    const { stage } = await leading();
    const waiting = parked(stage, agentOf("a"));
    await drain();
    stage.service.setDraining(true);
    await stage.submit();
    await drain();
    expect(waiting.state).toBe("pending");
    stage.service.setDraining(false);
    await drain();
    expect(waiting.value?.leases).toHaveLength(1);
  });

  it("is not given out while one of two who asked for quiet still wants it", async () => {
    const { stage } = await leading();
    const waiting = parked(stage, agentOf("a"));
    await drain();
    stage.service.setDraining(true, "hand-over");
    stage.service.setDraining(true);
    await stage.submit();
    stage.service.setDraining(false, "hand-over");
    await drain();
    expect(stage.service.isDraining()).toBe(true);
    expect(waiting.state).toBe("pending");
    stage.service.setDraining(false);
    await drain();
    expect(waiting.value?.leases).toHaveLength(1);
  });

  it("submitted in the turn in which a known agent asks is given to it", async () => {
    const { stage } = await leading();
    await stage.poll("a", { agent: agentOf("a"), max: 0 });
    const waiting = parked(stage, agentOf("a"));
    const submitted = watch(stage.submit());
    await drain();
    expect([submitted.state, waiting.value?.leases.length]).toEqual(["resolved", 1]);
  });

  it("is never given to one who hung up before it was parked, nor to one who asks when it is gone already", async () => {
    const { stage } = await leading();
    stage.log.isHolding = true;
    const gone = new AbortController();
    const ghost = watch(stage.poll("g", { waitMs: 60_000 }, gone.signal));
    await drain();
    gone.abort();
    stage.log.release();
    await drain();
    expect([ghost.state, stage.service.waiting]).toEqual(["resolved", 0]);
    const id = await stage.submit();
    expect((await stage.poll("g", { waitMs: 60_000 }, gone.signal)).leases).toEqual([]);
    expect(stage.service.job(id)?.state).toBe("pending");
  });

  it("that a refused append has taken back is given again, a moment later", async () => {
    const { stage, clock } = await leading();
    await stage.poll("b", { agent: agentOf("b"), max: 0 });
    const id = await stage.submit();
    stage.log.isHolding = true;
    const first = watch(stage.poll("a"));
    const next = parked(stage, agentOf("b"));
    await drain();
    stage.log.answer(new TenureError("UNCOMMITTED_LIMIT", "too much waits"));
    await drain();
    expect([next.state, stage.service.waiting]).toEqual(["pending", 1]);
    await advance(clock, 100);
    expect(first.code).toBe("UNCOMMITTED_LIMIT");
    expect(next.value?.leases).toMatchObject([{ jobId: id }]);
  });

  it("never stays beside an agent that waits, may run it and has room, whatever happens", async () => {
    const step = fc.record({ kind: fc.nat(9), a: fc.nat(3), b: fc.nat(3) });
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 25 }), async (steps) => {
        const { stage, clock, fold } = await leading();
        const waiting = new Map<string, Outcome<LeaseAnswer>>();
        const held: { session: string; lease: LeaseAnswer["leases"][number] }[] = [];
        let restarts = 0;
        const who = (at: number): AgentInfo =>
          agentOf(`a${at}`, { session: `a${at}.${restarts}`, labels: { host: `h${at % 2}` }, capacity: 1 + (at % 2) });
        for (const { kind, a, b } of steps) {
          const agent = who(a);
          if (kind < 3) waiting.set(`a${a}`, parked(stage, agent, { max: 1 + (b % 2), ttlMs: 5_000 }));
          else if (kind < 6) {
            const labels: Record<string, string> = b === 0 ? {} : { host: `h${b}` };
            void watch(stage.submit({ labels, concurrency: a === 0 ? { key: "k", limit: 1 } : null }));
          } else if (kind === 6) restarts++;
          else if (kind === 7) await advance(clock, 2_000 * (a + 1));
          else if (kind === 8 && held.length > 0) {
            const { session, lease } = held.splice(a % held.length, 1)[0]!;
            void watch(stage.complete(session, lease));
          } else if (kind === 9) await stage.service.pauseQueue(REQUEST, "default", b < 2);
          if (b !== 3) await drain();
          for (const { value } of waiting.values()) {
            for (const lease of value?.leases ?? []) {
              const session = stage.service.job(lease.jobId)?.lease?.session;
              if (session !== undefined) held.push({ session, lease });
            }
          }
        }
        await stage.service.pauseQueue(REQUEST, "default", false);
        await drain();
        const times = { nowMs: clock.wallMs(), wallMs: clock.wallMs() };
        const online = stage.service.agents();
        const idle = [...waiting].filter(([name, { state }]) => {
          const known = online.find((one) => one.name === name);
          return state === "pending" && known !== undefined && known.running < known.capacity;
        });
        for (const id of fold.book.applied.ids()) {
          if (fold.book.applied.whyPending(id, times, false)?.reason !== "next") continue;
          const { labels } = fold.book.applied.job(id)!.spec;
          const fits = idle.filter(
            ([name]) => labels["host"] === undefined || labels["host"] === `h${Number(name[1]) % 2}`,
          );
          expect(fits.map(([name]) => name)).toEqual([]);
        }
      }),
      { numRuns: 60 },
    );
  });
});

describe("where too many appends wait", () => {
  it("trap 66: a submit that is written is never told OVERLOADED for what it would have been given to", async () => {
    const { stage, fold } = await leading();
    const waiting = Array.from({ length: 3 }, (_, at) =>
      parked(stage, agentOf(`p${at}`, { labels: { host: `h${at}` } })),
    );
    await drain();
    let overhead = 0;
    const stop = fold.follow(({ bytes }) => (overhead = bytes.length - 100));
    await stage.submit({ kind: "other", payload: "x".repeat(100) });
    stop();
    await fill(stage, APPENDS_MAX - 2);
    // So large that what is handed out does not fit into its append any more: each of it needs another.
    const payload = "x".repeat(Math.floor((JOBS_APPEND_BYTES_MAX - 150) / 3) - overhead);
    const large = { ...SPEC, payload };
    const submitted = watch(stage.service.submit(REQUEST, [large, large, large]));
    await drain();
    expect(submitted.state).toBe("pending");
    stage.log.release();
    for (let turn = 0; turn < 100; turn++) await drain();
    expect(submitted).toMatchObject({ state: "resolved" });
    // Those for whom there was no room come later, without anybody asking.
    expect(waiting.map(({ value }) => value?.leases.length)).toEqual([1, 1, 1]);
    expect(fold.book.applied.stats().byState.assigned).toBe(3);
  });

  it("nothing is thrown out of the timer that hands out what has become ready, and what is too much for one turn comes later", async () => {
    const { stage, clock } = await leading();
    await stage.submitMany(5_000, { notBeforeMs: clock.wallMs() + 400 });
    const call = { max: 1_000 };
    const waiting = Array.from({ length: 5 }, (_, at) =>
      parked(stage, agentOf(`p${at}`, { labels: { host: `h${at}` }, capacity: 1_000 }), call),
    );
    // A turn for each: they are large.
    await advance(clock, 0);
    await fill(stage, APPENDS_MAX - 1);
    await advance(clock, 450);
    stage.log.release();
    for (let turn = 0; turn < 100; turn++) await drain();
    await advance(clock, 1_000);
    expect(waiting.map(({ value }) => value?.leases.length)).toEqual([1_000, 1_000, 1_000, 1_000, 1_000]);
  });

  it("an agent keeps what it has, brings its results, and waits for more; only new work is told to come back", async () => {
    const { stage } = await leading();
    await stage.service.submit(REQUEST, [SPEC, SPEC, SPEC]);
    const { leases } = await stage.poll("a", { max: 2 });
    await fill(stage, APPENDS_MAX);
    await expect(stage.submit()).rejects.toMatchObject({ code: "OVERLOADED" });
    const beat = watch(stage.poll("a", { max: 0, renew: leases }));
    const result = watch(stage.complete("a", leases[0]!));
    const cancelled = watch(stage.service.cancel(REQUEST, leases[1]!.jobId));
    const more = watch(stage.poll("a", { max: 1, waitMs: 60_000 }));
    await drain();
    expect([beat, result, cancelled, more].map(({ code }) => code)).toEqual(Array.from({ length: 4 }));
    stage.log.release();
    for (let turn = 0; turn < 100; turn++) await drain();
    expect([beat.state, result.value, cancelled.value?.state]).toMatchObject(["resolved", { ok: true }, "cancelling"]);
    expect(more.value?.leases).toHaveLength(1);
  });
});

describe("one call of an agent", () => {
  it("trap 66: is refused for what it reports before it is given anything", async () => {
    const { stage } = await leading();
    await stage.service.submit(REQUEST, [SPEC, SPEC]);
    const lease = await stage.leased("a");
    const chunk = (at: number) => ({ ...lease, chunk: { offset: at * 60_000, text: "x".repeat(60_000) } });
    const logs = Array.from({ length: 14 }, (_, at) => chunk(at));
    await expect(stage.poll("a", { logs })).rejects.toMatchObject({ code: "PAYLOAD_TOO_LARGE" });
    expect(stage.service.stats().byState).toMatchObject({ pending: 1, assigned: 1 });
  });

  it("is refused where its report is, before it waits for jobs", async () => {
    const { stage } = await leading();
    await stage.submit();
    const lease = await stage.leased("a");
    stage.log.isHolding = true;
    const progress = [{ ...lease, progress: { share: 0.5, message: null } }];
    const call = watch(stage.poll("a", { progress, waitMs: 60_000 }));
    await drain();
    stage.log.answer(new TenureError("UNCOMMITTED_LIMIT", "too much waits"));
    await drain();
    expect([call.code, stage.service.waiting]).toEqual(["UNCOMMITTED_LIMIT", 0]);
  });

  it("trap 66: brings leases that are committed, also where this node does not lead any more when they are", async () => {
    const { stage } = await leading();
    await stage.service.submit(REQUEST, [SPEC, SPEC]);
    const lease = await stage.leased("a");
    stage.log.isHolding = true;
    const call = watch(stage.poll("a", { renew: [lease] }));
    await drain();
    stage.leadership.set(null);
    stage.log.release();
    await drain();
    expect(call.value?.leases).toHaveLength(1);
    // What it has besides is for the new leader to say.
    expect(call.value?.renewed).toEqual([]);
  });

  it("keeps no lease but its own", async () => {
    const { stage, clock } = await leading();
    const id = await stage.submit();
    const lease = await stage.leased("a", { ttlMs: 10_000 });
    for (let at = 0; at < 4; at++) {
      await advance(clock, 4_000);
      expect((await stage.poll("b", { max: 0, renew: [lease] })).renewed).toMatchObject([{ outcome: "lost" }]);
      await stage.poll("a", { max: 0, renew: [{ ...lease, leaseId: "another" }] });
    }
    expect(stage.service.job(id)).toMatchObject({ state: "pending", losses: 1 });
  });
});
