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
}
