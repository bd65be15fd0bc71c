// The door to other coordinators.

export { type TcAnswer, type TcExchange, TcHttp, type TcHttpOptions, type TcTls } from "./tc-http.ts";
