// The history of events on one server: its archive opened, exchanged with the other nodes, and when it takes no more.

import { withWorkerAnswers } from "../../controller/cluster/worker-queries.ts";
import { type MeshAnswers, withMeshAnswers } from "../../controller/mesh/own/key-queries.ts";
import { tagged } from "../../core/kit/bytes.ts";
import { TenureError } from "../../core/kit/errors.ts";
import type { PeerKey } from "../../core/kit/ids.ts";
import { members as membersOf } from "../../core/raft/index.ts";
import { readStampOf } from "../../engine/stamp-reader.ts";
import type { Engine } from "../../engine/engine.ts";
import {
  Archive,
  type ArchiveOptions,
  type ExchangeOptions,
  exchangeSegments,
  Retention,
  type RetentionOptions,
  type SegmentFetcher,
} from "../../logs/index.ts";
import type { Clearance } from "../../ports/clearance.ts";
import type { Digest } from "../../ports/digest.ts";
import type { Disk } from "../../ports/disk.ts";
import type { Logger } from "../../ports/logger.ts";
import type { Answering, PeerQueries } from "../../ports/peers/queries.ts";

const MIB = 2 ** 20;
const DAY_MS = 86_400_000;

export interface HistoryOptions extends Pick<
  ArchiveOptions,
  "of" | "disk" | "digest" | "clock" | "quotaBytes" | "syncs" | "limits"
> {
  readonly logger: Logger;
  readonly failed: (error: unknown) => void;
}

export async function openArchive(options: HistoryOptions): Promise<Archive> {
  const { logger } = options;
  const { archive, findings } = await Archive.open({
    ...options,
    found: (finding) =>
      logger.error(
        { event: "archive", ...finding },
        `${finding.file} is damaged at event ${finding.sequence}: it is set aside, and the other members are asked for it`,
      ),
  });
  for (const finding of findings)
    logger.warn({ event: "archive", ...finding }, "the archive was mended when it was opened");
  return archive;
}

/**
 * A directory that belongs to nobody yet holds no history: it would be taken for this cluster's own, as far as it goes.
 * Throws CONFIG_INVALID.
 */
export async function refuseForeignHistory(disk: Disk, digest: Digest): Promise<void> {
  if ((await readStampOf(disk, digest)) !== null) return;
  const found = (await disk.list("history-list")).find((name) => /^(events|receipts)-[0-9]/.test(name));
  if (found === undefined) return;
  const why = `the data directory belongs to no node, and is not empty: ${found} is history of another cluster`;
  throw new TenureError("CONFIG_INVALID", `${why}. Move it away, do not delete it, and begin with an empty directory.`);
}

interface ExchangedHistory extends Omit<ExchangeOptions, "queries" | "members"> {
  /** Null: there are none. */
  readonly receipts: Archive | null;
  readonly engine: Pick<Engine, "status">;
  readonly peers: PeerQueries;
  readonly clearance: Clearance | undefined;
  /** Null: nothing of the mesh is answered. */
  readonly mesh: () => MeshAnswers | null;
}

/** Serves the others, and fetches what is missing here, until it is stopped; before the archive is closed. */
export function exchangeHistory(options: ExchangedHistory): {
  readonly events: SegmentFetcher;
  readonly receipts: SegmentFetcher | null;
} {
  const { engine, peers, clearance, receipts, mesh, ...exchanged } = options;
  const members = (): readonly string[] | null => {
    const { peer, configuration } = engine.status();
    const all = membersOf(configuration);
    // One that has not joined yet, or was removed, does not know who has what.
    return all.includes(peer) ? all.filter((member) => member !== peer) : null;
  };
  const queries: PeerQueries = {
    askable: () => peers.askable(),
    ask: (peer, query) => peers.ask(peer, query),
    onQuery: (answer) => {
      const answering = withMeshAnswers(mesh, answer);
      peers.onQuery(clearance === undefined ? answering : withWorkerAnswers(clearance, answering));
    },
    onAskable: (listener) => peers.onAskable(listener),
  };
  if (receipts === null) return { events: exchangeSegments({ ...exchanged, queries, members }), receipts: null };
  const shared = sharedQueries(queries);
  const random = options.random.fork("receipts");
  return {
    events: exchangeSegments({ ...exchanged, queries: shared(null), members }),
    receipts: exchangeSegments({ ...exchanged, archive: receipts, random, queries: shared(RECEIPTS_TAG), members }),
  };
}

/** Begins with no number of another query (core/archive). */
const RECEIPTS_TAG = 16;

/** Questions about receipts, as the other members know them. */
export function aboutReceipts(peers: Pick<PeerQueries, "ask">): Pick<PeerQueries, "ask"> {
  return { ask: (peer, query) => peers.ask(peer, tagged(query, RECEIPTS_TAG)) };
}

/** One way to ask for several: what has a tag is for that one. Whoever does not know the tag answers nothing. */
function sharedQueries(queries: PeerQueries): (tag: number | null) => PeerQueries {
  const answers = new Map<number | null, Answering>();
  const listeners: ((peer: PeerKey) => void)[] = [];
  queries.onQuery((from, query) => {
    const tag = query[0] ?? null;
    const isTagged = tag !== null && answers.has(tag);
    const answer = answers.get(isTagged ? tag : null);
    return answer?.(from, isTagged ? query.subarray(1) : query) ?? Promise.resolve(null);
  });
  queries.onAskable((peer) => listeners.forEach((listener) => listener(peer)));
  return (tag) => ({
    askable: () => queries.askable(),
    ask: (peer, query) => queries.ask(peer, tag === null ? query : tagged(query, tag)),
    onQuery: (answer) => void answers.set(tag, answer),
    onAskable: (listener) => void listeners.push(listener),
  });
}

/** Releases what is older than it is kept, until it is stopped; before the archive is closed. */
export function retainHistory(
  archive: Archive,
  keepDays: number | null,
  around: Pick<RetentionOptions, "isPaused" | "mayGo" | "clock" | "logger">,
): Retention {
  const keepMs = keepDays === null ? null : keepDays * DAY_MS;
  return new Retention({ archive, keepMs, ...around });
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

/** As an alert says it: own jobs are refused for own events alone, but other sites' events bring the disk near its end too. */
export function historyLevel(
  { quota }: Pick<Archive, "quota">,
  receipts: Pick<Archive, "quota"> | null,
): Archive["quota"]["level"] {
  const { level, usedBytes, alarmBytes } = quota;
  const both = usedBytes + (receipts?.quota.usedBytes ?? 0);
  return level === "ok" && alarmBytes !== null && both >= alarmBytes ? "alarm" : level;
}

/** Why no pages of other sites are taken: the site's own events go first, so that both together count. */
export function receiptsRefusal(
  archive: Pick<Archive, "quota">,
  receipts: Pick<Archive, "isBehind" | "quota">,
): TenureError | null {
  if (receipts.isBehind) {
    const why = "the disk does not keep up with the events of other sites: no more are taken until it has";
    return new TenureError("OVERLOADED", `${why}. Try again in a moment.`);
  }
  const { usedBytes, quotaBytes, refuseBytes } = archive.quota;
  const bytes = usedBytes + receipts.quota.usedBytes;
  if (quotaBytes === null || refuseBytes === null || bytes < refuseBytes) return null;
  const used = `${Math.floor(bytes / MIB)} of ${Math.floor(quotaBytes / MIB)} MiB`;
  const why = `the history of events takes ${used}, with that of other sites: no more of theirs is taken`;
  return new TenureError("QUOTA_EXCEEDED", `${why}. Raise history.quota_bytes, or lower history.keep_days.`);
}
