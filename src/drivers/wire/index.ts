export { askCluster, type AskOptions, probeCluster } from "./ask.ts";
export { PROTOCOL_OF_REVOCATIONS } from "./handshake/hello.ts";
export { REFUSAL_REASONS, type RefusalReason } from "./refusals.ts";
export type { PeerTls } from "./handshake/security.ts";
export type { WireStats } from "./stats.ts";
export { listenWire, type TcpWire, type WireOptions } from "./tcp-wire.ts";
