// The sites port over HTTP.
//
// Invariants: a request is sent once, to one address, and no redirect is followed; an address is called, and the key is sent, only where `access`
// says so (trap 64); what is read is bounded, a message as well as an answer; the next message of a stream is read when the last one was taken;
// a stream that is silent for SITE_SILENCE_MS is cut.

import type { IncomingMessage } from "node:http";
import { SITE_CALL_MS, SITE_SILENCE_MS } from "../../core/kit/timeouts.ts";
import type { TlsFiles } from "../../ports/backends/backend.ts";
import type {
  Delivered,
  Delivery,
  Introduction,
  LineConsistency,
  LinkMessage,
  SiteAnswer,
  SiteRefusal,
  Sites,
} from "../../ports/mesh/sites.ts";
import { HttpClient, LineSplitter, parseObject, type ReadAnswer, readText, urlBelow } from "../http/index.ts";
import { foreignAnswer, notCalled, SITE, tooLong, WORDS } from "./failures.ts";
import { SITE_ANSWER_BYTES_MAX, SITE_LINE_BYTES_MAX } from "./limits.ts";
import { consistencyOf, deliveredOf, linkMessageOf, ownIdIn, refusalOf } from "./messages.ts";

// Bound when this file is loaded, as in drivers/http.
const startTimer = setTimeout;
const stopTimer = clearTimeout;

/** With what one address is called. */
export interface SiteAccess {
  /** Undefined: anonymous, or by client certificate. */
  readonly key: string | undefined;
  readonly tls: TlsFiles;
}

export interface HttpSitesOptions {
  /** Null: this address must not be called. */
  readonly access: (url: URL) => SiteAccess | null;
}

export function httpSites(options: HttpSitesOptions): Sites {
  return new HttpSites(options);
}

type Fields = Readonly<Record<string, unknown>>;

interface Asked {
  readonly method: "GET" | "POST";
  readonly path: string;
  readonly body: object | null;
}

class HttpSites implements Sites {
  readonly #options: HttpSitesOptions;
  /** One for each set of certificates; there are as many as configured peers, at most. */
  readonly #clients = new Map<TlsFiles, HttpClient>();
  #isClosed = false;

  constructor(options: HttpSitesOptions) {
    this.#options = options;
  }

  identify(url: string, signal: AbortSignal): Promise<SiteAnswer<string>> {
    return this.#ask(url, { method: "GET", path: "/api/controllers", body: null }, signal, (body, at) => {
      const id = ownIdIn(body);
      if (id === null) throw SITE.foreign(at, "it does not list itself among the controllers");
      return id;
    });
  }

  register(url: string, introduction: Introduction, signal: AbortSignal): Promise<SiteAnswer<null>> {
    const asked = { method: "POST", path: "/api/controllers/register", body: introduction } as const;
    return this.#ask(url, asked, signal, () => null);
  }

  heartbeat(url: string, id: string, signal: AbortSignal): Promise<SiteAnswer<null>> {
    const path = `/api/controllers/${encodeURIComponent(id)}/heartbeat`;
    return this.#ask(url, { method: "POST", path, body: {} }, signal, () => null);
  }

  deliver(url: string, delivery: Delivery, signal: AbortSignal): Promise<SiteAnswer<Delivered>> {
    const sent = delivery.pages?.length ?? 0;
    const asked = { method: "POST", path: "/api/events/broadcast", body: delivery } as const;
    return this.#ask(url, asked, signal, (body, at) => {
      const delivered = deliveredOf(body, sent);
      if (delivered === null) throw SITE.foreign(at, "it does not say what became of each page");
      return delivered;
    });
  }

  consistency(
    url: string,
    { line, from, to }: { line: string; from: number; to: number },
    signal: AbortSignal,
  ): Promise<SiteAnswer<LineConsistency>> {
    const path = `/v1/mesh/consistency?line=${encodeURIComponent(line)}&from=${from}&to=${to}`;
    return this.#ask(url, { method: "GET", path, body: null }, signal, (body, at) => {
      const proof = consistencyOf(body);
      if (proof === null) throw SITE.foreign(at, "its proof has other fields");
      return proof;
    });
  }

  stream(
    url: string,
    opening: { controller: string; heads: readonly string[] },
    signal: AbortSignal,
    receive: (message: LinkMessage) => Promise<void>,
  ): Promise<SiteAnswer<null>> {
    const asked = { method: "POST", path: "/v1/mesh/stream", body: opening } as const;
    return this.#exchange(url, asked, signal, async (response, at, answered) => {
      if (response.statusCode !== 200) return refused(response, await readAll(response, at), at);
      answered();
      await readMessages(response, at, signal, receive);
      return { kind: "answer", body: null };
    });
  }

  close(): void {
    this.#isClosed = true;
    for (const client of this.#clients.values()) client.close();
  }

  #ask<T>(
    url: string,
    asked: Asked,
    signal: AbortSignal,
    take: (body: Fields, at: string) => T,
  ): Promise<SiteAnswer<T>> {
    return this.#exchange(url, asked, signal, async (response, at) => {
      const text = await readAll(response, at);
      if (response.statusCode !== 200) return refused(response, text, at);
      return { kind: "answer", body: take(parseObject(text, at, SITE), at) };
    });
  }

  async #exchange<T>(url: string, asked: Asked, signal: AbortSignal, read: ReadAnswer<T>): Promise<T> {
    const target = urlOf(url);
    const access = target === null ? null : this.#options.access(target);
    if (target === null || access === null) throw notCalled(url);
    const client = this.#client(access.tls);
    const headers = {
      accept: "application/json",
      ...(asked.body === null ? {} : { "content-type": "application/json" }),
      ...(access.key === undefined ? {} : { "x-api-key": access.key }),
    };
    const request = {
      method: asked.method,
      url: urlBelow(target, asked.path),
      headers,
      body: asked.body === null ? null : JSON.stringify(asked.body),
      timeoutMs: SITE_CALL_MS,
      signal,
    };
    try {
      return await client.exchange(request, read);
    } catch (error) {
      if (!signal.aborted) client.dropIdle();
      throw error;
    }
  }

  #client(tls: TlsFiles): HttpClient {
    const known = this.#clients.get(tls);
    if (known !== undefined) return known;
    const made = new HttpClient(tls, WORDS);
    if (this.#isClosed) made.close();
    this.#clients.set(tls, made);
    return made;
  }
}

/** Null: not an address of an API. One with a user name in it would send that along. */
function urlOf(text: string): URL | null {
  if (!URL.canParse(text)) return null;
  const url = new URL(text);
  const isHttp = url.protocol === "http:" || url.protocol === "https:";
  return isHttp && url.username === "" && url.password === "" ? url : null;
}

function readAll(response: IncomingMessage, at: string): Promise<string> {
  return readText(response, SITE_ANSWER_BYTES_MAX, () => tooLong(at, SITE_ANSWER_BYTES_MAX));
}

function refused(response: IncomingMessage, text: string, at: string): SiteRefusal {
  const status = response.statusCode ?? 0;
  let fields: Fields;
  try {
    fields = parseObject(text, at, SITE);
  } catch {
    throw foreignAnswer(status, text, at);
  }
  return refusalOf(status, response.headers["retry-after"], fields);
}

/** The time that `receive` takes is not the other site's silence. */
async function readMessages(
  response: IncomingMessage,
  at: string,
  signal: AbortSignal,
  receive: (message: LinkMessage) => Promise<void>,
): Promise<void> {
  const splitter = new LineSplitter(SITE_LINE_BYTES_MAX);
  const silent = (): void => void response.destroy(WORDS.tooSlow(at, SITE_SILENCE_MS));
  let timer = startTimer(silent, SITE_SILENCE_MS);
  try {
    for await (const chunk of response as AsyncIterable<Buffer>) {
      stopTimer(timer);
      for (const line of linesIn(splitter, chunk, at)) {
        const message = linkMessageOf(parseObject(line, at, SITE));
        if (!signal.aborted) await receive(message);
      }
      timer = startTimer(silent, SITE_SILENCE_MS);
    }
  } finally {
    stopTimer(timer);
  }
}

function linesIn(splitter: LineSplitter, chunk: Uint8Array, at: string): string[] {
  try {
    return splitter.push(chunk);
  } catch (error) {
    throw tooLong(at, SITE_LINE_BYTES_MAX, { cause: error });
  }
}
