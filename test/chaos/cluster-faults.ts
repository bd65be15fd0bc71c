// The faults of `chaos cluster`: whom each one hits and how often it is drawn.

/** Whom a fault hits. `all`: so many that there is no majority until they are back. */
export type Victim = "leader" | "follower" | "all" | "member";

interface FaultTraits {
  readonly weight: number;
  readonly victim: Victim;
}

const FAULTS = {
  /** kill -9. */
  kill: { weight: 14, victim: "leader" },
  "kill-follower": { weight: 4, victim: "follower" },
  /** Two of three (three of five), the leader among them. */
  "kill-majority": { weight: 3, victim: "all" },
  /** Every node at the same instant. */
  blackout: { weight: 4, victim: "all" },
  /** SIGTERM: it hands over, then ends. */
  term: { weight: 5, victim: "leader" },
  /** It is asked to hand over and lives on. */
  transfer: { weight: 4, victim: "leader" },
  /** SIGSTOP until another leads, then SIGCONT. */
  stop: { weight: 8, victim: "leader" },
  "stop-follower": { weight: 2, victim: "follower" },
  /** Silent in both directions, in one, or only refusing connections (a false alarm of design D6). */
  cut: { weight: 6, victim: "leader" },
  "cut-out": { weight: 4, victim: "leader" },
  "cut-in": { weight: 4, victim: "leader" },
  "cut-refused": { weight: 3, victim: "leader" },
  "cut-follower": { weight: 3, victim: "follower" },
  reset: { weight: 4, victim: "leader" },
  "disk-full": { weight: 4, victim: "leader" },
  /** The process must end itself. */
  "sync-error": { weight: 4, victim: "leader" },
  "sync-error-follower": { weight: 2, victim: "follower" },
  "slow-sync": { weight: 3, victim: "leader" },
  "hung-disk": { weight: 5, victim: "leader" },
  "hung-disk-follower": { weight: 2, victim: "follower" },
  /** Comes back with an empty disk, as another peer, and is swapped in. */
  wipe: { weight: 2, victim: "member" },
  /** A fourth joins, is promoted, and one of the others is removed. */
  members: { weight: 3, victim: "member" },
} as const satisfies Record<string, FaultTraits>;

export type ClusterFault = keyof typeof FAULTS;

export const CLUSTER_FAULTS = Object.keys(FAULTS) as ClusterFault[];

export const CLUSTER_WEIGHTS = Object.fromEntries(
  Object.entries(FAULTS).map(([kind, { weight }]) => [kind, weight]),
) as Record<ClusterFault, number>;

export function victimOf(kind: ClusterFault): Victim {
  return FAULTS[kind].victim;
}
