export { askCluster, probeCluster } from "./ask.ts";
export {
  PROTOCOL_OF_MESH,
  PROTOCOL_OF_REVOCATIONS,
  PROTOCOL_OF_TRANSACTIONS,
  PROTOCOL_OF_VALUES,
} from "./handshake/hello.ts";
export { type RefusalReason } from "./refusals.ts";
export type { PeerTls } from "./handshake/security.ts";
export type { WireStats } from "./stats.ts";
export { listenWire, type TcpWire, type WireOptions } from "./tcp-wire.ts";
