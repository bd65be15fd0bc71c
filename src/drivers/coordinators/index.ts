// The door to other coordinators.

export { coordinatorCalls } from "./calls.ts";
export { type TcAnswer, type TcExchange, TcHttp, type TcHttpOptions, type TcTls } from "./tc-http.ts";
