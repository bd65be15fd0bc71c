// One bit of every byte of the archive of receipts is changed: a start or a check finds it, and names a receipt of the segment that it is in. Nothing that was
// changed is ever read as a receipt.

import { describe, expect, test } from "vitest";
import type { CommittedEvent } from "../../src/core/archive/index.ts";
import { checkPage } from "../../src/core/mesh/proof/index.ts";
import {
  archived,
  decodeRecord,
  encodePage,
  encodeRecord,
  ReceiptsState,
  recordedPage,
} from "../../src/core/mesh/receipts/index.ts";
import { fakeVerify } from "../../src/core/mesh/test-signatures.ts";
import { ringOf, TestSite } from "../../src/core/mesh/test-site.ts";
import { TestDisk } from "../../src/engine/test-disk.ts";
import { RECEIPTS } from "../../src/logs/index.ts";
import { digest, filled, open, TINY, verified } from "../archive/test-archive.ts";

const COUNT = 8;
const SEALED = "receipts-0000000000000001";
const OPEN = "receipts-0000000000000006";

/** One event each, of one line. */
function receipts(): CommittedEvent[] {
  const site = new TestSite(ringOf("b", ["n1"], digest), digest);
  const state = new ReceiptsState(digest);
  let line = site.start;
  return Array.from({ length: COUNT }, (_, at) => {
    site.write(at % 3 === 2 ? { eventType: "build:log" } : {});
    const page = site.page(at, at + 1);
    const check = checkPage({ state: line, page, digest, verify: fakeVerify(digest) });
    let step = check.next();
    while (step.done !== true) step = check.next();
    if (step.value.kind !== "accepted") throw new Error(step.value.kind);
    const pages = [recordedPage(encodePage(page), line, step.value.state)];
    line = step.value.state;
    const record = decodeRecord(encodeRecord({ arrivedMs: 1_000 + at, floorMs: 0, pages }));
    if (record.kind !== "record") throw new Error(record.kind);
    return archived(state.take(record.pages[0]!, { epoch: 3, own: at, arrivedMs: 1_000 + at })!);
  });
}

const all = receipts();

async function disk(): Promise<TestDisk> {
  const made = new TestDisk();
  await (await filled(made, all, { of: RECEIPTS })).archive.close();
  return made;
}

/** What a start and a check name, with this byte changed. */
async function namedFor(whole: TestDisk, file: string, at: number): Promise<number[]> {
  const changed = whole.clone();
  const bytes = changed.bytesOf(file);
  changed.put(file, bytes.with(at, bytes[at]! ^ (1 << (at % 8))));
  const { archive, findings } = await open(changed, { of: RECEIPTS });
  const named = findings.map(({ sequence }) => sequence);
  for (const step of await verified(archive)) {
    if (step.kind === "broken" || step.kind === "missing") named.push("sequence" in step ? step.sequence : step.first);
  }
  const known = new Map(all.map(({ event, bytes: text }) => [event.sequence, Buffer.from(text).toString("hex")]));
  try {
    for await (const batch of archive.read(1)) {
      for (const one of batch) expect(Buffer.from(one.bytes).toString("hex")).toBe(known.get(one.sequence));
    }
  } catch (error) {
    expect(error).toMatchObject({
      code: expect.stringMatching(/DISK_DAMAGED|EVENTS_LOST|BACKEND_UNAVAILABLE/) as string,
    });
  }
  await archive.close();
  return named;
}

describe("a bit that is changed", () => {
  test.each([
    ["a sealed segment", SEALED, 1, TINY.eventsMax],
    ["the open segment", OPEN, TINY.eventsMax + 1, COUNT + 1],
  ] as const)(
    "in any byte of %s is found, and the receipt is named",
    async (_name, file, first, last) => {
      const whole = await disk();
      const { length } = whole.bytesOf(file);
      expect(length).toBeGreaterThan(1_000);
      const unnoticed: number[] = [];
      for (let at = 0; at < length; at++) {
        const named = await namedFor(whole, file, at);
        if (!named.some((sequence) => sequence >= first && sequence <= last)) unnoticed.push(at);
      }
      expect(unnoticed).toEqual([]);
    },
    60_000,
  );
});
