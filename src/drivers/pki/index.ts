export { createCa, issue, ownPair, type KeyPair } from "./authority.ts";
export { inspect, type Inspected } from "./inspection.ts";
export { CA_NAME, KeyStore, type Trusted } from "./key-store.ts";
export { openMeshKey, readMeshKey } from "./mesh-key.ts";
export { newNodeId } from "./node-id.ts";
