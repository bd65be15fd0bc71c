// Server-sent events of a response: bytes in any pieces become frames. Pure.

import { type SseFrame, SseFrames } from "../contract/sse.ts";

export type { SseFrame } from "../contract/sse.ts";

export class SseParser {
  readonly #decoder = new TextDecoder();
  readonly #frames = new SseFrames();

  /** The frames that these bytes complete. Throws where a frame does not end. */
  push(bytes: Uint8Array): SseFrame[] {
    return this.#frames.push(this.#decoder.decode(bytes, { stream: true }));
  }
}
