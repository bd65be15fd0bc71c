// What comes from the wire on its way to the core: read, checked, limited. What is not let through changes nothing and
// is counted; to its sender it was lost on the way.

import type { PeerKey } from "../core/kit/ids.ts";
import { WRITE_QUEUE_MAX } from "../core/kit/limits.ts";
import type { Message } from "../core/raft/index.ts";
import type { Digest } from "../ports/digest.ts";
import type { EngineCounts } from "./engine-options.ts";
import { openEnvelope } from "./envelope.ts";
import type { Snapshots } from "./snapshots.ts";
import { VoteLimiter } from "./vote-limiter.ts";

export class Intake {
  readonly #clusterId: string;
  readonly #digest: Digest;
  readonly #snapshots: Snapshots;
  readonly #counts: EngineCounts;
  readonly #votes = new VoteLimiter();

  constructor(clusterId: string, digest: Digest, snapshots: Snapshots, counts: EngineCounts) {
    this.#clusterId = clusterId;
    this.#digest = digest;
    this.#snapshots = snapshots;
    this.#counts = counts;
  }

  /** The message, if the core may see it. `writesWaiting`: past a bound a hung disk makes a node deaf. */
  take(from: PeerKey, bytes: Uint8Array, writesWaiting: number, nowMs: number): Message | null {
    if (writesWaiting >= WRITE_QUEUE_MAX) return this.#drop();
    const { decoded, attachment } = openEnvelope(bytes, this.#clusterId, this.#digest);
    if (!decoded.ok || decoded.message.from !== from) return this.#refuse();
    const { message } = decoded;
    if (message.type === "MsgVote" || message.type === "MsgPreVote") {
      if (this.#votes.admits(from, nowMs)) return message;
      this.#counts.limitedVotes++;
      return null;
    }
    if (message.type !== "MsgSnap") return message;
    if (this.#snapshots.isInstalling) return this.#drop();
    return this.#snapshots.offer(message.snapshot, attachment) ? message : this.#refuse();
  }

  #drop(): null {
    this.#counts.droppedFrames++;
    return null;
  }

  #refuse(): null {
    this.#counts.refusedFrames++;
    return null;
  }
}
