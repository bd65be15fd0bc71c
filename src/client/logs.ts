// What an attempt has printed: page by page, or followed until the attempt has ended, over whichever nodes there are. A
// piece is given once: the offset of the last one is where the next node goes on.

import { TenureError } from "../contract/errors.ts";
import { toCamel } from "../contract/snake-case.ts";
import { type Caller, type CallOptions, readQuery, type ReadOptions } from "./caller.ts";
import type { LogPiece } from "./job-views.ts";
import type { SseFrame } from "./sse.ts";
import { type StreamOptions, streamItems } from "./streams.ts";
import { parseJson } from "../contract/parse-json.ts";

export type LogsOptions = ReadOptions &
  StreamOptions & {
    /** The last one, where it is left out. */
    readonly attempt?: number | undefined;
    /** Bytes to leave out. */
    readonly offset?: number | undefined;
    /** Go on until the attempt has ended. */
    readonly follow?: boolean | undefined;
  };

interface LogPage extends LogPiece {
  readonly jobId: string;
  readonly isComplete: boolean;
}

type FollowItem = { readonly kind: "piece"; readonly piece: LogPiece } | { readonly kind: "end" };

export async function* logPieces(
  caller: Caller,
  path: string,
  options: LogsOptions,
): AsyncGenerator<LogPiece, void, void> {
  if (options.follow === true) yield* followed(caller, path, options);
  else yield* pages(caller, path, options);
}

async function* pages(caller: Caller, path: string, options: LogsOptions): AsyncGenerator<LogPiece, void, void> {
  let { attempt, offset = 0 } = options;
  const call: CallOptions = options;
  for (;;) {
    const more = { offset: String(offset), ...(attempt === undefined ? {} : { attempt: String(attempt) }) };
    const page: LogPage = await caller.readJson<LogPage>(`${path}${readQuery(options, more)}`, call);
    if (page.text === "" || !(page.nextOffset > offset)) return;
    yield { attempt: page.attempt, offset: page.offset, text: page.text, nextOffset: page.nextOffset };
    ({ attempt, nextOffset: offset } = page);
  }
}

async function* followed(caller: Caller, path: string, options: LogsOptions): AsyncGenerator<LogPiece, void, void> {
  let { attempt, offset = 0 } = options;
  /** How far the history was of which the last piece is: HISTORY_REWRITTEN where the next node has another one. */
  let point: string | undefined;
  const request = () => {
    const more = {
      follow: "true",
      offset: String(offset),
      ...(attempt === undefined ? {} : { attempt: String(attempt) }),
    };
    return {
      method: "GET" as const,
      path: `${path}${readQuery(options, more)}`,
      headers: { accept: "text/event-stream", ...(point === undefined ? {} : { "x-tenure-event-point": point }) },
    };
  };
  const read = ({ id, event, point: said, data }: SseFrame): FollowItem | undefined => {
    if (data === null) {
      point = said ?? point;
      return undefined;
    }
    if (event === "end") return { kind: "end" };
    const piece = toCamel(parseJson(data) as object) as unknown as Omit<LogPiece, "attempt">;
    const of = Number(/^(\d{1,9}):\d{1,15}$/.exec(id ?? "")?.[1]);
    if (!(of >= 1) || !Number.isSafeInteger(piece.nextOffset) || piece.offset !== offset) {
      throw new TenureError(
        "BACKEND_UNAVAILABLE",
        `a piece of the log that goes on at ${offset} was to come, and did not.`,
      );
    }
    attempt = of;
    offset = piece.nextOffset;
    point = said;
    return { kind: "piece", piece: { ...piece, attempt: of } };
  };
  for await (const item of streamItems(caller, request, read, options)) {
    if (item.kind === "end") return;
    yield item.piece;
  }
}
