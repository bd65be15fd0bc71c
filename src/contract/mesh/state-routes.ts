// The routes of the mesh's state: the jobs, agents and events of all sites, as this site knows them. Any node answers.

import { Type } from "typebox";
import { EVENT_ENTITY_BYTES_MAX } from "../../core/kit/limits.ts";
import { CURSOR_BYTES_MAX, JOBS_PER_PAGE_MAX, SEARCH_BYTES_MAX } from "../limits.ts";
import { JobStateName, States } from "../jobs/requests.ts";
import { READ, type Route } from "../route.ts";
import { integer, matching, nullable, oneOf, strict, text } from "../schema-kit.ts";
import { shape } from "../shape.ts";

const Text = Type.String();
const Count = integer(0);
const WallMs = Type.Number({ minimum: 0 });
const Texts = Type.Record(Text, Text);

const SiteId = matching(/^[a-z0-9][a-z0-9-]{0,62}$/, "the id of a controller: a-z, 0-9 and -, at most 63");

/** Of one that did not leave its site nothing else is known. */
const EventType = matching(
  /^(withheld|[a-z][a-z0-9-]{0,31}:[a-z][a-z0-9-]{0,31})$/,
  "a type of event, such as build:submitted, or withheld",
);

const PAGE = {
  site: Type.Optional(SiteId),
  cursor: Type.Optional(text(CURSOR_BYTES_MAX)),
  limit: Type.Optional(integer(1, JOBS_PER_PAGE_MAX)),
};

/** Where it was said, and how old that may be. */
const SOURCE = {
  site: Text,
  line: Text,
  line_state: oneOf("sound", "forked", "evicted"),
  heard_at_ms: WallMs,
  age_ms: WallMs,
};

const MeshJobAnswer = strict({
  id: Text,
  ...SOURCE,
  state: JobStateName,
  is_lost: Type.Boolean(),
  claims: Count,
  kind: nullable(Text),
  queue: nullable(Text),
  platform: nullable(Text),
  priority: Type.Integer(),
  labels: Texts,
  submitted_at_ms: nullable(WallMs),
  submitted_by: nullable(Text),
  agent: nullable(Text),
  attempt: Count,
  changed_at_ms: WallMs,
  finished_at_ms: nullable(WallMs),
  error_message: nullable(Text),
});

const MeshAgentAnswer = strict({
  name: Text,
  ...SOURCE,
  state: oneOf("online", "draining", "offline"),
  kinds: Type.Array(Text),
  labels: Texts,
  platform: nullable(Text),
  capacity: Count,
  changed_at_ms: WallMs,
});

const Replayed = strict({
  at_ms: WallMs,
  outcome: oneOf("equal", "differs", "broken", "cut"),
  events: Count,
  reason: nullable(Text),
});

const MeshEventAnswer = strict({
  arrival: integer(1),
  site: Text,
  line: Text,
  generation: integer(1),
  line_sequence: integer(1),
  id: Text,
  timestamp: WallMs,
  event_type: Text,
  entity_id: Text,
  entity_type: Text,
  payload: Type.Record(Text, Type.Any()),
  source_controller_id: Text,
  previous_hash: nullable(Text),
  event_hash: Text,
});

export const MESH_STATE_ROUTES = {
  meshJobs: {
    ...READ,
    path: "/v1/mesh/jobs",
    summary: "The jobs of all sites, newest first; by site, state and words.",
    query: shape(strict({ ...PAGE, state: Type.Optional(States), search: Type.Optional(text(SEARCH_BYTES_MAX)) })),
    answer: strict({ jobs: Type.Array(MeshJobAnswer), next: nullable(Text), through: Count }),
    errors: ["MESH_DISABLED"],
  },
  meshAgents: {
    ...READ,
    path: "/v1/mesh/agents",
    summary: "The agents of all sites, by name.",
    query: shape(strict(PAGE)),
    answer: strict({ agents: Type.Array(MeshAgentAnswer), next: nullable(Text), through: Count }),
    errors: ["MESH_DISABLED"],
  },
  meshState: {
    ...READ,
    path: "/v1/mesh/state",
    summary: "How far this node has merged all sites' events, the hash over the merged state, and the last replay.",
    query: shape(strict({})),
    answer: strict({
      arrival: Count,
      through: Count,
      hash: Text,
      rows: Count,
      missing: Count,
      saved_through: nullable(Count),
      replay: nullable(Replayed),
    }),
    errors: ["MESH_DISABLED"],
  },
  meshReplay: {
    method: "POST",
    role: "operator",
    kind: "local",
    isAdmin: true,
    limited: "admin",
    params: null,
    query: shape(strict({})),
    path: "/v1/mesh/replay",
    summary: "Verify both archives of this node, build the merged state anew aside, and compare the two.",
    body: shape(strict({})),
    answer: Replayed,
    errors: ["MESH_DISABLED", "RATE_LIMITED"],
  },
  meshEvents: {
    ...READ,
    path: "/v1/mesh/events",
    summary: "The events of all sites in the order in which they arrived here; by site, type and entity.",
    query: shape(
      strict({
        after_arrival: Type.Optional(integer(0)),
        site: Type.Optional(SiteId),
        type: Type.Optional(EventType),
        entity: Type.Optional(text(EVENT_ENTITY_BYTES_MAX)),
        limit: Type.Optional(integer(1, JOBS_PER_PAGE_MAX)),
      }),
    ),
    answer: strict({
      events: Type.Array(MeshEventAnswer),
      next: nullable(Count),
      dropped_through: Count,
      through: Count,
    }),
    errors: ["MESH_DISABLED"],
  },
} as const satisfies Readonly<Record<string, Route>>;
