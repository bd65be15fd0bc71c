// The door of the contract: what the API speaks, and the server's configuration.

export { allows, allowsSite, closes, type Role, ROLES } from "./roles.ts";
export { requestText } from "./body-hash.ts";
export { authorityOf, certificateCaller, type CertificatePeer, type ClientCertificate } from "./certificate-role.ts";
export { ClientConfigFile, parseClientConfig } from "./config/client.ts";
export { errorBody, type ErrorBody, type LeaderFields, notLeaderBody, statusOf } from "./error-body.ts";
export { type EventPoint, eventPointText, readEventPoint } from "./event-point.ts";
export { printable } from "./found.ts";
export { isLoopback, type ListenAddress, parseAddress, showAddress } from "./config/listen-address.ts";
export { JobBody } from "./jobs/requests.ts";
export {
  arrivalText,
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
} from "./jobs/wire.ts";
export { JOB_ROUTES } from "./jobs/routes.ts";
export { LINKS_ROUTES } from "./mesh/links-routes.ts";
export { MESH_LINES_ROUTES } from "./mesh/lines-routes.ts";
export { MESH_OPERATOR_ROUTES } from "./mesh/operator-routes.ts";
export { REGISTRY_ROUTES } from "./mesh/registry-routes.ts";
export { openApi } from "./openapi.ts";
export { EVENTS_PER_PAGE_MAX, JOBS_PER_PAGE_MAX, NAMES_PER_PAGE_MAX } from "./limits.ts";
export { COMMON_ERRORS, type FieldErrors, type Route } from "./route.ts";
export { type RouteId, ROUTES } from "./routes.ts";
export type { MeshFlags } from "./config/mesh.ts";
export { listOf, type Places } from "./config/places.ts";
export { tcEndpointOf, type TcConfig } from "./config/tc.ts";
export { type ApiKey, type LogLevel, parseServerConfig, type ServerConfig } from "./config/server.ts";
export { SERVER_DEFAULTS, SERVER_ENVIRONMENT, ServerConfigFile } from "./config/server-schema.ts";
export type { TC_ROUTES } from "./tc/routes.ts";
export type { TXN_ROUTES } from "./txn/routes.ts";
export { TXNS_SHOWN_PER_PAGE_MAX } from "./txn/limits.ts";
export { describeMistakes, type Shape, shape, typedQuery, type ValueOf } from "./shape.ts";
export { snakeKey, toSnake } from "./snake-case.ts";
