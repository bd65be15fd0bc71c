// The door to other coordinators.

export { coordinatorCalls } from "./calls.ts";
export { TcHttp, type TcTls } from "./tc-http.ts";
