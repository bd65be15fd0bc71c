// The routes of the links between sites: a stream of pages to the site that dials, and what that site sends. The leader alone has links; a
// standby answers 409 NOT_LEADER, which names the leader.

import { NoQuery } from "../requests.ts";
import { type Route, WRITE_ERRORS } from "../route.ts";
import { either, shape } from "../shape.ts";
import { DELIVERY_BYTES_MAX } from "./limits.ts";
import * as schemas from "./links-schemas.ts";

const LINK = {
  method: "POST",
  role: "controller",
  params: null,
  query: shape(NoQuery),
  kind: "write",
  isAdmin: false,
  limited: null,
} as const;
const LINK_ERRORS = [...WRITE_ERRORS, "MESH_DISABLED"] as const;

export const LINKS_ROUTES = {
  meshStream: {
    ...LINK,
    path: "/v1/mesh/stream",
    summary: "A link to another site: pages, heads and wishes, one JSON object a line, for as long as this node leads.",
    body: shape(schemas.StreamBody),
    bodyBytesMax: DELIVERY_BYTES_MAX,
    answer: null,
    contentType: "application/x-ndjson",
    errors: [...LINK_ERRORS, "RATE_LIMITED"],
  },
  broadcast: {
    ...LINK,
    path: "/api/events/broadcast",
    summary: "Pages of events, heads and wishes of another site; or one event, as a hint.",
    body: either(schemas.EventBody, schemas.DeliveryBody, "controller", "one event"),
    bodyBytesMax: DELIVERY_BYTES_MAX,
    answer: schemas.DeliveredAnswer,
    errors: [...LINK_ERRORS, "EVENT_INVALID", "CHAIN_GAP", "LINE_UNKNOWN", "RATE_LIMITED"],
  },
} as const satisfies Readonly<Record<string, Route>>;
