// Holds the data directory that it is given until it is killed.

import { openDataDirectory } from "../../src/drivers/disk/index.ts";

await openDataDirectory(process.argv[2]!);
process.stdout.write("held\n");
setInterval(() => undefined, 1_000);
