// The door to etcd.

export { httpWire, type HttpWireOptions, type TlsFiles } from "./http-wire.ts";
