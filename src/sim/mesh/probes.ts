// What runs of the mesh must have met to be worth anything.

export { reached } from "../kernel/index.ts";

/** Met within a few dozen seeds. */
const COMMON = [
  /** Down a stream, and up by a request. */
  "page-down",
  "page-up",
  "page-relayed",
  "pages-together",
  "page-known-already",
  "page-after-a-gap",
  "prune-sent",
  "graft-sent",
  "stub-sent",
  "leader-changed",
  "whole-site-restarted",
  "snapshot-of-foreign-events",
  "cut-met-a-message",
  "request-lost",
  "request-twice",
  "request-late",
  "request-overtaken",
  "clock-minutes-off",
  "lie-told",
  "fork-frozen",
  "site-evicted",
  "disk-restored",
  "site-behind",
  "line-renewed",
] as const;

const RARE = ["lie-refused", "gate-resumed", "site-expired"] as const;

export const COMMON_MESH_PROBES: readonly MeshProbe[] = COMMON;
export const MESH_PROBES: readonly MeshProbe[] = [...COMMON, ...RARE];
export type MeshProbe = (typeof COMMON)[number] | (typeof RARE)[number];
export type MeshProbeCounts = { [P in MeshProbe]?: number };
