// What lies between a library and the server, in the same process: it counts what the library sends, and can end the session at
// any moment of it, as the next leader does.

import { createServer, type Server, Socket } from "node:net";
import type { AddressInfo } from "node:net";
import type { Pool } from "pg";
import { waitFor } from "../servers/index.ts";
import { APPLICATION } from "./test-libraries.ts";

/**
 * `before`: the session has ended when the statement arrives. `during`: it is ended while the statement is under way. `answer
 * lost`: the server has done it, and its session ends before the answer comes.
 */
export type Moment = "before" | "during" | "answer lost";

export class Wire {
  readonly #admin: Pool;
  readonly #target: number;
  #server: Server | undefined;
  #sent = 0;
  #fault: { readonly at: number; readonly moment: Moment } | undefined;
  readonly #clients = new Set<Socket>();

  constructor(target: number, admin: Pool) {
    this.#target = target;
    this.#admin = admin;
  }

  async listen(): Promise<number> {
    const server = createServer({ noDelay: true }, (client) => this.#accept(client));
    this.#server = server;
    await new Promise<void>((resolve) => {
      server.listen(0, "127.0.0.1", resolve);
    });
    return (server.address() as AddressInfo).port;
  }

  end(): void {
    this.#server?.close();
    for (const client of this.#clients) client.destroy();
  }

  /** What has been sent since `plan`. */
  get sent(): number {
    return this.#sent;
  }

  get connections(): number {
    return this.#clients.size;
  }

  /** At the packet of that number, counted from now. */
  plan(at: number, moment: Moment): void {
    this.#sent = 0;
    this.#fault = { at, moment };
  }

  /** Ends every session of the library, and waits until it has seen that. */
  async endSessions(): Promise<void> {
    await this.#terminate();
    await waitFor("the library to see the end", () => this.#clients.size === 0);
    await new Promise((resolve) => {
      setImmediate(resolve);
    });
  }

  async #terminate(): Promise<void> {
    await this.#admin.query(
      "select pg_terminate_backend(pid, 10000) from pg_stat_activity where application_name = $1",
      [APPLICATION],
    );
  }

  #accept(client: Socket): void {
    const server = new Socket();
    server.setNoDelay(true);
    server.connect(this.#target, "127.0.0.1");
    this.#clients.add(client);
    let isLost = false;
    client.on("close", () => {
      this.#clients.delete(client);
      server.destroy();
    });
    server.on("close", () => client.end());
    for (const socket of [client, server]) socket.on("error", () => undefined);
    // One after the other: what waits for a fault holds up what comes after it.
    let turn = Promise.resolve();
    client.on("data", (bytes: Buffer) => {
      const fault = ++this.#sent === this.#fault?.at ? this.#fault.moment : undefined;
      turn = turn.then(async () => {
        if (fault === "before") await this.#terminate();
        if (fault === "answer lost") isLost = true;
        if (!server.destroyed) server.write(bytes);
        if (fault === "during") await this.#terminate();
      });
    });
    server.on("data", (bytes: Buffer) => {
      if (!isLost) client.write(bytes);
      else server.destroy();
    });
  }
}
