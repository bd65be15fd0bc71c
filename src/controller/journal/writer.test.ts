// What leaves the inbox goes with the append that holds what became of it, and with no other.

import { createHash } from "node:crypto";
import { expect, test } from "vitest";
import type { EventDraft } from "../../core/events/index.ts";
import { settled } from "../../electors/test-seat.ts";
import type { Digest } from "../../ports/digest.ts";
import type { LogAppended, TakingLog } from "../../ports/log.ts";
import { SiteJournal } from "./site-journal.ts";
import { JournalWriter } from "./writer.ts";

const digest: Digest = {
  sha256: (bytes) => createHash("sha256").update(bytes).digest(),
  sha256Hex: (data) => createHash("sha256").update(data).digest("hex"),
  crc32: () => 0,
};

interface Sent {
  readonly events: number;
  readonly taken: readonly string[];
  readonly answer: (appended: LogAppended) => void;
  readonly refuse: (error: unknown) => void;
}

function stage() {
  const sent: Sent[] = [];
  const send = (batch: readonly Uint8Array[], taken: readonly string[]): Promise<LogAppended> =>
    new Promise((answer, refuse) => void sent.push({ events: batch.length, taken, answer, refuse }));
  const log: TakingLog = {
    head: () => ({ position: 0, epoch: 1 }),
    open: () => Promise.resolve({ outcome: "opened", head: { position: 0, epoch: 1 } }),
    append: (_epoch, _after, batch) => send(batch, []),
    appendTaking: (_epoch, _after, batch, taken) => send(batch, taken),
    read: () => Promise.resolve([]),
    subscribe: () => () => undefined,
  };
  const fold = new SiteJournal(digest);
  const over = { times: 0 };
  const writer = new JournalWriter({
    epoch: 1,
    log,
    journal: fold,
    author: "site.1",
    onOver: () => void over.times++,
    onTakenBack: () => undefined,
    onSettled: () => undefined,
  });
  return { writer, fold, sent, over };
}

let ids = 0;

function draft(): EventDraft {
  const id = `e${++ids}`;
  return { id, eventType: "queue:paused", entityType: "queue", entityId: "q", payload: {}, timestamp: 1_000 + ids };
}

test("what is taken over in one turn travels in one append, and its ids with it; the next append has none", async () => {
  const { writer, sent } = stage();
  void writer.write([draft()]);
  void writer.write([draft()], ["a", "b"]);
  await settled();
  void writer.write([draft()]);
  await settled();
  expect(sent.map(({ events, taken }) => ({ events, taken }))).toEqual([
    { events: 2, taken: ["a", "b"] },
    { events: 1, taken: [] },
  ]);
});

test("an append that was not taken rejects whoever took something over with it", async () => {
  const { writer, sent } = stage();
  const written = writer.write([draft()], ["a"]);
  await settled();
  sent[0]!.refuse(new Error("taken by somebody else"));
  await expect(written).rejects.toThrow("taken by somebody else");
  void writer.write([draft()]);
  await settled();
  expect(sent[1], "and its ids are forgotten").toMatchObject({ events: 1, taken: [] });
});

test("what was decided before a record of another epoch came, in the same turn, is not sent: nothing was written", async () => {
  const { writer, fold, sent, over } = stage();
  const written = writer.write([draft()]);
  const other = new SiteJournal(digest);
  other.propose({ epoch: 2, author: "site.1" }, [draft()]);
  fold.apply({ position: 1, epoch: 2, data: other.tailAfter(0, 1)![0]! });
  await expect(written).rejects.toMatchObject({ code: "NOT_LEADER" });
  expect([sent.length, over.times, fold.chain.sequence]).toEqual([0, 1, 1]);
});
