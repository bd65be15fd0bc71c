import { hash } from "node:crypto";
import { readdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { EMPTY_CHAIN, Sealer, type SealedEvent } from "../../src/core/events/index.ts";
import { seededRandom } from "../../src/core/kit/random.ts";
import { systemClock } from "../../src/drivers/system/clock.ts";
import { systemDigest as digest } from "../../src/drivers/system/digest.ts";
import { Archive, SegmentFetcher, type Finding, type VerifyStep } from "../../src/logs/archive/index.ts";
import { newPath, openAt } from "../disk/test-directory.ts";

const EVENTS = 60_000;
const BATCH = 500;

function* batches(): Generator<SealedEvent[]> {
  const sealer = new Sealer({ head: EMPTY_CHAIN, sourceControllerId: "c1.0", leaderEpoch: 1, digest });
  for (let at = 0; at < EVENTS; at += BATCH) {
    yield Array.from({ length: BATCH }, (_, i) =>
      sealer.seal({
        id: `00000000-0000-4000-8000-${String(at + i).padStart(12, "0")}`,
        eventType: "build:completed",
        entityId: `job-${at + i}`,
        entityType: "build",
        payload: { agent: "a".repeat(40), result: { ok: true, took: i } },
        timestamp: 1_700_000_000_000 + at,
      }),
    );
  }
}

async function openArchive(path: string): Promise<{ archive: Archive; findings: readonly Finding[] }> {
  const { disk } = await openAt(path);
  const failed = (error: unknown): void => {
    throw error;
  };
  return Archive.open({ disk, digest, clock: systemClock, failed });
}

async function filledAt(path: string): Promise<Archive> {
  const { archive } = await openArchive(path);
  for (const batch of batches()) archive.append(batch);
  await archive.durable(EVENTS);
  return archive;
}

async function verdict(archive: Archive): Promise<VerifyStep[]> {
  const steps: VerifyStep[] = [];
  for await (const step of archive.verify()) if (step.kind !== "progress") steps.push(step);
  return steps;
}

/** Name and SHA-256: to compare the bytes themselves takes the test runner half a minute. */
async function filesOf(path: string): Promise<Record<string, string>> {
  const names = (await readdir(path)).filter((name) => name.startsWith("events-0")).toSorted();
  const files: Record<string, string> = {};
  for (const name of names) files[name] = hash("sha256", await readFile(join(path, name)));
  return files;
}

const silent = { info: () => undefined, warn: () => undefined, error: () => undefined };

describe("an archive on real files", () => {
  test(
    "survives a restart, and names a damaged byte, which a peer mends; a new node gets the same files",
    { timeout: 60_000 },
    async () => {
      const source = await newPath();
      const archive = await filledAt(source);
      expect(archive.manifest().segments.length).toBeGreaterThan(2);
      expect((await verdict(archive)).at(-1)).toMatchObject({ kind: "end", isIntact: true, events: EVENTS });

      const joined = await newPath();
      const node = (await openArchive(joined)).archive;
      const peers = [
        { name: "n1", source: { fetch: archive.serve.bind(archive), start: async () => 0, lacks: async () => null } },
      ];
      const fetcher = new SegmentFetcher({
        archive: node,
        peers: () => peers,
        members: () => ["n1"],
        clock: systemClock,
        random: seededRandom(1),
        logger: silent,
      });
      await node.restore(await archive.capture());
      await expect.poll(() => node.isComplete, { timeout: 30_000 }).toBe(true);
      const files = await filesOf(source);
      expect(await filesOf(joined)).toEqual(files);

      const [first, second] = Object.keys(files);
      const bytes = await readFile(join(joined, second!));
      const at = bytes.indexOf(`"sequence":${archive.manifest().segments[1]!.first + 100},`);
      bytes[at + 3]! ^= 4;
      await writeFile(join(joined, second!), bytes);
      const steps = await verdict(node);
      expect(steps[0]).toMatchObject({
        kind: "broken",
        file: second,
        sequence: archive.manifest().segments[1]!.first + 100,
      });
      expect(steps.at(-1)).toMatchObject({ kind: "end", isIntact: false });
      await expect.poll(() => node.isComplete, { timeout: 30_000 }).toBe(true);
      expect(await filesOf(joined)).toEqual(files);
      await fetcher.stop();

      // A reader from the middle, over the border of a segment.
      const from = node.manifest().segments[0]!.last - 5;
      const sequences: number[] = [];
      for await (const batch of node.read(from, 20)) sequences.push(...batch.map(({ sequence }) => sequence));
      expect(sequences).toEqual(Array.from({ length: 20 }, (_, i) => from + i));
      expect(first).toBe("events-0000000000000001");
      await node.close();
      await archive.close();
    },
  );

  test("cuts a torn tail of real bytes", { timeout: 60_000 }, async () => {
    const path = await newPath();
    const { disk } = await openAt(path);
    const options = { disk, digest, clock: systemClock, failed: () => undefined };
    const { archive } = await Archive.open(options);
    const [batch] = batches();
    archive.append(batch!);
    await archive.close();
    const name = "events-0000000000000001";
    const whole = await readFile(join(path, name));
    await writeFile(join(path, name), whole.subarray(0, -7));
    const again = await Archive.open(options);
    expect(again.findings).toMatchObject([{ kind: "torn", sequence: BATCH }]);
    expect(again.archive.lastSequence).toBe(BATCH - 1);
    again.archive.append(batch!);
    await again.archive.close();
    expect(Buffer.compare(await readFile(join(path, name)), whole)).toBe(0);
  });

  test("is verified in slices that leave the loop free", { timeout: 60_000 }, async () => {
    const archive = await filledAt(await newPath());
    const reads = archive.manifest().segments.length + 1;
    let turns = 0;
    const pulse = setInterval(() => turns++, 1);
    const end = (await verdict(archive)).at(-1)!;
    clearInterval(pulse);
    if (end.kind !== "end") expect.unreachable(end.kind);
    expect(end.events).toBe(EVENTS);
    // Turns and not milliseconds: a busy machine stops the process for longer than any slice. A walk in one piece would
    // leave a few turns for each file that is read, and no more.
    expect(turns).toBeGreaterThan(4 * reads);
    await archive.close();
  });
});
