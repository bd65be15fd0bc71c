// Which voter a directory is, whatever a crash, rot or an operator has made of its files.

import { describe, expect, test } from "vitest";
import { incarnationOf } from "../../core/kit/ids.ts";
import { seededRandom } from "../../core/kit/random.ts";
import { EMPTY_LEDGER, type Ledger } from "../../core/lease/index.ts";
import { ledgerOf, peer, rosterOf } from "../../core/lease/test-lease.ts";
import { systemDigest as digest } from "../../drivers/system/digest.ts";
import { CRASH_MODES, TestDisk } from "../../engine/test-disk.ts";
import { open as openLog } from "../../engine/test-storage.ts";
import {
  type CoordinatorFiles,
  LEASES_NAME,
  LEDGER_NAME,
  openCoordinatorFiles,
  readLedger,
  setLedgerAside,
  writeLedger,
} from "./files.ts";

const ROSTER = rosterOf(3, 1, "a@1", "b@1", "c@1");
const LEDGER: Ledger = ledgerOf(ROSTER, { term: 3, grant: { term: 3, leader: peer("b@1"), released: false } });
const LEASE = { identity: "b", endpoint: "https://b", updatedAtMs: 1, expiresAtMs: 2 };

interface Place {
  readonly node?: string;
  readonly log?: string;
}

let incarnations = 0;

function open(disk: TestDisk, { node = "a", log = "e1" }: Place = {}): Promise<CoordinatorFiles> {
  return openCoordinatorFiles({ disk, digest, node, log, newIncarnation: () => (++incarnations).toString(16) });
}

/** With a ledger in it. */
async function used(place: Place = {}): Promise<{ readonly disk: TestDisk; readonly self: string }> {
  const disk = new TestDisk();
  const { self, ledgerFile } = await open(disk, place);
  await ledgerFile.write(LEDGER);
  return { disk, self };
}

describe("a directory", () => {
  test("that is empty is a new voter's, from its first start on: its name is durable before anybody hears of it", async () => {
    const disk = new TestDisk();
    const first = await open(disk);
    disk.restart("vanish", seededRandom(1));
    const second = await open(disk);
    expect([second.self, second.ledger, second.setAside]).toEqual([first.self, EMPTY_LEDGER, null]);
    expect((await open(new TestDisk())).self).not.toBe(first.self);
  });

  test("has its ledger again, as it was written last", async () => {
    const { disk, self } = await used();
    disk.restart("vanish", seededRandom(1));
    expect(await open(disk)).toMatchObject({ self, ledger: LEDGER, setAside: null });
  });

  test("whose ledger is lost is another voter's", async () => {
    const { disk, self } = await used();
    disk.drop(LEDGER_NAME);
    const opened = await open(disk);
    expect(opened.self).not.toBe(self);
    expect(opened.ledger).toEqual(EMPTY_LEDGER);
  });

  test("whose ledger is damaged is another voter's, and the damaged one is kept as evidence", async () => {
    const { disk, self } = await used();
    disk.bytesOf(LEDGER_NAME)[60]! ^= 1;
    const damaged = disk.bytesOf(LEDGER_NAME);
    const opened = await open(disk);
    expect(opened.self).not.toBe(self);
    expect([opened.ledger, opened.setAside]).toEqual([EMPTY_LEDGER, "it is damaged (its checksum is wrong)"]);
    expect(disk.bytesOf("tc-ledger-aside-1")).toEqual(damaged);
    disk.bytesOf(LEDGER_NAME)[60]! ^= 1;
    await open(disk);
    expect(disk.names()).toEqual([LEDGER_NAME, "tc-ledger-aside-1", "tc-ledger-aside-2"]);
  });

  test("whose log was set aside, wiped, restored or recovered meanwhile is another voter's: the ledger may be an older copy", async () => {
    const { disk, self } = await used({ log: "e1" });
    const opened = await open(disk, { log: "e2" });
    expect(opened.self).not.toBe(self);
    expect(opened.ledger).toEqual(EMPTY_LEDGER);
    expect(opened.setAside).toContain("the disk e1, and the log in this directory is of the disk e2");
    expect(await open(disk, { log: "e2" })).toMatchObject({ self: opened.self, setAside: null });
  });

  test("that was given another node's certificate is another voter's", async () => {
    const { disk } = await used();
    const opened = await open(disk, { node: "b" });
    expect(opened.self).toMatch(/^b@/);
    expect(opened.setAside).toContain("of the node a, and this certificate is of b");
  });

  test("of a later release is refused with what to do, and left as it is", async () => {
    const { disk } = await used();
    const text = "tenure-tc-ledger 2\n{}\n";
    const bytes = new TextEncoder().encode(text);
    const later = new TextEncoder().encode(`${digest.crc32(bytes).toString(16).padStart(8, "0")} ${text}`);
    disk.put(LEDGER_NAME, later);
    await expect(open(disk)).rejects.toMatchObject({
      code: "FORMAT_UNSUPPORTED",
      message: expect.stringContaining("Start the release that wrote it"),
    });
    expect([disk.names(), disk.bytesOf(LEDGER_NAME)]).toEqual([[LEDGER_NAME], later]);
  });

  test("is given up by hand: the next start is another voter", async () => {
    const { disk, self } = await used();
    expect(await readLedger({ disk, digest })).toMatchObject({ kind: "whole", value: { voter: self, log: "e1" } });
    await setLedgerAside({ disk });
    expect(await readLedger({ disk, digest })).toBeNull();
    expect((await open(disk)).self).not.toBe(self);
  });

  test("takes what an operator writes into its ledger", async () => {
    const { disk, self } = await used();
    const next = { ...LEDGER, term: 2 ** 20 };
    await writeLedger({ disk, digest }, { voter: peer(self), log: "e1", ledger: next });
    expect(await open(disk)).toMatchObject({ self, ledger: next });
  });
});

describe("beside the log of its node", () => {
  test("a ledger is none of the engine's files: where a damaged log is set aside, and begins anew, the coordinator is another voter", async () => {
    const disk = new TestDisk();
    const before = await openLog(disk);
    const log = incarnationOf(before.peer);
    await before.storage.close();
    const { self, ledgerFile, membershipFile } = await open(disk, { log });
    await ledgerFile.write(LEDGER);
    await membershipFile.write([LEASE]);
    const ledger = disk.bytesOf(LEDGER_NAME);
    disk.bytesOf(disk.names().find((name) => name.startsWith("wal-"))!)[0]! ^= 1;
    const after = await openLog(disk);
    expect([after.recovery, disk.bytesOf(LEDGER_NAME)]).toEqual(["damaged-set-aside", ledger]);
    expect(await open(disk, { log: incarnationOf(after.peer) })).toMatchObject({
      setAside: expect.stringContaining("disk"),
      leases: [LEASE],
    });
    expect((await open(disk, { log: incarnationOf(after.peer) })).self).not.toBe(self);
  });
});

describe.each(CRASH_MODES)("a crash in each disk call (%s)", (mode) => {
  /** Whatever is left: the old name with all that it promised, or another name that has promised nothing. */
  async function checkAll(begin: () => Promise<{ disk: TestDisk; self: string }>, place: Place, keeps: boolean) {
    for (let call = 1; ; call++) {
      const { disk, self } = await begin();
      disk.crashAt(call);
      const opened = await open(disk, place)
        .then(
          ({ ledgerFile }) => ledgerFile.write({ ...LEDGER, term: 4 }),
          (error: unknown) => error,
        )
        .catch((error: unknown) => error);
      const isOver = opened === undefined && !disk.isDead;
      disk.restart(mode, seededRandom(call));
      const after = await open(disk, place);
      if (after.self === self) expect(keeps && after.ledger.term >= LEDGER.term, `call ${call}`).toBe(true);
      else expect([keeps, after.ledger.term === 0 || isOver || after.ledger.term === 4]).toEqual([false, true]);
      // Once more, after a power loss: what was believed is durable.
      disk.restart("vanish", seededRandom(call));
      expect(await open(disk, place)).toMatchObject({ self: after.self, ledger: after.ledger });
      if (isOver) return;
    }
  }

  test("while a ledger is written", () => checkAll(() => used(), {}, true));

  test("while a damaged ledger is replaced", () =>
    checkAll(
      async () => {
        const one = await used();
        one.disk.bytesOf(LEDGER_NAME)[60]! ^= 1;
        return one;
      },
      {},
      false,
    ));

  test("while the ledger of another log is replaced", () => checkAll(() => used(), { log: "e2" }, false));
});

describe("membership leases", () => {
  test("are there after the process has died, without a sync", async () => {
    const disk = new TestDisk();
    const { membershipFile } = await open(disk);
    const before = disk.calls.length;
    await membershipFile.write([LEASE]);
    expect(disk.calls.slice(before).filter((call) => call.includes("sync"))).toEqual([]);
    disk.restart("process", seededRandom(1));
    expect((await open(disk)).leases).toEqual([LEASE]);
  });

  test("that are torn, rotten or lost are none, and the ledger is as it was", async () => {
    const { disk, self } = await used();
    const { membershipFile } = await open(disk);
    await membershipFile.write([LEASE]);
    const whole = disk.bytesOf(LEASES_NAME).slice();
    for (const bytes of [new Uint8Array(0), whole.subarray(0, 20), new Uint8Array(whole.length)]) {
      disk.put(LEASES_NAME, bytes);
      expect(await open(disk)).toMatchObject({ self, leases: [], ledger: LEDGER });
    }
  });
});

test("a sync that fails ends the process: what was promised is not known", async () => {
  const disk = new TestDisk();
  const { ledgerFile } = await open(disk);
  disk.failNext("tc-ledger-fdatasync", new Error("EIO"));
  await expect(ledgerFile.write(LEDGER)).rejects.toMatchObject({ code: "FSYNC_FAILED" });
});
