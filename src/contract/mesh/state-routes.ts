// The routes of the mesh's state: the jobs and agents of all sites, as this site knows them. Any node answers.

import { Type } from "typebox";
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
} as const satisfies Readonly<Record<string, Route>>;
