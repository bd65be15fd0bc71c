// The door of the contract: what the API speaks, and the server's configuration.

export { allows, type Role, ROLES } from "./roles.ts";
export { certificateCaller, type CertificateCaller, type ClientCertificate } from "./certificate-role.ts";
export { errorBody, type ErrorBody, type Leadership, notLeaderBody, statusOf } from "./error-body.ts";
export { isLoopback, type ListenAddress, parseAddress, showAddress } from "./listen-address.ts";
export { typedQuery } from "./query.ts";
export { SCOPES_PER_PAGE_MAX } from "./requests.ts";
export { COMMON_ERRORS, type Route, type RouteId, ROUTES } from "./routes.ts";
export {
  type ApiKey,
  type ConfigSurroundings,
  type LogLevel,
  parseServerConfig,
  type ServerConfig,
} from "./server-config.ts";
export { SERVER_DEFAULTS, SERVER_ENVIRONMENT, ServerConfigFile } from "./server-config-schema.ts";
export { describeMistakes, type Mistake, type Shape, shape, type ValueOf } from "./shape.ts";
export { type Camel, camelKey, type Snake, snakeKey, toCamel, toSnake } from "./snake-case.ts";
