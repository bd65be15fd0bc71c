import { expect, test } from "vitest";
import { newPath, openAt } from "./test-directory.ts";
import { appendEntries, isEntryAt, openStorage, self } from "./test-storage.ts";

const ENTRIES = 1_000_000;
const DATA_BYTES = 128;
const BATCH_ENTRIES = 500;
/** Measured: 0.9 to 1.3 s with the files in the page cache. The limit leaves room for a busy machine. */
const LIMIT_MS = 10_000;

test("a node restarts from a log of a million entries, and all of them are right", { timeout: 120_000 }, async () => {
  const path = await newPath();
  const directory = await openAt(path);
  const { storage } = await openStorage(directory.disk);
  for (let from = 2; from < ENTRIES + 2; from += BATCH_ENTRIES) {
    await appendEntries(storage, from, from + BATCH_ENTRIES - 1, DATA_BYTES);
  }
  await storage.close();
  await directory.close();

  const again = await openAt(path);
  const startMs = performance.now();
  const opened = await openStorage(again.disk);
  const tookMs = performance.now() - startMs;
  console.info(`opened a log of ${ENTRIES} entries of ${DATA_BYTES} bytes in ${tookMs.toFixed(0)} ms`);
  expect(opened.recovery).toBe("intact");
  expect(opened.hardState).toEqual({ term: 1, vote: self, commit: ENTRIES + 1 - BATCH_ENTRIES });
  expect(opened.entries.length).toBe(ENTRIES);
  let wrong = 0;
  opened.entries.forEach((entry, i) => {
    if (!isEntryAt(entry, i + 2, DATA_BYTES)) wrong++;
  });
  expect(wrong).toBe(0);
  expect(tookMs).toBeLessThan(LIMIT_MS);

  // It is a log that goes on.
  await appendEntries(opened.storage, ENTRIES + 2, ENTRIES + 2, DATA_BYTES);
  await opened.storage.close();
});
