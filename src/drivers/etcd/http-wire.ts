// The etcd port over HTTP.
//
// Invariants: a request is sent once, to one endpoint; whoever fails to answer is not asked next, where there is
// another; what is read is bounded; nothing is told after the signal has aborted.

import type { IncomingMessage } from "node:http";
import type { TlsFiles } from "../../ports/backends/backend.ts";
import type { EtcdAnswer, EtcdCall, EtcdRefusal, EtcdStreamEnd, EtcdWire } from "../../ports/backends/etcd.ts";
import { HttpClient, LineSplitter, parseObject, type ReadAnswer, readText } from "../http/index.ts";
import { ETCD, notEtcd, refusalIn, refusalOf, WORDS } from "./failures.ts";
import { ETCD_ANSWER_BYTES_MAX, WATCH_LINE_BYTES_MAX } from "./limits.ts";

export interface HttpWireOptions {
  /** `http://` or `https://`, without credentials; a path is put in front of `/v3`. At least one. */
  readonly endpoints: readonly URL[];
  readonly headers: Readonly<Record<string, string>>;
  readonly tls: TlsFiles;
}

export function httpWire(options: HttpWireOptions): EtcdWire {
  return new HttpWire(options);
}

class HttpWire implements EtcdWire {
  readonly #options: HttpWireOptions;
  readonly #client: HttpClient;
  #turn = 0;

  constructor(options: HttpWireOptions) {
    this.#options = options;
    this.#client = new HttpClient(options.tls, WORDS);
  }

  call(path: string, body: object, options: EtcdCall): Promise<EtcdAnswer> {
    return this.#exchange(path, body, options, async (response, endpoint) => {
      const text = await readAll(response, endpoint);
      if (response.statusCode !== 200) return refusalOf(response.statusCode ?? 0, text, endpoint);
      const parsed = parseObject(text, endpoint, ETCD);
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
    this.#client.close();
  }

  async #exchange<T>(path: string, body: object, options: EtcdCall, read: ReadAnswer<T>): Promise<T> {
    const { signal, timeoutMs, token } = options;
    const turn = this.#turn;
    const endpoint = this.#options.endpoints[turn % this.#options.endpoints.length] as URL;
    const url = new URL(endpoint.pathname.replace(/\/$/, "") + path, endpoint);
    const headers = {
      ...this.#options.headers,
      "content-type": "application/json",
      ...(token === undefined ? {} : { authorization: token }),
    };
    const request = { method: "POST", url, headers, body: JSON.stringify(body), timeoutMs, signal } as const;
    try {
      return await this.#client.exchange(request, read);
    } catch (error) {
      if (!signal.aborted) this.#blame(turn);
      throw error;
    }
  }

  /** Idle sockets go too: they lead to the same silent host, and each would cost another timeout. */
  #blame(turn: number): void {
    if (this.#turn === turn) this.#turn++;
    this.#client.dropIdle();
  }
}

function readAll(response: IncomingMessage, endpoint: string): Promise<string> {
  const tooMuch = () => notEtcd(endpoint, `an answer of more than ${ETCD_ANSWER_BYTES_MAX} bytes`);
  return readText(response, ETCD_ANSWER_BYTES_MAX, tooMuch);
}

async function readLines(
  response: IncomingMessage,
  endpoint: string,
  tell: (message: unknown) => void,
): Promise<EtcdRefusal | undefined> {
  const splitter = new LineSplitter(WATCH_LINE_BYTES_MAX);
  for await (const chunk of response as AsyncIterable<Buffer>) {
    for (const line of split(splitter, chunk, endpoint)) {
      const message = parseObject(line, endpoint, ETCD);
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
