// What runs of the mesh must have met to be worth anything.

export { reached } from "../kernel/index.ts";

/** Met within a few dozen seeds. */
export const COMMON_MESH_PROBES = [
  "page-pushed",
  "page-pulled",
  "page-relayed",
  "page-duplicate",
  "gap-refused",
  "prune-sent",
  "graft-sent",
  "events-joined-one-record",
  "leader-changed-in-trio",
  "cut-met-a-message",
  "request-lost",
  "request-twice",
  "request-late",
  "request-overtaken",
  "stub-sent",
  "clock-minutes-off",
  "whole-site-restarted",
  "snapshot-with-foreign-events",
  "lie-told",
  "fork-frozen",
] as const;

const RARE = ["disk-restored", "relay-lie-refused"] as const;

export const MESH_PROBES = [...COMMON_MESH_PROBES, ...RARE] as const;
export type MeshProbe = (typeof MESH_PROBES)[number];
export type MeshProbeCounts = { [P in MeshProbe]?: number };
