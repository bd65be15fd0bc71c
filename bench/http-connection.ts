// An HTTP/1.1 connection with nothing in it that a benchmark does not need: one request at a time, JSON both ways, answers
// that say how long they are. Written by hand because Node's own client spends more on a small request than the server that
// answers it, and a load generator must not be what is measured.
//
//   connecting ─▶ open (idle ⇄ asked) ─▶ over      for ever; whoever wants another makes another

import { connect, type Socket } from "node:net";
import { connect as connectTls } from "node:tls";

const HEAD_END = Buffer.from("\r\n\r\n");
const NO_BODY = Buffer.alloc(0);

export interface HttpAnswer {
  readonly status: number;
  readonly body: Buffer;
}

/** PEM text: whom a client trusts, and who it is. */
export interface HttpCertificate {
  readonly ca: string;
  readonly cert: string;
  readonly key: string;
}

export class HttpConnection {
  readonly #socket: Socket;
  readonly #head: string;
  #asked: { readonly settle: (answer: HttpAnswer) => void; readonly fail: (error: Error) => void } | null = null;
  #chunks: Buffer[] = [];
  #bytes = 0;
  /** Of the answer that is coming, head and body; null: its head is not here yet. */
  #wanted: { readonly status: number; readonly headBytes: number; readonly bytes: number } | null = null;
  #over: Error | null = null;

  /** `as`: a key, or over TLS a certificate. */
  constructor(url: string, as: string | HttpCertificate) {
    const { hostname, port, host } = new URL(url);
    const to = { host: hostname, port: Number(port), noDelay: true };
    this.#head = `host: ${host}\r\n${typeof as === "string" ? `x-api-key: ${as}\r\n` : ""}`;
    this.#socket = typeof as === "string" ? connect(to) : connectTls({ ...to, ...as });
    this.#socket.on("data", (chunk: Buffer) => this.#receive(chunk));
    this.#socket.on("error", (error) => this.#end(error));
    this.#socket.on("close", () => this.#end(new Error("the connection was closed")));
  }

  close(): void {
    this.#end(new Error("the connection was closed by its owner"));
    this.#socket.destroy();
  }

  post<T>(path: string, body: string, headers = ""): Promise<T> {
    return this.#send("POST", path, body, headers);
  }

  put<T>(path: string, body: string): Promise<T> {
    return this.#send("PUT", path, body, "");
  }

  async #send<T>(method: "POST" | "PUT", path: string, body: string, headers: string): Promise<T> {
    const bytes = Buffer.byteLength(body);
    const head = `${method} ${path} HTTP/1.1\r\n${this.#head}content-type: application/json\r\ncontent-length: ${bytes}\r\n${headers}`;
    return this.#parsed(path, await this.#ask(`${head}\r\n${body}`)) as T;
  }

  async get<T>(path: string): Promise<T> {
    return this.#parsed(path, await this.getRaw(path)) as T;
  }

  getRaw(path: string): Promise<HttpAnswer> {
    return this.#ask(`GET ${path} HTTP/1.1\r\n${this.#head}\r\n`);
  }

  #parsed(path: string, { status, body }: HttpAnswer): unknown {
    if (status === 200) return JSON.parse(body.toString());
    throw new Error(`${path} was answered with ${status}: ${body.toString().slice(0, 500)}`);
  }

  #ask(text: string): Promise<HttpAnswer> {
    if (this.#over !== null) return Promise.reject(this.#over);
    if (this.#asked !== null) throw new Error("one request at a time");
    return new Promise((settle, fail) => {
      this.#asked = { settle, fail };
      this.#socket.write(text);
    });
  }

  #receive(chunk: Buffer): void {
    this.#chunks.push(chunk);
    this.#bytes += chunk.length;
    if (this.#wanted === null) {
      const all = this.#gathered();
      const end = all.indexOf(HEAD_END);
      if (end < 0) return;
      const head = all.toString("latin1", 0, end);
      const length = /\r\ncontent-length: (\d+)/i.exec(head)?.[1];
      if (length === undefined) return this.#end(new Error(`an answer without a length: ${head}`));
      const headBytes = end + HEAD_END.length;
      this.#wanted = { status: Number(head.slice(9, 12)), headBytes, bytes: headBytes + Number(length) };
    }
    const { status, headBytes, bytes } = this.#wanted;
    if (this.#bytes < bytes) return;
    const asked = this.#asked;
    if (asked === null || this.#bytes > bytes) return this.#end(new Error("an answer that nobody asked for"));
    const body = bytes === headBytes ? NO_BODY : this.#gathered().subarray(headBytes);
    this.#chunks = [];
    this.#bytes = 0;
    this.#wanted = null;
    this.#asked = null;
    asked.settle({ status, body });
  }

  #gathered(): Buffer {
    if (this.#chunks.length > 1) this.#chunks = [Buffer.concat(this.#chunks)];
    return this.#chunks[0] ?? NO_BODY;
  }

  #end(error: Error): void {
    this.#over ??= error;
    const asked = this.#asked;
    this.#asked = null;
    asked?.fail(error);
    this.#socket.destroy();
  }
}
