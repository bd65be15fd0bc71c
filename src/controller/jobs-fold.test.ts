import { describe, expect, it } from "vitest";
import { EMPTY_CHAIN, Sealer } from "../core/events/index.ts";
import { wholeOf } from "../core/kit/pieces.ts";
import { systemDigest as digest } from "../drivers/system/digest.ts";
import { ManualClock } from "../engine/test-engine.ts";
import { MemoryLog, MemoryStore } from "../logs/index.ts";
import { JobsFold } from "./jobs-fold.ts";
import { JobsStage } from "./test-jobs.ts";
import { drain, watch } from "./test-scopes.ts";

const SLICE_BYTES = 1_000;

function folded(clock = new ManualClock()): { fold: JobsFold; stage: JobsStage; clock: ManualClock } {
  const fold = new JobsFold(digest, clock, { sliceBytes: SLICE_BYTES });
  const stage = new JobsStage(clock, new MemoryLog(new MemoryStore(), fold), fold, digest);
  stage.leadership.set(1);
  return { fold, stage, clock };
}

describe("a snapshot of the jobs", () => {
  it("D10: takes many turns, a slice in each, and is of the moment at which it was asked for", async () => {
    const { fold, stage, clock } = folded();
    await stage.submitMany(300);
    const { chain } = fold;
    const hash = fold.book.stateHash(digest);
    const taken = watch(fold.snapshot());
    let turns = 0;
    for (; taken.state === "pending" && turns < 1_000; turns++) {
      // Commands go on: jobs are leased, finished and submitted before they are written, and after.
      const lease = await stage.leased(`a${turns % 3}`);
      if (turns % 2 === 0) await stage.complete(`a${turns % 3}`, lease);
      await stage.submitMany(1);
      expect(clock.fireNext()).toBe(true);
      await drain();
    }
    expect(turns).toBeGreaterThan(10);
    const pieces = taken.value!;
    for (const { length } of pieces) expect(length).toBeLessThan(SLICE_BYTES + 500);
    const other = new JobsFold(digest, clock);
    other.restore(wholeOf(pieces), { position: chain.sequence, epoch: 1 });
    expect(other.chain).toEqual(chain);
    expect(other.book.stateHash(digest)).toEqual(hash);
    expect(fold.book.stateHash(digest)).not.toEqual(hash);
  });

  it("D10: is read in many turns before it is restored, which then takes one; the state goes on meanwhile", async () => {
    const { fold, stage, clock } = folded();
    await stage.submitMany(1_000);
    await stage.submitMany(1_000);
    const snapshot = watch(fold.snapshot());
    for (await drain(); snapshot.state === "pending"; await drain()) clock.fireNext();
    const data = wholeOf(snapshot.value!);
    const other = folded(clock);
    await other.stage.submitMany(1);
    const slices = other.fold.prepare(data);
    let turns = 0;
    for (; slices.next().done !== true; turns++) if (turns === 1) await other.stage.submitMany(1);
    expect(turns).toBe(3);
    expect(other.fold.chain.sequence).toBe(2);
    other.stage.service.close();
    other.fold.restore(data, { position: 2_000, epoch: 1 });
    expect(other.fold.book.stateHash(digest)).toEqual(fold.book.stateHash(digest));
    // Other bytes than were prepared are read as they are, and what was prepared is not taken for them.
    const again = new JobsFold(digest, clock);
    for (const _ of again.prepare(data)) continue;
    again.restore(data.slice(), { position: 2_000, epoch: 1 });
    expect(again.book.stateHash(digest)).toEqual(fold.book.stateHash(digest));
  });

  it("a state that is restored while one is made does not change it", async () => {
    const { fold, stage, clock } = folded();
    await stage.submitMany(300);
    const { chain } = fold;
    const hash = fold.book.stateHash(digest);
    const taken = watch(fold.snapshot());
    const empty = watch(new JobsFold(digest, clock).snapshot());
    for (; empty.state === "pending"; await drain()) clock.fireNext();
    expect(taken.state).toBe("pending");
    stage.service.close();
    fold.restore(wholeOf(empty.value!), { position: 0, epoch: 0 });
    for (; taken.state === "pending"; await drain()) clock.fireNext();
    const other = new JobsFold(digest, clock);
    other.restore(wholeOf(taken.value!), { position: chain.sequence, epoch: 1 });
    expect(other.book.stateHash(digest)).toEqual(hash);
  });
});

describe("an event that this release does not know", () => {
  const record = (change: (text: string) => string): { position: number; epoch: number; data: Uint8Array } => {
    const sealer = new Sealer({ head: EMPTY_CHAIN, sourceControllerId: "site", leaderEpoch: 1, digest });
    const named = { eventType: "queue:paused", entityType: "queue", entityId: "q" } as const;
    const { bytes } = sealer.seal({ id: "e", ...named, payload: {}, timestamp: 1 });
    return { position: 1, epoch: 1, data: new TextEncoder().encode(change(new TextDecoder().decode(bytes))) };
  };

  it("ends this node with the advice to upgrade it, where it continues the chain", () => {
    const fold = new JobsFold(digest, new ManualClock());
    const newer = record((text) => text.replace("queue:paused", "queue:throttled"));
    expect(() => fold.apply(newer)).toThrow(expect.objectContaining({ code: "FORMAT_UNSUPPORTED" }));
    expect(() => fold.apply(newer)).toThrow(/"queue:throttled".*upgrade this node/);
    expect(fold.chain.sequence).toBe(0);
    fold.apply(record((text) => text));
    expect(fold.chain.sequence).toBe(1);
  });

  it("is a broken chain where it does not continue it, or can't be read at all", () => {
    const fold = new JobsFold(digest, new ManualClock());
    const broken = expect.objectContaining({ code: "CHAIN_BROKEN" });
    const elsewhere = record((text) =>
      text.replace("queue:paused", "queue:throttled").replace(`"sequence":1`, `"sequence":2`),
    );
    expect(() => fold.apply(elsewhere)).toThrow(broken);
    expect(() => fold.apply(record((text) => text.slice(1)))).toThrow(broken);
    expect(() => fold.apply(record((text) => text.replace(`"sequence":1`, `"sequence":2`)))).toThrow(broken);
  });
});
