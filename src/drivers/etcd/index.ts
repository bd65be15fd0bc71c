// The door to etcd.

export type { TlsFiles } from "../http/index.ts";
export { httpWire } from "./http-wire.ts";
