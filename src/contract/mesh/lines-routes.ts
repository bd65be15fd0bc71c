// The routes of the lines of a mesh: signed checkpoints, pages of events, proofs, and the sites whose lines there are. Any node answers,
// from what is applied there.

import { Type } from "typebox";
import { READ, type Route } from "../route.ts";
import { integer, matching, nullable, oneOf, strict } from "../schema-kit.ts";
import { shape } from "../shape.ts";
import { LinkShown } from "./links-schemas.ts";
import { GateShown } from "./operator-routes.ts";

const Text = Type.String();
const Count = integer(0);
const Size = integer(1);
const Hash = Type.String({ pattern: "^[0-9a-f]{64}$" });

/** Of a query; the answers' own are not checked. */
export const LineName = matching(
  /^[a-z0-9][a-z0-9-]{0,62}\.[0-9a-f]{32}$/,
  "the name of a line: a controller id, a dot and 32 hex digits",
);

const Ring = strict({
  controller: Text,
  generation: Size,
  author: Text,
  keys: Type.Array(strict({ node: Text, key: Text })),
});
const OwnLine = strict({
  line: Text,
  generation: Size,
  after: Count,
  size: Count,
  first_ring: Ring,
  first_ring_hash: Hash,
  ring_changes: Count,
});
const OwnSite = strict({
  controller: Text,
  name: Text,
  urls: Type.Array(Text),
  line: Text,
  generation: Size,
  size: Count,
  first: Size,
  ring: Ring,
  ring_hash: Hash,
  lines: Type.Array(OwnLine),
});

const OtherSite = strict({
  id: Text,
  name: Text,
  url: Text,
  status: Text,
  line: nullable(Text),
  ring: nullable(Ring),
  size: Count,
  last_event_at_ms: nullable(Type.Number()),
  /** These three are known where the links are, on the leader. */
  missing_events: nullable(Count),
  missing_ms: nullable(Type.Number()),
  heard_ms_ago: nullable(Type.Number()),
  /** Of a site that had a link here and has none now, on the leader; absent in answers of earlier releases. */
  cut_off_ms: Type.Optional(nullable(Type.Number())),
});

const ERRORS = ["MESH_DISABLED", "LOG_COMPACTED", "EVENTS_LOST"] as const;
const LINES = { ...READ, errors: ERRORS, isForSites: true } as const;

export const MESH_LINES_ROUTES = {
  meshCheckpoint: {
    ...LINES,
    path: "/v1/mesh/checkpoint",
    summary: "The signed head of a line (C2SP signed note); of this site's own, where none is named.",
    query: shape(strict({ line: Type.Optional(LineName) })),
    answer: null,
    contentType: "text/plain",
  },
  meshHeads: {
    ...LINES,
    path: "/v1/mesh/heads",
    summary: "The signed heads of all lines that this node has.",
    query: shape(strict({})),
    answer: strict({ heads: Type.Array(Text) }),
  },
  meshPages: {
    ...LINES,
    path: "/v1/mesh/pages",
    summary: "What follows a sequence of a line: a page, with a signed checkpoint of its end.",
    query: shape(strict({ line: LineName, after: integer(0) })),
    answer: strict({
      page: nullable(
        strict({
          line: Text,
          after: Count,
          items: Type.Array(Type.Union([Text, strict({ hash: Hash })])),
          checkpoint: Text,
        }),
      ),
    }),
  },
  meshConsistency: {
    ...LINES,
    path: "/v1/mesh/consistency",
    summary: "That a line only grew from one size to another (RFC 6962).",
    query: shape(strict({ line: LineName, from: integer(1), to: integer(1) })),
    answer: strict({ fromRoot: Hash, root: Hash, path: Type.Array(Hash) }),
  },
  meshSites: {
    ...LINES,
    path: "/v1/mesh/sites",
    summary: "This site's line, generation and ring of keys, and the sites that are registered here.",
    query: shape(strict({})),
    answer: strict({
      node_key: Text,
      status: oneOf("signing", "waiting", "gated", "not-signing"),
      why: nullable(Text),
      gate: GateShown,
      left_at: nullable(integer(1)),
      own: nullable(OwnSite),
      sites: Type.Array(OtherSite),
      links: Type.Array(LinkShown),
    }),
  },
} as const satisfies Readonly<Record<string, Route>>;
