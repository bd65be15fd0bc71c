// What comes from the wire on its way to the core: read, checked, limited. What is not let through changes nothing and
// is counted; to its sender it was lost on the way.
//
// Invariant: a snapshot is heard in the turn in which its contents are offered; the end of that turn forgets them.

import type { PeerKey } from "../core/kit/ids.ts";
import { MESSAGE_BYTES_MAX, WRITE_QUEUE_MAX } from "../core/kit/limits.ts";
import type { Message } from "../core/raft/index.ts";
import type { Digest } from "../ports/digest.ts";
import type { EngineCounts } from "./engine-options.ts";
import { openEnvelope, openInSlices } from "./envelope.ts";
import type { Snapshots } from "./snapshots.ts";
import type { Slices } from "./storage-slices.ts";
import { VoteLimiter } from "./vote-limiter.ts";

interface Surroundings {
  readonly clusterId: string;
  readonly digest: Digest;
  readonly snapshots: Snapshots;
  readonly counts: EngineCounts;
  readonly slices: Slices;
  /** The core may see it. */
  readonly heard: (message: Message) => void;
}

export class Intake {
  readonly #around: Surroundings;
  readonly #votes = new VoteLimiter();
  #isTakingLarge = false;

  constructor(around: Surroundings) {
    this.#around = around;
  }

  /** `writesWaiting`: past a bound a hung disk makes a node deaf. */
  take(from: PeerKey, bytes: Uint8Array, writesWaiting: number, nowMs: number): void {
    if (writesWaiting >= WRITE_QUEUE_MAX) return this.#drop();
    if (bytes.length > MESSAGE_BYTES_MAX) return this.#takeLarge(from, bytes);
    const { clusterId, digest, snapshots, counts, heard } = this.#around;
    const { decoded, attachment } = openEnvelope(bytes, clusterId, digest);
    if (!decoded.ok || decoded.message.from !== from) return this.#refuse();
    const { message } = decoded;
    if (message.type === "MsgVote" || message.type === "MsgPreVote") {
      if (this.#votes.admits(from, nowMs)) heard(message);
      else counts.limitedVotes++;
      return;
    }
    if (message.type !== "MsgSnap") return heard(message);
    if (snapshots.isInstalling) return this.#drop();
    if (!snapshots.offer(message.snapshot, attachment)) return this.#refuse();
    heard(message);
  }

  /** As no message is without a snapshot. One at a time: what else comes meanwhile is lost, and sent again. */
  #takeLarge(from: PeerKey, bytes: Uint8Array): void {
    const { snapshots, slices, heard } = this.#around;
    if (this.#isTakingLarge || snapshots.isInstalling) return this.#drop();
    this.#isTakingLarge = true;
    slices.run(this.#openLarge(from, bytes), (message) => {
      this.#isTakingLarge = false;
      if (message === null) this.#refuse();
      else if (snapshots.isInstalling) this.#drop();
      else heard(message);
    });
  }

  *#openLarge(from: PeerKey, bytes: Uint8Array): Generator<void, Message | null> {
    const { clusterId, digest, snapshots } = this.#around;
    const { decoded, attachment } = yield* openInSlices(bytes, clusterId, digest);
    if (!decoded.ok || decoded.message.from !== from || decoded.message.type !== "MsgSnap") return null;
    yield;
    return (yield* snapshots.offerInSlices(decoded.message.snapshot, attachment)) ? decoded.message : null;
  }

  #drop(): void {
    this.#around.counts.droppedFrames++;
  }

  #refuse(): void {
    this.#around.counts.refusedFrames++;
  }
}
