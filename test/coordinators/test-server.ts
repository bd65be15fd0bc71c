// A server on a free port of loopback that stands for another coordinator's API, with what it was sent and shown; and calls to it.

import { createServer as createPlain, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import { createServer as createSecure, type Server as SecureServer } from "node:https";
import type { AddressInfo } from "node:net";
import type { TLSSocket } from "node:tls";
import { systemClock } from "../../src/drivers/system/clock.ts";
import { TcHttp, type TcHttpOptions } from "../../src/drivers/coordinators/index.ts";
import type { PeerTls } from "../../src/drivers/wire/index.ts";

export type Answer = (request: IncomingMessage, response: ServerResponse) => void;

export const json = (response: ServerResponse, body: unknown, status = 200): void => {
  response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(body));
};

export class TestServer implements AsyncDisposable {
  readonly server: Server;
  readonly url: string;
  /** Connections that are open now, and how many there have been. */
  readonly open = new Set<object>();
  accepted = 0;
  requests = 0;
  /** SHA-256 of each certificate that came with a request. */
  readonly shown: string[] = [];
  /** On these nothing is answered. */
  readonly #mute = new Set<object>();

  private constructor(server: Server, protocol: "http" | "https", answer: Answer) {
    this.server = server;
    this.url = `${protocol}://127.0.0.1:${(server.address() as AddressInfo).port}`;
    server.on(protocol === "https" ? "secureConnection" : "connection", (socket: TLSSocket) => {
      this.accepted++;
      this.open.add(socket);
      socket.on("close", () => this.open.delete(socket));
      socket.on("error", () => undefined);
    });
    server.on("request", (request: IncomingMessage, response: ServerResponse) => {
      this.requests++;
      const socket = request.socket as TLSSocket;
      if (protocol === "https") this.shown.push(socket.getPeerCertificate().fingerprint256);
      if (!this.#mute.has(socket)) answer(request, response);
    });
  }

  /** `tls` null: without. */
  static async start(
    tls: PeerTls | null,
    answer: Answer = (_, response) => json(response, { ok: true }),
    options: object = {},
  ): Promise<TestServer> {
    const server =
      tls === null
        ? createPlain()
        : (createSecure({ ...tls, requestCert: true, rejectUnauthorized: false, ...options }) as SecureServer & Server);
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    return new TestServer(server, tls === null ? "http" : "https", answer);
  }

  /** As a host that is gone without a word: the connections of now are open and silent, new ones are served. */
  mute(): void {
    for (const socket of this.open) this.#mute.add(socket);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.server.closeAllConnections();
    await new Promise((resolve) => this.server.close(resolve));
  }
}

export class TestCalls implements Disposable {
  readonly http: TcHttp;
  readonly warnings: string[] = [];
  readonly revoked = new Set<string>();
  /** How far the wall clock is ahead. */
  aheadMs = 0;

  constructor(tls: PeerTls | null, options: Partial<TcHttpOptions> = {}) {
    this.http = new TcHttp({
      tls,
      isLoopback: true,
      trustDomain: "tenure",
      isRevoked: (sha256) => this.revoked.has(sha256),
      clock: { monotonicMs: () => systemClock.monotonicMs(), wallMs: () => systemClock.wallMs() + this.aheadMs },
      logger: { warn: (_fields, message) => void this.warnings.push(message) },
      ...options,
    });
  }

  /** A minute: what has to fail fails long before that. */
  get(endpoint: string, withinMs = 60_000): ReturnType<TcHttp["exchange"]> {
    return this.http.exchange({ endpoint, method: "GET", path: "/v1/tc/leader", body: null, withinMs });
  }

  post(endpoint: string, body: object, withinMs = 60_000): ReturnType<TcHttp["exchange"]> {
    return this.http.exchange({ endpoint, method: "POST", path: "/v1/tc/cluster/announce", body, withinMs });
  }

  [Symbol.dispose](): void {
    this.http.close();
  }
}
