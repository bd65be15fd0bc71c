// The network between two sites of the demonstration: a TCP proxy of this process, which can be cut. While it is cut, connections end at once and
// nothing passes, in neither direction.
//
//   passing ──cut──▶ cut ──heal──▶ passing

import { connect, createServer, type Server, type Socket } from "node:net";

const HOST = "127.0.0.1";

export class Cutter {
  readonly port: number;
  #isCut = false;
  readonly #server: Server;
  readonly #sockets = new Set<Socket>();

  private constructor(server: Server, port: number) {
    this.#server = server;
    this.port = port;
  }

  /** On this port, to that one. */
  static async start(port: number, target: number): Promise<Cutter> {
    const server = createServer();
    const cutter = new Cutter(server, port);
    server.on("connection", (from) => cutter.#pass(from, target));
    await new Promise<void>((resolve, reject) => {
      server.once("error", reject);
      server.listen(port, HOST, resolve);
    });
    return cutter;
  }

  get isCut(): boolean {
    return this.#isCut;
  }

  cut(): void {
    this.#isCut = true;
    this.#endAll();
  }

  heal(): void {
    this.#isCut = false;
  }

  close(): void {
    this.#server.close();
    this.#endAll();
  }

  #pass(from: Socket, target: number): void {
    if (this.#isCut) {
      from.destroy();
      return;
    }
    const to = connect(target, HOST);
    for (const [socket, other] of [
      [from, to],
      [to, from],
    ] as const) {
      this.#sockets.add(socket);
      // A site that was killed resets its connections.
      socket.on("error", () => undefined);
      socket.once("close", () => {
        this.#sockets.delete(socket);
        other.destroy();
      });
      socket.pipe(other);
    }
  }

  #endAll(): void {
    for (const socket of this.#sockets) socket.destroy();
  }
}
