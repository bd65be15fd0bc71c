// Pages of other sites at the leader: what is decided, written and answered, and when.

import { describe, expect, test } from "vitest";
import { systemDigest as digest } from "../../../drivers/system/digest.ts";
import { TenureError } from "../../../core/kit/errors.ts";
import { wholeOf } from "../../../core/kit/pieces.ts";
import { seededRandom } from "../../../core/kit/random.ts";
import {
  decodeRecord,
  encodePage,
  encodeRecord,
  recordedPage,
  type SealedReceipt,
} from "../../../core/mesh/receipts/index.ts";
import { ManualClock, settled } from "../../../loops/test-clock.ts";
import type { Leadership } from "../../../ports/leadership.ts";
import type { Log } from "../../../ports/log.ts";
import { RECEIPTS_WAITING_MAX } from "../limits.ts";
import { ReceiptsFold } from "./receipts-fold.ts";
import { ReceiptsService, type ReceiptsServiceOptions } from "./receipts.ts";
import { siteOf, TestLog, verified } from "./test-receipts.ts";

const site = siteOf("far", 12, digest);
const NOW_MS = 1_790_000_000_000;

function stage(more: Partial<ReceiptsServiceOptions> = {}) {
  let own = 5;
  const fold = new ReceiptsFold({ digest, own: () => own });
  const log = new TestLog(fold);
  const listeners = new Set<() => void>();
  let epoch: number | null = 1;
  const leadership = {
    epoch: () => epoch,
    isTurningOver: () => false,
    subscribe: (tell: () => void) => {
      listeners.add(tell);
      return () => void listeners.delete(tell);
    },
  } as unknown as Leadership;
  const clock = new ManualClock();
  const service = new ReceiptsService({
    log: log as unknown as Log,
    fold,
    leadership,
    clock,
    random: seededRandom("receipts"),
    wallMs: () => NOW_MS,
    maxSkewMs: 1_000,
    unready: () => [],
    refuses: () => null,
    ...more,
  });
  const lead = (next: number | null): void => {
    epoch = next;
    for (const tell of listeners) tell();
  };
  return { service, fold, log, clock, lead, setOwn: (to: number) => void (own = to) };
}

async function codeOf(promise: Promise<unknown>): Promise<string> {
  return promise.then(
    () => "resolved",
    (error: unknown) => (TenureError.is(error) ? error.code : String(error)),
  );
}

function pagesIn(record: Uint8Array): number {
  const read = decodeRecord(record);
  return read.kind === "record" ? read.pages.length : -1;
}

describe("a page", () => {
  test("is accepted when its record is committed, and not before; the log is opened by the first of all", async () => {
    const { service, log, fold } = stage();
    await settled();
    expect(log.opens).toBe(0);
    const done = service.receive([verified(site, 0, 3)]);
    await settled();
    expect([log.opens, log.held.length, fold.state.foreign]).toEqual([1, 1, 0]);
    log.commit();
    expect(await done).toEqual([{ kind: "accepted", accepted: 3, duplicates: 0 }]);
    expect([fold.state.foreign, fold.arrival]).toEqual([3, 8]);
  });

  test("that comes while another is written waits, and goes with all others that wait", async () => {
    const { service, log } = stage();
    const other = siteOf("near", 4, digest);
    const first = service.receive([verified(site, 0, 3)]);
    await settled();
    const later = [
      service.receive([verified(site, 3, 5)]),
      service.receive([verified(site, 3, 6), verified(other, 0, 4)]),
      service.receive([verified(site, 1, 2)]),
      service.receive([verified(site, 2, 7, 5)]),
    ];
    expect(log.held.length).toBe(1);
    log.commit();
    await first;
    await settled();
    expect(log.held.map(({ batch }) => batch.map(pagesIn))).toEqual([[3]]);
    log.commit();
    expect(await Promise.all(later)).toEqual([
      [{ kind: "accepted", accepted: 2, duplicates: 0 }],
      [
        { kind: "again", have: 5 },
        { kind: "accepted", accepted: 4, duplicates: 0 },
      ],
      [{ kind: "duplicate", duplicates: 1 }],
      [{ kind: "accepted", accepted: 2, duplicates: 3 }],
    ]);
  });

  test("that is known, or was verified on something else, writes nothing", async () => {
    const { service, log } = stage();
    const done = service.receive([verified(site, 0, 6)]);
    await settled();
    log.commit();
    await done;
    expect(await service.receive([verified(site, 0, 4), verified(site, 4, 8)])).toEqual([
      { kind: "duplicate", duplicates: 4 },
      { kind: "again", have: 6 },
    ]);
    expect(log.held).toEqual([]);
  });

  test("twice in one call is written once", async () => {
    const { service, log, fold } = stage();
    const done = service.receive([verified(site, 0, 3), verified(site, 0, 3)]);
    await settled();
    expect(pagesIn(log.held[0]!.batch[0]!)).toBe(1);
    log.commit();
    expect((await done).map(({ kind }) => kind)).toEqual(["accepted", "duplicate"]);
    expect(fold.state.foreign).toBe(3);
  });
});

describe("an end of the epoch", () => {
  test("makes what is under way unknown, and refuses what waits", async () => {
    const { service, log, lead } = stage();
    const under = codeOf(service.receive([verified(site, 0, 3)]));
    await settled();
    const waiting = codeOf(service.receive([verified(site, 3, 5)]));
    lead(null);
    expect(await waiting).toBe("NOT_LEADER");
    log.answer({ outcome: "unknown" });
    expect(await under).toBe("OUTCOME_UNKNOWN");
    expect(await codeOf(service.receive([verified(site, 0, 3)]))).toBe("NOT_LEADER");
  });

  test("that the log reports refuses both, and a later epoch goes on from what is applied", async () => {
    const { service, log, lead, fold } = stage();
    const under = codeOf(service.receive([verified(site, 0, 3)]));
    await settled();
    const waiting = codeOf(service.receive([verified(site, 3, 5)]));
    lead(null);
    log.answer({ outcome: "fenced", epoch: 2 });
    expect([await under, await waiting]).toEqual(["NOT_LEADER", "NOT_LEADER"]);
    lead(3);
    await settled();
    const again = service.receive([verified(site, 0, 5)]);
    await settled();
    log.commit();
    expect(await again).toEqual([{ kind: "accepted", accepted: 5, duplicates: 0 }]);
    expect(fold.state.head.sequence).toBe(1);
  });

  test("does not follow from an append that was refused: the next page is written", async () => {
    const { service, log } = stage();
    const first = codeOf(service.receive([verified(site, 0, 3)]));
    await settled();
    const second = service.receive([verified(site, 0, 2)]);
    log.answer(new TenureError("UNCOMMITTED_LIMIT", "too much waits"));
    expect(await first).toBe("UNCOMMITTED_LIMIT");
    await settled();
    log.commit();
    expect(await second).toEqual([{ kind: "accepted", accepted: 2, duplicates: 0 }]);
  });
});

describe("the second page of a line whose first one was not written", () => {
  test("is not taken for its first: the append of the first was refused, and the second waited for it", async () => {
    const { service, log, fold } = stage();
    const first = codeOf(service.receive([verified(site, 0, 3)]));
    await settled();
    // Verified on what the first one gives, while that is being written (IntakeQueue).
    const second = service.receive([verified(site, 3, 6)]);
    log.answer(new TenureError("UNCOMMITTED_LIMIT", "too much waits"));
    expect(await first).toBe("UNCOMMITTED_LIMIT");
    await settled();
    log.commit();
    expect(await second).toEqual([{ kind: "again", have: 0 }]);
    expect([fold.state.line(site.line), fold.state.foreign]).toEqual([undefined, 0]);
    const again = service.receive([verified(site, 0, 3), verified(site, 3, 6)]);
    await settled();
    log.commit();
    expect((await again).map(({ kind }) => kind)).toEqual(["accepted", "accepted"]);
    expect(fold.state.foreign).toBe(6);
  });

  test("is not taken by the next leadership of this node either", async () => {
    const { service, log, lead, fold } = stage();
    const first = codeOf(service.receive([verified(site, 0, 3)]));
    await settled();
    lead(null);
    log.answer({ outcome: "fenced", epoch: 2 });
    expect(await first).toBe("NOT_LEADER");
    lead(3);
    await settled();
    // Its verification was under way meanwhile.
    const second = service.receive([verified(site, 3, 6)]);
    await settled();
    log.commit();
    expect(await second).toEqual([{ kind: "again", have: 0 }]);
    expect(fold.state.line(site.line)).toBeUndefined();
  });
});

describe("what is refused at the door", () => {
  test("is what a member can't read: not even the log is opened", async () => {
    const missing = ["n2"];
    const { service, log } = stage({ unready: () => missing });
    expect(await codeOf(service.receive([verified(site, 0, 3)]))).toBe("NOT_SUPPORTED");
    expect(log.opens).toBe(0);
    missing.pop();
    const done = service.receive([verified(site, 0, 3)]);
    await settled();
    log.commit();
    expect(await done).toHaveLength(1);
  });

  test("is what the disk has no room for", async () => {
    const full = new TenureError("QUOTA_EXCEEDED", "full");
    const { service, log } = stage({ refuses: () => full });
    expect(await codeOf(service.receive([verified(site, 0, 3)]))).toBe("QUOTA_EXCEEDED");
    expect(log.opens).toBe(0);
  });

  test("is more than may wait, as a whole", async () => {
    const { service, log } = stage();
    const first = service.receive([verified(site, 0, 1)]);
    await settled();
    const page = verified(site, 1, 2);
    const pages = Array.from({ length: RECEIPTS_WAITING_MAX }, () => page);
    const waiting = service.receive(pages);
    expect(await codeOf(service.receive([page]))).toBe("OVERLOADED");
    expect(service.waiting).toBe(RECEIPTS_WAITING_MAX);
    log.commit();
    await first;
    await settled();
    log.commit();
    expect((await waiting).filter(({ kind }) => kind === "accepted")).toHaveLength(1);
  });

  test("is everything after it was closed", async () => {
    const { service } = stage();
    service.close();
    expect(await codeOf(service.receive([verified(site, 0, 3)]))).toBe("NOT_LEADER");
  });
});

describe("the floor of the clock", () => {
  test("is the latest event that is not too far ahead of the leader's time", async () => {
    const { service, log, fold } = stage();
    const ahead = siteOf("ahead", 0, digest);
    ahead.write({ timestamp: NOW_MS + 200.25 });
    ahead.write({ timestamp: NOW_MS + 1_000 });
    ahead.write({ timestamp: NOW_MS + 1_001 });
    const done = service.receive([verified(ahead, 0, 1)]);
    await settled();
    log.commit();
    await done;
    expect(fold.state.floorMs).toBe(NOW_MS + 201);
    const more = service.receive([verified(ahead, 1, 3)]);
    await settled();
    log.commit();
    await more;
    expect(fold.state.floorMs).toBe(NOW_MS + 1_000);
  });
});

describe("the fold", () => {
  test("reports receipts in order, and a snapshot of it goes on where it was", async () => {
    const sealed: SealedReceipt[] = [];
    const { service, log, fold, setOwn } = stage();
    fold.follow((one) => void sealed.push(one));
    const first = service.receive([verified(site, 0, 3)]);
    await settled();
    log.commit();
    await first;
    const restored = new ReceiptsFold({ digest, own: () => 9 });
    let told = 0;
    restored.onRestored(() => void told++);
    const bytes = wholeOf(fold.snapshot());
    Array.from(restored.prepare(bytes));
    restored.restore(bytes);
    expect(told).toBe(1);
    setOwn(9);
    const page = verified(site, 3, 5);
    const data = encodeRecord({
      arrivedMs: NOW_MS,
      floorMs: 0,
      pages: [recordedPage(encodePage(page.page), page.from, page.state)],
    });
    restored.follow((one) => void sealed.push(one));
    for (const one of [fold, restored]) one.apply({ position: 2, epoch: 1, data });
    expect(sealed.map(({ receipt }) => [receipt.sequence, receipt.own, receipt.foreign])).toEqual([
      [1, 5, 0],
      [2, 9, 3],
      [2, 9, 3],
    ]);
    expect(sealed[1]!.hash).toBe(sealed[2]!.hash);
    expect(restored.arrival).toBe(14);
  });

  test("ignores what nobody can read, and stops at what a later release wrote", () => {
    const fold = new ReceiptsFold({ digest, own: () => 0 });
    fold.apply({ position: 1, epoch: 1, data: new Uint8Array(3) });
    expect(fold.counts).toMatchObject({ malformed: 1, pages: 0 });
    expect(() => fold.apply({ position: 2, epoch: 1, data: Uint8Array.of(9) })).toThrow(
      expect.objectContaining({ code: "FORMAT_UNSUPPORTED" }),
    );
    expect(() => fold.restore(Uint8Array.of(1, 2))).toThrow(expect.objectContaining({ code: "SNAPSHOT_INVALID" }));
  });
});
