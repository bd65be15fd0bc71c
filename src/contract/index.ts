// The door of the contract: what the API speaks, and the server's configuration.

export { allows, closes, type Role, ROLES } from "./roles.ts";
export { requestText } from "./body-hash.ts";
export { certificateCaller, type CertificateCaller, type ClientCertificate } from "./certificate-role.ts";
export { ClientConfigFile, parseClientConfig } from "./client-config.ts";
export { errorBody, type ErrorBody, type Leadership, notLeaderBody, statusOf } from "./error-body.ts";
export { type EventPoint, eventPointText, readEventPoint } from "./event-point.ts";
export { isLoopback, type ListenAddress, parseAddress, showAddress } from "./listen-address.ts";
export { EVENTS_PER_PAGE_MAX, JobBody, LOG_PAGE_BYTES_MAX, NAMES_PER_PAGE_MAX } from "./job-requests.ts";
export {
  eventText,
  eventWire,
  JOB_DEFAULTS,
  jobAnswer,
  jobBrief,
  leaseCallOf,
  leaseMistake,
  resultCallOf,
  resultMistake,
  scheduleOf,
  specOf,
} from "./job-wire.ts";
export { JOB_ROUTES } from "./job-routes.ts";
export { JOBS_PER_PAGE_MAX } from "./names.ts";
export { openApi } from "./openapi.ts";
export { typedQuery } from "./query.ts";
export { SCOPES_PER_PAGE_MAX } from "./requests.ts";
export { COMMON_ERRORS, type Route } from "./route.ts";
export { type RouteId, ROUTES } from "./routes.ts";
export {
  type ApiKey,
  type ConfigSurroundings,
  type LogLevel,
  parseServerConfig,
  type ServerConfig,
} from "./server-config.ts";
export { SERVER_DEFAULTS, SERVER_ENVIRONMENT, ServerConfigFile } from "./server-config-schema.ts";
export { describeMistakes, listMistakes, type Mistake, type Shape, shape, type ValueOf } from "./shape.ts";
export { type Camel, camelKey, type Snake, snakeKey, toCamel, toSnake } from "./snake-case.ts";
