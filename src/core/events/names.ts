// The names of what happens, and of what it happens to: the wire spelling, in this file alone. A job is a build, an agent a worker.

export const ENTITY_TYPES = ["build", "worker", "queue", "schedule", "key", "certificate", "controller"] as const;
export type EntityType = (typeof ENTITY_TYPES)[number];

export const EVENT_TYPES = [
  "build:submitted",
  "build:assigned",
  "build:building",
  "build:log",
  "build:completed",
  "build:failed",
  "build:retried",
  "build:cancelling",
  "build:cancelled",
  "build:forgotten",
  "worker:registered",
  "worker:offline",
  "worker:removed",
  "queue:paused",
  "queue:resumed",
  "schedule:put",
  "schedule:deleted",
  "schedule:fired",
  "key:created",
  "key:revoked",
  "certificate:revoked",
  "controller:recovered",
  "controller:registered",
  "controller:expired",
  "controller:approved",
  "controller:evicted",
  "controller:forked",
  "controller:resumed",
  "controller:gated",
  "controller:left",
  "controller:joined",
] as const satisfies readonly `${EntityType}:${string}`[];
export type EventType = (typeof EVENT_TYPES)[number];
