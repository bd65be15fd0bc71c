export {
  CA_DAYS,
  CERTIFICATE_DAYS,
  createCa,
  issue,
  ownPair,
  type CaOptions,
  type IssueOptions,
  type KeyPair,
} from "./authority.ts";
export { EXPIRY_WARNING_DAYS, inspect, type Inspected } from "./inspection.ts";
export { CA_NAME, KeyStore, type StoredPair, type Trusted } from "./key-store.ts";
export { newNodeId } from "./node-id.ts";
