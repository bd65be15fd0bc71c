// A request over a connection of its own, byte by byte, and where its bytes are: in the kernel's queue of the server's side,
// or read by the process. Linux only: it reads /proc/net/tcp.

import { readFileSync } from "node:fs";
import { connect, type Socket } from "node:net";
import type { TenureNode } from "../servers/index.ts";

const HOST = "127.0.0.1";
const ANSWER_MS_MAX = 60_000;

export interface RawAnswer {
  readonly status: number;
  readonly body: Readonly<Record<string, unknown>>;
}

export class RawRequest {
  readonly #socket: Socket;
  readonly #serverPort: number;
  readonly #head: string;
  readonly #body: string;
  #received = "";

  private constructor(socket: Socket, serverPort: number, head: string, body: string) {
    this.#socket = socket;
    this.#serverPort = serverPort;
    this.#head = head;
    this.#body = body;
    socket.setEncoding("utf8").on("data", (text: string) => {
      this.#received += text;
    });
    socket.on("error", () => undefined);
  }

  /** Connected; nothing is sent. */
  static async open(
    node: TenureNode,
    path: string,
    body: object,
    headers: Readonly<Record<string, string>>,
  ): Promise<RawRequest> {
    const { port } = new URL(node.url);
    const text = JSON.stringify(body);
    const lines = [
      `POST ${path} HTTP/1.1`,
      `host: ${HOST}:${port}`,
      "content-type: application/json",
      "connection: close",
    ];
    const more = Object.entries(headers).map(([name, value]) => `${name}: ${value}`);
    const head = [...lines, ...more, `content-length: ${Buffer.byteLength(text)}`, "", ""].join("\r\n");
    const socket = connect({ host: HOST, port: Number(port), noDelay: true });
    await new Promise<void>((resolve, reject) => {
      socket.once("connect", resolve);
      socket.once("error", reject);
    });
    return new RawRequest(socket, Number(port), head, text);
  }

  get bytes(): number {
    return Buffer.byteLength(this.#head) + Buffer.byteLength(this.#body);
  }

  send(): void {
    this.#socket.write(this.#head + this.#body);
  }

  /** The head, and half of the body. */
  sendHalf(): void {
    this.#socket.write(this.#head + this.#body.slice(0, this.#body.length / 2));
  }

  sendRest(): void {
    this.#socket.write(this.#body.slice(this.#body.length / 2));
  }

  get hasAnswer(): boolean {
    return this.#received !== "";
  }

  /** Bytes that the kernel has taken for the server and that the process has not read; null: there is no such connection. */
  unread(): number | null {
    const { localPort = 0 } = this.#socket;
    for (const line of readFileSync("/proc/net/tcp", "utf8").split("\n")) {
      const [, local = "", remote = "", , queues = ""] = line.trim().split(/\s+/);
      if (!local.endsWith(`:${hex(this.#serverPort)}`) || !remote.endsWith(`:${hex(localPort)}`)) continue;
      return Number.parseInt(queues.split(":")[1] ?? "", 16);
    }
    return null;
  }

  async answer(): Promise<RawAnswer> {
    await new Promise<void>((resolve, reject) => {
      const timer = setTimeout(() => reject(new Error("the request was never answered")), ANSWER_MS_MAX);
      const over = (): void => {
        clearTimeout(timer);
        resolve();
      };
      if (this.#socket.closed) over();
      else this.#socket.once("close", over);
    });
    const [head = "", ...rest] = this.#received.split("\r\n\r\n");
    const text = rest.join("\r\n\r\n");
    const json = text.slice(text.indexOf("{"), text.lastIndexOf("}") + 1);
    return { status: Number(head.split(" ")[1]), body: JSON.parse(json) as RawAnswer["body"] };
  }

  end(): void {
    this.#socket.destroy();
  }
}

function hex(port: number): string {
  return port.toString(16).toUpperCase().padStart(4, "0");
}
