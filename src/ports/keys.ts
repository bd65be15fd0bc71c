// API keys that are part of the replicated state, in addition to those of a node's configuration. Only hashes are kept: whoever
// makes a key keeps it, and it never travels but to be used. Reads are from this node's applied state. A node that lags takes a
// revoked key until it has applied the revocation, and does not know a new one: whoever refuses a key catches up first (decision 25).

import type { ApiRole } from "../core/kit/api-role.ts";
import type { Request } from "./jobs.ts";

export interface Keys {
  /** By the SHA-256 of the key's UTF-8, lower-case hex. From memory; asked for every request. */
  find(sha256: string): KeyView | null;
  /** By name. At most API_KEYS_MAX. */
  list(): readonly KeyView[];
  /** KEY_EXISTS where the name or the hash is another key's; of the very same key it is no error. OVERLOADED past API_KEYS_MAX. */
  create(request: Request, key: NewKey): Promise<KeyView>;
  /** NOT_FOUND where there is none. */
  revoke(request: Request, name: string): Promise<void>;
  /** Called, for as long as this lives, when keys that were there are applied to be no more: in that turn, so it must return soon. */
  onRevoked(listener: () => void): void;
}

export interface NewKey {
  readonly name: string;
  readonly role: ApiRole;
  readonly sha256: string;
}

export interface KeyView {
  readonly name: string;
  readonly role: ApiRole;
  readonly createdAtMs: number;
  readonly createdBy: string;
}
