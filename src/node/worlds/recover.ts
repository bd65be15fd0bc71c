// `tenure server recover --force-new-cluster` and `tenure server restore`: offline, on the data directory of a server
// that is stopped (its lock says so). Both begin a new cluster of this node alone, with another cluster id.

import { randomInt, randomUUID } from "node:crypto";
import { readFileSync } from "node:fs";
import type { ServerConfig } from "../../contract/index.ts";
import type { ChainPoint } from "../../core/archive/index.ts";
import { assert } from "../../core/kit/assert.ts";
import { TenureError } from "../../core/kit/errors.ts";
import { EPOCHS_PER_GENERATION } from "../../core/scopes/index.ts";
import { withNewLine } from "../../core/state/index.ts";
import { openDataDirectory, type DataDirectory } from "../../drivers/disk/index.ts";
import { systemDigest } from "../../drivers/system/digest.ts";
import { forceNewCluster, restoreSnapshot } from "../../engine/recovery-tools.ts";
import { type Archive, captureFrom, RECEIPTS, withCapture, withFoldSnapshot } from "../../logs/index.ts";
import type { Clock } from "../../ports/clock.ts";
import type { Logger } from "../../ports/logger.ts";
import { asNewCluster, lineOf } from "../../controller/cluster/cluster-machine.ts";
import { newClusterId, newIncarnation } from "./consensus.ts";
import { refuseAhead } from "../assembly/history-ahead.ts";
import { openArchive, refuseForeignHistory } from "../assembly/history.ts";
import { JOBS, MESH, serverMachine, STATE } from "../assembly/machine.ts";
import { placeHistory } from "./restore-history.ts";
import { SYSTEM } from "./system.ts";
import { GENERATION_MS } from "./limits.ts";

/** Clusters that are made of one state share no epoch, unless one grants so many for each millisecond that lies between them. */
const EPOCHS_PER_MS = Math.floor(EPOCHS_PER_GENERATION / GENERATION_MS);
const EPOCHS_TEXT =
  "Epochs go on above all that were granted before. Recover or restore this state once, and stop what is left of the old cluster.";

type WallClock = Pick<Clock, "wallMs">;

interface Facts {
  readonly text: string;
  readonly data: object;
}

/** By the clock, the epochs of the new cluster lie above all that the old one may have granted. */
export async function recoverDirectory(config: ServerConfig, clock: WallClock = SYSTEM.clock): Promise<Facts> {
  const directory = await openDataDirectory(config.dataDir, config.disk);
  const { machine, jobs, mesh, keepIn, keepReceiptsIn } = serverMachine(systemDigest);
  const notes: string[] = [];
  // History is written when the new cluster stands: until then a crash leaves the old one's directory as it was.
  const options = { ...SYSTEM, disk: directory.disk, logger: noting(notes), failed: () => undefined };
  const archive = await openArchive({ ...options, syncs: "asked" }).catch(closing(directory));
  const receipts = await openArchive({ ...options, of: RECEIPTS, syncs: "asked" }).catch(closing(directory, archive));
  const cut = { start: null as ChainPoint | null, receipts: null as ChainPoint | null, isPaused: false };
  const clusterId = newClusterId();
  try {
    keepIn(archive);
    keepReceiptsIn(receipts);
    const done = await forceNewCluster({
      disk: directory.disk,
      digest: systemDigest,
      nodeId: config.nodeId,
      newClusterId: clusterId,
      newIncarnation: newIncarnation(),
      stateMachine: machine,
      transform: async (data, from) => {
        const applied = { events: jobs.fold.chain.sequence, receipts: mesh.fold.state.head.sequence };
        refuseAhead({ events: archive, receipts }, applied);
        cut.start = await archive.startBehindMissing();
        cut.receipts = await receipts.startBehindMissing();
        const histories = { [JOBS]: cutAt(cut.start), [MESH]: cutAt(cut.receipts) };
        const recovered = newLine(data, { clusterId, from, isPaused: false }, histories, clock.wallMs());
        cut.isPaused = lineOf(recovered).isPaused;
        return recovered;
      },
    });
    await archive.durable(archive.lastSequence);
    await receipts.durable(receipts.lastSequence);
    if (cut.start !== null) await archive.giveUpBefore(cut.start);
    if (cut.receipts !== null) await receipts.giveUpBefore(cut.receipts);
    const { lastIndex, term, mayBeLost } = done;
    const { startSequence } = archive.stats();
    const text = `${config.nodeId} is now cluster ${done.clusterId} on its own, at index ${lastIndex}, term ${term}.
${mayBeLost}
${historyText(startSequence, cut.start !== null, notes)}
${cut.isPaused ? PAUSED_TEXT : ""}Next: start it (without --bootstrap); empty the data directories of the others and start them with ${config.nodeId} in
their \`peers\`; then \`tenure member add\` each. Clients of the old cluster go on with this one by themselves.
${EPOCHS_TEXT}
`;
    const events = { first_event: startSequence + 1, notes, paused: cut.isPaused };
    return {
      text,
      data: { cluster_id: done.clusterId, last_index: lastIndex, term, may_be_lost: mayBeLost, ...events },
    };
  } finally {
    await archive.close();
    await receipts.close();
    await directory.close();
  }
}

/** But for what was placed, nobody has the sealed segments. */
function keptFrom(start: ChainPoint | null): (captured: Uint8Array) => Uint8Array {
  return (captured) => captureFrom(captured, start, systemDigest).bytes;
}

function cutAt(start: ChainPoint | null): (captured: Uint8Array) => Uint8Array {
  return (captured) => (start === null ? captured : captureFrom(captured, start, systemDigest).bytes);
}

export interface Restore {
  /** What `tenure cluster snapshot save` wrote. */
  readonly path: string;
  /** A directory with copies of sealed segments. */
  readonly historyFrom: string | undefined;
  readonly isPaused: boolean;
}

export async function restoreDirectory(
  config: ServerConfig,
  asked: Restore,
  clock: WallClock = SYSTEM.clock,
): Promise<Facts> {
  const { path, historyFrom } = asked;
  const file = readSnapshotFile(path);
  const directory = await openDataDirectory(config.dataDir, config.disk);
  const clusterId = newClusterId();
  const kept = { startSequence: 0, ancestors: [] as readonly string[], isPaused: asked.isPaused };
  try {
    if (historyFrom === undefined) await refuseForeignHistory(directory.disk, systemDigest);
    const history = historyFrom === undefined ? null : await placeHistory(directory.disk, file, historyFrom);
    const { lastIndex, term } = await restoreSnapshot({
      disk: directory.disk,
      digest: systemDigest,
      nodeId: config.nodeId,
      clusterId,
      incarnation: newIncarnation(),
      file,
      transform: (data, from) => {
        // Sealed segments are not part of a snapshot: but for those that were placed, there is nobody to fetch them from.
        const cutOff = (captured: Uint8Array): Uint8Array => {
          const { startSequence, bytes } = captureFrom(captured, history?.start ?? null, systemDigest);
          kept.startSequence = startSequence;
          return bytes;
        };
        const histories = { [JOBS]: cutOff, [MESH]: keptFrom(history?.receiptsStart ?? null) };
        const restored = newLine(data, { clusterId, from, isPaused: asked.isPaused }, histories, clock.wallMs());
        Object.assign(kept, lineOf(restored));
        return restored;
      },
    });
    const { startSequence, ancestors, isPaused } = kept;
    const text = `${config.nodeId} is now cluster ${clusterId} on its own, with the state of ${path}: index ${lastIndex}, term ${term}.
${historyText(startSequence, startSequence > 0, history?.notes ?? [])}
${isPaused ? PAUSED_TEXT : ""}Next: start it (without --bootstrap); start the others with empty data directories and ${config.nodeId} in their \`peers\`;
then \`tenure member add\` each. ${clientsText(ancestors)}
${EPOCHS_TEXT}
`;
    const events = { first_event: startSequence + 1, notes: history?.notes ?? [] };
    const about = { snapshot: path, ...events, ancestors, paused: isPaused };
    return { text, data: { cluster_id: clusterId, last_index: lastIndex, term, ...about } };
  } finally {
    await directory.close();
  }
}

const PAUSED_TEXT =
  "It is paused: no job is leased, no schedule fires and no scope is granted until `tenure cluster resume`.\n";

function clientsText([parent]: readonly string[]): string {
  return parent === undefined
    ? "The snapshot is of a release that does not name its cluster:\nrestart the processes that used the old one."
    : `Clients of ${parent} go on with this one by themselves.`;
}

/** The state for a new cluster, whose epochs lie above all that the old one may have granted since. */
function newLine(
  data: Uint8Array,
  names: { readonly clusterId: string; readonly from: string | null; readonly isPaused: boolean },
  histories: Readonly<Record<number, (captured: Uint8Array) => Uint8Array>>,
  nowMs: number,
): Uint8Array {
  const sinceMs = nowMs - Date.UTC(2026, 0, 1);
  const generation = Math.max(0, Math.floor(sinceMs / GENERATION_MS));
  const place = (Math.max(0, sinceMs) % GENERATION_MS) * EPOCHS_PER_MS + randomInt(EPOCHS_PER_MS);
  const change = (log: Uint8Array, at: number): Uint8Array => {
    if (at === STATE) {
      return withFoldSnapshot(log, (state, { position }) =>
        withNewLine(state, { generation, place, position, session: randomUUID() }),
      );
    }
    // The logs of jobs and of receipts have no epochs of their own to raise.
    const history = histories[at];
    assert(history !== undefined, "a recovery knows every inner machine", () => String(at));
    return withCapture(log, history);
  };
  return asNewCluster(data, { ...names, change });
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

function closing(directory: DataDirectory, archive?: Archive): (error: unknown) => Promise<never> {
  return async (error) => {
    await archive?.close();
    await directory.close();
    throw error;
  };
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
