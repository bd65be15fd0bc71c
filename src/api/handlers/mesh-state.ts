// The jobs, agents and events of all sites, as this site knows them. What is shown may be old where a site is cut off: each row says how old.

import { JOBS_PER_PAGE_MAX, toSnake } from "../../contract/index.ts";
import { TenureError } from "../../core/kit/errors.ts";
import type { JobState } from "../../ports/jobs.ts";
import type { MeshAgent, MeshEvent, MeshJob } from "../../ports/mesh/views.ts";
import type { MeshState } from "../options.ts";
import { Refusal } from "../refusal.ts";
import type { Handlers, Service } from "./handler.ts";

type Ids = "meshJobs" | "meshAgents" | "meshState" | "meshReplay" | "meshEvents";

const JSON_TYPE = "application/json; charset=utf-8";

export function meshStateHandlers(service: Service): Pick<Handlers, Ids> {
  const { clock } = service;
  return {
    meshJobs: async ({ query }) => {
      const mesh = joined(service);
      const { site, state, search, cursor, limit = JOBS_PER_PAGE_MAX } = query;
      const states = state === undefined ? undefined : (state.split(",") as JobState[]);
      const page = await mesh.views.jobs({ site, states, search, cursor, limit }).catch(wrongCursor);
      const nowMs = clock.wallMs();
      const jobs = page.jobs.map((job) => jobShown(job, sourceOf(mesh, job, nowMs)));
      return { body: { jobs, next: page.next, through: page.through } };
    },
    meshAgents: async ({ query }) => {
      const mesh = joined(service);
      const { site, cursor, limit = JOBS_PER_PAGE_MAX } = query;
      const page = await mesh.views.agents({ site, cursor, limit }).catch(wrongCursor);
      const nowMs = clock.wallMs();
      const agents = page.agents.map((agent) => agentShown(agent, sourceOf(mesh, agent, nowMs)));
      return { body: { agents, next: page.next, through: page.through } };
    },
    meshState: async () => {
      const { views, arrivals, replay } = joined(service);
      const { hash, through, rows, missing } = await views.hash();
      const merged = { arrival: arrivals.last, through, hash, rows, missing, saved_through: views.savedThrough };
      return { body: { ...merged, replay: toSnake(replay.last()) } };
    },
    meshReplay: async () => ({ body: toSnake(await joined(service).replay.run()) as object }),
    meshEvents: async ({ query }) => {
      const mesh = joined(service);
      const { after_arrival: afterArrival, site, type: eventType, entity: entityId, limit = JOBS_PER_PAGE_MAX } = query;
      const page = await mesh.views.events({ afterArrival, site, eventType, entityId, limit });
      const { next, droppedThrough, through } = page;
      const rest = JSON.stringify({ next, dropped_through: droppedThrough, through }).slice(1);
      return { body: `{"events":[${page.events.map(eventText).join(",")}],${rest}`, contentType: JSON_TYPE };
    },
  };
}

function joined({ meshState }: Service): MeshState {
  if (meshState !== undefined) return meshState;
  throw new Refusal(
    "MESH_DISABLED",
    'This site is standalone. Set mode = "distributed" in [mesh] to join sites; see docs/mesh.md.',
  );
}

/** All else that may be wrong in a query was checked before: only the views know their own cursors. */
function wrongCursor(error: unknown): never {
  if (!TenureError.is(error) || error.code !== "BAD_REQUEST") throw error;
  throw new Refusal("BAD_REQUEST", error.message, { field: "cursor" });
}

/** Other sites' clocks play no part in it: heard is what this site says. */
function sourceOf(mesh: MeshState, { site, line, mark, arrivedMs }: MeshJob | MeshAgent, nowMs: number) {
  const heardAtMs = Math.max(arrivedMs, mesh.heardMs(line) ?? 0);
  return {
    site,
    line,
    line_state: mark ?? "sound",
    heard_at_ms: heardAtMs,
    age_ms: Math.max(0, nowMs - heardAtMs),
  };
}

function jobShown(job: MeshJob, source: ReturnType<typeof sourceOf>): object {
  return {
    id: job.id,
    ...source,
    state: job.state,
    is_lost: job.isLost,
    claims: job.claims,
    kind: job.kind,
    queue: job.queue,
    platform: job.platform,
    priority: job.priority,
    labels: Object.fromEntries(job.labels),
    submitted_at_ms: job.submittedAtMs,
    submitted_by: job.submittedBy,
    agent: job.agent,
    attempt: job.attempt,
    changed_at_ms: job.changedAtMs,
    finished_at_ms: job.finishedAtMs,
    error_message: job.error,
  };
}

/** The payload is JSON already, and is not made again. */
function eventText({ payload, line, ...event }: MeshEvent): string {
  const site = line.slice(0, line.indexOf("."));
  const fields = JSON.stringify({ ...(toSnake(event) as object), line, site });
  return `${fields.slice(0, -1)},"payload":${payload}}`;
}

function agentShown(agent: MeshAgent, source: ReturnType<typeof sourceOf>): object {
  return {
    name: agent.name,
    ...source,
    state: stateOf(agent),
    kinds: agent.kinds,
    labels: Object.fromEntries(agent.labels),
    platform: agent.platform,
    capacity: agent.capacity,
    changed_at_ms: agent.changedAtMs,
  };
}

function stateOf({ isOnline, isDraining }: MeshAgent): "online" | "draining" | "offline" {
  if (!isOnline) return "offline";
  return isDraining ? "draining" : "online";
}
