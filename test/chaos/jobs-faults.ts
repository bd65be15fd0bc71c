// The faults of `chaos jobs`: whom each one hits and how often it is drawn. Servers and agents are struck at the same time,
// each about once in a second.

import type { JobsBackend } from "./jobs-stage.ts";

export type ServerFault =
  | "kill-leader"
  | "stop-leader"
  | "term-leader"
  | "kill-follower"
  | "stop-follower"
  | "wipe-follower"
  | "join"
  | "stop-followers"
  | "strand-leader"
  | "blackout"
  | "restart-database"
  | "cut-clients"
  | "reset-clients";

export type AgentFault = "kill-agent" | "stop-agent" | "term-agent";

const COMMON = {
  /** kill -9, and started again. */
  "kill-leader": 10,
  /** SIGSTOP past its term with requests inside of it, then SIGCONT. */
  "stop-leader": 6,
  /** SIGTERM: it hands over, then ends. */
  "term-leader": 2,
  "kill-follower": 2,
  /** SIGSTOP past every election timeout: it lags when it goes on. */
  "stop-follower": 2,
  /** kill -9 to all at the same instant. */
  blackout: 1,
  /** Clients' connections to the leader go silent, in both directions or in one; then they go on or are reset. */
  "cut-clients": 4,
  "reset-clients": 4,
} as const satisfies Partial<Record<ServerFault, number>>;

export const SERVER_WEIGHTS: Readonly<Record<JobsBackend, Partial<Record<ServerFault, number>>>> = {
  embedded: {
    ...COMMON,
    /** SIGSTOP until the leader has given up: what it sent them meanwhile is in their sockets, and they read it later. */
    "stop-followers": 3,
    /** Its followers are killed, so that it takes requests that it can't commit; then it is too, and they come back first. */
    "strand-leader": 3,
    /** Comes back with an empty disk, as another peer, and is swapped in: it knows no key at first. */
    "wipe-follower": 2,
    /** A fourth, whose address all clients have, joins with an empty disk, is promoted and leaves again. */
    join: 2,
  },
  /** Crashed with `-m immediate`, and started again. */
  postgres: { ...COMMON, "restart-database": 3 },
};

export const AGENT_WEIGHTS: Readonly<Record<AgentFault, number>> = {
  /** kill -9; started again at once, or when its leases are over. */
  "kill-agent": 6,
  /** SIGSTOP past its leases, then SIGCONT. */
  "stop-agent": 5,
  /** SIGTERM: hands back what it does not finish. */
  "term-agent": 1,
};

export type JobsFault = ServerFault | AgentFault;

/** After these another leads, or the same one in another epoch. */
export const DEPOSING: ReadonlySet<JobsFault> = new Set<JobsFault>([
  "kill-leader",
  "stop-leader",
  "term-leader",
  "stop-followers",
  "strand-leader",
  "restart-database",
  "blackout",
]);
