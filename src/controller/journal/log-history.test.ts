// The history of events that the log itself keeps: read and verified page by page, and any one change is named.

import { createHash } from "node:crypto";
import { expect, test } from "vitest";
import { EMPTY_CHAIN, Sealer } from "../../core/events/index.ts";
import { HandClock } from "../../electors/test-seat.ts";
import type { Digest } from "../../ports/digest.ts";
import type { LogRecord } from "../../ports/log.ts";
import { LogHistory } from "./log-history.ts";

const digest: Digest = {
  sha256: (bytes) => createHash("sha256").update(bytes).digest(),
  sha256Hex: (data) => createHash("sha256").update(data).digest("hex"),
  crc32: () => 0,
};
const EVENTS = 1_200;

function stage(change: (records: LogRecord[]) => void = () => undefined) {
  const sealer = new Sealer({ head: EMPTY_CHAIN, sourceControllerId: "site.1", leaderEpoch: 1, digest });
  const records: LogRecord[] = Array.from({ length: EVENTS }, (_, at) => {
    const draft = { id: `e${at}`, eventType: "queue:paused", entityType: "queue", entityId: "q" } as const;
    const { bytes } = sealer.seal({ ...draft, payload: {}, timestamp: 1_000 + at });
    return { position: at + 1, epoch: 1, data: bytes };
  });
  const chain = sealer.head;
  change(records);
  const page = (from: number, max: number): Promise<LogRecord[]> =>
    Promise.resolve(records.filter(({ position }) => position >= from).slice(0, max));
  const clock = new HandClock();
  return new LogHistory({ log: { read: page, readStored: page }, chain: () => chain, digest, clock });
}

async function verdict(history: LogHistory) {
  const steps = [];
  for await (const step of history.verify()) steps.push(step);
  return steps;
}

test("reads from anywhere, no more than asked for, each with its hash", async () => {
  const sequences: number[] = [];
  for await (const batch of stage().read(400, 700)) {
    for (const { sequence, eventHash } of batch) {
      expect(eventHash).toMatch(/^[0-9a-f]{64}$/);
      sequences.push(sequence);
    }
  }
  expect(sequences).toEqual(Array.from({ length: 700 }, (_, at) => 400 + at));
});

test("what is whole is verified to its head, with progress on the way", async () => {
  const steps = await verdict(stage());
  expect(steps.slice(0, -1)).toEqual([500, 1_000, 1_200].map((through) => ({ kind: "progress", through })));
  expect(steps.at(-1)).toMatchObject({ kind: "end", point: { sequence: EVENTS } });
});

test.each([1, 500, 501, EVENTS])("a changed byte of event %i is named", async (at) => {
  const history = stage((records) => {
    const { data } = records[at - 1]!;
    const place = new TextDecoder().decode(data).indexOf('"q"') + 1;
    records[at - 1] = { ...records[at - 1]!, data: data.map((byte, here) => (here === place ? byte ^ 1 : byte)) };
  });
  expect((await verdict(history)).at(-1)).toMatchObject({ kind: "broken", sequence: at });
});

test("a row that is missing, in the middle or at the end, is named", async () => {
  expect((await verdict(stage((records) => records.splice(699, 1)))).at(-1)).toMatchObject({ sequence: 700 });
  expect((await verdict(stage((records) => records.splice(EVENTS - 1, 1)))).at(-1)).toMatchObject({ sequence: EVENTS });
});
