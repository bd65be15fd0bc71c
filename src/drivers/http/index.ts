// The door to HTTP, for the drivers that speak it.

export { connectionFailure, isUntrusted, parseObject, type Peer, quote } from "./failures.ts";
export {
  certificateOf,
  HttpClient,
  type HttpRequest,
  type HttpWords,
  type ReadAnswer,
  readText,
  urlBelow,
} from "./http-client.ts";
export { LineSplitter } from "./line-splitter.ts";
