// Whether the history of events is ahead of the log that it was written from. An event is archived when its entry is applied, and
// that is after its entry was synced here (core/raft/log.ts: applying ≤ stable). So on the only voter, which installs no snapshot
// of anybody and whose disk was never another peer's, an archive that is ahead proves that the log has lost acknowledged entries.

import { TenureError } from "../../core/kit/errors.ts";
import type { FoundLog } from "../../engine/data-directory.ts";
import { foldLog } from "../../engine/recovery-tools.ts";
import { filesBehind, type Archive } from "../../logs/index.ts";
import type { Digest } from "../../ports/digest.ts";
import { serverMachine } from "./machine.ts";

type Ahead = Pick<Archive, "lastSequence" | "manifest">;

/** What the log lacks, and what to do; null: nothing. The log is folded for it, once more than a start does anyway. */
export function historyAhead(archive: Ahead, log: FoundLog, digest: Digest): string | null {
  const { machine, jobs } = serverMachine(digest);
  foldLog(log, machine);
  return aheadOf(archive, jobs.fold.chain.sequence, "start again");
}

/** Throws DISK_DAMAGED: a new cluster would write other events in their place. */
export function refuseAhead(archive: Ahead, sequence: number): void {
  const ahead = aheadOf(archive, sequence, "repeat the recovery");
  if (ahead !== null) throw new TenureError("DISK_DAMAGED", `The log in this data directory is not whole: ${ahead}`);
}

function aheadOf(archive: Ahead, sequence: number, next: string): string | null {
  const { lastSequence } = archive;
  if (lastSequence <= sequence) return null;
  const files = [...filesBehind({ manifest: archive.manifest(), lastSequence }, sequence), "views.sqlite*"].join(", ");
  return (
    `events ${sequence + 1} to ${lastSequence} are in the history of events, and not in the log any more; other entries may be gone with them. ` +
    "Nothing was changed. Keep a copy of the directory, and restore a saved snapshot into an empty one (`tenure server restore`, docs/runbooks/cluster-restore.md). " +
    `To go on without them instead: move ${files} out of the directory and ${next}. Jobs are then as they were at event ${sequence}, so work that ended after it is run once more.`
  );
}
