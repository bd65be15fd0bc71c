// The history of events of simulated servers: production's archive (logs/archive) on each server's own disk.

import type { Archive, ArchiveKind } from "../../logs/index.ts";
import type { NodeLog } from "../../node/assembly/assemble.ts";
import { openArchive } from "../../node/assembly/history.ts";
import type { Digest } from "../../ports/digest.ts";
import type { Boot } from "../kernel/index.ts";
import type { JobsCluster } from "./cluster.ts";
import { reached } from "./probes.ts";

/** Small, so that a run has many segments. */
const LIMITS = { bytesMax: 1024 * 1024, blockBytesMax: 2_048 };

/** Its files. */
const HISTORY = /^(tmp-|damaged-|former-)?(events|receipts)-/;
const SEGMENT = /^(events|receipts)-\d/;
const NO_LOGGER = { debug() {}, info() {}, warn() {}, error() {} };

export class Histories {
  readonly #cluster: JobsCluster;

  constructor(cluster: JobsCluster) {
    this.#cluster = cluster;
  }

  async open(boot: Boot, digest: Digest, of?: ArchiveKind): Promise<Archive> {
    const { disk, clock } = boot;
    const { knobs } = this.#cluster;
    const limits = { ...LIMITS, eventsMax: knobs.segmentEvents };
    return openArchive({ of, disk, digest, clock, limits, logger: NO_LOGGER, failed: (error) => boot.fatal(error) });
  }

  /** As whoever reads it sees it. */
  watched(archive: Archive): NodeLog["history"] {
    const { probes } = this.#cluster;
    return {
      stats: () => archive.stats(),
      verify: () => archive.verify(),
      missing: () => archive.missing(),
      lost: () => archive.lost(),
      read: (from, max) => {
        if (archive.missing().some(({ first, last }) => first < from + (max ?? Infinity) && last >= from))
          reached(probes, "missed-events-not-there-yet");
        return archive.read(from, max);
      },
    };
  }

  /** While it does not run: its history is gone, but not of what nobody else has. */
  wipe(node: string): void {
    const { world, names, peers } = this.#cluster;
    const { disk } = world.node(node);
    const holders = names.filter((name) => name !== node && name !== peers.liar);
    const isElsewhere = (name: string): boolean => {
      const bytes = disk.durableContent(name)?.length ?? 0;
      return holders.some((one) => (world.node(one).disk.durableContent(name)?.length ?? -1) >= bytes);
    };
    if (disk.directory.names().every((name) => !SEGMENT.test(name) || isElsewhere(name)))
      disk.lose((name) => HISTORY.test(name));
  }
}
