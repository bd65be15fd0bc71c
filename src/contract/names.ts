// The forms of names and ids, for the API's schemas and for commands that refuse them before a server is asked.

import { API_KEY_NAME_BYTES_MAX, JOB_ID_BYTES_MAX, JOB_NAME_BYTES_MAX } from "../core/kit/limits.ts";

/** Of kinds, queues, agents and schedules, as they go into paths, labels of metrics and terminals. */
export const JOB_NAME = new RegExp(`^[A-Za-z0-9][A-Za-z0-9._:-]{0,${JOB_NAME_BYTES_MAX - 1}}$`);
/** Of jobs and leases. */
export const JOB_ID = new RegExp(`^[A-Za-z0-9_-]{1,${JOB_ID_BYTES_MAX}}$`);
export const KEY_NAME = new RegExp(`^[A-Za-z0-9][A-Za-z0-9._-]{0,${API_KEY_NAME_BYTES_MAX - 1}}$`);

/** Where a server listens that was configured with nothing else. */
export const API_LISTEN_DEFAULT = "127.0.0.1:7401";
