// New holds and new jobs are refused while the disk is low: what is left belongs to votes, no-ops, the ends of holds and the
// results of jobs. Renewals write nothing, and resigning frees: they go on. Nor are there new holds while the cluster is paused.

import { TenureError } from "../../core/kit/errors.ts";
import type { DiskView } from "../../ports/cluster.ts";

export interface DiskState {
  state(): DiskView["state"];
  freeBytes(): number | null;
}

/** Why nothing new is taken; null: it is. */
export function diskRefusal(directory: DiskState): TenureError | null {
  const state = directory.state();
  if (state === "ok") return null;
  const free = directory.freeBytes();
  const left = free === null ? "" : `, ${Math.floor(free / 2 ** 20)} MiB are free`;
  const why = `the disk of the leader is ${state}${left}: nothing new is taken. Free space; it goes on by itself`;
  return new TenureError("DISK_FULL", why);
}

/** Why a cluster that was restored paused grants nothing. */
export function pauseRefusal({ isPaused }: { readonly isPaused: boolean }): TenureError | null {
  if (!isPaused) return null;
  const why =
    "the cluster was restored paused, and grants nothing until an operator resumes it (tenure cluster resume)";
  return new TenureError("CLUSTER_PAUSED", why);
}
