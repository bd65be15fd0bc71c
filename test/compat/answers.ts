// What a node answers to the questions that a release's data must still answer, without what differs from one moment to the next.

import { OPERATOR_KEY as key, type TenureNode } from "../servers/index.ts";

const EVENTS_PATH = "/api/events/since/0?limit=1000";

const JOBS_PATH = "/v1/jobs?limit=200&consistency=linearizable";
const LISTS = [JOBS_PATH, "/v1/scopes", "/v1/agents", "/v1/queues", "/v1/schedules", "/v1/keys"] as const;

/** Of this moment, or of who leads at it. */
const FLEETING: ReadonlySet<string> = new Set(["pending_reason", "renewed_at_ms", "remaining_ms", "next_at_ms"]);

export interface Answers {
  /** By path. */
  readonly bodies: Readonly<Record<string, unknown>>;
  /** Each with its hash, as stored and hashed, in order. */
  readonly events: readonly string[];
  readonly headHash: string | null;
}

export interface Recorded extends Answers {
  /** When it was, by the wall clock. */
  readonly atMs: number;
}

export async function answersOf(node: TenureNode): Promise<Answers> {
  const bodies: Record<string, unknown> = {};
  for (const path of LISTS) bodies[path] = await bodyOf(node, path);
  const { jobs } = bodies[JOBS_PATH] as { jobs: readonly { id: string }[] };
  for (const { id } of jobs) bodies[`/v1/jobs/${id}`] = await bodyOf(node, `/v1/jobs/${id}`);
  for (const { id } of jobs) bodies[`/v1/jobs/${id}/logs`] = await bodyOf(node, `/v1/jobs/${id}/logs`);
  return { bodies, ...(await eventsOf(node)) };
}

async function bodyOf(node: TenureNode, path: string): Promise<unknown> {
  const { status, body } = await node.call<object>(path, { key });
  return { status, ...(withoutFleeting(body) as object) };
}

function withoutFleeting(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(withoutFleeting);
  if (typeof value !== "object" || value === null) return value;
  const kept = Object.entries(value).filter(([name]) => !FLEETING.has(name));
  return Object.fromEntries(kept.map(([name, one]) => [name, withoutFleeting(one)]));
}

async function eventsOf(node: TenureNode): Promise<Pick<Answers, "events" | "headHash">> {
  const { body } = await node.call<{ events: readonly { eventHash: string }[] }>(EVENTS_PATH, { key });
  return { events: body.events.map((event) => JSON.stringify(event)), headHash: body.events.at(-1)?.eventHash ?? null };
}
