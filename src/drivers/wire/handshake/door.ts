// What this process shows of itself in a handshake, and what it remembers of those that shook hands with it: the mark of
// its life, and which process spoke last for each disk.

import { randomBytes } from "node:crypto";
import { type PeerKey, peerKey } from "../../../core/kit/ids.ts";
import { Boots } from "./boots.ts";
import { type Ack, type Hello, type Introduction, PROTOCOL_MAX, PROTOCOL_MIN, type Purpose } from "./hello.ts";
import { judge, type Verdict } from "./judge.ts";

const MARK_BYTES = 16;

interface Surroundings {
  readonly us: Introduction;
  readonly isStarted: boolean;
  readonly peers: Ack["peers"];
  isRemoved(peer: PeerKey): boolean;
  hasRoomForBulk(peer: PeerKey): boolean;
}

export class Door {
  readonly #boots = new Boots();
  readonly #mark = randomBytes(MARK_BYTES).toString("hex");

  hello(us: Introduction, purpose: Purpose): Hello {
    const protocols = { protocolMin: PROTOCOL_MIN, protocolMax: PROTOCOL_MAX };
    return { ...us, ...protocols, purpose, mark: this.#mark };
  }

  judge(hello: Hello, certified: string | null, around: Surroundings): Verdict {
    const { us, isStarted, peers } = around;
    const { mark } = hello;
    // Who only asks has no disk yet, and is asked for none.
    const peer = (): PeerKey => peerKey(hello.nodeId, hello.incarnation);
    return judge(hello, certified, {
      us,
      isStarted,
      peers,
      isRemoved: () => around.isRemoved(peer()),
      isCopy: () => mark !== undefined && this.#boots.isFormer(peer(), mark, performance.now()),
      hasRoomForBulk: () => around.hasRoomForBulk(peer()),
    });
  }

  accepted(peer: PeerKey, { mark }: Hello): void {
    if (mark !== undefined) this.#boots.accepted(peer, mark);
  }

  /** Node ids of whose disk there were two holders recently. */
  cloned(): readonly string[] {
    return this.#boots.cloned(performance.now());
  }
}
