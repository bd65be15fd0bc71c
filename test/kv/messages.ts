// What the harness and a node process of the test store say to each other: how a node is started, over IPC what it is
// asked, and the lines of its event log.

import type { PeerKey } from "../../src/core/kit/ids.ts";
import type { ConfChangeOperation, ElectionConfig, TransferResult } from "../../src/core/raft/index.ts";
import type { ProposeOutcome } from "../../src/ports/consensus.ts";
import type { Edit } from "../../src/sim/mutants/patch.ts";

/** The first argument of node.ts, as JSON. */
export interface NodeOptions {
  readonly nodeId: string;
  readonly dataDir: string;
  readonly peerPort: number;
  readonly kvPort: number;
  /** Where it serves its API (api.ts); undefined: nowhere. */
  readonly apiPort?: number | undefined;
  /** How this node reaches each of the others: "host:port" by node id. */
  readonly seeds: Readonly<Record<string, string>>;
  readonly bootstrap: boolean;
  readonly election?: Partial<ElectionConfig> | undefined;
  readonly snapshots?: { readonly afterEntries: number; readonly keepEntries: number } | undefined;
  /** Lines of JSON are appended here, one for each event, before anything else hears of it. */
  readonly eventLog: string;
  /** Planted: the disk says that it is durable what it only holds in memory, for so long. */
  readonly lieMs?: number | undefined;
  /** Planted: changes to the sources as they are loaded. */
  readonly edits?: readonly Edit[] | undefined;
}

export type DiskFault =
  | { readonly kind: "none" }
  | { readonly kind: "full" }
  /** Syncs fail; the process must end itself (trap 23). */
  | { readonly kind: "sync-error" }
  | { readonly kind: "slow"; readonly ms: number }
  | { readonly kind: "hung" };

export type Question =
  | { readonly ask: "status" }
  | { readonly ask: "change"; readonly operations: readonly ConfChangeOperation[] }
  | { readonly ask: "transfer"; readonly force?: boolean | undefined }
  | { readonly ask: "disk"; readonly fault: DiskFault };

export interface NodeStatus {
  readonly peer: PeerKey;
  readonly role: string;
  readonly term: number;
  readonly leader: PeerKey | null;
  readonly established: boolean;
  readonly commit: number;
  readonly applied: number;
  readonly hash: number;
  readonly hashAt: number;
  readonly keys: number;
  readonly voters: readonly PeerKey[];
  readonly learners: readonly PeerKey[];
  readonly isJoint: boolean;
  readonly recovery: string;
  /** How far each member is, as the leader knows it. */
  readonly match: Readonly<Record<PeerKey, number>>;
  /** Disk calls that faults have touched in this life of the node. */
  readonly struck: number;
}

export type Reply =
  | { readonly ask: "status"; readonly status: NodeStatus }
  | { readonly ask: "change"; readonly outcome: ProposeOutcome }
  | { readonly ask: "transfer"; readonly result: TransferResult }
  | { readonly ask: "disk" };

export type FromHarness = { readonly id: number; readonly question: Question };

export type FromNode =
  | { readonly kind: "ready"; readonly peer: PeerKey; readonly recovery: string }
  | { readonly kind: "answer"; readonly id: number; readonly reply: Reply }
  | { readonly kind: "role"; readonly line: EventLine }
  /** The engine has failed; the process ends now. */
  | { readonly kind: "fatal"; readonly message: string };

/** One line of an event log. */
export interface EventLine {
  readonly peer: PeerKey;
  /** campaign: it asks whether it could win, and again when it asks for votes. */
  readonly event: "leader" | "established" | "follower" | "campaign" | "started";
  readonly term: number;
  readonly atMs: number;
}

/** Exit codes of a node process that ended itself. */
export const EXIT_FATAL = 74;
export const EXIT_BROKEN_INVARIANT = 70;
