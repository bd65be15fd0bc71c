import { describe, expect, it } from "vitest";
import { EVENT_TYPES } from "../../core/events/names.ts";
import { EMPTY_CHAIN, Sealer } from "../../core/events/index.ts";
import { wholeOf } from "../../core/kit/pieces.ts";
import { systemDigest as digest } from "../../drivers/system/digest.ts";
import { settled } from "../../electors/test-seat.ts";
import { ManualClock } from "../../engine/test-engine.ts";
import { MemoryLog, MemoryStore } from "../../logs/index.ts";
import { KeysService } from "../keys/keys.ts";
import { SiteJournal } from "./site-journal.ts";
import { JobsStage } from "../jobs/test-jobs.ts";

const SLICE_BYTES = 1_000;

function folded(clock = new ManualClock()): { fold: SiteJournal; stage: JobsStage; clock: ManualClock } {
  const fold = new SiteJournal(digest, { sliceBytes: SLICE_BYTES });
  const stage = new JobsStage(clock, new MemoryLog(new MemoryStore(), fold), fold, digest);
  stage.leadership.set(1);
  return { fold, stage, clock };
}

describe("a snapshot of the jobs", () => {
  it("D10: is made piece by piece, as they are asked for, and is of the moment at which it was asked for", async () => {
    const { fold, stage } = folded();
    await stage.submitMany(300);
    const { chain } = fold;
    const hash = fold.book.stateHash(digest);
    const pieces: Uint8Array[] = [];
    for (const piece of fold.snapshot()) {
      expect(piece.length).toBeLessThan(SLICE_BYTES + 500);
      pieces.push(piece.slice());
      // Commands go on: jobs are leased, finished and submitted before they are written, and after.
      const turn = pieces.length;
      const lease = await stage.leased(`a${turn % 3}`);
      if (turn % 2 === 0) await stage.complete(`a${turn % 3}`, lease);
      await stage.submitMany(1);
    }
    expect(pieces.length).toBeGreaterThan(10);
    const other = new SiteJournal(digest);
    other.restore(wholeOf(pieces), { position: chain.sequence, epoch: 1 });
    expect(other.chain).toEqual(chain);
    expect(other.book.stateHash(digest)).toEqual(hash);
    expect(fold.book.stateHash(digest)).not.toEqual(hash);
  });

  it("D10: is read in many turns before it is restored, which then takes one; the state goes on meanwhile", async () => {
    const { fold, stage, clock } = folded();
    await stage.submitMany(1_000);
    await stage.submitMany(1_000);
    const data = wholeOf(fold.snapshot());
    const other = folded(clock);
    await other.stage.submitMany(1);
    const slices = other.fold.prepare(data);
    let turns = 0;
    for (; slices.next().done !== true; turns++) if (turns === 1) await other.stage.submitMany(1);
    expect(turns).toBe(3);
    expect(other.fold.chain.sequence).toBe(2);
    other.stage.journal.close();
    other.fold.restore(data, { position: 2_000, epoch: 1 });
    expect(other.fold.book.stateHash(digest)).toEqual(fold.book.stateHash(digest));
    // Other bytes than were prepared are read as they are, and what was prepared is not taken for them.
    const again = new SiteJournal(digest);
    for (const _ of again.prepare(data)) continue;
    again.restore(data.slice(), { position: 2_000, epoch: 1 });
    expect(again.book.stateHash(digest)).toEqual(fold.book.stateHash(digest));
  });

  it("a state that is restored while one is made does not change it", async () => {
    const { fold, stage } = folded();
    await stage.submitMany(300);
    const { chain } = fold;
    const hash = fold.book.stateHash(digest);
    const taken = fold.snapshot();
    stage.journal.close();
    fold.restore(wholeOf(new SiteJournal(digest).snapshot()), { position: 0, epoch: 0 });
    const other = new SiteJournal(digest);
    other.restore(wholeOf(taken), { position: chain.sequence, epoch: 1 });
    expect(other.book.stateHash(digest)).toEqual(hash);
  });
});

it("the journal knows the events that have a name, and no others", () => {
  expect(new SiteJournal(digest).eventTypes).toEqual(new Set<string>(EVENT_TYPES));
});

describe("a tenant that decides on what is applied", () => {
  it("is asked for one change after the other: two keys of one name are one", async () => {
    const { fold, stage } = folded();
    await stage.submitMany(1);
    const keys = new KeysService({ fold: fold.keys, journal: stage.journal });
    const request = { caller: "ada", idempotencyKey: null, bodyHash: "" };
    const create = (digit: string) => keys.create(request, { name: "a", role: "viewer", sha256: digit.repeat(64) });
    stage.log.isHolding = true;
    const asked = Promise.allSettled([create("1"), create("2")]);
    await settled();
    expect([stage.log.waiting, fold.keys.size]).toEqual([1, 0]);
    stage.log.release();
    expect((await asked).map(({ status }) => status)).toEqual(["fulfilled", "rejected"]);
    expect(keys.list().map(({ name }) => name)).toEqual(["a"]);
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
    const fold = new SiteJournal(digest);
    const newer = record((text) => text.replace("queue:paused", "queue:throttled"));
    expect(() => fold.apply(newer)).toThrow(expect.objectContaining({ code: "FORMAT_UNSUPPORTED" }));
    expect(() => fold.apply(newer)).toThrow(/"queue:throttled".*upgrade this node/);
    expect(fold.chain.sequence).toBe(0);
    fold.apply(record((text) => text));
    expect(fold.chain.sequence).toBe(1);
  });

  it("is a broken chain where it does not continue it, or can't be read at all", () => {
    const fold = new SiteJournal(digest);
    const broken = expect.objectContaining({ code: "CHAIN_BROKEN" });
    const elsewhere = record((text) =>
      text.replace("queue:paused", "queue:throttled").replace(`"sequence":1`, `"sequence":2`),
    );
    expect(() => fold.apply(elsewhere)).toThrow(broken);
    expect(() => fold.apply(record((text) => text.slice(1)))).toThrow(broken);
    expect(() => fold.apply(record((text) => text.replace(`"sequence":1`, `"sequence":2`)))).toThrow(broken);
  });
});

describe("a payload whose names begin with a byte order mark", () => {
  it("stops no node: whoever applies it reads what the leader wrote", async () => {
    const { fold, stage } = folded();
    const records: { position: number; epoch: number; data: Uint8Array }[] = [];
    fold.follow(({ event, bytes }) => records.push({ position: event.sequence, epoch: 1, data: bytes }));
    // A name with an escape makes the reader compare texts, not bytes.
    const payload = { "\n": 0, a: 1, "\ufeffa": 2, "\ufeff": ["\ufeffx"] };
    await stage.submit({ payload });
    const other = new SiteJournal(digest);
    for (const record of records) other.apply(record);
    expect(other.chain).toEqual(fold.chain);
    expect(other.book.stateHash(digest)).toEqual(fold.book.stateHash(digest));
  });
});
