// Whether the history of events is ahead of the log that it was written from. An event is archived when its entry is applied, and
// that is after its entry was synced here (core/raft/log.ts: applying ≤ stable). So on the only voter, which installs no snapshot
// of anybody and whose disk was never another peer's, an archive that is ahead proves that the log has lost acknowledged entries.

import { TenureError } from "../../core/kit/errors.ts";
import type { FoundLog } from "../../engine/data-directory.ts";
import { foldLog } from "../../engine/recovery-tools.ts";
import { filesBehind, type Archive } from "../../logs/index.ts";
import type { Digest } from "../../ports/digest.ts";
import { serverMachine } from "./machine.ts";

type Ahead = Pick<Archive, "lastSequence" | "manifest" | "names">;

interface Archives {
  readonly events: Ahead;
  /** Null: there is none to look at. */
  readonly receipts: Ahead | null;
}

/** The last of each that the log holds. */
interface Applied {
  readonly events: number;
  readonly receipts: number;
}

/** What the log lacks, and what to do; null: nothing. The log is folded for it, once more than a start does anyway. */
export function historyAhead(archives: Archives, log: FoundLog, digest: Digest): string | null {
  const { machine, jobs, mesh } = serverMachine(digest);
  foldLog(log, machine);
  return aheadOf(
    archives,
    { events: jobs.fold.chain.sequence, receipts: mesh.fold.state.head.sequence },
    "start again",
  );
}

/** Throws DISK_DAMAGED: a new cluster would write other events in their place. */
export function refuseAhead(archives: Archives, applied: Applied): void {
  const ahead = aheadOf(archives, applied, "repeat the recovery");
  if (ahead !== null) throw new TenureError("DISK_DAMAGED", `The log in this data directory is not whole: ${ahead}`);
}

function aheadOf({ events, receipts }: Archives, applied: Applied, next: string): string | null {
  const ahead = [
    { what: "events", archive: events, sequence: applied.events },
    { what: "receipts of other sites' events", archive: receipts, sequence: applied.receipts },
  ].filter(({ archive, sequence }) => archive !== null && archive.lastSequence > sequence) as readonly {
    readonly what: string;
    readonly archive: Ahead;
    readonly sequence: number;
  }[];
  if (ahead.length === 0) return null;
  const lacks = ahead.map(({ what, archive, sequence }) => `${what} ${sequence + 1} to ${archive.lastSequence}`);
  const files = ahead.flatMap(({ archive, sequence }) => {
    const { lastSequence, names } = archive;
    return filesBehind({ manifest: archive.manifest(), lastSequence, names }, sequence);
  });
  return (
    `${lacks.join(" and ")} are in the history of events, and not in the log any more; other entries may be gone with them. ` +
    "Nothing was changed. Keep a copy of the directory, and restore a saved snapshot into an empty one (`tenure server restore`, docs/runbooks/cluster-restore.md). " +
    `To go on without them instead: move ${[...files, "views.sqlite*"].join(", ")} out of the directory and ${next}. Jobs are then as they were at event ${applied.events}, so work that ended after it is run once more.`
  );
}
