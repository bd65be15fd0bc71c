// The door to Tenure's own servers.

export { serversHttpWire, type ServersHttpOptions } from "./http-wire.ts";
