// The bounds of what coordinators send to one another.

import { API_URL_LENGTH_MAX, MEMBERS_MAX, PEER_KEY_BYTES_MAX, REGISTRY_ENTRIES_MAX } from "../../core/kit/limits.ts";

/** A voter with the longest name and address, and a registered backend, as JSON.stringify writes them into a list. */
const VOTER_JSON_BYTES_MAX = PEER_KEY_BYTES_MAX + API_URL_LENGTH_MAX + 46;
const BACKEND_JSON_BYTES_MAX = 64 + API_URL_LENGTH_MAX + 34;
/** Everything else of a request for a lease. */
const LEASE_REST_BYTES_MAX = 1_152;

/** A request for a lease with as many voters and backends as there may be. */
export const LEASE_BODY_BYTES_MAX =
  MEMBERS_MAX * VOTER_JSON_BYTES_MAX + REGISTRY_ENTRIES_MAX * BACKEND_JSON_BYTES_MAX + LEASE_REST_BYTES_MAX;
/** One address and one hash. */
export const MEMBER_BODY_BYTES_MAX = 1_024;
