// The etcd port over HTTP: node:http and node:https, no package. Not `fetch`, because etcd is mostly run with client
// certificates, which fetch can't be given, and because a socket that went silent must be destroyed, not pooled.
//
// Invariants: a request is sent once, to one endpoint; whoever fails to answer is not asked next, where there is
// another; what is read is bounded; nothing is told after the signal has aborted.

import { Agent as HttpAgent, type ClientRequest, type IncomingMessage, request as httpRequest } from "node:http";
import { Agent as HttpsAgent, request as httpsRequest } from "node:https";
import { TenureError } from "../../core/kit/errors.ts";
import type { EtcdAnswer, EtcdCall, EtcdRefusal, EtcdStreamEnd, EtcdWire } from "../../ports/etcd.ts";
import { connectionFailure, notEtcd, quote, refusalIn, refusalOf, tooSlow } from "./failures.ts";
import { LineSplitter } from "./line-splitter.ts";

const ANSWER_BYTES_MAX = 16 * 1024 * 1024;
/** TCP's own probes, for a watch whose peer vanished without a word. */
const KEEPALIVE_DELAY_MS = 2_000;

// Bound when this file is loaded, so that a user's fake timers can't keep a request waiting for ever.
const startTimer = setTimeout;
const stopTimer = clearTimeout;

export interface HttpWireOptions {
  /** `http://` or `https://`, without credentials; a path is put in front of `/v3`. At least one. */
  readonly endpoints: readonly URL[];
  readonly headers: Readonly<Record<string, string>>;
  readonly tls: TlsFiles;
}

/** PEM text or bytes, as node:tls takes them. */
export interface TlsFiles {
  readonly ca?: string | Uint8Array | undefined;
  readonly cert?: string | Uint8Array | undefined;
  readonly key?: string | Uint8Array | undefined;
  readonly servername?: string | undefined;
}

export function httpWire(options: HttpWireOptions): EtcdWire {
  return new HttpWire(options);
}

type Read<T> = (response: IncomingMessage, endpoint: string, answered: () => void) => Promise<T>;

class HttpWire implements EtcdWire {
  readonly #options: HttpWireOptions;
  readonly #plain = new HttpAgent({ keepAlive: true, keepAliveMsecs: KEEPALIVE_DELAY_MS });
  readonly #secure: HttpsAgent;
  readonly #requests = new Set<ClientRequest>();
  #turn = 0;
  #closed = false;

  constructor(options: HttpWireOptions) {
    this.#options = options;
    const tls = Object.fromEntries(Object.entries(options.tls).map(([name, value]) => [name, pem(value)]));
    this.#secure = new HttpsAgent({ keepAlive: true, keepAliveMsecs: KEEPALIVE_DELAY_MS, ...tls });
  }

  call(path: string, body: object, options: EtcdCall): Promise<EtcdAnswer> {
    return this.#exchange(path, body, options, async (response, endpoint) => {
      const text = await readAll(response, endpoint);
      if (response.statusCode !== 200) return refusalOf(response.statusCode ?? 0, text, endpoint);
      const parsed = parse(text, endpoint);
      return refusalIn(parsed) ?? { kind: "answer", body: parsed };
    });
  }

  stream(path: string, body: object, options: EtcdCall, tell: (message: unknown) => void): Promise<EtcdStreamEnd> {
    return this.#exchange(path, body, options, async (response, endpoint, answered) => {
      if (response.statusCode !== 200) {
        return refusalOf(response.statusCode ?? 0, await readAll(response, endpoint), endpoint);
      }
      const refusal = await readLines(response, endpoint, (message) => {
        answered();
        if (!options.signal.aborted) tell(message);
      });
      return refusal ?? { kind: "ended" };
    });
  }

  close(): void {
    this.#closed = true;
    for (const request of this.#requests) request.destroy();
    this.#plain.destroy();
    this.#secure.destroy();
  }

  async #exchange<T>(path: string, body: object, options: EtcdCall, read: Read<T>): Promise<T> {
    const { signal, timeoutMs, token } = options;
    const turn = this.#turn;
    const url = this.#options.endpoints[turn % this.#options.endpoints.length] as URL;
    const endpoint = `${url.protocol}//${url.host}`;
    if (signal.aborted || this.#closed) throw Object.assign(aborted(endpoint), { unsent: true });
    let request: ClientRequest | undefined;
    const way = { isOpen: false };
    let stopped: TenureError | undefined;
    const stop = (why: TenureError): void => {
      stopped ??= why;
      request?.destroy(why);
    };
    const onAbort = (): void => stop(aborted(endpoint));
    const timer = startTimer(() => stop(tooSlow(endpoint, timeoutMs)), timeoutMs);
    signal.addEventListener("abort", onAbort, { once: true });
    try {
      request = this.#request(url, path, token);
      this.#requests.add(request);
      noteOpening(way, request);
      const response = await send(request, JSON.stringify(body));
      return await read(response, endpoint, () => stopTimer(timer));
    } catch (error) {
      request?.destroy();
      if (!signal.aborted) this.#blame(turn);
      const failure = stopped ?? connectionFailure(error, endpoint);
      throw way.isOpen ? failure : Object.assign(failure, { unsent: true });
    } finally {
      stopTimer(timer);
      signal.removeEventListener("abort", onAbort);
      if (request !== undefined) this.#requests.delete(request);
    }
  }

  #request(url: URL, path: string, token: string | undefined): ClientRequest {
    const target = new URL(url.pathname.replace(/\/$/, "") + path, url);
    const headers = {
      ...this.#options.headers,
      "content-type": "application/json",
      ...(token === undefined ? {} : { authorization: token }),
    };
    return url.protocol === "https:"
      ? httpsRequest(target, { method: "POST", agent: this.#secure, headers })
      : httpRequest(target, { method: "POST", agent: this.#plain, headers });
  }

  /** Idle sockets go too: they lead to the same silent host, and each would cost another timeout. */
  #blame(turn: number): void {
    if (this.#turn === turn) this.#turn++;
    for (const agent of [this.#plain, this.#secure]) {
      for (const sockets of Object.values(agent.freeSockets)) for (const socket of sockets ?? []) socket.destroy();
    }
  }
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

function send(request: ClientRequest, body: string): Promise<IncomingMessage> {
  return new Promise((resolve, reject) => {
    request.once("response", resolve);
    // Stays for the life of the request: a socket may fail after the answer's head, and the body's reader hears it too.
    request.on("error", reject);
    request.once("close", () => reject(new Error("the connection was closed before an answer came")));
    request.end(body);
  });
}

async function readAll(response: IncomingMessage, endpoint: string): Promise<string> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of response as AsyncIterable<Buffer>) {
    bytes += chunk.length;
    if (bytes > ANSWER_BYTES_MAX) throw notEtcd(endpoint, `an answer of more than ${ANSWER_BYTES_MAX} bytes`);
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString("utf8");
}

async function readLines(
  response: IncomingMessage,
  endpoint: string,
  tell: (message: unknown) => void,
): Promise<EtcdRefusal | undefined> {
  const splitter = new LineSplitter();
  for await (const chunk of response as AsyncIterable<Buffer>) {
    for (const line of split(splitter, chunk, endpoint)) {
      const message = parse(line, endpoint);
      const refusal = refusalIn(message);
      if (refusal !== undefined) return refusal;
      tell(message["result"]);
    }
  }
  return undefined;
}

function split(splitter: LineSplitter, chunk: Uint8Array, endpoint: string): string[] {
  try {
    return splitter.push(chunk);
  } catch (error) {
    throw notEtcd(endpoint, "a message without an end", { cause: error });
  }
}

function parse(text: string, endpoint: string): Readonly<Record<string, unknown>> {
  let parsed: unknown;
  try {
    parsed = JSON.parse(text);
  } catch (error) {
    throw notEtcd(endpoint, `its answer is not JSON${quote(text)}`, { cause: error });
  }
  if (typeof parsed !== "object" || parsed === null || Array.isArray(parsed)) {
    throw notEtcd(endpoint, `its answer is no JSON object${quote(text)}`);
  }
  return parsed as Readonly<Record<string, unknown>>;
}

function pem(value: string | Uint8Array | undefined): string | Buffer | undefined {
  return value instanceof Uint8Array ? Buffer.from(value) : value;
}

function aborted(endpoint: string): TenureError {
  return new TenureError("BACKEND_UNAVAILABLE", `the request to etcd at ${endpoint} was given up by us.`);
}
