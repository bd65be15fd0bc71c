// Arrivals as the API reads and verifies them, and the replay of them, over real archives.

import { TenureError } from "../../../core/kit/errors.ts";
import { describe, expect, test } from "vitest";
import { systemDigest as digest } from "../../../drivers/system/digest.ts";
import { eventHashOf } from "../../../core/events/index.ts";
import {
  archived,
  decodeReceipt,
  encodePage,
  encodeRecord,
  recordedPage,
  type Receipt,
} from "../../../core/mesh/receipts/index.ts";
import { TestDisk } from "../../../engine/test-disk.ts";
import { RECEIPTS } from "../../../logs/index.ts";
import { ManualClock, settled } from "../../../loops/test-clock.ts";
import type { ArrivalsVerified } from "../../../ports/mesh/arrivals.ts";
import type { Logger } from "../../../ports/logger.ts";
import type { MeshReplay } from "../../../ports/mesh/views.ts";
import { filled, open, sealedEvents } from "../../../../test/archive/test-archive.ts";
import { ArrivalsService } from "./arrivals-service.ts";
import { ForeignChains } from "./foreign-chains.ts";
import { ReceiptsFold } from "../receipts/receipts-fold.ts";
import { MeshReplayer } from "./replayer.ts";
import { siteOf, verified } from "../receipts/test-receipts.ts";

const NEVER = new AbortController().signal;
const OWN = { valid: true, first: 1, through: 4, headHash: null, root: "ab" } as const;

async function stage() {
  const far = siteOf("far", 1, digest);
  far.write({ eventType: "build:log" });
  far.writeMany(6);
  const { archive: own } = await filled(new TestDisk(), sealedEvents(4));
  const disk = new TestDisk();
  const { archive: receipts } = await open(disk, { of: RECEIPTS });
  const fold = new ReceiptsFold({ digest, own: () => own.lastSequence });
  fold.follow((sealed) => receipts.append([archived(sealed)]));
  for (const [after, size] of [
    [0, 3],
    [3, 8],
  ] as const) {
    const page = verified(far, after, size);
    const recorded = recordedPage(encodePage(page.page), page.from, page.state);
    fold.apply({ position: size, epoch: 1, data: encodeRecord({ arrivedMs: 1, floorMs: 0, pages: [recorded] }) });
  }
  const broken: { value: ArrivalsVerified | null } = { value: null };
  const service = new ArrivalsService({
    own,
    receipts,
    events: {
      verify: async () =>
        broken.value === null ? OWN : { valid: false, first: 1, firstBrokenSequence: 3, reason: "its hash" },
    },
    last: () => fold.arrival,
    ownLine: { lines: null },
    views: { receiptPlace: async (receipt) => ({ arrival: 8, line: far.line, lineSequence: 4 + receipt - 2 }) },
    clock: new ManualClock(),
    digest,
  });
  return { far, own, receipts, service, fold, disk, broken };
}

describe("arrivals", () => {
  test("are read by number, with their line and their hash; withheld ones have no bytes", async () => {
    const { service, far } = await stage();
    const { events, through } = await service.read(3, { max: 4, bytesMax: 1e6 });
    expect(through).toBe(7);
    expect(events.map(({ arrival, line, lineSequence }) => [arrival, line, lineSequence])).toEqual([
      [4, null, 4],
      [5, far.line, 1],
      [6, far.line, 2],
      [7, far.line, 3],
    ]);
    expect(events[2]).toMatchObject({ bytes: null, eventHash: far.hash(2) });
    for (const { bytes, eventHash } of events) if (bytes !== null) expect(eventHashOf(bytes, digest)).toBe(eventHash);
    expect(await service.read(12, { max: 9, bytesMax: 1e6 })).toEqual({ events: [], through: 12 });
    expect((await service.read(0, { max: 99, bytesMax: 1 })).through).toBe(1);
  });

  test("are sound where both archives are, and every foreign line continues", async () => {
    const { service } = await stage();
    expect(await service.verify(NEVER)).toEqual({ ...OWN, through: 12 });
  });

  test("a broken own event is named by its arrival", async () => {
    const { service, broken } = await stage();
    broken.value = OWN;
    expect(await service.verify(NEVER)).toMatchObject({ valid: false, firstBrokenSequence: 3, lineSequence: 3 });
  });
});

describe("the lines inside of receipts", () => {
  test("an item that was changed, one that is missing and one that is another's are found", async () => {
    const { receipts, far } = await stage();
    const found: Receipt[] = [];
    for await (const batch of receipts.read(1)) {
      for (const { bytes } of batch) {
        const read = decodeReceipt(bytes);
        if (read.kind === "receipt") found.push(read.receipt);
      }
    }
    const [first, second] = found as [(typeof found)[0], (typeof found)[0]];
    const check = (...list: typeof found) => {
      const chains = new ForeignChains(digest);
      return list.map((receipt) => chains.check(receipt)).find((fault) => fault !== null) ?? null;
    };
    expect(check(first, second)).toBeNull();
    expect(check(second)).toBeNull();
    const changed = (at: number, item: (typeof second)["page"]["items"][number]) => ({
      ...second,
      page: { ...second.page, items: second.page.items.map((one, place) => (place === at ? item : one)) },
    });
    const place = { line: far.line, lineSequence: 6, arrival: 10 };
    expect(check(first, changed(1, { hash: "cd".repeat(32) }))).toMatchObject(place);
    expect(check(first, changed(2, second.page.items[1]!))).toMatchObject(place);
    expect(check(first, changed(4, { hash: "cd".repeat(32) }))).toMatchObject({ lineSequence: 8, arrival: 12 });
    expect(check(second, first)).toMatchObject({ lineSequence: 1 });
  });
});

describe("a replay", () => {
  const EQUAL: MeshReplay = { equal: true, events: 12, hash: "a", rebuiltHash: "a", rows: 1, rebuiltRows: 1 };
  async function replaying(verdict: Partial<ArrivalsVerified>, answer: MeshReplay) {
    const { own, receipts, fold } = await stage();
    const clock = new ManualClock();
    const rebuilt: string[] = [];
    const logger = { info: () => undefined, error: () => undefined, warn: () => undefined } as unknown as Logger;
    const cut = null as (() => void) | null;
    const replays = { count: 0, answer, verdict, saved: null as number | null, how: [] as unknown[], cut };
    const replayer = new MeshReplayer({
      archives: { own, receipts },
      arrivals: { verify: async () => ({ ...OWN, ...replays.verdict }) as ArrivalsVerified },
      views: {
        replay: async (how, arrived) => {
          replays.count++;
          for await (const batch of arrived) {
            replays.how.push([how, batch[0]?.arrival]);
            break;
          }
          replays.cut?.();
          return replays.answer;
        },
        rebuild: async (reason, from) => void rebuilt.push(`${from}: ${reason}`),
        save: async () => {
          replays.saved = 7;
        },
        get savedThrough() {
          return replays.saved;
        },
        hash: async () => ({ hash: "a", through: 7, rows: 1, missing: 0 }),
      },
      isCut: false,
      ownLine: { lines: null },
      receipts: fold,
      everyMs: 1_000,
      clock,
      logger,
    });
    return { replayer, clock, rebuilt, replays };
  }

  test("comes by itself, every so often", async () => {
    const { replayer, clock, replays } = await replaying({}, EQUAL);
    expect(replayer.last).toBeNull();
    for (let times = 1; times <= 3; times++) {
      await clock.advance(1_000);
      for (let turn = 0; turn < 10; turn++) await settled();
      expect(replays.count).toBe(times);
    }
    expect(replayer.last).toMatchObject({ outcome: "equal", events: 12 });
    replayer.close();
    await clock.advance(10_000);
    await settled();
    expect(replays.count).toBe(3);
  });

  test("that differs is an alert until one is equal, and builds anew what is shown", async () => {
    const { replayer, rebuilt, replays } = await replaying({}, { ...EQUAL, equal: false, rebuiltHash: "b" });
    expect(await replayer.run()).toMatchObject({ outcome: "differs" });
    expect(rebuilt).toHaveLength(1);
    expect(replayer.problem).toContain("built anew b");
    replays.answer = EQUAL;
    await replayer.run();
    expect(replayer.problem).toBeNull();
    replayer.close();
  });

  test("compares nothing with archives that are broken, which is an alert, or cut, which is none", async () => {
    const { replayer, replays } = await replaying({ valid: false, reason: "bits" }, EQUAL);
    expect(await replayer.run()).toMatchObject({ outcome: "broken", reason: "bits" });
    expect(replayer.problem).toBe("bits");
    replays.verdict = { first: 5 };
    expect(await replayer.run()).toMatchObject({ outcome: "cut" });
    expect(replays.count).toBe(0);
    replayer.close();
  });

  test("of archives that are cut begins with the saved state, and what is shown is saved where there is none", async () => {
    const { replayer, replays, rebuilt } = await replaying({ first: 5 }, EQUAL);
    expect(await replayer.run()).toMatchObject({
      outcome: "cut",
      reason: expect.stringContaining("up to 7 was saved"),
    });
    expect(await replayer.run()).toMatchObject({ outcome: "equal" });
    expect(replays.how).toMatchObject([[{ from: "saved", saves: true }, 8]]);
    // Between the two there is nothing: it was never compared.
    replays.verdict = { first: 9 };
    expect(await replayer.run()).toMatchObject({ outcome: "cut", reason: expect.stringContaining("nothing of them") });
    replays.verdict = { first: 8 };
    replays.answer = { ...EQUAL, equal: false };
    await replayer.run();
    expect(rebuilt[0]).toMatch(/^saved: /);
    // All of it is there: the saved state is not needed, and goes where it is not what the archives say.
    replays.verdict = { first: 1 };
    await replayer.run();
    expect(rebuilt[1]).toMatch(/^nothing: /);
    replayer.close();
  });

  test("begins again with the saved state where old history is let go while it runs, and raises no alert", async () => {
    const { replayer, replays, rebuilt } = await replaying({}, EQUAL);
    replays.saved = 7;
    replays.cut = () => {
      replays.cut = null;
      replays.verdict = { first: 5 };
      throw new TenureError("LOG_COMPACTED", "what arrived as 3 is not kept any more.");
    };
    expect(await replayer.run()).toMatchObject({ outcome: "equal" });
    expect(replays.how).toMatchObject([
      [{ from: "nothing", saves: false }, undefined],
      [{ from: "saved", saves: true }, 8],
    ]);
    expect([replayer.problem, rebuilt]).toEqual([null, []]);
    replays.cut = () => {
      throw new TenureError("LOG_COMPACTED", "for ever");
    };
    await expect(replayer.run()).rejects.toMatchObject({ code: "LOG_COMPACTED" });
    replayer.close();
  });

  test("runs once at a time", async () => {
    const { replayer } = await replaying({}, EQUAL);
    const [one, other] = await Promise.allSettled([replayer.run(), replayer.run()]);
    expect(one.status).toBe("fulfilled");
    expect(other).toMatchObject({ status: "rejected", reason: { code: "OVERLOADED" } });
    replayer.close();
  });
});
