// The door to other coordinators.

export { TcHttp, type TcHttpOptions } from "./tc-http.ts";
