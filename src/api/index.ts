// The door of the API.

export type { AuditRecord } from "./audit.ts";
export type { HttpStats } from "./http-stats.ts";
export {
  API_LIMITS,
  type ApiLimits,
  type ApiOptions,
  type ApiTls,
  type Diagnostics,
  type ExtraRoute,
  type JobsParts,
} from "./options.ts";
export { type Api, createApi, type KnownRoute } from "./server.ts";
export type { WebFile } from "./web.ts";
