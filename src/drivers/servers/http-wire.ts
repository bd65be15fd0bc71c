// The servers port over HTTP.
//
// Invariants: a request is sent once, to one node; what is read is bounded; the key goes with every request and into no
// message; an answer is a JSON object, or it is none.

import type { IncomingMessage } from "node:http";
import { ANCESTORS_MAX } from "../../core/kit/limits.ts";
import type { TlsFiles } from "../../ports/backends/backend.ts";
import type { ServersAnswer, ServersQuestion, ServersWire } from "../../ports/backends/servers.ts";
import { HttpClient, parseObject, readText } from "../http/index.ts";
import { foreignAnswer, SERVER, tooLong, WORDS } from "./failures.ts";

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
    const { method, path, body, timeoutMs, bytesMax, signal } = question;
    const headers = body === null ? this.#headers : { ...this.#headers, "content-type": "application/json" };
    const text = body === null ? null : JSON.stringify(body);
    const request = { method, url: new URL(url + path), headers, body: text, timeoutMs, signal };
    try {
      return await this.#client.exchange(request, (response, at) => readAnswer(response, at, bytesMax));
    } catch (error) {
      if (!signal.aborted) this.#client.dropIdle();
      throw error;
    }
  }

  close(): void {
    this.#client.close();
  }
}

async function readAnswer(response: IncomingMessage, url: string, bytesMax: number): Promise<ServersAnswer> {
  const status = response.statusCode ?? 0;
  const tooMuch = () => Object.assign(tooLong(url, bytesMax), { tooLong: true });
  const text = await readText(response, bytesMax, tooMuch);
  const { [CLUSTER_HEADER]: cluster, [ANCESTORS_HEADER]: named } = response.headers;
  const clusterId = typeof cluster === "string" ? cluster : null;
  const ancestors = named === NOT_KNOWN_YET ? null : typeof named === "string" ? namesIn(named) : [];
  const line = { clusterId, ancestors, isPaused: response.headers[PAUSED_HEADER] === "true" };
  try {
    return { status, body: parseObject(text, url, SERVER), ...line };
  } catch (error) {
    if (status >= 200 && status < 300) throw error;
    throw foreignAnswer(status, text, url);
  }
}

function namesIn(header: string): readonly string[] {
  return header.split(",", ANCESTORS_MAX).map((name) => name.trim());
}
