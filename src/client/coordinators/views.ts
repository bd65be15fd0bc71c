// What a node says of transaction coordinators, as the SDK shows it: docs/reference/api.md describes each field.

/** Of the roster, the list of voters and islands; null where the node has none. */
export interface RosterPosition {
  readonly term: number;
  readonly version: number;
}

/** Of the node that answers. */
export interface CoordinatorSelf {
  readonly identity: string;
  readonly incarnation: string;
  /** Null: it is in no cluster of coordinators yet. */
  readonly tcClusterId: string | null;
  readonly backendHash: string;
  readonly term: number;
  readonly roster: RosterPosition | null;
  readonly leaving: boolean;
}

/** Who leads, as this node's voter knows it; nulls: nobody. */
export interface LeadingCoordinatorView {
  readonly leaderId: string | null;
  readonly leaderIncarnation: string | null;
  readonly leaderEndpoint: string | null;
  readonly term: number | null;
  /** Wall time in ms, by this node's clock. */
  readonly expiresAt: number | null;
  /** `waitsFor`: nodes without whose answer it founds no cluster. */
  readonly self: CoordinatorSelf & { readonly waitsFor: readonly string[] };
}

/** `state`: how it answered the last round of renewals; only the leader knows. */
export interface CoordinatorVoterView {
  readonly identity: string;
  readonly incarnation: string;
  readonly endpoint: string;
  readonly state: "leads" | "answers" | "silent" | "leaving" | "unknown";
}

interface Voters {
  readonly voters: readonly CoordinatorVoterView[];
  /** How many of them a leader needs; 0 where there is no roster. */
  readonly quorum: number;
  readonly roster: RosterPosition | null;
}

export interface MembersListView extends Voters {
  /** Sorted, each once. */
  readonly endpoints: readonly string[];
  /** In seconds. */
  readonly updatedAtUnix: number;
}

export interface BackendsView {
  readonly backends: readonly { readonly backendHash: string; readonly endpoints: readonly string[] }[];
  /** In seconds; 0: this node shows none. */
  readonly updatedAtUnix: number;
}

/** All of it at once, for people and dashboards. */
export interface IslandsView extends Voters {
  readonly self: CoordinatorSelf & { readonly endpoint: string };
  readonly leader: {
    readonly identity: string;
    readonly incarnation: string;
    readonly endpoint: string | null;
    readonly term: number;
    readonly expiresAtMs: number | null;
  } | null;
  /** The term in which this very node may act now; null: it may not. */
  readonly actsInTerm: number | null;
  readonly waitsFor: readonly string[];
  /** It left, and announces itself no more. */
  readonly left: boolean;
  readonly members: readonly {
    readonly identity: string;
    readonly endpoint: string;
    readonly updatedAtMs: number;
    readonly expiresAtMs: number;
  }[];
  readonly registry: readonly { readonly backendHash: string; readonly endpoint: string }[];
  readonly registryUpdatedAtMs: number;
  /** Of the node's own island; null: it keeps none. Absent: it is of a release before transactions. */
  readonly transactions?: IslandTransactionsView | null;
}

/** Transactions over islands that wait for another island, as the node has applied them. */
export interface IslandTransactionsView {
  readonly prepared: number;
  /** Of those that wait: for longer than their time. */
  readonly inDoubt: number;
  readonly oldestInDoubtMs: number;
  /** Jobs of committed ones that are not submitted yet. */
  readonly undeliveredJobs: number;
  /** The first 50, by id. */
  readonly waiting: readonly WaitingTransactionView[];
  readonly isAll: boolean;
}

export interface WaitingTransactionView {
  readonly txnId: string;
  /** The island whose record is the decision, by its backend hash. */
  readonly home: string;
  /** `prepared`: its home has to decide. `committed`: this island is home, and others have not reported yet. */
  readonly phase: "prepared" | "committed";
  readonly atMs: number;
  readonly timeoutMs: number;
  /** The first ones: "value orders/cursor", "scope orders". */
  readonly locks: readonly string[];
  readonly locksCount: number;
  readonly waitsFor: readonly string[];
}
