// HTTP for drivers: node:http and node:https, no package. Not `fetch`, because servers are mostly run with client
// certificates, which fetch can't be given, and because a socket that went silent must be destroyed, not pooled.
//
// Invariants: a request is sent once, to one address, and no redirect is followed; an error says `unsent: true` where the
// request certainly never left; what is read is bounded by whoever reads; a failed exchange leaves no socket behind.

import { Agent as HttpAgent, type ClientRequest, type IncomingMessage, request as httpRequest } from "node:http";
import { Agent as HttpsAgent, request as httpsRequest } from "node:https";
import type { TenureError } from "../../core/kit/errors.ts";
import type { TlsFiles } from "../../ports/backends/backend.ts";
import { ANSWERED_MAX, HTTP_KEEPALIVE_MS } from "./limits.ts";

// Bound when this file is loaded, so that a user's fake timers can't keep a request waiting for ever.
const startTimer = setTimeout;
const stopTimer = clearTimeout;

export interface HttpRequest {
  readonly method: "GET" | "POST";
  /** `http:` or `https:`. */
  readonly url: URL;
  readonly headers: Readonly<Record<string, string>>;
  /** Null where there is none. */
  readonly body: string | null;
  /** For the whole exchange, or until `read` calls `answered`. */
  readonly timeoutMs: number;
  /** Aborting destroys the socket and rejects. */
  readonly signal: AbortSignal;
}

/** What went wrong, in words for whoever has to mend it; each driver has its own. */
export interface HttpWords {
  givenUp(address: string): TenureError;
  tooSlow(address: string, timeoutMs: number): TenureError;
  /** Of whatever else was thrown, by Node or by `read`. `hasAnswered`: something at this address has spoken HTTP before. */
  failed(error: unknown, address: string, hasAnswered: boolean): TenureError;
}

export type ReadAnswer<T> = (response: IncomingMessage, address: string, answered: () => void) => Promise<T>;

export class HttpClient {
  readonly #words: HttpWords;
  readonly #plain = new HttpAgent({ keepAlive: true, keepAliveMsecs: HTTP_KEEPALIVE_MS });
  readonly #secure: HttpsAgent;
  readonly #requests = new Set<ClientRequest>();
  /** The first ANSWERED_MAX addresses from which an answer came. */
  readonly #answered = new Set<string>();
  #closed = false;

  constructor(tls: TlsFiles, words: HttpWords) {
    this.#words = words;
    const pems = Object.fromEntries(Object.entries(tls).map(([name, value]) => [name, pem(value)]));
    this.#secure = new HttpsAgent({ keepAlive: true, keepAliveMsecs: HTTP_KEEPALIVE_MS, ...pems });
  }

  async exchange<T>(asked: HttpRequest, read: ReadAnswer<T>): Promise<T> {
    const { signal, timeoutMs, url } = asked;
    const address = `${url.protocol}//${url.host}`;
    if (signal.aborted || this.#closed) throw unsent(this.#words.givenUp(address));
    let request: ClientRequest | undefined;
    const way = { isOpen: false };
    let stopped: TenureError | undefined;
    const stop = (why: TenureError): void => {
      stopped ??= why;
      request?.destroy(why);
    };
    const onAbort = (): void => stop(this.#words.givenUp(address));
    const timer = startTimer(() => stop(this.#words.tooSlow(address, timeoutMs)), timeoutMs);
    signal.addEventListener("abort", onAbort, { once: true });
    try {
      request = this.#request(asked);
      this.#requests.add(request);
      noteOpening(way, request);
      const response = await send(request, asked.body);
      if (this.#answered.size < ANSWERED_MAX) this.#answered.add(address);
      return await read(response, address, () => stopTimer(timer));
    } catch (error) {
      request?.destroy();
      const failure = stopped ?? this.#words.failed(error, address, this.#answered.has(address));
      throw way.isOpen ? failure : unsent(failure);
    } finally {
      stopTimer(timer);
      signal.removeEventListener("abort", onAbort);
      if (request !== undefined) this.#requests.delete(request);
    }
  }

  /** For a host that went silent: each idle socket to it would cost another timeout. */
  dropIdle(): void {
    for (const agent of [this.#plain, this.#secure]) {
      for (const sockets of Object.values(agent.freeSockets)) for (const socket of sockets ?? []) socket.destroy();
    }
  }

  /** Destroys every socket; what is under way rejects. */
  close(): void {
    this.#closed = true;
    for (const request of this.#requests) request.destroy();
    this.#plain.destroy();
    this.#secure.destroy();
  }

  #request({ method, url, headers }: HttpRequest): ClientRequest {
    return url.protocol === "https:"
      ? httpsRequest(url, { method, agent: this.#secure, headers })
      : httpRequest(url, { method, agent: this.#plain, headers });
  }
}

/** The whole body as text; `tooMuch` makes the error for a longer one, and nothing beyond the bound is kept. */
export async function readText(
  response: IncomingMessage,
  bytesMax: number,
  tooMuch: () => TenureError,
): Promise<string> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of response as AsyncIterable<Buffer>) {
    bytes += chunk.length;
    if (bytes > bytesMax) throw tooMuch();
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString("utf8");
}

/** Nothing of a request leaves before its socket is connected; with TLS, before the end of the handshake. */
function noteOpening(way: { isOpen: boolean }, request: ClientRequest): void {
  const open = (): void => {
    way.isOpen = true;
  };
  request.once("socket", (socket) => {
    if (socket.connecting) socket.once(request.protocol === "https:" ? "secureConnect" : "connect", open);
    else open();
  });
}

function send(request: ClientRequest, body: string | null): Promise<IncomingMessage> {
  return new Promise((resolve, reject) => {
    request.once("response", resolve);
    // Stays for the life of the request: a socket may fail after the answer's head, and the body's reader hears it too.
    request.on("error", reject);
    request.once("close", () => reject(new Error("the connection was closed before an answer came")));
    if (body === null) request.end();
    else request.end(body);
  });
}

function unsent(error: TenureError): TenureError {
  return Object.assign(error, { unsent: true });
}

function pem(value: string | Uint8Array | undefined): string | Buffer | undefined {
  return value instanceof Uint8Array ? Buffer.from(value) : value;
}
