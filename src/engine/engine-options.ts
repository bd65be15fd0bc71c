// What an engine is made from, and what it counts.

import type { PeerKey } from "../core/kit/ids.ts";
import type { Random } from "../core/kit/random.ts";
import type { Configuration, ElectionConfig, RaftEvent, RaftOptions } from "../core/raft/index.ts";
import type { Clock } from "../ports/clock.ts";
import type { Digest } from "../ports/digest.ts";
import type { Disk } from "../ports/disk.ts";
import type { StateMachine } from "../ports/state-machine.ts";
import type { Wire } from "../ports/peers/wire.ts";
import type { SnapshotPolicy } from "./snapshots.ts";
import type { DirectoryOptions } from "./data-directory.ts";

export interface EngineOptions {
  readonly clusterId: string;
  readonly nodeId: string;
  readonly disk: Disk;
  readonly clock: Clock;
  readonly digest: Digest;
  /** Another stream for each life of the node: reads are distinguished by it (waiters.ts). */
  readonly random: Random;
  /** Called once the disk has told which peer this is. */
  readonly connect: (self: PeerKey) => Wire;
  readonly stateMachine: StateMachine;
  readonly newIncarnation: () => string;
  readonly bootstrap: { readonly incarnation: string; readonly configuration: Configuration } | null;
  readonly isAlone?: DirectoryOptions["isAlone"];
  readonly witness?: DirectoryOptions["witness"];
  readonly onSetAside?: DirectoryOptions["onSetAside"];
  readonly election?: Partial<ElectionConfig> | undefined;
  readonly limits?: RaftOptions["limits"];
  readonly sponsors?: RaftOptions["sponsors"];
  readonly trusted?: RaftOptions["trusted"];
  readonly swapsNeedClearance?: RaftOptions["swapsNeedClearance"];
  readonly snapshots?: Partial<SnapshotPolicy> | undefined;
  readonly segmentBytesMax?: number | undefined;
  readonly reserveBytes?: number | undefined;
  readonly trace?: RaftOptions["trace"];
  readonly onEvent?: ((event: RaftEvent) => void) | undefined;
  /** The engine has failed and does nothing more; the process must end. */
  readonly onFatal: (error: unknown) => void;
}

export interface EngineCounts {
  /** Messages that could not be decoded, whose sender was not who the wire says, or without a whole snapshot. */
  refusedFrames: number;
  /** Messages that came while too much waited for the disk; to the sender they are lost on the way. */
  droppedFrames: number;
  /** Turns of the loop that came so late that the process must have been stopped or starved. */
  stalls: number;
  syncs: number;
  persisted: number;
  snapshotsSaved: number;
  snapshotsRestored: number;
  /** Requests for votes past what one peer may send. */
  limitedVotes: number;
}

export function newCounts(): EngineCounts {
  return {
    refusedFrames: 0,
    droppedFrames: 0,
    limitedVotes: 0,
    stalls: 0,
    syncs: 0,
    persisted: 0,
    snapshotsSaved: 0,
    snapshotsRestored: 0,
  };
}
