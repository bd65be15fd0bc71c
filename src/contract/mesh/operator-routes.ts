// The routes of an operator of a site in a mesh: to give out the own line again after a start, or a new one; to leave; and the evidence of
// forks, which anybody can verify.

import { Type } from "typebox";
import { NoQuery } from "../requests.ts";
import { READ, type Route, WRITE_ERRORS } from "../route.ts";
import { integer, nullable, oneOf, strict } from "../schema-kit.ts";
import { shape } from "../shape.ts";
import { ControllerId } from "./registry-schemas.ts";

const Text = Type.String();

/** Whether this node gives out its own line. */
export const GateShown = strict({
  state: oneOf("open", "comparing", "behind"),
  since_ms: Type.Number(),
  missing: Type.Array(Text),
  why: nullable(Text),
});

const OPERATOR = {
  method: "POST",
  role: "operator",
  params: null,
  query: shape(NoQuery),
  kind: "write",
  isAdmin: true,
  limited: "admin",
  errors: [...WRITE_ERRORS, "STALE_EPOCH", "MESH_DISABLED", "RATE_LIMITED"],
} as const;
const FENCED = { leader_epoch: Type.Optional(integer(1)) };

const Departure = strict({
  controller: Text,
  left_at: nullable(integer(1)),
  confirmed: Type.Array(Text),
  unconfirmed: Type.Array(Text),
});

export const MESH_OPERATOR_ROUTES = {
  meshResume: {
    ...OPERATOR,
    path: "/v1/mesh/resume",
    summary: "Give out this site's line without waiting for peers that are not compared; or begin the next line.",
    body: shape(strict({ new_line: Type.Optional(Type.Boolean()), ...FENCED })),
    answer: strict({ gate: GateShown }),
  },
  meshLeave: {
    ...OPERATOR,
    path: "/v1/mesh/leave",
    summary: "Take this site out of its mesh: the others hear of it, wait for it no more, and every link ends.",
    body: shape(strict(FENCED)),
    answer: Departure,
  },
  meshJoin: {
    ...OPERATOR,
    path: "/v1/mesh/join",
    summary: "Take this site back into its mesh, after it has left: it goes on with the same line.",
    body: shape(strict(FENCED)),
    answer: Departure,
  },
  meshEvidence: {
    ...READ,
    path: "/v1/mesh/evidence",
    summary: "What proves that a site has signed two histories: of one site, or of all.",
    query: shape(strict({ site: Type.Optional(ControllerId) })),
    answer: strict({
      forks: Type.Array(
        strict({ line: Text, sequence: integer(1), evidence: nullable(Type.Record(Type.String(), Type.Unknown())) }),
      ),
    }),
    errors: ["MESH_DISABLED", "LOG_COMPACTED", "EVENTS_LOST"],
    isForSites: true,
  },
} as const satisfies Readonly<Record<string, Route>>;
