// The servers' machine with its log of receipts: what a site that is alone writes, and what one of a mesh does.

import { describe, expect, test } from "vitest";
import { systemDigest as digest } from "../../drivers/system/digest.ts";
import { piecesOf, wholeOf } from "../../core/kit/pieces.ts";
import { encodePage, encodeRecord, recordedPage } from "../../core/mesh/receipts/index.ts";
import { siteOf, verified } from "../../controller/mesh/receipts/test-receipts.ts";
import { TestDisk } from "../../engine/test-disk.ts";
import { open } from "../../../test/archive/test-archive.ts";
import { RECEIPTS } from "../../logs/index.ts";
import type { Proposals } from "../../ports/consensus.ts";
import type { RaftStatus } from "../../core/raft/index.ts";
import type { FoundLog } from "../../engine/data-directory.ts";
import { historyAhead, refuseAhead } from "./history-ahead.ts";
import { refuseForeignHistory } from "./history.ts";
import { type ServerMachine, serverMachine } from "./machine.ts";

/** A cluster of one, without an engine: what is proposed is applied. */
async function started(disk = new TestDisk()) {
  const server = serverMachine(digest);
  const [{ archive: events }, { archive: receipts }] = [await open(disk), await open(disk, { of: RECEIPTS })];
  server.keepIn(events);
  server.keepReceiptsIn(receipts);
  const propose: Proposals["propose"] = async ([data]) => {
    const index = server.machine.head.index + 1;
    const result = server.machine.apply({ index, term: 1, data: data! });
    return { outcome: "committed", index, term: 1, result };
  };
  const status = (): RaftStatus => ({ role: "leader", term: 1, established: true }) as RaftStatus;
  server.attach({ propose, status });
  return { server, disk, archives: { events, receipts } };
}

async function write(server: ServerMachine, keys: number): Promise<void> {
  const { log, fold } = server.jobs;
  if (log.head().epoch === 0) await log.open(1);
  const payload = { role: "viewer", sha256: "0".repeat(64), by: "ada" };
  for (let at = 0; at < keys; at++) {
    const { sequence } = fold.chain;
    const draft = { id: "e", eventType: "key:created", entityType: "key", entityId: `k${sequence}`, payload } as const;
    fold.propose({ epoch: 1, author: "c1" }, [{ ...draft, timestamp: 1_000 + sequence }]);
    await log.append(1, sequence, fold.tailAfter(sequence, 1)!);
  }
}

async function receive(server: ServerMachine, after: number, size: number): Promise<void> {
  const { log } = server.mesh;
  await log.open(1);
  const { page, from, state } = verified(siteOf("far", size, digest), after, size);
  const pages = [recordedPage(encodePage(page), from, state)];
  await log.append(1, log.head().position, [encodeRecord({ arrivedMs: 5, floorMs: 0, pages })]);
}

describe("a site that is alone", () => {
  test("has no state of receipts in its snapshot, and no file of them", async () => {
    const { server, disk } = await started();
    await write(server, 7);
    const whole = wholeOf(await server.machine.snapshot());
    expect(whole[0]).toBe(2);
    expect((await disk.list("test")).filter((name) => name.includes("receipts"))).toEqual([]);
    const restored = await started();
    restored.server.machine.restore(whole);
    expect(restored.server.jobs.fold.chain).toEqual(server.jobs.fold.chain);
    expect((await restored.disk.list("test")).filter((name) => name.includes("receipts"))).toEqual([]);
  });
});

describe("a site of a mesh", () => {
  test("numbers own and foreign events together, also after a snapshot", async () => {
    const { server } = await started();
    await write(server, 3);
    await receive(server, 0, 4);
    await write(server, 2);
    expect(server.mesh.fold.arrival).toBe(9);
    const whole = wholeOf(await server.machine.snapshot());
    expect(whole[0]).toBe(4);
    const { server: other } = await started();
    other.machine.restore(whole);
    for (const one of [server, other]) await receive(one, 4, 6);
    expect([other.mesh.fold.arrival, other.mesh.fold.state.head]).toEqual([11, server.mesh.fold.state.head]);
    expect(wholeOf(other.mesh.fold.snapshot())).toEqual(wholeOf(server.mesh.fold.snapshot()));
  });

  test("writes its book down in pieces, although receipts follow it", async () => {
    const server = serverMachine(digest, { journal: { sliceBytes: 1 } });
    server.machine.restore(new Uint8Array(0));
    const { server: full } = await started();
    await receive(full, 0, 2);
    server.machine.restore(wholeOf(await full.machine.snapshot()));
    const { book } = server.jobs.fold;
    let made = 0;
    const slices = book.slices.bind(book);
    book.slices = function* (bytes) {
      for (const slice of slices(bytes)) {
        made++;
        yield slice;
      }
    };
    const pieces = piecesOf(await server.machine.snapshot());
    expect(made).toBe(1);
    wholeOf(pieces);
    expect(made).toBeGreaterThan(1);
  });
});

describe("a history of receipts", () => {
  test("that is ahead of its log is found, with the files to move", async () => {
    const { server, archives } = await started();
    await receive(server, 0, 4);
    await receive(server, 4, 5);
    expect(() => refuseAhead(archives, { events: 0, receipts: 2 })).not.toThrow();
    expect(() => refuseAhead(archives, { events: 0, receipts: 1 })).toThrow(
      /receipts of other sites' events 2 to 2 are in .* move receipts-0000000000000001, views/,
    );
    const data = wholeOf(await server.machine.snapshot());
    const found = { snapshot: { data }, entries: [] } as unknown as FoundLog;
    expect(historyAhead(archives, found, digest)).toBeNull();
    await receive(server, 5, 6);
    expect(historyAhead(archives, found, digest)).toContain("receipts of other sites' events 3 to 3");
  });

  test("is no history of a directory that belongs to nobody", async () => {
    const disk = new TestDisk();
    await refuseForeignHistory(disk, digest);
    const file = await disk.create("receipts-0000000000000001", "test");
    await file.close();
    await expect(refuseForeignHistory(disk, digest)).rejects.toMatchObject({ code: "CONFIG_INVALID" });
  });
});
