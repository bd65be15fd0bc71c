// `tenure server recover --force-new-cluster` and `tenure server restore`: offline, on the data directory of a server
// that is stopped (its lock says so). Both begin a new cluster of this node alone, with another cluster id.

import { readFileSync } from "node:fs";
import type { ServerConfig } from "../contract/index.ts";
import type { ChainPoint } from "../core/archive/index.ts";
import { TenureError } from "../core/kit/errors.ts";
import { generationOf, withGeneration } from "../core/scopes/index.ts";
import { openDataDirectory, type DataDirectory } from "../drivers/disk/index.ts";
import { systemDigest } from "../drivers/system/digest.ts";
import { forceNewCluster, restoreSnapshot } from "../engine/recovery-tools.ts";
import { captureFrom, withCapture, withFoldSnapshot } from "../logs/index.ts";
import type { Logger } from "../ports/logger.ts";
import { withInnerSnapshots } from "../controller/cluster-machine.ts";
import { newClusterId, newIncarnation } from "./server-consensus.ts";
import { refuseAhead } from "./server-history-ahead.ts";
import { openArchive, refuseForeignHistory } from "./server-history.ts";
import { JOBS, serverMachine } from "./server-machine.ts";
import { placeHistory } from "./server-restore-history.ts";

/** Fifty-nine years of generations; two recoveries must lie so far apart. */
const GENERATION_MS = 15 * 60_000;
const EPOCHS_WARNING =
  "Epochs go on above all that were granted before. Recover or restore this state once: a second cluster that is made from it\n" +
  "within 15 minutes would grant the same epochs as this one.";

interface Facts {
  readonly text: string;
  readonly data: object;
}

export async function recoverDirectory(config: ServerConfig): Promise<Facts> {
  const directory = await openDataDirectory(config.dataDir, config.disk);
  const { machine, jobs, keepIn } = serverMachine();
  const notes: string[] = [];
  // History is written when the new cluster stands: until then a crash leaves the old one's directory as it was.
  const options = { syncs: "asked", logger: noting(notes), failed: () => undefined } as const;
  const archive = await openArchive(directory.disk, options).catch(closing(directory));
  const cut: { start: ChainPoint | null } = { start: null };
  try {
    keepIn(archive);
    const done = await forceNewCluster({
      disk: directory.disk,
      digest: systemDigest,
      nodeId: config.nodeId,
      newClusterId: newClusterId(),
      newIncarnation: newIncarnation(),
      stateMachine: machine,
      transform: async (data) => {
        refuseAhead(archive, jobs.fold.chain.sequence);
        const start = await archive.startBehindMissing();
        cut.start = start;
        return newGeneration(data, (captured) =>
          start === null ? captured : captureFrom(captured, start, systemDigest).bytes,
        );
      },
    });
    await archive.durable(archive.lastSequence);
    if (cut.start !== null) await archive.giveUpBefore(cut.start);
    const { clusterId, lastIndex, term, mayBeLost } = done;
    const { startSequence } = archive.stats();
    const text = `${config.nodeId} is now cluster ${clusterId} on its own, at index ${lastIndex}, term ${term}.
${mayBeLost}
${historyText(startSequence, cut.start !== null, notes)}
Next: start it (without --bootstrap); empty the data directories of the others and start them with ${config.nodeId} in
their \`peers\`; then \`tenure member add\` each. Clients must be told the new cluster.
${EPOCHS_WARNING}
`;
    const events = { first_event: startSequence + 1, notes };
    return { text, data: { cluster_id: clusterId, last_index: lastIndex, term, may_be_lost: mayBeLost, ...events } };
  } finally {
    await archive.close();
    await directory.close();
  }
}

/** `historyFrom`: a directory with copies of sealed segments. */
export async function restoreDirectory(
  config: ServerConfig,
  path: string,
  historyFrom: string | undefined,
): Promise<Facts> {
  const file = readSnapshotFile(path);
  const directory = await openDataDirectory(config.dataDir, config.disk);
  let startSequence = 0;
  try {
    if (historyFrom === undefined) await refuseForeignHistory(directory.disk);
    const history = historyFrom === undefined ? null : await placeHistory(directory.disk, file, historyFrom);
    const { clusterId, lastIndex, term } = await restoreSnapshot({
      disk: directory.disk,
      digest: systemDigest,
      nodeId: config.nodeId,
      clusterId: newClusterId(),
      incarnation: newIncarnation(),
      file,
      // Sealed segments are not part of a snapshot: but for those that were placed, there is nobody to fetch them from.
      transform: (data) =>
        newGeneration(data, (captured) => {
          const kept = captureFrom(captured, history?.start ?? null, systemDigest);
          startSequence = kept.startSequence;
          return kept.bytes;
        }),
    });
    const text = `${config.nodeId} is now cluster ${clusterId} on its own, with the state of ${path}: index ${lastIndex}, term ${term}.
${historyText(startSequence, startSequence > 0, history?.notes ?? [])}
Next: start it (without --bootstrap); start the others with empty data directories and ${config.nodeId} in their \`peers\`;
then \`tenure member add\` each.
${EPOCHS_WARNING}
`;
    const events = { first_event: startSequence + 1, notes: history?.notes ?? [] };
    return { text, data: { cluster_id: clusterId, last_index: lastIndex, term, snapshot: path, ...events } };
  } finally {
    await directory.close();
  }
}

/** Epochs of the new cluster lie above all that the old one may have granted since this state. */
function newGeneration(data: Uint8Array, history: (captured: Uint8Array) => Uint8Array): Uint8Array {
  return withInnerSnapshots(data, (log, at) =>
    // The jobs' log has no epochs of its own to raise.
    at === JOBS
      ? withCapture(log, history)
      : withFoldSnapshot(log, (scopes) => withGeneration(scopes, Math.max(generationOf(scopes) + 1, quarterHours()))),
  );
}

function historyText(startSequence: number, isCut: boolean, notes: readonly string[]): string {
  const first = startSequence + 1;
  const text = isCut
    ? `The history of events begins with event ${first}: nobody in the new cluster has what is before it. \`verify\` begins there.`
    : `The history of events is kept, from event ${first} on.`;
  return [text, ...notes].join("\n");
}

function noting(notes: string[]): Logger {
  const note: Logger["warn"] = (fields, message) => void notes.push(`${message}: ${JSON.stringify(fields)}`);
  return { info: note, warn: note, error: note };
}

function closing(directory: DataDirectory): (error: unknown) => Promise<never> {
  return async (error) => {
    await directory.close();
    throw error;
  };
}

/** The same state may be restored twice: the second time must not begin where the first one did. */
function quarterHours(): number {
  return Math.floor((Date.now() - Date.UTC(2026, 0, 1)) / GENERATION_MS);
}

function readSnapshotFile(path: string): Uint8Array {
  try {
    return readFileSync(path);
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    const why = code === "ENOENT" ? "there is no such file" : message;
    throw new TenureError("SNAPSHOT_INVALID", `${path} can't be read: ${why}.`, { cause: error });
  }
}
