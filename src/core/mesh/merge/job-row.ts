// What one line says of one job: a row for each (job, line). One row for each job would depend on which line's event came last.
//
// Invariants:
// - A row is a few values, each with the place in the line where it was said; the later one stays. So a row depends on the set of events
//   and on nothing else: any order, any duplication.
// - `gone`: the line forgot the job there. Everything before it is void, also what arrives afterwards.

import type { JobState } from "../../jobs/model.ts";
import type { Json } from "../../kit/json.ts";
import type { LineId } from "../model.ts";
import { type LineEvent, versionOf } from "./events.ts";
import { integerOf, labelsOf, member, objectOf, textOf, timeOf } from "./fields.ts";
import { LABELS_MAX, MESSAGE_LENGTH_MAX, NAME_LENGTH_MAX } from "./limits.ts";
import { after, isLater, laterOf, type Said, type Version } from "./version.ts";

/** A value with the event that set it. */
interface JobSaid extends Said {
  readonly eventId: string;
  /** By the clock of the line. */
  readonly atMs: number;
}

export interface JobSpecSaid extends JobSaid {
  /** 1 for who submits a job of its own; a takeover says a higher one. */
  readonly ownerEpoch: number;
  readonly submittedAtMs: number;
  readonly by: string | null;
  readonly kind: string | null;
  readonly queue: string | null;
  readonly platform: string | null;
  readonly priority: number;
  readonly labels: readonly (readonly [string, string])[];
}

export interface JobStateSaid extends JobSaid {
  readonly state: JobState;
  readonly error: string | null;
}

export interface JobRunSaid extends JobSaid {
  readonly agent: string | null;
  readonly attempt: number;
}

export interface JobWords {
  readonly id: string;
  readonly line: LineId;
  readonly gone: Version | null;
  readonly spec: JobSpecSaid | null;
  readonly state: JobStateSaid | null;
  readonly run: JobRunSaid | null;
}

const STATES: Readonly<Record<string, JobState>> = {
  "build:submitted": "pending",
  "build:assigned": "assigned",
  "build:building": "building",
  "build:completed": "completed",
  "build:failed": "failed",
  "build:retried": "pending",
  "build:cancelling": "cancelling",
  "build:cancelled": "cancelled",
};

/** The row after the event; the same object where the event changes nothing. */
export function evolveJobRow(row: JobWords | null, said: LineEvent): JobWords | null {
  const at = versionOf(said);
  const { event, line } = said;
  const before = row ?? { id: event.entityId, line, gone: null, spec: null, state: null, run: null };
  if (before.gone !== null && !isLater(at, before.gone)) return row;
  if (event.eventType === "build:forgotten") return forgotten(before, at);
  const state = Object.hasOwn(STATES, event.eventType) ? STATES[event.eventType] : undefined;
  if (state === undefined) return row;
  const next = {
    spec: laterOf(before.spec, specSaid(said)),
    state: laterOf(before.state, { ...saidBy(said), state, error: errorOf(event.payload) }),
    run: laterOf(before.run, runSaid(said)),
  };
  const isSame = next.spec === before.spec && next.state === before.state && next.run === before.run;
  return isSame ? row : { ...before, ...next };
}

/** Nothing is left of it but where it was forgotten. */
export function isGone(row: JobWords): boolean {
  return row.spec === null && row.state === null && row.run === null;
}

function forgotten(row: JobWords, at: Version): JobWords {
  return {
    id: row.id,
    line: row.line,
    gone: at,
    spec: after(row.spec, at),
    state: after(row.state, at),
    run: after(row.run, at),
  };
}

function saidBy(said: LineEvent): JobSaid {
  return { at: versionOf(said), eventId: said.event.id, atMs: said.event.timestamp };
}

function specSaid(said: LineEvent): JobSpecSaid | null {
  const { eventType, payload, timestamp } = said.event;
  if (eventType === "build:submitted") {
    const origin = objectOf(member(payload, "origin"));
    return specOf(said, member(payload, "spec"), {
      ownerEpoch: integerOf(member(origin, "ownerEpoch"), 1) ?? 1,
      submittedAtMs: timestamp,
      by: textOf(member(payload, "by"), NAME_LENGTH_MAX),
    });
  }
  // A finished job that its site had dropped from memory is sent once more, with all that it was.
  const restored = objectOf(member(payload, "job"));
  if (eventType !== "build:retried" || member(restored, "spec") === undefined) return null;
  return specOf(said, member(restored, "spec"), {
    ownerEpoch: 1,
    submittedAtMs: timeOf(member(restored, "submittedAtMs")) ?? timestamp,
    by: textOf(member(restored, "submittedBy"), NAME_LENGTH_MAX),
  });
}

function specOf(
  said: LineEvent,
  value: Json | undefined,
  more: Pick<JobSpecSaid, "ownerEpoch" | "submittedAtMs" | "by">,
): JobSpecSaid {
  const spec = objectOf(value);
  return {
    ...saidBy(said),
    ...more,
    kind: textOf(member(spec, "kind"), NAME_LENGTH_MAX),
    queue: textOf(member(spec, "queue"), NAME_LENGTH_MAX),
    platform: textOf(member(spec, "platform"), NAME_LENGTH_MAX),
    priority: integerOf(member(spec, "priority"), Number.MIN_SAFE_INTEGER) ?? 0,
    labels: labelsOf(member(spec, "labels"), LABELS_MAX, NAME_LENGTH_MAX),
  };
}

function runSaid(said: LineEvent): JobRunSaid | null {
  const { eventType, payload } = said.event;
  if (eventType !== "build:assigned") return null;
  const agent = textOf(member(payload, "agent"), NAME_LENGTH_MAX);
  return { ...saidBy(said), agent, attempt: integerOf(member(payload, "attempt"), 1) ?? 1 };
}

function errorOf(payload: LineEvent["event"]["payload"]): string | null {
  return textOf(member(objectOf(member(payload, "error")), "message"), MESSAGE_LENGTH_MAX);
}
