// What one line says of one agent: a row for each (agent, line), as for jobs (job-row.ts).

import type { LineId } from "../model.ts";
import { type LineEvent, versionOf } from "./events.ts";
import { integerOf, labelsOf, member, textOf, textsOf } from "./fields.ts";
import { KINDS_MAX, LABELS_MAX, NAME_LENGTH_MAX } from "./limits.ts";
import { after, isLater, laterOf, type Said, type Version } from "./version.ts";

interface AgentInfoSaid extends Said {
  readonly atMs: number;
  readonly platform: string | null;
  readonly capacity: number;
  readonly draining: boolean;
  readonly kinds: readonly string[];
  readonly labels: readonly (readonly [string, string])[];
}

interface AgentStateSaid extends Said {
  readonly atMs: number;
  readonly isOnline: boolean;
}

export interface AgentRow {
  readonly id: string;
  readonly line: LineId;
  /** The line removed the agent there. */
  readonly gone: Version | null;
  readonly info: AgentInfoSaid | null;
  readonly state: AgentStateSaid | null;
}

/** The row after the event; the same object where the event changes nothing. */
export function evolveAgentRow(row: AgentRow | null, said: LineEvent): AgentRow | null {
  const at = versionOf(said);
  const { event, line } = said;
  const before = row ?? { id: event.entityId, line, gone: null, info: null, state: null };
  if (before.gone !== null && !isLater(at, before.gone)) return row;
  switch (event.eventType) {
    case "worker:registered":
      return changed(row, before, infoSaid(said), { at, atMs: event.timestamp, isOnline: true });
    case "worker:offline":
      return changed(row, before, null, { at, atMs: event.timestamp, isOnline: false });
    case "worker:removed":
      return { id: before.id, line, gone: at, info: after(before.info, at), state: after(before.state, at) };
    default:
      return row;
  }
}

export function isAgentGone(row: AgentRow): boolean {
  return row.info === null && row.state === null;
}

function changed(
  row: AgentRow | null,
  before: AgentRow,
  info: AgentInfoSaid | null,
  state: AgentStateSaid,
): AgentRow | null {
  const next = { info: laterOf(before.info, info), state: laterOf(before.state, state) };
  return next.info === before.info && next.state === before.state ? row : { ...before, ...next };
}

function infoSaid(said: LineEvent): AgentInfoSaid {
  const { payload, timestamp } = said.event;
  return {
    at: versionOf(said),
    atMs: timestamp,
    platform: textOf(member(payload, "platform"), NAME_LENGTH_MAX),
    capacity: integerOf(member(payload, "capacity"), 0) ?? 0,
    draining: member(payload, "draining") === true,
    kinds: textsOf(member(payload, "kinds"), KINDS_MAX, NAME_LENGTH_MAX),
    labels: labelsOf(member(payload, "labels"), LABELS_MAX, NAME_LENGTH_MAX),
  };
}
