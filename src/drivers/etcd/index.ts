// The door to etcd.

export type { TlsFiles } from "../http/index.ts";
export { httpWire, type HttpWireOptions } from "./http-wire.ts";
