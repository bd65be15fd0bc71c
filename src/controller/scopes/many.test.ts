import { beforeEach, describe, expect, it } from "vitest";
import { TenureError } from "../../core/kit/errors.ts";
import { SCOPES_MAX, TURN_SLICE_MS } from "../../core/kit/limits.ts";
import { WorkedClock } from "../../engine/test-engine.ts";
import { stageOn } from "../../sim/controller/test-scopes-stage.ts";
import { MemoryStore } from "../../logs/index.ts";
import { STATE_APPENDS_MAX } from "../state/limits.ts";
import { advance, drain, type Outcome, type ScopesStage, watch } from "./test-scopes.ts";
import type { AcquireAnswer } from "../../ports/scopes.ts";

const PER_LOOK_MS = 0.02;
/** What a slice has time for, each costing one look at the clock at least. */
const PER_TURN_MAX = TURN_SLICE_MS / PER_LOOK_MS + 1;
const full = new TenureError("UNCOMMITTED_LIMIT", "too much waits to be committed");

let clock: WorkedClock;
let store: MemoryStore;
let stage: ScopesStage;

beforeEach(async () => {
  [clock, store] = [new WorkedClock(), new MemoryStore()];
  stage = stageOn(store, clock);
  await stage.lead(1);
});

const nameOf = (at: number): string => `s${at}`;

/** Each in turn, and so that nobody is refused for how many come at once. */
async function all<T>(count: number, ask: (at: number) => Promise<T>): Promise<Outcome<T>[]> {
  const outcomes: Outcome<T>[] = [];
  for (let at = 0; at < count; at++) {
    outcomes.push(watch(ask(at)));
    if (at % 1_000 === 999) await drain();
  }
  await drain();
  return outcomes;
}

const ask = (session: string, ttlMs: number, waitMs: number) => (at: number) =>
  stage.acquire(session, { scope: nameOf(at), ttlMs, waitMs });

function epochsOf(outcomes: readonly Outcome<AcquireAnswer>[]): (number | null)[] {
  return outcomes.map(({ value }) => (value?.granted === true ? value.epoch : null));
}

/** Turn by turn until it is so; the most that one turn has added to what is counted. */
async function mostInATurn(count: () => number, isSo: () => boolean): Promise<number> {
  let [most, before] = [0, count()];
  for (let turn = 0; !isSo(); turn++) {
    if (turn > 5_000) throw new Error("it never is so");
    clock.nowMs = Math.max(clock.nowMs, clock.nextMs);
    clock.fireNext();
    [most, before] = [Math.max(most, count() - before), count()];
    await drain();
  }
  return most;
}

describe("10,000 scopes whose holders are gone at once", { timeout: 60_000 }, () => {
  it("go to those who have waited longest for each, a slice in a turn, all within two seconds", async () => {
    expect(epochsOf(await all(SCOPES_MAX, ask("gone", 10_000, 0)))).not.toContain(null);
    const first = await all(SCOPES_MAX, ask("first", 60_000, 60_000));
    const second = await all(100, ask("second", 60_000, 60_000));
    expect(stage.service.stats).toMatchObject({ held: SCOPES_MAX, waiting: SCOPES_MAX + 100 });
    await advance(clock, 9_000);
    expect(store.feed.position).toBe(SCOPES_MAX);

    clock.perLookMs = PER_LOOK_MS;
    const beganMs = clock.nowMs;
    const most = await mostInATurn(
      () => store.feed.position,
      () => stage.service.stats.waiting === 100,
    );
    // An end and a grant each.
    expect(most).toBeLessThanOrEqual(2 * PER_TURN_MAX);
    expect(clock.nowMs - beganMs).toBeLessThan(1_000 + 2_000);
    expect(epochsOf(first)).not.toContain(null);
    expect(second.every(({ state }) => state === "pending")).toBe(true);
    expect(stage.service.stats).toMatchObject({ held: SCOPES_MAX });
  });

  it("wait while as many appends wait as may, without a turn for nothing, and go on when those are committed", async () => {
    await all(SCOPES_MAX, ask("gone", 10_000, 0));
    await advance(clock, 9_900);
    stage.log.isHolding = true;
    clock.perLookMs = PER_LOOK_MS;
    await mostInATurn(
      () => stage.log.waiting,
      () => stage.log.waiting >= STATE_APPENDS_MAX,
    );
    expect(stage.log.waiting).toBeLessThanOrEqual(STATE_APPENDS_MAX + PER_TURN_MAX);
    clock.perLookMs = 0;
    const [beganMs, timers, waiting] = [clock.nowMs, clock.timersSet, stage.log.waiting];
    await mostInATurn(
      () => 0,
      () => clock.nowMs - beganMs > 1_000 || clock.timersSet - timers > 1_000,
    );
    expect(clock.timersSet - timers).toBeLessThanOrEqual(110);
    expect(stage.log.waiting).toBe(waiting);
    stage.log.release();
    await drain();
    await advance(clock, 1_000);
    expect(stage.service.stats.held).toBe(0);
  });
});

describe("grants that the log refused", () => {
  const SCOPES = 1_000;

  it("are owed to those who wait next, and made up for a slice in a turn, not all in one", async () => {
    stage.log.isHolding = true;
    const refused = await all(SCOPES, ask("first", 60_000, 0));
    const next = await all(SCOPES, ask("second", 60_000, 60_000));
    expect(stage.log.waiting).toBe(SCOPES);
    stage.log.answer(full);
    await drain();
    expect(new Set(refused.map(({ code }) => code))).toEqual(new Set(["UNCOMMITTED_LIMIT"]));

    clock.perLookMs = PER_LOOK_MS;
    const beganMs = clock.nowMs;
    const most = await mostInATurn(
      () => store.feed.position,
      () => stage.service.stats.waiting === 0,
    );
    expect(most).toBeLessThanOrEqual(PER_TURN_MAX);
    expect(clock.nowMs - beganMs).toBeLessThan(1_000);
    expect(epochsOf(next)).not.toContain(null);
  });

  it("are not tried again before a while is over, however often the log refuses", async () => {
    const refusing = (): void => {
      if (stage.log.waiting > 0) stage.log.answer(full);
      stage.log.isHolding = true;
    };
    stage.log.isHolding = true;
    await all(10, ask("first", 60_000, 0));
    await all(10, ask("second", 60_000, 60_000));
    await all(10, ask("third", 60_000, 60_000));
    const [beganMs, timers] = [clock.nowMs, clock.timersSet];
    for (let turn = 0; clock.nowMs - beganMs < 1_000 && turn < 1_000; turn++) {
      refusing();
      await drain();
      clock.nowMs = Math.max(clock.nowMs, Math.min(clock.nextMs, beganMs + 1_000));
      clock.fireNext();
      await drain();
    }
    expect(clock.timersSet - timers).toBeLessThan(20);
  });
});
