// What the servers answer, as the SDK shows it: docs/reference describes each field. The wire's spelling is the contract's. What a server
// says of itself is in ports/; here are the differences: what older servers do not say, and what newer ones may say next to it.

import type { AuditRecord } from "../ports/audit.ts";
import type * as server from "../ports/cluster.ts";
import type * as scopes from "../ports/scopes.ts";

export type { MemberChange, SnapshotView, TransferView } from "../ports/cluster.ts";
export type {
  AcquireAnswer as ScopeGrant,
  RenewAnswer as ScopeRenewal,
  ScopeHolder as ScopeHolderView,
  ScopeTransition as ScopeTransitionView,
  ScopeView,
} from "../ports/scopes.ts";

/** These fields may be left out: by whoever asks, or by older servers. */
type Optional<View, Field extends keyof View> = Omit<View, Field> & {
  readonly [Name in Field]?: View[Name] | undefined;
};

export interface LeaderView {
  readonly leaderId: string;
  readonly term: number;
  /** Where requests for the leader go; null where it is at no address that this client may use. */
  readonly url: string | null;
  readonly leaderUrl: string | null;
  readonly leaderAddress: string | null;
}

type Differing = "members" | "elections" | "alerts";
type Newer = "ancestors" | "isPaused" | "isDraining";

export interface ClusterView extends Omit<Optional<server.ClusterView, Newer>, Differing> {
  readonly members: readonly MemberView[];
  /** Newest first. */
  readonly elections: readonly ElectionView[];
  readonly alerts: readonly AlertView[];
  /** The node that answers is a transaction coordinator: its island takes part among others. */
  readonly isCoordinator?: boolean | undefined;
}

export interface ResumeView {
  readonly clusterId: string;
  readonly isPaused: boolean;
}

export interface NodeDrainView {
  readonly nodeId: string;
  readonly isDraining: boolean;
  readonly role: ClusterView["role"];
  readonly leaderId: string | null;
  readonly leaderEpoch: number | null;
}

export type MemberView = Optional<server.MemberView, "refusal">;

export type ElectionView = Optional<server.ElectionView, "repeated">;

export interface AlertView extends Omit<server.AlertView, "name"> {
  readonly name: string;
}

export interface SavedSnapshotView extends server.SnapshotView {
  /** Of the node that saved it. Older servers do not say. */
  readonly role?: ClusterView["role"] | undefined;
}

export interface StoredSnapshotView {
  readonly index: number;
  /** Wall time of the node. */
  readonly atMs: number;
}

export interface MemberChangeView extends Omit<server.MemberChangeView, "members"> {
  readonly members: readonly MemberView[];
}

/** `session`: random, new for each campaign. */
export type AcquireRequest = Optional<scopes.AcquireRequest, "metadata">;

/** What one node has written down of the calls that steer: newest first. */
export interface AuditView {
  readonly records: readonly AuditRecord[];
}
