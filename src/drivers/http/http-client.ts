// HTTP for drivers: node:http and node:https, no package. Not `fetch`, because servers are mostly run with client
// certificates, which fetch can't be given, and because a socket that went silent must be destroyed, not pooled.
//
// Invariants: a request is sent once, to one address, and no redirect is followed; an error says `unsent: true` where the
// request certainly never left, and `wasKept: true` where it failed on a connection that had been kept, before an answer began (the other
// side may have closed it just then); what is read is bounded by whoever reads; a failed exchange leaves no socket behind.

import { Agent as HttpAgent, type ClientRequest, type IncomingMessage, request as httpRequest } from "node:http";
import { Agent as HttpsAgent, request as httpsRequest } from "node:https";
import type { Socket } from "node:net";
import type { PeerCertificate, TLSSocket } from "node:tls";
import type { TenureError } from "../../core/kit/errors.ts";
import type { TlsFiles } from "../../ports/backends/backend.ts";
import { ANSWERED_MAX, HTTP_KEEPALIVE_MS } from "./limits.ts";

// Bound when this file is loaded, so that a user's fake timers can't keep a request waiting for ever.
const startTimer = setTimeout;
const stopTimer = clearTimeout;

export interface HttpRequest {
  readonly method: "GET" | "POST" | "PUT" | "DELETE";
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

/** What went wrong, in words for whoever has to repair it; each driver has its own. */
export interface HttpWords {
  givenUp(address: string): TenureError;
  tooSlow(address: string, timeoutMs: number): TenureError;
  /** Of whatever else was thrown, by Node or by `read`. `hasAnswered`: something at this address has spoken HTTP before. */
  failed(error: unknown, address: string, hasAnswered: boolean): TenureError;
}

export interface HttpClientOptions {
  /**
   * Judges servers by what their certificates say of them; their host names mean nothing then. An error: nothing is sent to that server. A
   * connection that was kept is judged again at each use: a certificate is revoked, or expires, while connections stay.
   */
  readonly checkServer?: ((certificate: PeerCertificate) => TenureError | undefined) | undefined;
  /** A connection that nobody has used for so long is closed; by default the other side decides. */
  readonly idleMs?: number | undefined;
}

export type ReadAnswer<T> = (response: IncomingMessage, address: string, answered: () => void) => Promise<T>;

export class HttpClient {
  readonly #words: HttpWords;
  readonly #checkServer: HttpClientOptions["checkServer"];
  readonly #plain: HttpAgent;
  readonly #secure: HttpsAgent;
  readonly #requests = new Set<ClientRequest>();
  /** The first ANSWERED_MAX addresses from which an answer came. */
  readonly #answered = new Set<string>();
  #closed = false;

  constructor(tls: TlsFiles, words: HttpWords, { checkServer, idleMs }: HttpClientOptions = {}) {
    this.#words = words;
    this.#checkServer = checkServer;
    const pems = Object.fromEntries(Object.entries(tls).map(([name, value]) => [name, pem(value)]));
    const kept = {
      keepAlive: true,
      keepAliveMsecs: HTTP_KEEPALIVE_MS,
      ...(idleMs === undefined ? {} : { timeout: idleMs }),
    };
    this.#plain = new HttpAgent(kept);
    this.#secure = new HttpsAgent({ ...kept, ...pems, ...(checkServer === undefined ? {} : judgedBy(checkServer)) });
  }

  async exchange<T>(asked: HttpRequest, read: ReadAnswer<T>): Promise<T> {
    const { signal, timeoutMs, url } = asked;
    const address = `${url.protocol}//${url.host}`;
    if (signal.aborted || this.#closed) throw unsent(this.#words.givenUp(address));
    let request: ClientRequest | undefined;
    const way = { isOpen: false };
    let hasBegun = false;
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
      hasBegun = true;
      if (this.#answered.size < ANSWERED_MAX) this.#answered.add(address);
      return await read(response, address, () => stopTimer(timer));
    } catch (error) {
      request?.destroy();
      const failure = stopped ?? this.#words.failed(error, address, this.#answered.has(address));
      if (stopped === undefined && !hasBegun && request?.reusedSocket === true)
        Object.assign(failure, { wasKept: true });
      throw way.isOpen ? failure : unsent(failure);
    } finally {
      stopTimer(timer);
      signal.removeEventListener("abort", onAbort);
      if (request !== undefined) this.#requests.delete(request);
    }
  }

  /** For a host that went silent: each idle socket to it would cost another timeout. Without `url`: to every host. */
  dropIdle(url?: URL): void {
    const of = url === undefined ? "" : `${url.hostname.replaceAll(/[[\]]/g, "")}:${url.port || defaultPort(url)}:`;
    for (const agent of [this.#plain, this.#secure]) {
      for (const [name, sockets] of Object.entries(agent.freeSockets)) {
        if (name.startsWith(of)) for (const socket of sockets ?? []) socket.destroy();
      }
    }
  }

  /** What is under way ends as it would; no connection is kept any more. */
  retire(): void {
    for (const agent of [this.#plain, this.#secure]) agent.maxFreeSockets = 0;
    this.dropIdle();
  }

  /** Destroys every socket; what is under way rejects. */
  close(): void {
    this.#closed = true;
    for (const request of this.#requests) request.destroy();
    this.#plain.destroy();
    this.#secure.destroy();
  }

  #request({ method, url, headers }: HttpRequest): ClientRequest {
    if (url.protocol !== "https:") return httpRequest(url, { method, agent: this.#plain, headers });
    const request = httpsRequest(url, { method, agent: this.#secure, headers });
    const check = this.#checkServer;
    // Node emits this before it writes anything of the request.
    if (check !== undefined) request.once("socket", (socket) => judgeKept(request, socket, check));
    return request;
  }
}

/** By connection: in TLS 1.3 a server's certificate never changes, and to take it apart costs more than an exchange of a few bytes. */
const certificates = new WeakMap<TLSSocket, PeerCertificate>();

/** What the server of this connection has shown; of one that has ended before anybody asked: nothing. */
export function certificateOf(socket: TLSSocket): PeerCertificate {
  const known = certificates.get(socket);
  if (known !== undefined) return known;
  const shown = socket.getPeerCertificate();
  // Null, or without fields: there is no connection.
  if (shown?.fingerprint256 !== undefined) certificates.set(socket, shown);
  return shown;
}

/** No session is resumed: that would show no certificate. */
function judgedBy(check: NonNullable<HttpClientOptions["checkServer"]>) {
  const checkServerIdentity = (_host: string, certificate: PeerCertificate): Error | undefined => check(certificate);
  return { checkServerIdentity, rejectUnauthorized: true, maxCachedSessions: 0, minVersion: "TLSv1.3" } as const;
}

function judgeKept(request: ClientRequest, socket: Socket, check: NonNullable<HttpClientOptions["checkServer"]>): void {
  // One that ended at this moment fails the request by itself.
  if (!request.reusedSocket || socket.destroyed) return;
  const why = check(certificateOf(socket as TLSSocket));
  if (why !== undefined) request.destroy(why);
}

function defaultPort(url: URL): string {
  return url.protocol === "https:" ? "443" : "80";
}

/** `path` begins with "/", and may have a query. Nothing in either path names another host, as "//other/" would. */
export function urlBelow(base: URL, path: string): URL {
  const url = new URL(base);
  const [pathname = "", ...query] = path.split("?");
  url.pathname = base.pathname.replace(/\/$/, "") + pathname;
  url.search = query.join("?");
  url.hash = "";
  return url;
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
