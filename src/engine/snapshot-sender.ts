// This node's newest snapshot on its way to followers. A large one is read from the disk again; it is sealed, slice by slice,
// and then sent as it lies in memory: a node that copied or checksummed 64 MiB in one piece would miss its heartbeats.
//
//   idle ──MsgSnap──▶ reading, sealing ──▶ sends to all that asked meanwhile ──▶ idle
//
// Invariant: at most one message waits for each peer.

import type { PeerKey } from "../core/kit/ids.ts";
import type { MsgSnap } from "../core/raft/index.ts";
import type { Digest } from "../ports/digest.ts";
import type { Wire } from "../ports/peers/wire.ts";
import { sealBefore } from "./envelope.ts";
import type { SealedFile, SnapshotContents, Snapshots } from "./snapshots.ts";
import type { Slices } from "./storage-slices.ts";

interface Surroundings {
  readonly clusterId: string;
  readonly digest: Digest;
  readonly snapshots: Snapshots;
  readonly slices: Slices;
  readonly wire: Wire;
  readonly storage: { readSnapshot(): Promise<SnapshotContents | null> };
  readonly isRunning: () => boolean;
  readonly failed: (error: unknown) => void;
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
    const { snapshots, wire, isGone } = this.#around;
    // The last one is still on its way.
    if (wire.isBusy?.(message.to) === true) return;
    if (!snapshots.has(message.snapshot)) return isGone(message.to);
    const isSealing = this.#waiting.size > 0;
    this.#waiting.set(message.to, message);
    if (isSealing) return;
    const { inMemory } = snapshots;
    if (inMemory === null) this.#read().catch(this.#around.failed);
    else this.#seal(inMemory);
  }

  async #read(): Promise<void> {
    const { storage, isRunning } = this.#around;
    const contents = await storage.readSnapshot();
    if (!isRunning()) return;
    if (contents !== null) return this.#seal(contents);
    for (const peer of this.#taken().map(({ to }) => to)) this.#around.isGone(peer);
  }

  #seal(contents: SnapshotContents): void {
    const { slices, snapshots } = this.#around;
    slices.run(snapshots.seal(contents), (file) => this.#sealed(file));
  }

  #taken(): readonly MsgSnap[] {
    const messages = [...this.#waiting.values()];
    this.#waiting.clear();
    return messages;
  }

  #sealed(file: SealedFile): void {
    const { clusterId, digest, snapshots, wire, isGone } = this.#around;
    for (const message of this.#taken()) {
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
