// The sockets that others have opened to this node, by their other end: TLS has a socket of its own around each. Until their hello
// is accepted they are newcomers, which are bounded for each address and in all: strangers must not take the members' places.

import type { Socket } from "node:net";
import { Newcomers } from "../../core/kit/newcomers.ts";
import { originOf } from "./inbound.ts";
import { NEWCOMERS_MAX, NEWCOMERS_PER_ADDRESS_MAX } from "./limits.ts";

export class HeldSockets {
  readonly #sockets = new Map<string, Socket>();
  readonly #newcomers = new Newcomers<string>(NEWCOMERS_PER_ADDRESS_MAX, NEWCOMERS_MAX);
  readonly #onEvicted: (address: string) => void;

  /** `onEvicted`: of the address whose next connection the oldest newcomer had to make room for. */
  constructor(onEvicted: (address: string) => void) {
    this.#onEvicted = onEvicted;
  }

  hold(socket: Socket): void {
    const origin = originOf(socket);
    this.#sockets.set(origin, socket);
    socket.once("close", () => {
      if (this.#sockets.get(origin) !== socket) return;
      this.#sockets.delete(origin);
      this.#newcomers.delete(origin);
    });
    const address = socket.remoteAddress ?? "somebody";
    const evicted = this.#newcomers.add(origin, address);
    if (evicted === null) return;
    this.#onEvicted(address);
    this.#sockets.get(evicted)?.destroy();
  }

  /** Its hello was accepted. */
  known(origin: string): void {
    this.#newcomers.delete(origin);
  }

  end(): void {
    for (const socket of this.#sockets.values()) socket.destroy();
  }
}
