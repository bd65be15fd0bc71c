// The servers port over HTTP.
//
// Invariants: a request is sent once, to one node; what is read is bounded; the key goes with every request and into no
// message; an answer is a JSON object, or it is none.

import type { IncomingMessage } from "node:http";
import { ANCESTORS_MAX } from "../../core/kit/limits.ts";
import type { TlsFiles } from "../../ports/backends/backend.ts";
import type { ServersAnswer, ServersQuestion, ServersWire } from "../../ports/backends/servers.ts";
import { HttpClient, type HttpRequest, parseObject, readText } from "../http/index.ts";
import { foreignAnswer, SERVER, tooLong, WORDS } from "./failures.ts";

// Bound when this file is loaded, so that a user's fake timers can't keep a stream waiting for ever.
const startTimer = setTimeout;
const stopTimer = clearTimeout;

const CLUSTER_HEADER = "x-tenure-cluster";
const ANCESTORS_HEADER = "x-tenure-ancestors";
const PAUSED_HEADER = "x-tenure-paused";
const NOT_KNOWN_YET = "?";

export interface ServersHttpOptions {
  /** Undefined: anonymous, or by client certificate. */
  readonly key: string | undefined;
  readonly tls: TlsFiles;
}

export function serversHttpWire(options: ServersHttpOptions): ServersWire {
  return new ServersHttpWire(options);
}

class ServersHttpWire implements ServersWire {
  readonly #headers: Readonly<Record<string, string>>;
  readonly #client: HttpClient;

  constructor({ key, tls }: ServersHttpOptions) {
    this.#headers = { accept: "application/json", ...(key === undefined ? {} : { "x-api-key": key }) };
    this.#client = new HttpClient(tls, WORDS);
  }

  async ask(url: string, question: ServersQuestion): Promise<ServersAnswer> {
    const { method, path, body, timeoutMs, bytesMax, silenceMs, signal } = question;
    const headers = body === null ? this.#headers : { ...this.#headers, "content-type": "application/json" };
    const text = body === null ? null : JSON.stringify(body);
    const request = { method, url: new URL(url + path), headers, body: text, timeoutMs, signal };
    try {
      if (silenceMs !== undefined) return await this.#open(request, bytesMax, silenceMs);
      return await this.#client.exchange(request, (response, at) => readAnswer(response, at, bytesMax));
    } catch (error) {
      if (!signal.aborted) this.#client.dropIdle();
      throw error;
    }
  }

  /** The exchange lasts as long as the stream: an abort of its signal destroys the socket to the end. */
  #open(request: HttpRequest, bytesMax: number, silenceMs: number): Promise<ServersAnswer> {
    const opened = Promise.withResolvers<ServersAnswer>();
    const exchanged = this.#client.exchange(request, async (response, at, answered) => {
      if (response.statusCode !== 200) return opened.resolve(await readAnswer(response, at, bytesMax));
      answered();
      const closed = new Promise<void>((resolve) => void response.once("close", resolve));
      opened.resolve({ status: 200, body: {}, pieces: piecesOf(response, at, silenceMs), ...lineOf(response) });
      await closed;
    });
    exchanged.catch(opened.reject);
    return opened.promise;
  }

  close(): void {
    this.#client.close();
  }
}

async function readAnswer(response: IncomingMessage, url: string, bytesMax: number): Promise<ServersAnswer> {
  const status = response.statusCode ?? 0;
  const tooMuch = () => Object.assign(tooLong(url, bytesMax), { tooLong: true });
  const text = await readText(response, bytesMax, tooMuch);
  try {
    return { status, body: parseObject(text, url, SERVER), ...lineOf(response) };
  } catch (error) {
    if (status >= 200 && status < 300) throw error;
    throw foreignAnswer(status, text, url);
  }
}

/** Which cluster answers. */
function lineOf({ headers }: IncomingMessage): Omit<ServersAnswer, "status" | "body"> {
  const { [CLUSTER_HEADER]: cluster, [ANCESTORS_HEADER]: named } = headers;
  const clusterId = typeof cluster === "string" ? cluster : null;
  const ancestors = named === NOT_KNOWN_YET ? null : typeof named === "string" ? namesIn(named) : [];
  return { clusterId, ancestors, isPaused: headers[PAUSED_HEADER] === "true" };
}

/** A reader that takes its time over a piece is not the server's silence. */
async function* piecesOf(
  response: IncomingMessage,
  url: string,
  silenceMs: number,
): AsyncGenerator<string, void, void> {
  response.setEncoding("utf8");
  const pieces = (response as AsyncIterable<string>)[Symbol.asyncIterator]();
  try {
    for (;;) {
      const timer = startTimer(() => response.destroy(WORDS.tooSlow(url, silenceMs)), silenceMs);
      const next = await pieces.next().finally(() => stopTimer(timer));
      if (next.done === true) return;
      yield next.value;
    }
  } catch (error) {
    throw WORDS.failed(error, url, true);
  } finally {
    response.destroy();
  }
}

function namesIn(header: string): readonly string[] {
  return header.split(",", ANCESTORS_MAX).map((name) => name.trim());
}
