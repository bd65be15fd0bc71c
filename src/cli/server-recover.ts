// `tenure server recover --force-new-cluster` and `tenure server restore`: offline, on the data directory of a server
// that is stopped (its lock says so). Both begin a new cluster of this node alone, with another cluster id.

import { readFileSync } from "node:fs";
import type { ServerConfig } from "../contract/index.ts";
import { TenureError } from "../core/kit/errors.ts";
import { generationOf, withGeneration } from "../core/scopes/index.ts";
import { openDataDirectory } from "../drivers/disk/index.ts";
import { systemDigest } from "../drivers/system/digest.ts";
import { forceNewCluster, restoreSnapshot } from "../engine/recovery-tools.ts";
import { withFoldSnapshot } from "../logs/index.ts";
import { withInnerSnapshot } from "../controller/cluster-machine.ts";
import { newClusterId, newIncarnation } from "./server-consensus.ts";
import { serverMachine } from "./server-machine.ts";

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
  try {
    const { machine } = serverMachine();
    const done = await forceNewCluster({
      disk: directory.disk,
      digest: systemDigest,
      nodeId: config.nodeId,
      newClusterId: newClusterId(),
      newIncarnation: newIncarnation(),
      stateMachine: machine,
      transform: newGeneration,
    });
    const { clusterId, lastIndex, term, mayBeLost } = done;
    const text = `${config.nodeId} is now cluster ${clusterId} on its own, at index ${lastIndex}, term ${term}.
${mayBeLost}
Next: start it (without --bootstrap); empty the data directories of the others and start them with ${config.nodeId} in
their \`peers\`; then \`tenure member add\` each. Clients must be told the new cluster.
${EPOCHS_WARNING}
`;
    return { text, data: { cluster_id: clusterId, last_index: lastIndex, term, may_be_lost: mayBeLost } };
  } finally {
    await directory.close();
  }
}

export async function restoreDirectory(config: ServerConfig, path: string): Promise<Facts> {
  const file = readSnapshotFile(path);
  const directory = await openDataDirectory(config.dataDir, config.disk);
  try {
    const { clusterId, lastIndex, term } = await restoreSnapshot({
      disk: directory.disk,
      digest: systemDigest,
      nodeId: config.nodeId,
      clusterId: newClusterId(),
      incarnation: newIncarnation(),
      file,
      transform: newGeneration,
    });
    const text = `${config.nodeId} is now cluster ${clusterId} on its own, with the state of ${path}: index ${lastIndex}, term ${term}.
Next: start it (without --bootstrap); start the others with empty data directories and ${config.nodeId} in their \`peers\`;
then \`tenure member add\` each.
${EPOCHS_WARNING}
`;
    return { text, data: { cluster_id: clusterId, last_index: lastIndex, term, snapshot: path } };
  } finally {
    await directory.close();
  }
}

/** Epochs of the new cluster lie above all that the old one may have granted since this state. */
function newGeneration(data: Uint8Array): Uint8Array {
  return withInnerSnapshot(data, (log) =>
    withFoldSnapshot(log, (scopes) => withGeneration(scopes, Math.max(generationOf(scopes) + 1, quarterHours()))),
  );
}

/** The same state may be restored twice: the second time must not begin where the first one did. */
function quarterHours(): number {
  return Math.floor((Date.now() - Date.UTC(2026, 0, 1)) / GENERATION_MS);
}

function readSnapshotFile(path: string): Uint8Array {
  try {
    return readFileSync(path);
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error);
    throw new TenureError("SNAPSHOT_INVALID", `${path} can't be read: ${why}.`, { cause: error });
  }
}
