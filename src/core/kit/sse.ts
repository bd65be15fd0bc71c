// Server-sent events, parsed: text in any pieces becomes frames. A comment alone is a frame without data, so that
// whoever reads hears that the other side is alive.

import { TenureError } from "./errors.ts";
import { FRAME_LETTERS_MAX } from "./limits.ts";

export interface SseFrame {
  /** Undefined where the frame has none: the point from which a reader resumes is as it was. */
  readonly id: string | undefined;
  readonly event: string;
  /** Tenure's own field, which others ignore: how far the history is of which this is, with its hash. */
  readonly point: string | undefined;
  /** Null where the frame has none. */
  readonly data: string | null;
}

export class SseFrames {
  #rest = "";

  /** The frames that this text completes. Throws where a frame does not end. */
  push(text: string): SseFrame[] {
    this.#rest += text;
    // The servers send \n; a proxy may not. A \r at the end may be half of a line's end.
    if (this.#rest.includes("\r")) this.#rest = this.#rest.replaceAll(/\r\n|\r(?!$)/g, "\n");
    const parts = this.#rest.split("\n\n");
    this.#rest = parts.pop() ?? "";
    if (this.#rest.length > FRAME_LETTERS_MAX) {
      const why = `an event of the stream is longer than ${FRAME_LETTERS_MAX} characters; is it a Tenure server?`;
      throw new TenureError("BACKEND_UNSUPPORTED", why);
    }
    return parts.map((part) => frameOf(part));
  }
}

function frameOf(text: string): SseFrame {
  let id: string | undefined;
  let event = "message";
  let point: string | undefined;
  const data: string[] = [];
  for (const line of text.split("\n")) {
    const at = line.indexOf(":");
    if (at === 0) continue;
    const name = at < 0 ? line : line.slice(0, at);
    const value = at < 0 ? "" : line.slice(line[at + 1] === " " ? at + 2 : at + 1);
    if (name === "id") id = value;
    else if (name === "event") event = value;
    else if (name === "point") point = value;
    else if (name === "data") data.push(value);
  }
  return { id, event, point, data: data.length === 0 ? null : data.join("\n") };
}
