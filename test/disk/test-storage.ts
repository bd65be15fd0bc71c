// A founder of one voter on a real directory.

import { peerKey } from "../../src/core/kit/ids.ts";
import { configurationOf, type Entry } from "../../src/core/raft/index.ts";
import { systemClock } from "../../src/drivers/system/clock.ts";
import { systemDigest } from "../../src/drivers/system/digest.ts";
import { Storage, type Opened } from "../../src/engine/storage.ts";
import type { Disk } from "../../src/ports/disk.ts";

export const self = peerKey("n1", "a1");
const configuration = configurationOf([self]);
export const founding = {
  clusterId: "c",
  nodeId: "n1",
  newIncarnation: (): string => "b1",
  bootstrap: { incarnation: "a1", configuration },
  digest: systemDigest,
  clock: systemClock,
};

export function openStorage(disk: Disk): Promise<Opened> {
  return Storage.open({ ...founding, disk });
}

/** Its data is what its index says, so that an entry in another's place shows. */
function entryAt(index: number, dataBytes: number): Entry {
  const data = new Uint8Array(dataBytes);
  new DataView(data.buffer).setUint32(0, index);
  return { index, term: 1, type: "EntryNormal", data };
}

export function isEntryAt(entry: Entry, index: number, dataBytes: number): boolean {
  const { data } = entry;
  const view = new DataView(data.buffer, data.byteOffset);
  return entry.index === index && data.length === dataBytes && view.getUint32(0) === index;
}

/** Appends entries `from` to `to` in one write and makes them durable. */
export async function appendEntries(storage: Storage, from: number, to: number, dataBytes: number): Promise<void> {
  const entries: Entry[] = [];
  for (let index = from; index <= to; index++) entries.push(entryAt(index, dataBytes));
  const hardState = { term: 1, vote: self, commit: from - 1 };
  await storage.persist([{ sequence: 0, snapshot: null, hardState, entries, mustSync: true, afterSync: [] }], null);
}
