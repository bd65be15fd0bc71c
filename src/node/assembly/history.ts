// The history of events on one server: its archive opened, exchanged with the other nodes, and when it takes no more.

import { withWorkerAnswers } from "../../controller/cluster/worker-queries.ts";
import { TenureError } from "../../core/kit/errors.ts";
import { members as membersOf } from "../../core/raft/index.ts";
import { systemClock } from "../../drivers/system/clock.ts";
import { systemDigest } from "../../drivers/system/digest.ts";
import { readStampOf } from "../../engine/stamp-reader.ts";
import { Archive, type ArchiveOptions, exchangeSegments, Retention, type SegmentFetcher } from "../../logs/index.ts";
import type { Clearance } from "../../ports/clearance.ts";
import type { Disk } from "../../ports/disk.ts";
import type { Logger } from "../../ports/logger.ts";
import type { PeerQueries } from "../../ports/peers/queries.ts";
import type { ConsensusNode } from "../worlds/consensus.ts";

const MIB = 2 ** 20;
const DAY_MS = 86_400_000;

export interface HistoryOptions extends Pick<ArchiveOptions, "quotaBytes" | "syncs"> {
  readonly logger: Logger;
  readonly failed: (error: unknown) => void;
}

export async function openArchive(disk: Disk, { logger, quotaBytes, syncs, failed }: HistoryOptions): Promise<Archive> {
  const { archive, findings } = await Archive.open({
    disk,
    digest: systemDigest,
    clock: systemClock,
    found: (finding) =>
      logger.error(
        { event: "archive", ...finding },
        `${finding.file} is damaged at event ${finding.sequence}: it is set aside, and the other members are asked for it`,
      ),
    quotaBytes,
    syncs,
    failed,
  });
  for (const finding of findings)
    logger.warn({ event: "archive", ...finding }, "the archive was mended when it was opened");
  return archive;
}

/**
 * A directory that belongs to nobody yet holds no history: it would be taken for this cluster's own, as far as it goes.
 * Throws CONFIG_INVALID.
 */
export async function refuseForeignHistory(disk: Disk): Promise<void> {
  if ((await readStampOf(disk, systemDigest)) !== null) return;
  const found = (await disk.list("history-list")).find((name) => /^events-[0-9]/.test(name));
  if (found === undefined) return;
  const why = `the data directory belongs to no node, and is not empty: ${found} is history of another cluster`;
  throw new TenureError("CONFIG_INVALID", `${why}. Move it away, do not delete it, and begin with an empty directory.`);
}

/** Serves the others, and fetches what is missing here, until it is stopped; before the archive is closed. */
export function exchangeHistory(
  { engine, wire, random }: ConsensusNode,
  archive: Archive,
  logger: Logger,
  { clearance, changed }: { readonly clearance?: Clearance | undefined; readonly changed?: () => void } = {},
): SegmentFetcher {
  const members = (): readonly string[] | null => {
    const { peer, configuration } = engine.status();
    const all = membersOf(configuration);
    // One that has not joined yet, or was removed, does not know who has what.
    return all.includes(peer) ? all.filter((member) => member !== peer) : null;
  };
  const part = random.fork("history");
  const queries: PeerQueries = {
    askable: () => wire.askable(),
    ask: (peer, query) => wire.ask(peer, query),
    onQuery: (answer) => wire.onQuery(clearance === undefined ? answer : withWorkerAnswers(clearance, answer)),
    onAskable: (listener) => wire.onAskable(listener),
  };
  return exchangeSegments({ archive, queries, members, clock: systemClock, random: part, logger, changed });
}

/** Lets go of what is older than it is kept, until it is stopped; before the archive is closed. */
export function retainHistory(
  archive: Archive,
  keepDays: number | null,
  { isPaused, logger }: { readonly isPaused: () => boolean; readonly logger: Logger },
): Retention {
  const keepMs = keepDays === null ? null : keepDays * DAY_MS;
  return new Retention({ archive, keepMs, isPaused, clock: systemClock, logger });
}

/** Why no new jobs are taken, as far as history is concerned; results always are. */
export function historyRefusal(archive: Pick<Archive, "isBehind" | "quota">): TenureError | null {
  if (archive.isBehind) {
    const why = "the disk does not keep up with the history of events: no new jobs are taken until it has";
    return new TenureError("OVERLOADED", `${why}. Try again in a moment.`);
  }
  const { level, usedBytes, quotaBytes } = archive.quota;
  if (level !== "refuse" || quotaBytes === null) return null;
  const used = `${Math.floor(usedBytes / MIB)} of ${Math.floor(quotaBytes / MIB)} MiB`;
  const why = `the history of events takes ${used}: no new jobs are taken`;
  return new TenureError(
    "QUOTA_EXCEEDED",
    `${why}. Raise history.quota_bytes, or let go of old events with history.keep_days.`,
  );
}
