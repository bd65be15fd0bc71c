// What sites say to register with one another: the specification of the controller network calls a site a controller, and its names are
// camelCase. Operators' bodies are in snake_case, as everywhere.

import { Type } from "typebox";
import { ApiUrl } from "../api-url.ts";
import { jsonMistake } from "../json-value.ts";
import * as limits from "../limits.ts";
import { CONSISTENCY, NODE_ID_PATTERN } from "../requests.ts";
import { integer, json, matching, oneOf, strict, text } from "../schema-kit.ts";

/** The same alphabet as a node's id. */
export const ControllerId = matching(
  NODE_ID_PATTERN,
  "a controller id: a–z, 0–9 and -, at most 63, not beginning with -",
);
export const ControllerParams = strict({ id: ControllerId });

const Proof = strict({
  key: text(limits.SITE_PROOF_LENGTH_MAX),
  signature: text(limits.SITE_PROOF_LENGTH_MAX),
});

/** What is not listed is the site's own, and kept as it is. */
const Metadata = Type.Refine(
  Type.Object({
    version: Type.Optional(text(limits.SITE_VERSION_BYTES_MAX)),
    urls: Type.Optional(Type.Array(ApiUrl, { maxItems: limits.SITE_URLS_MAX })),
    line: Type.Optional(text(limits.SITE_NAME_BYTES_MAX)),
    ring: Type.Optional(json(limits.SITE_METADATA_BYTES_MAX)),
    proof: Type.Optional(Proof),
  }),
  (value: object) => jsonMistake(value, limits.SITE_METADATA_BYTES_MAX) === null,
  (value: object) => jsonMistake(value, limits.SITE_METADATA_BYTES_MAX) ?? "must be JSON",
);

export const RegisterControllerBody = strict({
  id: ControllerId,
  url: ApiUrl,
  name: text(limits.SITE_NAME_BYTES_MAX),
  metadata: Type.Optional(Metadata),
});
export const HeartbeatBody = strict({ url: Type.Optional(ApiUrl), metadata: Type.Optional(Metadata) });
export const ControllersQuery = strict({ ...CONSISTENCY, all: Type.Optional(Type.Boolean()) });

const FENCED = { leader_epoch: Type.Optional(integer(1)) };
export const ApproveSiteBody = strict({
  ring: Type.Optional(matching(/^[0-9a-f]{64}$/, "the hash of a ring: 64 lower-case hex digits")),
  ...FENCED,
});
export const EvictSiteBody = strict(FENCED);

export const RegisteredAnswer = strict({ id: Type.String(), expiresAt: Type.Number() });
export const HeartbeatAnswer = strict({ expiresAt: Type.Number() });

const Status = oneOf("own", "registered", "expired", "left", "approved", "evicted", "forked");
export const ControllersAnswer = strict({
  controllers: Type.Array(
    strict({
      id: Type.String(),
      url: Type.String(),
      name: Type.String(),
      registeredAt: Type.Number(),
      lastHeartbeatAt: Type.Number(),
      expiresAt: Type.Number(),
      isActive: Type.Boolean(),
      status: Status,
      metadata: Type.Record(Type.String(), Type.Unknown()),
    }),
  ),
});
export const SiteAnswer = strict({ id: Type.String(), name: Type.String(), url: Type.String(), status: Status });
