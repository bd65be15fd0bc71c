// What the tests of the archive share: sealed events, archives with tiny segments on a disk that lies, and their contents.

import { expect } from "vitest";
import { decodeCapture, type CommittedEvent, type SegmentLimits } from "../../src/core/archive/index.ts";
import { EMPTY_CHAIN, Sealer } from "../../src/core/events/index.ts";
import { systemDigest } from "../../src/drivers/system/digest.ts";
import { ManualClock } from "../../src/loops/test-clock.ts";
import type { Disk } from "../../src/ports/disk.ts";
import { Archive, type ArchiveOptions, type Finding, type VerifyStep } from "../../src/logs/archive/index.ts";

export const digest = systemDigest;
/** Five events are a segment, two are a block. */
export const TINY: SegmentLimits = { eventsMax: 5, bytesMax: 100_000, blockBytesMax: 600 };
export const AUTHOR = "c1.0";

/** Sealed one after the other: event 1 up to `count`. */
export function sealedEvents(count: number, author = AUTHOR, payloadBytes = 10): CommittedEvent[] {
  const sealer = new Sealer({ head: EMPTY_CHAIN, sourceControllerId: author, leaderEpoch: 1, digest });
  return Array.from({ length: count }, (_, i) =>
    sealer.seal({
      id: `00000000-0000-4000-8000-${String(i).padStart(12, "0")}`,
      eventType: "build:submitted",
      entityId: `job-${i}`,
      entityType: "build",
      payload: { text: "x".repeat(payloadBytes), number: i },
      timestamp: 1_700_000_000_000 + i,
    }),
  );
}

export interface TestArchive {
  readonly archive: Archive;
  readonly findings: readonly Finding[];
  readonly clock: ManualClock;
  /** What `failed` was called with. */
  readonly failures: unknown[];
}

export async function open(disk: Disk, options: Partial<ArchiveOptions> = {}): Promise<TestArchive> {
  const clock = new ManualClock();
  const failures: unknown[] = [];
  const failed = (error: unknown): void => void failures.push(error);
  const { archive, findings } = await Archive.open({ disk, digest, clock, failed, limits: TINY, ...options });
  return { archive, findings, clock, failures };
}

/** An archive with these events, durable. */
export async function filled(
  disk: Disk,
  events: readonly CommittedEvent[],
  options: Partial<ArchiveOptions> = {},
): Promise<TestArchive> {
  const opened = await open(disk, options);
  opened.archive.append(events);
  await opened.archive.durable(opened.archive.lastSequence);
  return opened;
}

export async function sequencesOf(archive: Archive, from = 1, max?: number): Promise<number[]> {
  const sequences: number[] = [];
  for await (const batch of archive.read(from, max)) sequences.push(...batch.map(({ sequence }) => sequence));
  return sequences;
}

/** All events from `from` on are the given ones, byte for byte, and their hashes too. */
export async function expectHistory(archive: Archive, events: readonly CommittedEvent[], from = 1): Promise<void> {
  let next = from;
  for await (const batch of archive.read(from)) {
    for (const { sequence, bytes, eventHash } of batch) {
      const expected = events[next - 1];
      const isSame =
        sequence === next++ && eventHash === expected?.event.eventHash && Buffer.compare(bytes, expected.bytes) === 0;
      // An `expect` for each event takes most of the time of these tests.
      if (!isSame) expect.unreachable(`event ${sequence} is another one`);
    }
  }
  expect(next - 1).toBe(events.length);
}

export async function verified(archive: Archive, from?: number): Promise<VerifyStep[]> {
  const steps: VerifyStep[] = [];
  for await (const step of archive.verify(from)) steps.push(step);
  return steps;
}

export async function expectIntact(archive: Archive, events: number): Promise<void> {
  const steps = await verified(archive);
  expect(steps.filter(({ kind }) => kind === "broken" || kind === "missing")).toEqual([]);
  expect(steps.at(-1)).toMatchObject({ kind: "end", isIntact: true, events });
}

/** What a Raft log has after a snapshot, up to `last`: the rest is compacted. */
export function logBehind(
  snapshot: Uint8Array | null,
  events: readonly CommittedEvent[],
  last = events.length,
): readonly CommittedEvent[] {
  return events.slice(snapshot === null ? 0 : decodeCapture(snapshot).head.sequence, last);
}

/** Gives a node what it lacks, from another one. */
export async function fetchAll(archive: Archive, peer: Archive): Promise<void> {
  for (const entry of archive.missing()) {
    const bytes = await peer.serve(entry.first, 0, entry.sizeBytes);
    expect(bytes).not.toBeNull();
    await archive.install(bytes!, entry);
  }
}
