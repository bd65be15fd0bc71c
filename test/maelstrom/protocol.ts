// Maelstrom's messages, as far as the workload lin-kv needs them: JSON, one message in a line. Between our own nodes two
// more travel in the same network: `raft` carries the engine's bytes, `forward` a client's request to the leader.

export interface Line {
  readonly src: string;
  readonly dest: string;
  readonly body: Body;
}

export type Body = { readonly type: string; readonly msg_id?: number; readonly in_reply_to?: number } & Readonly<
  Record<string, unknown>
>;

/** Maelstrom's registry of errors. Only the first and `crash` leave open whether the request took effect. */
export const ERROR = {
  timeout: 0,
  notSupported: 10,
  temporarilyUnavailable: 11,
  malformedRequest: 12,
  keyDoesNotExist: 20,
  preconditionFailed: 22,
} as const;

/** Whether an error with this code says for sure that nothing happened. */
export function isDefinite(code: number): boolean {
  return code !== ERROR.timeout && code !== 13;
}

export function errorBody(code: number, text: string): Body {
  return { type: "error", code, text };
}

/** Cuts a stream of text into lines. */
export class Lines {
  #rest = "";

  read(text: string, each: (line: Line) => void): void {
    const parts = (this.#rest + text).split("\n");
    this.#rest = parts.pop() ?? "";
    for (const part of parts) if (part.trim() !== "") each(JSON.parse(part) as Line);
  }
}
