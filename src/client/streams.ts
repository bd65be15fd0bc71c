// A stream of server-sent events that outlives the node it is read from: when it breaks, or nothing is heard for longer than
// the server's heartbeat allows, it is opened again at the next known node, from where it was.
//
//   opening ──▶ open ──breaks, silent──▶ opening, elsewhere ──▶ …      ended by its reader, or by what any node would refuse

import { type ErrorCode, TenureError } from "../contract/errors.ts";
import { STREAM_OPEN_MS, STREAM_SILENCE_MS } from "../contract/timeouts.ts";
import type { Caller } from "./caller.ts";
import { chunksOf } from "./chunks.ts";
import { type ClientRequest, exchange, reasonOf } from "./exchange.ts";
import { STREAM_OUTAGE_MS, STREAM_STEADY_MS } from "./limits.ts";
import { Pauses } from "./pauses.ts";
import { isFinalAnswer, readError } from "./race.ts";
import { type SseFrame, SseParser } from "./sse.ts";

export interface StreamOptions {
  readonly signal?: AbortSignal | undefined;
  /** How long no node may be able to serve it; then it fails. A minute. */
  readonly outageMs?: number | undefined;
}

/** What one node may say that the next does not: it has less history, or has applied less. All of them must say it. */
const MAY_DIFFER: ReadonlySet<ErrorCode> = new Set<ErrorCode>(["LOG_COMPACTED", "EVENTS_LOST", "NOT_FOUND"]);
/** What a reader finds by itself in what one node sends; a node that refuses with it has asked the leader before. */
const FOUND_IN_STREAM: ErrorCode = "HISTORY_REWRITTEN";

/**
 * `request` is asked anew at each opening: it says from where. `read` takes each frame and says what it means to the reader;
 * where it throws, the stream is opened again. Ends by its reader, or with an error.
 */
export async function* streamItems<T>(
  caller: Caller,
  request: () => ClientRequest,
  read: (frame: SseFrame) => T | undefined,
  { signal, outageMs = STREAM_OUTAGE_MS }: StreamOptions,
): AsyncGenerator<T, never, void> {
  let pauses = new Pauses(outageMs);
  /** What each node has said since anything was served: one node's word is its own, however often it says it. */
  const said = new Map<string, TenureError>();
  let refusal: TenureError | undefined;
  for (let at = 0; ; at++) {
    await caller.knowMembers(signal);
    signal?.throwIfAborted();
    const urls = caller.addresses.all();
    const url = urls[at % urls.length] as string;
    const ended = new AbortController();
    const watch = new Watch(ended);
    let failure: TenureError;
    let isOwnWord = false;
    let isOpen = false;
    // Only what is new to the reader shows that a node serves: all greet, also one that breaks each time.
    let isServed = false;
    let openedAtMs = Infinity;
    try {
      watch.within(STREAM_OPEN_MS);
      const line = caller.lineOf(signal === undefined ? ended.signal : AbortSignal.any([signal, ended.signal]));
      const answer = await exchange(line, url, request());
      isOwnWord = answer.kind === "refused" && (MAY_DIFFER.has(answer.code) || !isFinalAnswer(answer));
      if (answer.kind !== "ok") throw readError([{ url, answer }]);
      openedAtMs = performance.now();
      isOpen = true;
      for await (const frame of framesOf(answer.response, watch)) {
        const item = read(frame);
        if (item === undefined) continue;
        isServed ||= frame.data !== null;
        yield item;
      }
      failure = new TenureError("BACKEND_UNAVAILABLE", `${url} ended the stream.`);
    } catch (error) {
      signal?.throwIfAborted();
      failure = failureOf(url, error);
      isOwnWord ||= isOpen && failure.code === FOUND_IN_STREAM;
      if (!failure.retryable && !isOwnWord) throw failure;
    } finally {
      watch.end();
      isServed ||= !ended.signal.aborted && performance.now() - openedAtMs >= STREAM_STEADY_MS;
      ended.abort();
    }
    // The outage begins here: a reader may have taken its time.
    if (isServed) {
      pauses = new Pauses(outageMs);
      said.clear();
      refusal = undefined;
    }
    if (!failure.retryable) {
      refusal = failure;
      said.set(url, failure);
      if (urls.every((one) => agrees(said.get(one), failure))) throw failure;
    } else if (!said.has(url)) said.set(url, failure);
    if (await pauses.take(signal)) continue;
    signal?.throwIfAborted();
    // Whoever could not be reached for so long does not contradict it.
    throw refusal ?? failure;
  }
}

/** That nobody knows the key is certain where all that answer say so (decision 25); of the history each has its own copy. */
function agrees(said: TenureError | undefined, { code }: TenureError): boolean {
  if (said === undefined) return false;
  return !said.retryable || (code === "UNAUTHENTICATED" && said.code === "BACKEND_UNAVAILABLE");
}

function failureOf(url: string, error: unknown): TenureError {
  if (TenureError.is(error)) return error;
  return new TenureError("BACKEND_UNAVAILABLE", `the stream from ${url} broke: ${reasonOf(error)}.`, { cause: error });
}

async function* framesOf(response: Response, watch: Watch): AsyncGenerator<SseFrame, void, void> {
  const parser = new SseParser();
  for await (const bytes of chunksOf(response)) {
    watch.within(STREAM_SILENCE_MS);
    const frames = parser.push(bytes);
    // A reader may take its time over each of them; that is not the server's silence.
    watch.end();
    yield* frames;
    watch.within(STREAM_SILENCE_MS);
  }
}

/** Ends what takes too long. */
class Watch {
  readonly #ended: AbortController;
  #timer: ReturnType<typeof setTimeout> | undefined;

  constructor(ended: AbortController) {
    this.#ended = ended;
  }

  within(ms: number): void {
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => {
      this.#ended.abort(new TenureError("BACKEND_UNAVAILABLE", `nothing was heard for ${ms} ms.`));
    }, ms);
  }

  end(): void {
    clearTimeout(this.#timer);
  }
}
