// The door of the API.

export {
  API_LIMITS,
  type ApiLimits,
  type ApiOptions,
  type ApiTls,
  type Diagnostics,
  type JobsParts,
  type MeshState,
} from "./options.ts";
export { type Api, createApi } from "./server.ts";
export type { WebFile } from "./web.ts";
