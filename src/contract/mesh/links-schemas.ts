// What sites of a mesh send to one another over a link, as schemas. Bodies under /api are the specification's camelCase. A page is checked
// by the proof (core/mesh/proof), one by one: one that is malformed spoils no other.

import { Type } from "typebox";
import { INTEGER_MAX } from "../../core/kit/limits.ts";
import { integer, matching, nullable, oneOf, strict, text } from "../schema-kit.ts";
import { GRAFTS_MAX, HEADS_MAX, LINE_ID_BYTES_MAX, NOTE_BYTES_MAX, PAGES_PER_DELIVERY_MAX } from "./limits.ts";

const LineName = text(LINE_ID_BYTES_MAX);
const ControllerName = matching(
  /^[a-z0-9][a-z0-9-]{0,62}$/,
  "a controller id: lower-case letters, digits and hyphens, 63 at most",
);
/** Signed notes have line ends. */
const Heads = Type.Array(Type.String({ maxLength: NOTE_BYTES_MAX }), { maxItems: HEADS_MAX });

export const StreamBody = strict({ controller: ControllerName, heads: Heads });

export const DeliveryBody = strict({
  controller: ControllerName,
  pages: Type.Optional(Type.Array(Type.Unknown(), { maxItems: PAGES_PER_DELIVERY_MAX })),
  heads: Type.Optional(Heads),
  at: Type.Optional(integer(0)),
  graft: Type.Optional(Type.Array(strict({ line: LineName, after: integer(0) }), { maxItems: GRAFTS_MAX })),
  prune: Type.Optional(Type.Array(strict({ line: LineName }), { maxItems: GRAFTS_MAX })),
});

/** The specification's Event. What it must be besides this, the chain of its line says. */
export const EventBody = strict({
  id: text(64),
  sequence: integer(1),
  timestamp: Type.Number({ minimum: 0, maximum: INTEGER_MAX }),
  eventType: text(64),
  entityId: text(256),
  entityType: text(64),
  payload: Type.Record(Type.String(), Type.Unknown()),
  sourceControllerId: text(128),
  leaderEpoch: Type.Optional(integer(0)),
  previousHash: nullable(Type.String({ maxLength: 64 })),
  eventHash: Type.String({ minLength: 64, maxLength: 64 }),
});

const Outcome = Type.Object({
  line: Type.String(),
  accepted: Type.Optional(integer(0)),
  duplicates: Type.Optional(integer(0)),
  error: Type.Optional(Type.String()),
  sequence: Type.Optional(integer(0)),
  have: Type.Optional(integer(0)),
  problem: Type.Optional(Type.String()),
});

export const DeliveredAnswer = Type.Union([
  strict({ pages: Type.Array(Outcome), heads: Type.Array(Type.String()) }),
  strict({ pending: integer(0, 1) }),
]);

/** One link of this node, as `GET /v1/mesh/sites` shows it. */
export const LinkShown = strict({
  controller: nullable(Type.String()),
  direction: oneOf("dialled", "served"),
  url: nullable(Type.String()),
  connected: Type.Boolean(),
  down_ms: nullable(Type.Number()),
  round_trip_ms: nullable(Type.Number()),
  lag_events: integer(0),
  lag_ms: Type.Number(),
  missing_events: integer(0),
  missing_ms: Type.Number(),
  skew_ms: nullable(Type.Number()),
  heard_ms_ago: nullable(Type.Number()),
  problem: nullable(Type.String()),
  blamed: Type.Record(Type.String(), integer(0)),
});
