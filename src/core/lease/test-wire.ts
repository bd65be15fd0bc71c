// Any request and any answer of coordinators, for property tests of the wire.

import fc from "fast-check";
import type { PeerKey } from "../kit/ids.ts";
import { MEMBERS_MAX, REGISTRY_ENTRIES_MAX } from "../kit/limits.ts";
import type { CoordinatorRequest, CoordinatorView, RegistryAnswer } from "../../ports/coordinators.ts";
import { MEMBERSHIPS_KEPT } from "./limits.ts";
import type { LeaseRefusal, Position, Roster, VoterAnswer } from "./model.ts";
import { REFUSAL_CODES } from "./wire-answers.ts";

const MAX = Number.MAX_SAFE_INTEGER;

const nodeId = fc.stringMatching(/^[a-z0-9][a-z0-9-]{0,62}$/);
const incarnation = fc.stringMatching(/^[0-9a-f]{1,16}$/);
export const anyPeer = fc.tuple(nodeId, incarnation).map((parts) => parts.join("@") as PeerKey);
const clusterId = fc.stringMatching(/^[A-Za-z0-9._:@-]{1,128}$/);
const backendHash = fc.stringMatching(/^[0-9a-f]{64}$/);
const anyEndpoint = fc
  .tuple(
    fc.constantFrom("http", "https"),
    fc.stringMatching(/^[a-z][a-z0-9]{0,40}(\.[a-z][a-z0-9]{0,20}){0,3}$/),
    fc.integer({ min: 1_024, max: 65_535 }),
  )
  .map(([scheme, host, port]) => `${scheme}://${host}:${port}`);

const bounds = (min: number) => fc.oneof(fc.constantFrom(min, min + 1, MAX), fc.integer({ min, max: MAX }));
const term = bounds(1);
const position: fc.Arbitrary<Position> = fc.record({ term: bounds(0), version: bounds(1) });
const entry = fc.record({ backendHash, endpoint: anyEndpoint });

const anyRoster: fc.Arbitrary<Roster> = fc.record({
  term: bounds(0),
  version: bounds(1),
  recoveredBy: fc.option(anyPeer),
  voters: fc.uniqueArray(fc.record({ peer: anyPeer, endpoint: anyEndpoint }), {
    minLength: 1,
    maxLength: MEMBERS_MAX,
    selector: ({ peer }) => peer.split("@")[0],
  }),
  registry: fc.array(entry, { maxLength: 8 }),
});

const holder = { clusterId, holder: anyPeer, voter: anyPeer, term };
const lease = { ...holder, ttlMs: term, roster: fc.option(anyRoster) };
export const anyVoterRequest = fc.oneof(
  fc.record({ kind: fc.constant("acquire" as const), ...lease }),
  fc.record({ kind: fc.constant("renew" as const), ...lease, mark: fc.option(position) }),
  fc.record({ kind: fc.constant("release" as const), ...holder }),
);
export const anyRegistryRequest = fc.record({
  kind: fc.constant("registry" as const),
  change: fc.constantFrom("register" as const, "unregister" as const),
  entry,
  isForwarded: fc.boolean(),
});
export const anyRequest: fc.Arbitrary<CoordinatorRequest> = fc.oneof(
  { weight: 3, arbitrary: anyVoterRequest },
  { weight: 1, arbitrary: anyRegistryRequest },
  fc.constant({ kind: "status" as const }),
  fc.constant({ kind: "leave" as const }),
  fc.record({ kind: fc.constant("announce" as const), endpoint: anyEndpoint }),
);

const standing = {
  clusterId: fc.option(clusterId),
  term: bounds(0),
  roster: fc.option(position),
  isLeaving: fc.boolean(),
};
export const anyVoterAnswer: fc.Arbitrary<VoterAnswer> = fc.record({
  voter: anyPeer,
  ...standing,
  outcome: fc.oneof(
    fc.record({ kind: fc.constant("accepted" as const), lastsMs: fc.double({ min: 0, max: 3_600, noNaN: true }) }),
    fc.record({
      kind: fc.constant("refused" as const),
      reason: fc.constantFrom(...(Object.keys(REFUSAL_CODES) as LeaseRefusal[])),
    }),
  ),
});
const wallMs = fc.double({ min: 0, max: 2 ** 42, noNaN: true });
export const anyView: fc.Arbitrary<CoordinatorView> = fc.record({
  self: anyPeer,
  ...standing,
  leader: fc.option(fc.record({ peer: anyPeer, endpoint: fc.option(anyEndpoint), term: bounds(0) })),
  leaderExpiresAtMs: fc.option(wallMs),
  backendHash,
  actsInTerm: fc.option(term),
  waitsFor: fc.array(anyEndpoint),
  hasLeft: fc.boolean(),
});
export const anyEndpoints = fc.array(anyEndpoint, { maxLength: 8 });

/** Of one backend: no other entry is on the wire. */
export function anyRegistryAnswer(hash: string): fc.Arbitrary<RegistryAnswer> {
  return fc.oneof(
    anyEndpoints.map((all) => ({
      kind: "done" as const,
      registry: all.map((endpoint) => ({ backendHash: hash, endpoint })),
    })),
    fc.constantFrom({ kind: "full" as const }, { kind: "not-replicated" as const }, { kind: "unknown" as const }),
    fc.record({ kind: fc.constant("not-leader" as const), leaderEndpoint: fc.option(anyEndpoint) }),
  );
}

/** As large as a roster gets. */
export function largestRoster(): Roster {
  const endpoint = `https://${"a".repeat(512 - "https://:65535".length)}:65535`;
  const voters = Array.from({ length: MEMBERS_MAX }, (_, at) => ({ peer: longPeer(at), endpoint }));
  const registry = Array.from({ length: REGISTRY_ENTRIES_MAX }, () => ({ backendHash: "f".repeat(64), endpoint }));
  return { term: MAX, version: MAX, recoveredBy: voters[0]!.peer, voters, registry };
}

function longPeer(at: number): PeerKey {
  return `${"n".repeat(60)}${String(at).padStart(3, "0")}@${"f".repeat(16)}` as PeerKey;
}

/** One more member than a node lists. */
export const TOO_MANY_ENDPOINTS = Array.from({ length: MEMBERSHIPS_KEPT + 1 }, (_, at) => `https://n${at}:1`);
