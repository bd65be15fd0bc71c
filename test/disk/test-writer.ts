// Appends entries to the data directory that it is given, and says after each one that it is durable, until it is killed.

import { openDataDirectory } from "../../src/drivers/disk/index.ts";
import { appendEntries, openStorage } from "./test-storage.ts";

const { disk } = await openDataDirectory(process.argv[2]!);
const { storage, entries } = await openStorage(disk);
for (let index = (entries.at(-1)?.index ?? 1) + 1; ; index++) {
  await appendEntries(storage, index, index, 100);
  process.stdout.write(`${index}\n`);
}
