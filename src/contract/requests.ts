// What may be asked of the API: bodies, queries and path parameters, each strict and bounded.

import { Type } from "typebox";
import * as limits from "../core/kit/limits.ts";
import { STALE_MS_MAX } from "./limits.ts";
import { integer, matching, oneOf, strict, text, texts } from "./schema-kit.ts";

/** The front half of a peer key (core/kit/ids.ts). */
export const NODE_ID_PATTERN = /^[a-z0-9][a-z0-9-]{0,62}$/;

export const NodeId = matching(NODE_ID_PATTERN, "a node id: a–z, 0–9 and -, at most 63, not beginning with -");
export const Epoch = integer(1);

/** As a part of a path "." and ".." mean other paths, however they are written: nobody could ask for what has such a name. */
export function pathName(bytesMax: number) {
  return Type.Refine(
    text(bytesMax),
    (value: string) => value !== "." && value !== "..",
    () => 'must not be "." or ".."',
  );
}
export const Scope = pathName(limits.SCOPE_BYTES_MAX);
export const ScopeParams = strict({ scope: Scope });

export const CONSISTENCY = {
  consistency: Type.Optional(oneOf("local", "linearizable")),
  max_stale_ms: Type.Optional(integer(0, STALE_MS_MAX)),
};
export const ReadQuery = strict(CONSISTENCY);
export const ScopesQuery = strict({
  ...CONSISTENCY,
  after: Type.Optional(text(limits.SCOPE_BYTES_MAX)),
  limit: Type.Optional(integer(1, limits.SCOPES_PER_PAGE_MAX)),
});
export const WatchQuery = strict({
  ...CONSISTENCY,
  wait_ms: Type.Optional(integer(0, limits.SCOPE_WAIT_MS_MAX)),
  epoch: Type.Optional(integer(0)),
  held: Type.Optional(Type.Boolean()),
});
export const NoQuery = strict({});

export const TransferBody = strict({ target: Type.Optional(NodeId), force: Type.Optional(Type.Boolean()) });
export const NodeParams = strict({ node_id: NodeId });
export const DrainNodeBody = strict({
  drain: Type.Optional(Type.Boolean()),
  force: Type.Optional(Type.Boolean()),
});
export const MembersBody = strict({
  op: oneOf("add", "promote", "replace", "remove"),
  node_id: NodeId,
  promote: Type.Optional(Type.Boolean()),
  force: Type.Optional(Type.Boolean()),
});
export const AskResignBody = strict({ force: Type.Optional(Type.Boolean()) });
export const StoredSnapshotBody = strict({ index: integer(1) });
export const NoBody = strict({});

export const AcquireBody = strict({
  session: text(limits.SESSION_BYTES_MAX),
  identity: text(limits.SCOPE_IDENTITY_BYTES_MAX),
  metadata: Type.Optional(texts(limits.SCOPE_METADATA_ENTRIES_MAX, limits.SCOPE_METADATA_BYTES_MAX)),
  ttl_ms: integer(limits.SCOPE_TTL_MS_MIN, limits.SCOPE_TTL_MS_MAX),
  wait_ms: integer(0, limits.SCOPE_WAIT_MS_MAX),
});
export const HoldBody = strict({ session: text(limits.SESSION_BYTES_MAX), epoch: Epoch });
