// From where a stream goes on, and whether that point is of this history. A sequence alone does not say so (trap 82): after a
// restore, a recovery or a promotion that lost the end, this log has other events under numbers that a reader knows.
//
//   the reader's point: a sequence, and the hash of its event where the reader knows that
//     hash as here                       ─▶ go on
//     not applied here, or another hash  ─▶ catch up with the leader: a node that lags, or has not noticed yet that its own
//                                           history is the one that was left, must not decide (trap 73)
//         can't                          ─▶ ERR_NO_LEADER: another node, or later
//         still not so                   ─▶ HISTORY_REWRITTEN (without a hash, beyond the end: BAD_REQUEST, as ever)

import { type EventPoint, eventPointText, readEventPoint } from "../../contract/index.ts";
import type { Call, JobsParts, Service } from "../handlers/handler.ts";
import { noLeader, Refusal } from "../refusal.ts";

interface Asked {
  readonly point: EventPoint;
  readonly field: string;
}

type Resumed = Pick<Call<"events">, "header" | "pointInTurn">;

/** What a client knows of the history besides where its own stream goes on; browsers' EventSource can't send it. */
const POINT_HEADER = "x-tenure-event-point";

/** Where a stream of events begins. Throws HISTORY_REWRITTEN, LOG_COMPACTED, ERR_NO_LEADER, BAD_REQUEST. */
export async function eventStart(service: Service, parts: JobsParts, call: Call<"events">): Promise<EventPoint> {
  const { point, field } = startOf(parts, call);
  const known = await mustBeKnown(service, parts, call);
  if (known?.sequence === point.sequence && point.hash === null) return known;
  if (point.hash !== null) return mustBeHere(service, parts, point, call);
  await mustBeGivenOut(service, parts, point.sequence, field);
  return { ...point, hash: await parts.events.hashAt(point.sequence, call.pointInTurn) };
}

/** For whoever brings the point that it knows: the history is still the one with that point. Throws as `eventStart`. */
export async function mustBeKnown(service: Service, parts: JobsParts, call: Resumed): Promise<EventPoint | null> {
  const text = call.header(POINT_HEADER);
  if (text === undefined) return null;
  const point = readEventPoint(text);
  if (point === null || point.hash === null) throw badPoint("X-Tenure-Event-Point");
  return mustBeHere(service, parts, point, call);
}

/** The newest that is applied here. */
export async function newestPoint({ events }: Pick<JobsParts, "events">): Promise<EventPoint> {
  const { sequence } = events.head();
  return { sequence, hash: await events.hashAt(sequence) };
}

/** The header wins: a browser that reconnects sends it with the query that it began with. */
function startOf({ events }: JobsParts, { header, query }: Call<"events">): Asked {
  const last = header("last-event-id");
  if (last === undefined) {
    const { since = events.head().sequence, since_hash: hash = null } = query;
    if (hash !== null && query.since === undefined)
      throw new Refusal("BAD_REQUEST", "since_hash is the hash of the event since: give both.", {
        field: "since_hash",
      });
    return { point: { sequence: since, hash }, field: "since" };
  }
  const point = readEventPoint(last);
  if (point === null) throw badPoint("Last-Event-ID");
  return { point, field: "Last-Event-ID" };
}

function badPoint(field: string): Refusal {
  return new Refusal("BAD_REQUEST", `${field} must be the sequence of an event, or that with its hash: 57:9f86….`, {
    field,
  });
}

async function mustBeHere(
  { cluster, limits }: Service,
  { events }: JobsParts,
  point: EventPoint,
  { pointInTurn }: Resumed,
): Promise<EventPoint> {
  // An old one is read from the disk, where whoever opens many streams takes its turn.
  const isHere = async (): Promise<boolean> => (await events.hashAt(point.sequence, pointInTurn)) === point.hash;
  if (await isHere()) return point;
  if (!(await cluster.catchUp(limits.catchUpTimeoutMs))) throw noLeader(cluster.view());
  if (await isHere()) return point;
  const { sequence: last, first } = events.head();
  throw new Refusal(
    "HISTORY_REWRITTEN",
    `This cluster's history has no event ${eventPointText(point)}, and a reader has seen it: a backup was restored, the cluster was ` +
      `recovered, or a standby was promoted without the end of the log. What was seen after the last common event did not happen. ` +
      `Find that event by the hashes of those you keep (/api/events/since), and start again from it; else from ${first}, the first that is kept.`,
    { sequence: point.sequence, first_sequence: first, last_sequence: last },
  );
}

/**
 * A node that lags waits until it has caught up. But where there is no such event anywhere, whoever waits for the next one
 * would pass over all that come before it: the log was restored to an earlier point, or the number is made up.
 */
async function mustBeGivenOut(
  { cluster, limits }: Service,
  { events }: JobsParts,
  sequence: number,
  field: string,
): Promise<void> {
  if (sequence <= events.head().sequence || !(await cluster.catchUp(limits.catchUpTimeoutMs))) return;
  const { sequence: last } = events.head();
  if (sequence <= last) return;
  throw new Refusal(
    "BAD_REQUEST",
    `${field} is ${sequence}, and the last event of this log is ${last}: nobody was given that one. If the log was restored, begin again with what you know of it.`,
    { field },
  );
}
