/** Streams of the API are read by clients as electors read them. */
export { type SseFrame, SseFrames } from "../core/kit/sse.ts";
