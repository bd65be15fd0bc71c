// The Wire port inside of Maelstrom's network: the engine's bytes travel as text in messages of type `raft`. The network
// may lose, delay and reorder them, as the port allows. Nobody is ever known to be gone: there are no connections.

import { nodeIdOf, parsePeerKey, type PeerKey } from "../../src/core/kit/ids.ts";
import type { Wire, WireHandlers } from "../../src/ports/peers/wire.ts";
import type { Body } from "./protocol.ts";

export class NetworkWire implements Wire {
  readonly #self: PeerKey;
  readonly #peers: readonly PeerKey[];
  readonly #send: (dest: string, body: Body) => void;
  #handlers: WireHandlers | null = null;

  constructor(self: PeerKey, peers: readonly PeerKey[], send: (dest: string, body: Body) => void) {
    this.#self = self;
    this.#peers = peers;
    this.#send = send;
  }

  start(handlers: WireHandlers): void {
    this.#handlers = handlers;
    // Maelstrom names the nodes of a test once, before it begins: that is their introduction.
    for (const peer of this.#peers) if (peer !== this.#self) handlers.peerSeen(peer);
  }

  send(to: PeerKey, bytes: Uint8Array): void {
    if (this.#handlers === null) return;
    this.#send(nodeIdOf(to), { type: "raft", from: this.#self, to, bytes: Buffer.from(bytes).toString("base64") });
  }

  stop(): void {
    this.#handlers = null;
  }

  /** A message of type `raft` that came from the node `src`, which the network vouches for. */
  receive(src: string, body: Body): void {
    const from = parsePeerKey(String(body["from"]));
    if (from === undefined || nodeIdOf(from) !== src || body["to"] !== this.#self) return;
    this.#handlers?.message(from, new Uint8Array(Buffer.from(String(body["bytes"]), "base64")));
  }
}
