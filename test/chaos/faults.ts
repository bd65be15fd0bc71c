// The faults, how often each is drawn, and the deck of a run: as many of each as its weight says, every kind at least
// once where there is room for all, in an order that the seed decides.

import type { Random } from "../../src/core/kit/random.ts";
import type { BackendName } from "./stage.ts";

export type FaultKind =
  /** kill -9 of the leader. */
  | "kill"
  /** The same while a fenced statement of 8 s runs on the server. */
  | "kill-busy"
  /** The same while somebody goes on to send fenced transactions with the dead leader's epoch. */
  | "kill-stale"
  | "term"
  /** SIGSTOP for longer than the server timeout, then SIGCONT. */
  | "stop"
  /** The event loop blocked for 5 s. */
  | "block"
  /** Its network goes silent in both directions, and is reset later. */
  | "cut"
  /** Only one direction is silent, and what was held back arrives late. */
  | "half-open"
  /** Every connection is reset at once. */
  | "reset"
  /** Postgres: pg_terminate_backend of the leader's session. */
  | "terminate"
  /** etcd: the lease is revoked. Tenure's servers: an operator takes the scope away. */
  | "revoke"
  /** Tenure's servers: kill -9 of the cluster's own leader, or SIGSTOP for longer than an election takes. */
  | "server-kill"
  | "server-stop"
  /** Both at once: the cluster's leader, and the worker that leads through it. */
  | "kill-both"
  | "restart-fast"
  | "restart-immediate"
  | "restart-kill";

const COMMON: Partial<Record<FaultKind, number>> = { term: 14, stop: 10, block: 6, cut: 7, "half-open": 7, reset: 6 };

export const WEIGHTS: Readonly<Record<BackendName, Partial<Record<FaultKind, number>>>> = {
  postgres: {
    ...COMMON,
    kill: 14,
    "kill-busy": 8,
    "kill-stale": 8,
    terminate: 8,
    "restart-fast": 4,
    "restart-immediate": 4,
    "restart-kill": 4,
  },
  etcd: { ...COMMON, kill: 14, "kill-stale": 8, revoke: 10, "restart-fast": 6, "restart-kill": 6 },
  servers: { ...COMMON, kill: 14, "kill-stale": 8, revoke: 8, "server-kill": 10, "server-stop": 8, "kill-both": 8 },
};

/** Under which name a kind's failover times are reported. */
export function familyOf(kind: FaultKind): string {
  return kind.startsWith("restart") ? "restart" : kind;
}

/** Whether stale writes are sent from the moment of the fault on, or only after somebody else has taken over. */
export function staleDuringTakeover(kind: FaultKind): boolean {
  return !["kill", "kill-busy", "kill-both", "term"].includes(kind) && !kind.startsWith("restart");
}

/** A lease outlives connections, and the loss of its server: the leader may stay, with its epoch. */
export function mayKeepLeader(backend: BackendName, kind: FaultKind): boolean {
  return backend !== "postgres" && (kind === "reset" || kind.startsWith("restart") || kind.startsWith("server-"));
}

/** `kinds`: only these. Sorted by nothing but the seed. */
export function deckOf<Kind extends string>(
  weights: Partial<Record<Kind, number>>,
  iterations: number,
  random: Random,
  kinds?: readonly Kind[],
): Kind[] {
  const wanted = (Object.entries(weights) as [Kind, number][]).filter(([kind]) => kinds?.includes(kind) ?? true);
  if (wanted.length === 0) throw new RangeError("a deck of no faults");
  const total = wanted.reduce((sum, [, weight]) => sum + weight, 0);
  const firsts = shuffled(wanted, random).map(([kind]) => kind);
  const more = wanted.flatMap(([kind, weight]) =>
    Array.from({ length: Math.max(0, Math.round((iterations * weight) / total) - 1) }, () => kind),
  );
  const deck = [...firsts, ...shuffled(more, random)];
  for (let at = 0; deck.length < iterations; at++) deck.push(firsts[at % firsts.length]!);
  return shuffled(deck.slice(0, iterations), random);
}

function shuffled<T>(items: readonly T[], random: Random): T[] {
  return items
    .map((item) => ({ item, at: random.next() }))
    .toSorted((a, b) => a.at - b.at)
    .map(({ item }) => item);
}
