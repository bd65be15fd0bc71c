// This node's newest snapshot on its way to followers. It is sealed once, slice by slice, and then sent as it lies in
// memory: a node that copied or checksummed 64 MiB in one piece would miss its heartbeats.
//
//   idle ──MsgSnap, not sealed yet──▶ sealing ──▶ sends to all that asked meanwhile ──▶ idle
//
// Invariant: at most one message waits for each peer.

import type { PeerKey } from "../core/kit/ids.ts";
import type { MsgSnap } from "../core/raft/index.ts";
import type { Digest } from "../ports/digest.ts";
import type { Wire } from "../ports/wire.ts";
import { sealBefore } from "./envelope.ts";
import type { SealedFile, Snapshots } from "./snapshots.ts";
import type { Slices } from "./storage-slices.ts";

interface Surroundings {
  readonly clusterId: string;
  readonly digest: Digest;
  readonly snapshots: Snapshots;
  readonly slices: Slices;
  readonly wire: Wire;
  /** A newer one was saved since it was decided to send this one; the core decides again. */
  readonly isGone: (peer: PeerKey) => void;
}

export class SnapshotSender {
  readonly #around: Surroundings;
  readonly #waiting = new Map<PeerKey, MsgSnap>();

  constructor(around: Surroundings) {
    this.#around = around;
  }

  send(message: MsgSnap): void {
    const { slices, snapshots, wire, isGone } = this.#around;
    // The last one is still on its way.
    if (wire.isBusy?.(message.to) === true) return;
    if (!snapshots.has(message.snapshot)) return isGone(message.to);
    const isSealing = this.#waiting.size > 0;
    this.#waiting.set(message.to, message);
    if (!isSealing) slices.run(snapshots.seal(), (file) => this.#sealed(file));
  }

  #sealed(file: SealedFile): void {
    const { clusterId, digest, snapshots, wire, isGone } = this.#around;
    const messages = [...this.#waiting.values()];
    this.#waiting.clear();
    for (const message of messages) {
      if (file.meta.index !== message.snapshot.index || !snapshots.has(file.meta)) isGone(message.to);
      else sendBoth(wire, message.to, sealBefore(file, message, clusterId, digest), file.data);
    }
  }
}

function sendBoth(wire: Wire, to: PeerKey, bytes: Uint8Array, rest: Uint8Array): void {
  if (wire.sendLarge !== undefined) return wire.sendLarge(to, bytes, rest);
  const joined = new Uint8Array(bytes.length + rest.length);
  joined.set(bytes);
  joined.set(rest, bytes.length);
  wire.send(to, joined);
}
