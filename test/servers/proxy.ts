// A TCP proxy in front of a port, which can do to connections what networks do to them.
//
//   passing ──cut──▶ cut ──heal──▶ passing        ended by end()
//
// - While a direction is cut, nothing passes in it: no bytes, and no end of a connection either. Both ends see
//   a connection that is open and silent, as when a cable is pulled (half-open). What came is held.
// - A connection that comes while anything is cut does not reach the server: the handshake needs both directions.
// - What passes, passes in order, also when `delay` changes.

import { createServer, Socket, type Server } from "node:net";
import { freePort } from "./ports.ts";
import { breakOff, Pipe } from "./proxy-pipe.ts";
import { waitFor } from "./server-process.ts";

export type Direction = "to-server" | "to-client";

export interface Target {
  readonly host: string;
  readonly port: number;
}

/** Changes what the server says; the length must stay. Chunks are as the network delivers them, not messages. */
export type Rewrite = (fromServer: Buffer) => Buffer;

const HOST = "127.0.0.1";

export async function startProxy(target: Target): Promise<TcpProxy> {
  const proxy = new TcpProxy(target, await freePort());
  await proxy.listen();
  return proxy;
}

export class TcpProxy {
  readonly port: number;
  /** Undefined: what the server says passes as it is. */
  rewrite: Rewrite | undefined;
  #target: Target;
  #listener: Server | undefined;
  #accepted = 0;
  #delayMs = 0;
  readonly #cut = new Set<Direction>();
  readonly #pairs = new Set<Pair>();

  /** Not for tests: startProxy() makes these. */
  constructor(target: Target, port: number) {
    this.#target = target;
    this.port = port;
  }

  /** How many clients' connections are open now, silent ones included. */
  get connections(): number {
    return [...this.#pairs].filter((pair) => !pair.client.destroyed).length;
  }

  /** How many clients' connections there have been. */
  get accepted(): number {
    return this.#accepted;
  }

  /** Connections go silent, in one direction or in both. New ones are accepted and never answered, or refused. */
  cut(direction: Direction | "both" = "both", newcomers: "unanswered" | "refused" = "unanswered"): void {
    for (const one of direction === "both" ? (["to-server", "to-client"] as const) : [direction]) this.#cut.add(one);
    for (const pair of this.#pairs) this.#apply(pair);
    if (newcomers === "refused") this.#close();
  }

  /** New connections pass again. The silent ones get what was held back, or a reset. */
  async heal(silent: "resume" | "reset" = "reset"): Promise<void> {
    if (this.#cut.size > 0 && silent === "reset") this.reset();
    this.#cut.clear();
    for (const pair of this.#pairs) {
      if (!pair.isOpen) this.#open(pair);
      this.#apply(pair);
    }
    await this.listen();
  }

  /** Every connection ends with a RST, on both sides, also while it is cut. */
  reset(): void {
    for (const pair of this.#pairs) {
      breakOff(pair.client);
      breakOff(pair.server);
    }
  }

  /** In each direction, for what comes from now on. */
  delay(ms: number): void {
    this.#delayMs = ms;
  }

  /** New connections go to another server; those that are open stay where they are. */
  swap(target: Target): void {
    this.#target = target;
  }

  /** Ends every connection, and the listening. May be called twice. */
  async end(): Promise<void> {
    this.#close();
    this.reset();
    await waitFor("the proxy's connections to end", () => this.#pairs.size === 0);
  }

  /** Not for tests: startProxy() and heal() do this. */
  async listen(): Promise<void> {
    if (this.#listener !== undefined) return;
    const listener = createServer({ allowHalfOpen: true, noDelay: true }, (client) => this.#accept(client));
    this.#listener = listener;
    await new Promise<void>((resolve, reject) => {
      listener.once("error", reject);
      listener.listen(this.port, HOST, resolve);
    });
  }

  #close(): void {
    this.#listener?.close();
    this.#listener = undefined;
  }

  #accept(client: Socket): void {
    this.#accepted++;
    const server = new Socket({ allowHalfOpen: true });
    server.setNoDelay(true);
    const delay = (): number => this.#delayMs;
    const pair: Pair = {
      client,
      server,
      toServer: new Pipe(client, server, delay, (bytes) => bytes),
      toClient: new Pipe(server, client, delay, (bytes) => this.#rewritten(bytes)),
      isOpen: false,
    };
    this.#pairs.add(pair);
    for (const socket of [client, server]) {
      socket.once("close", () => {
        if (client.destroyed && server.destroyed) this.#pairs.delete(pair);
      });
    }
    if (this.#cut.size === 0) this.#open(pair);
    this.#apply(pair);
  }

  #open(pair: Pair): void {
    pair.isOpen = true;
    if (!pair.client.destroyed) pair.server.connect(this.#target.port, this.#target.host);
  }

  #apply(pair: Pair): void {
    pair.toServer.silence(!pair.isOpen || this.#cut.has("to-server"));
    pair.toClient.silence(!pair.isOpen || this.#cut.has("to-client"));
  }

  #rewritten(bytes: Buffer): Buffer {
    const changed = this.rewrite?.(bytes) ?? bytes;
    if (changed.length !== bytes.length) {
      throw new Error(`rewrite made ${changed.length} bytes of ${bytes.length}; the length must stay`);
    }
    return changed;
  }
}

interface Pair {
  readonly client: Socket;
  readonly server: Socket;
  readonly toServer: Pipe;
  readonly toClient: Pipe;
  /** Whether it was let through to the server. */
  isOpen: boolean;
}
