// Files that were set aside: nobody reads them, an operator removes them, and until then they count as history.

import type { Disk } from "../../ports/disk.ts";
import type { ArchiveNames } from "./file-names.ts";

/** Null where they can't be counted now: a number for a person is not worth a process. */
export async function asideBytes({
  disk,
  names,
}: {
  readonly disk: Disk;
  readonly names: ArchiveNames;
}): Promise<number | null> {
  try {
    let bytes = 0;
    for (const name of (await disk.list("archive-list")).filter((one) => names.isAside(one))) {
      bytes += await disk.sizeBytes(name, "archive-size");
    }
    return bytes;
  } catch {
    return null;
  }
}
