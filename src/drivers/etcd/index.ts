// The door to etcd.

export { httpWire } from "./http-wire.ts";
