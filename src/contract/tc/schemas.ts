// What transaction coordinators ask of each other and answer, as schemas. The same names, as types: core/lease/wire-calls.ts and wire-answers.ts.

import { Type } from "typebox";
import { CLUSTER_ID_BYTES_MAX, MEMBERS_MAX, REGISTRY_ENTRIES_MAX } from "../../core/kit/limits.ts";
import { ApiUrl } from "../api-url.ts";
import { isLoopback } from "../config/listen-address.ts";
import { NodeId } from "../requests.ts";
import { integer, matching, nullable, oneOf, strict } from "../schema-kit.ts";

const Text = Type.String();
const Texts = Type.Array(Text);
const WallMs = Type.Number({ minimum: 0 });
/** Seconds. */
const Unix = integer(0);
const Term = integer(1);

const Incarnation = matching(/^[0-9a-f]{1,16}$/, "an incarnation: at most 16 digits 0–9 and a–f");
export const Peer = matching(
  /^[a-z0-9][a-z0-9-]{0,62}@[0-9a-f]{1,16}$/,
  "a voter, identity@incarnation: a node id, @, and at most 16 digits 0–9 and a–f",
);
export const ClusterId = matching(
  new RegExp(`^[A-Za-z0-9._:@-]{1,${CLUSTER_ID_BYTES_MAX}}$`),
  `the id of a cluster of coordinators: letters, digits and . _ : @ -, at most ${CLUSTER_ID_BYTES_MAX}`,
);
export const BackendHash = matching(/^[0-9a-f]{64}$/, "the hash of a backend: 64 lower-case hex digits");

const Position = strict({ term: integer(0), version: integer(1) });
const Backend = strict({ backend_hash: BackendHash, endpoint: ApiUrl });

/** One that came twice would count twice in a majority. */
const Voters = Type.Refine(
  Type.Array(strict({ identity: NodeId, incarnation: Incarnation, endpoint: ApiUrl }), {
    minItems: 1,
    maxItems: MEMBERS_MAX,
  }),
  (voters: readonly { readonly identity: string }[]) =>
    new Set(voters.map(({ identity }) => identity)).size === voters.length,
  () => "must have each voter once",
);
const Roster = strict({
  term: integer(0),
  version: integer(1),
  recovered_by: Type.Optional(Peer),
  voters: Voters,
  registry: Type.Array(Backend, { maxItems: REGISTRY_ENTRIES_MAX }),
});

const HOLDER = { incarnation: Incarnation, voter: Peer, tc_cluster_id: ClusterId, term: Term };
/** Without a roster the voter refuses, and says who it is. */
const LEASE = { ...HOLDER, ttl_ms: integer(1), roster: Type.Optional(nullable(Roster)) };

export const AcquireBody = strict({ candidate_id: NodeId, candidate_endpoint: Type.Optional(ApiUrl), ...LEASE });
export const RenewBody = strict({ leader_id: NodeId, ...LEASE, mark: Type.Optional(nullable(Position)) });
export const ReleaseBody = strict({ leader_id: NodeId, ...HOLDER });
export const AnnounceBody = strict({ self_endpoint: ApiUrl });
/** What was registered once can always be taken out. */
export const UnregisterBody = strict({ backend_hash: BackendHash, endpoint: ApiUrl });
/** Who an island is its certificate says: without TLS it is one to try on this machine. */
const IslandUrl = Type.Refine(
  ApiUrl,
  (url) => url.startsWith("https:") || isLoopback((URL.parse(url)?.hostname ?? "").replaceAll(/^\[|\]$/g, "")),
  () => "must be https://host:port; http:// only on loopback",
);
export const RegisterBody = strict({ backend_hash: BackendHash, endpoint: IslandUrl });

const STANDING = {
  identity: Text,
  incarnation: Text,
  tc_cluster_id: nullable(Text),
  term: integer(0),
  roster: nullable(strict({ term: integer(0), version: integer(0) })),
  leaving: Type.Boolean(),
};
const Voter = strict({ ...STANDING, lasts_ms: Type.Number({ minimum: 0 }) });
const HELD = {
  leader_id: Text,
  leader_endpoint: Type.Optional(Text),
  term: Term,
  expires_at: integer(0),
  voter: Voter,
};

export const TcLeaderAnswer = strict({
  leader_id: Type.Optional(Text),
  leader_incarnation: Type.Optional(Text),
  leader_endpoint: Type.Optional(Text),
  term: Type.Optional(integer(0)),
  expires_at: Type.Optional(integer(0)),
  self: strict({ ...STANDING, backend_hash: Text, waits_for: Texts }),
});
export const GrantedAnswer = strict({ granted: Type.Literal(true), ...HELD });
export const RenewedAnswer = strict({ renewed: Type.Literal(true), ...HELD });
export const ReleasedAnswer = strict({ released: Type.Literal(true), leader_id: Text, term: Term, voter: Voter });

const MEMBERS = { endpoints: Texts, updated_at_unix: Unix };
export const AnnouncedAnswer = strict({ ...MEMBERS, expires_at_unix: Unix });
export const LeftAnswer = strict(MEMBERS);

const VoterShown = strict({
  identity: Text,
  incarnation: Text,
  endpoint: Text,
  state: oneOf("leads", "answers", "silent", "leaving", "unknown"),
});
const VOTERS = { voters: Type.Array(VoterShown), quorum: integer(0), roster: STANDING.roster };
export const MembersListAnswer = strict({ ...MEMBERS, ...VOTERS });
export const RegistryAnswer = strict({ backend_hash: Text, endpoints: Texts, updated_at_unix: Unix });
export const BackendsAnswer = strict({
  backends: Type.Array(strict({ backend_hash: Text, endpoints: Texts })),
  updated_at_unix: Unix,
});

const WaitingTransaction = strict({
  txn_id: Text,
  home: Text,
  phase: oneOf("prepared", "committed"),
  at_ms: WallMs,
  timeout_ms: integer(1),
  locks: Texts,
  locks_count: integer(0),
  waits_for: Texts,
});

/** What a node knows of the islands, for people and dashboards. */
export const IslandsAnswer = strict({
  self: strict({ ...STANDING, endpoint: Text, backend_hash: Text }),
  leader: nullable(
    strict({
      identity: Text,
      incarnation: Text,
      endpoint: nullable(Text),
      term: integer(0),
      expires_at_ms: nullable(WallMs),
    }),
  ),
  acts_in_term: nullable(integer(0)),
  waits_for: Texts,
  left: Type.Boolean(),
  members: Type.Array(strict({ identity: Text, endpoint: Text, updated_at_ms: WallMs, expires_at_ms: WallMs })),
  ...VOTERS,
  registry: Type.Array(strict({ backend_hash: Text, endpoint: Text })),
  registry_updated_at_ms: WallMs,
  /** Null: this node keeps none. */
  transactions: nullable(
    strict({
      prepared: integer(0),
      in_doubt: integer(0),
      oldest_in_doubt_ms: WallMs,
      undelivered_jobs: integer(0),
      waiting: Type.Array(WaitingTransaction),
      is_all: Type.Boolean(),
    }),
  ),
});
