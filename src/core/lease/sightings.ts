// What a node sees that should not be, and that no rule of the lease needs: one identity with two living disks or at two endpoints, and members of
// another cluster. It is remembered for a while and reported; nothing is decided by it.
//
// A disk that takes another one's place is no such case, nor is a move: only what comes back after something else was seen in its place.

import { nodeIdOf, type PeerKey } from "../kit/ids.ts";
import {
  RETURNS_OF_SHARED_MIN,
  RETURNS_WITHIN_MS,
  SEEN_FOR_MS,
  SIGHTINGS_KEPT,
  SIGHTINGS_OF_ONE_KEPT,
} from "./limits.ts";

/** What was seen of one identity, one after the other: disks, or endpoints. */
interface Trail {
  last: string;
  /** Since when it is the last one. */
  sinceMs: number;
  /** Without `last`; the latest last. */
  readonly former: string[];
  returns: readonly number[];
}

export interface OtherCluster {
  readonly peer: PeerKey;
  readonly clusterId: string;
}

export class Sightings {
  readonly #disks = new Map<string, Trail>();
  readonly #endpoints = new Map<string, Trail>();
  /** By peer. */
  readonly #others = new Map<PeerKey, { readonly clusterId: string; readonly atMs: number }>();

  /** It answered a request that was sent at `sentMs`: an answer that was on its way for long is older than what was seen meanwhile. */
  answered(peer: PeerKey, sentMs: number, nowMs: number): void {
    note(this.#disks, nodeIdOf(peer), peer, sentMs, nowMs);
  }

  announced(identity: string, endpoint: string, nowMs: number): void {
    note(this.#endpoints, identity, endpoint, nowMs, nowMs);
  }

  /** True: that is news. */
  otherCluster(peer: PeerKey, clusterId: string, nowMs: number): boolean {
    const known = this.#others.get(peer);
    this.#others.delete(peer);
    this.#others.set(peer, { clusterId, atMs: nowMs });
    keepLast(this.#others);
    return known === undefined || known.clusterId !== clusterId || nowMs - known.atMs > SEEN_FOR_MS;
  }

  /** Identities of which two disks, or two endpoints, are alive at once. Sorted. */
  shared(nowMs: number): readonly string[] {
    const since = (atMs: number): boolean => nowMs - atMs <= SEEN_FOR_MS;
    const byDisk = [...this.#disks].filter(([, { returns }]) => returns.some(since));
    const byEndpoint = [...this.#endpoints].filter(
      ([, { returns }]) => returns.length >= RETURNS_OF_SHARED_MIN && returns.some(since),
    );
    return [...new Set([...byDisk, ...byEndpoint].map(([identity]) => identity))].sort();
  }

  otherClusters(nowMs: number): readonly OtherCluster[] {
    const seen = [...this.#others].filter(([, { atMs }]) => nowMs - atMs <= SEEN_FOR_MS);
    return seen.map(([peer, { clusterId }]) => ({ peer, clusterId })).sort((a, b) => (a.peer < b.peer ? -1 : 1));
  }
}

function note(trails: Map<string, Trail>, identity: string, what: string, sentMs: number, nowMs: number): void {
  const trail = trails.get(identity);
  if (trail === undefined) {
    trails.set(identity, { last: what, sinceMs: nowMs, former: [], returns: [] });
    return keepLast(trails);
  }
  if (trail.last === what || sentMs < trail.sinceMs) return;
  const at = trail.former.indexOf(what);
  if (at >= 0) {
    trail.former.splice(at, 1);
    trail.returns = [...trail.returns.filter((ms) => nowMs - ms <= RETURNS_WITHIN_MS), nowMs];
  }
  trail.former.push(trail.last);
  if (trail.former.length > SIGHTINGS_OF_ONE_KEPT) trail.former.shift();
  trail.last = what;
  trail.sinceMs = nowMs;
}

function keepLast(map: Map<string, unknown>): void {
  if (map.size > SIGHTINGS_KEPT) map.delete(map.keys().next().value!);
}
