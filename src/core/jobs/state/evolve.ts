// One event becomes state, on the leader and on followers alike. The only time here is the event's own.
//
// Invariants:
// - An event that does not fit the state changes nothing, and is counted. Whether it fits is looked at before the first change.
// - Nothing is decided here that a later release may decide otherwise, except what is dropped at a limit.

import { AGENT_SESSIONS_KEPT } from "../../kit/limits.ts";
import { evolveJob } from "./evolve-job.ts";
import {
  type Fired,
  type JobsEvent,
  type JobsEventType,
  type Offline,
  payloadOf,
  type Registered,
  type Removed,
  type SchedulePut,
} from "../events.ts";
import { READIED_PER_EVENT_MAX } from "../limits.ts";
import { remember } from "./idempotency.ts";
import { noteSkip } from "./skips.ts";
import type { BookState } from "./state.ts";

/** False: it does not fit, and changed nothing. */
export function evolve(state: BookState, event: JobsEvent): boolean {
  const atMs = Math.floor(event.timestamp);
  state.ready.advance(atMs, READIED_PER_EVENT_MAX);
  if (!change(state, event, atMs)) {
    state.unfit++;
    return false;
  }
  noteSkip(state, event, atMs);
  remember(state, event, atMs);
  return true;
}

function change(state: BookState, event: JobsEvent, atMs: number): boolean {
  const eventType = event.eventType as JobsEventType;
  switch (eventType) {
    case "build:submitted":
    case "build:assigned":
    case "build:building":
    case "build:log":
    case "build:completed":
    case "build:failed":
    case "build:retried":
    case "build:cancelling":
    case "build:cancelled":
    case "build:forgotten":
      return evolveJob(state, event, eventType, atMs);
    case "worker:registered":
      return registered(state, event, atMs);
    case "worker:offline":
      return offline(state, event, atMs);
    case "worker:removed":
      return removed(state, event, atMs);
    case "queue:paused":
      state.paused.set(event.entityId, { queue: event.entityId });
      return true;
    case "queue:resumed":
      state.paused.set(event.entityId, undefined);
      return true;
    case "schedule:put":
      return schedulePut(state, event);
    case "schedule:deleted":
      if (state.schedules.get(event.entityId) === undefined) return false;
      state.schedules.set(event.entityId, undefined);
      return true;
    case "schedule:fired":
      return fired(state, event);
    default:
      // Of another tenant of the journal: time has passed.
      eventType satisfies never;
      return true;
  }
}

function registered(state: BookState, event: JobsEvent, atMs: number): boolean {
  const { sessionHash: session, kinds, labels, platform, capacity, draining, owner } = payloadOf<Registered>(event);
  const name = event.entityId;
  const before = state.agents.get(name);
  const isSame = before?.info.session === session;
  if (draining !== undefined) {
    if (!isSame || before.state === "removed") return false;
    state.agents.set(name, { ...before, isDraining: draining });
    return true;
  }
  const past = before === undefined ? [] : isSame ? before.past : [...before.past, before.info.session];
  state.agents.set(name, {
    info: { name, session, kinds, labels, platform, capacity },
    state: "online",
    registeredAtMs: isSame ? before.registeredAtMs : atMs,
    sinceMs: atMs,
    isDraining: isSame && before.isDraining,
    past: past.slice(-AGENT_SESSIONS_KEPT),
    // Of the log itself: it grows for ever, also past the removal of a name, and nothing has to be remembered for it.
    epoch: isSame ? before.epoch : event.sequence,
    owner: owner ?? (isSame ? before.owner : null),
  });
  return true;
}

function offline(state: BookState, event: JobsEvent, atMs: number): boolean {
  const before = state.agents.get(event.entityId);
  if (before?.state !== "online" || before.info.session !== payloadOf<Offline>(event).sessionHash) return false;
  state.agents.set(event.entityId, { ...before, state: "offline", sinceMs: atMs });
  return true;
}

function removed(state: BookState, event: JobsEvent, atMs: number): boolean {
  const before = state.agents.get(event.entityId);
  if (before === undefined) return false;
  const isKept = payloadOf<Removed>(event).cause === "asked";
  state.agents.set(event.entityId, isKept ? { ...before, state: "removed", sinceMs: atMs, owner: null } : undefined);
  return true;
}

function schedulePut(state: BookState, event: JobsEvent): boolean {
  const { schedule, wallMs } = payloadOf<SchedulePut>(event);
  const before = state.schedules.get(event.entityId);
  const isSame = before?.schedule.cron === schedule.cron && before.schedule.timeZone === schedule.timeZone;
  // Times that passed while it was paused are not caught up.
  const goesOn = isSame && (schedule.paused || !before.schedule.paused);
  state.schedules.set(event.entityId, {
    schedule,
    sinceMs: goesOn ? before.sinceMs : wallMs,
    lastAtMs: isSame ? before.lastAtMs : null,
  });
  return true;
}

function fired(state: BookState, event: JobsEvent): boolean {
  const before = state.schedules.get(event.entityId);
  const { atMs } = payloadOf<Fired>(event);
  if (before === undefined || atMs <= (before.lastAtMs ?? -1)) return false;
  state.schedules.set(event.entityId, { ...before, lastAtMs: atMs });
  return true;
}
