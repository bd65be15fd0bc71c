// Scopes as they are printed: the state of each, as a row for people and as an object for programs. Pure; the fields
// of the objects are documented in docs/reference/cli.md, and a test compares.

import type { ScopeDetails, ScopeRecord, SessionRecord, TransitionRecord } from "../../ports/backends/scope-admin.ts";
import { type Paint, paintState, PLAIN } from "../kit/colour.ts";
import { columns, duration, isoTime, printable, table } from "../kit/output.ts";

export type ScopeState = "held" | "free" | "stale";

/** What ages are measured against. */
export interface Moment {
  readonly nowMs: number;
  /** A heartbeat older than this is late: the server timeout of the backend's settings. */
  readonly staleAfterMs: number;
}

export function stateOf(record: ScopeRecord, { nowMs, staleAfterMs }: Moment): ScopeState {
  if (record.identity === null) return "free";
  if (record.isGone === true) return "stale";
  const ageMs = ageOf(record, nowMs);
  return ageMs !== null && ageMs > staleAfterMs ? "stale" : "held";
}

export function ageOf({ heartbeatAtMs }: ScopeRecord, nowMs: number): number | null {
  return heartbeatAtMs === null ? null : Math.max(0, Math.round(nowMs - heartbeatAtMs));
}

export function scopeObject(record: ScopeRecord, moment: Moment) {
  return {
    scope: record.scope,
    state: stateOf(record, moment),
    epoch: record.epoch,
    identity: record.identity,
    since: record.acquiredAtMs === null ? null : isoTime(record.acquiredAtMs),
    heartbeat_age_ms: ageOf(record, moment.nowMs),
  };
}

export function scopeTable(records: readonly ScopeRecord[], moment: Moment, paint: Paint = PLAIN): string {
  const rows = records.map((record) => {
    const ageMs = ageOf(record, moment.nowMs);
    return [
      printable(record.scope),
      paintState(stateOf(record, moment), paint),
      String(record.epoch),
      record.acquiredAtMs === null ? "-" : isoTime(record.acquiredAtMs),
      ageMs === null ? "-" : duration(ageMs),
      record.identity === null ? "-" : printable(record.identity),
    ];
  });
  return table(["SCOPE", "STATE", "EPOCH", "SINCE", "HEARTBEAT", "LEADER"], rows, paint);
}

export function detailsObject(record: ScopeRecord, details: ScopeDetails | null, moment: Moment) {
  return {
    ...scopeObject(record, moment),
    metadata: record.metadata,
    lock_key: details?.lockKey ?? null,
    fence_key: details?.fenceKey ?? null,
    asked_to_resign: details?.isAskedToResign ?? null,
    sessions: details?.sessions.map(sessionObject) ?? null,
    waiters: details?.waiters.map(sessionObject) ?? null,
    fenced: details?.fenced.map(sessionObject) ?? null,
  };
}

function sessionObject({ pid, user, applicationName, client, prepared }: SessionRecord) {
  return { pid, user, application_name: applicationName, client, prepared };
}

export function detailsTable(record: ScopeRecord, details: ScopeDetails | null, moment: Moment): string {
  const { state, epoch, identity, since, heartbeat_age_ms: ageMs } = scopeObject(record, moment);
  const rows: string[][] = [
    ["scope", printable(record.scope)],
    ["state", `${state}${state === "stale" ? staleReason(record) : ""}`],
    ["epoch", String(epoch)],
    ["leader", identity === null ? "-" : printable(identity)],
    ["since", since ?? "-"],
    ["heartbeat", ageMs === null ? "-" : `${duration(ageMs)} ago`],
    ...Object.entries(record.metadata).map(([name, value]) => ["metadata", `${printable(name)}=${printable(value)}`]),
  ];
  if (details !== null) {
    rows.push(["lock key", details.lockKey], ["fence key", details.fenceKey]);
    if (details.isAskedToResign) rows.push(["asked", "an operator has asked this leader to step down"]);
    for (const session of details.sessions) rows.push(["session", sessionText(session)]);
    for (const session of details.waiters) rows.push(["waits", sessionText(session)]);
    for (const session of details.fenced) rows.push(["fenced", sessionText(session)]);
  }
  return columns(rows);
}

function staleReason({ isGone }: ScopeRecord): string {
  return isGone === true ? ": its session is gone, and nobody has followed" : ": its heartbeat is late";
}

export function sessionText({ pid, user, applicationName, client, prepared }: SessionRecord): string {
  if (pid === null) return `prepared transaction ${JSON.stringify(prepared ?? "?")}`;
  const name =
    applicationName === null || applicationName === "" ? "" : ` ${JSON.stringify(printable(applicationName))}`;
  return `pid ${pid}${name}${user === null ? "" : ` as ${printable(user)}`}${client === null ? "" : ` from ${client}`}`;
}

export function transitionObject({ atMs, epoch, identity, reason, heldMs }: TransitionRecord) {
  return { at: isoTime(atMs), epoch, identity, reason, held_ms: heldMs };
}

export function transitionTable(transitions: readonly TransitionRecord[], paint: Paint = PLAIN): string {
  const rows = transitions.map(({ atMs, epoch, identity, reason, heldMs }) => [
    isoTime(atMs),
    String(epoch),
    reason,
    heldMs === null ? "-" : duration(heldMs),
    printable(identity),
  ]);
  return table(["AT", "EPOCH", "WHAT", "HELD", "LEADER"], rows, paint);
}
