// Receipts in a data directory of real files: what `tenure server recover` and `tenure server restore` make of them.

import { cpSync, mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, test } from "vitest";
import type { ServerConfig } from "../../src/contract/index.ts";
import { siteOf, verified } from "../../src/controller/mesh/receipts/test-receipts.ts";
import { peerKey } from "../../src/core/kit/ids.ts";
import { seededRandom } from "../../src/core/kit/random.ts";
import { encodePage, encodeRecord, recordedPage } from "../../src/core/mesh/receipts/index.ts";
import { configurationOf } from "../../src/core/raft/index.ts";
import { openDataDirectory } from "../../src/drivers/disk/index.ts";
import { systemClock } from "../../src/drivers/system/clock.ts";
import { systemDigest } from "../../src/drivers/system/digest.ts";
import { Engine } from "../../src/engine/engine.ts";
import { RECEIPTS } from "../../src/logs/index.ts";
import { historyAhead } from "../../src/node/assembly/history-ahead.ts";
import { openArchive } from "../../src/node/assembly/history.ts";
import { serverMachine } from "../../src/node/assembly/machine.ts";
import { recoverDirectory, restoreDirectory } from "../../src/node/worlds/recover.ts";

const root = mkdtempSync(join(tmpdir(), "tenure-receipts-"));
const SITE = siteOf("far", 40, systemDigest);
/** Few, so that there are sealed segments. */
const LIMITS = { eventsMax: 4, bytesMax: 1024 * 1024, blockBytesMax: 4_096 };
const QUIET = { info: () => undefined, warn: () => undefined, error: () => undefined };

afterAll(() => rmSync(root, { recursive: true, force: true }));

function configOf(name: string): ServerConfig {
  const dataDir = join(root, name);
  mkdirSync(dataDir, { recursive: true });
  return { nodeId: "n1", dataDir, disk: { minFreeBytes: 0 } } as unknown as ServerConfig;
}

/** A server of one node, as far as its log and its archives go. */
async function started(config: ServerConfig, clusterId: string) {
  const directory = await openDataDirectory(config.dataDir, config.disk);
  const { disk } = directory;
  const failed = (error: unknown): never => {
    throw error;
  };
  const around = { disk, digest: systemDigest, clock: systemClock, logger: QUIET, limits: LIMITS, failed };
  const events = await openArchive(around);
  const receipts = await openArchive({ ...around, of: RECEIPTS });
  const server = serverMachine(systemDigest);
  server.machine.belongsTo(clusterId);
  server.keepIn(events);
  server.keepReceiptsIn(receipts);
  const engine = await Engine.start({
    clusterId,
    nodeId: "n1",
    disk,
    clock: systemClock,
    digest: systemDigest,
    random: seededRandom("receipts"),
    connect: () => ({ start: () => undefined, send: () => undefined, stop: () => undefined }),
    stateMachine: server.machine,
    newIncarnation: () => "a1",
    bootstrap: { incarnation: "a1", configuration: configurationOf([peerKey("n1", "a1")]) },
    witness: async (log) => historyAhead({ events, receipts }, log, systemDigest),
    onFatal: failed,
  });
  server.attach(engine);
  await expect.poll(() => engine.status().established, { timeout: 10_000 }).toBe(true);
  const stop = async (): Promise<void> => {
    await engine.stop();
    await events.close();
    await receipts.close();
    await directory.close();
  };
  return { ...server, engine, receipts, stop };
}

type Started = Awaited<ReturnType<typeof started>>;

async function receive({ mesh, engine }: Started, pages: number): Promise<void> {
  const epoch = engine.status().term;
  await mesh.log.open(epoch);
  for (let at = 0; at < pages; at++) {
    const known = mesh.fold.state.line(SITE.line)?.size ?? 0;
    const { page, from, state } = verified(SITE, known, known + 2);
    const record = { arrivedMs: 1_000, floorMs: 0, pages: [recordedPage(encodePage(page), from, state)] };
    await mesh.log.append(epoch, mesh.log.head().position, [encodeRecord(record)]);
  }
}

async function intact({ receipts }: Started): Promise<{ readonly first: number; readonly last: number }> {
  for await (const step of receipts.verify()) {
    if (step.kind === "broken" || step.kind === "missing") throw new Error(JSON.stringify(step));
  }
  return { first: receipts.stats().startSequence + 1, last: receipts.lastSequence };
}

describe("a directory with receipts", () => {
  const made = { clusterId: "c1", file: join(root, "saved.snap"), copies: join(root, "copies") };

  test("goes on after a recovery where it was, with all of its history", { timeout: 60_000 }, async () => {
    const config = configOf("first");
    const before = await started(config, made.clusterId);
    await receive(before, 10);
    await before.engine.saveSnapshot();
    writeFileSync(made.file, (await before.engine.newestSnapshot())!.bytes);
    await receive(before, 3);
    const { head, foreign } = before.mesh.fold.state;
    await before.stop();
    mkdirSync(made.copies);
    for (const name of readdirSync(config.dataDir).filter((one) => /^(events|receipts)-\d/.test(one)))
      cpSync(join(config.dataDir, name), join(made.copies, name));
    const { data } = await recoverDirectory(config);
    const after = await started(config, (data as { cluster_id: string }).cluster_id);
    expect([after.mesh.fold.state.head, after.mesh.fold.state.foreign]).toEqual([head, foreign]);
    expect(await intact(after)).toEqual({ first: 1, last: 13 });
    await receive(after, 1);
    expect(after.mesh.fold.state.head.sequence).toBe(14);
    await after.stop();
  });

  test("is restored from a snapshot, and begins with the receipts that this holds", { timeout: 60_000 }, async () => {
    const config = configOf("second");
    const { data } = await restoreDirectory(config, { path: made.file, historyFrom: undefined, isPaused: false });
    const after = await started(config, (data as { cluster_id: string }).cluster_id);
    expect([after.mesh.fold.state.head.sequence, after.mesh.fold.state.foreign]).toEqual([10, 20]);
    expect(await intact(after)).toEqual({ first: 9, last: 10 });
    await receive(after, 1);
    expect((await intact(after)).last).toBe(11);
    await after.stop();
  });

  test("is restored with copies of its segments, which are whole again", { timeout: 60_000 }, async () => {
    const config = configOf("third");
    const asked = { path: made.file, historyFrom: made.copies, isPaused: false };
    const { data } = await restoreDirectory(config, asked);
    const after = await started(config, (data as { cluster_id: string }).cluster_id);
    expect(await intact(after)).toEqual({ first: 1, last: 10 });
    await after.stop();
  });
});
