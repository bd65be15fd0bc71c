// The door to Tenure's own servers.

export { serversHttpWire } from "./http-wire.ts";
