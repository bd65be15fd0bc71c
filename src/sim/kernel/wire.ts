// The Wire port of one life of a process.
// States: new → listening (`start`) → closed (`stop`, or its life ends). Only a listening wire sends and receives.

import { assert } from "../../core/kit/assert.ts";
import type { PeerKey } from "../../core/kit/ids.ts";
import type { Wire, WireHandlers } from "../../ports/peers/wire.ts";
import type { SimNetwork } from "./network.ts";
import type { Life } from "./process.ts";

export class SimWire implements Wire {
  readonly self: PeerKey;
  readonly life: Life;
  readonly #network: SimNetwork;
  #handlers: WireHandlers | undefined;

  constructor(network: SimNetwork, life: Life, self: PeerKey) {
    this.#network = network;
    this.life = life;
    this.self = self;
  }

  /** Undefined unless it listens. */
  get handlers(): WireHandlers | undefined {
    return this.life.alive ? this.#handlers : undefined;
  }

  /** Listens, and its process executes: only then does a handshake complete. */
  get running(): boolean {
    return this.handlers !== undefined && this.life.process.state === "running";
  }

  start(handlers: WireHandlers): void {
    assert(this.#handlers === undefined, "a wire is started once");
    if (!this.life.alive) return;
    this.#handlers = handlers;
    this.#network.listening(this);
  }

  send(to: PeerKey, bytes: Uint8Array): void {
    if (this.handlers !== undefined) this.#network.send(this, to, bytes);
  }

  stop(): void {
    if (this.handlers === undefined) return;
    this.#handlers = undefined;
    this.#network.ended(this.life.process.name, false);
  }
}
