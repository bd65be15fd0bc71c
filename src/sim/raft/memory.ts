// Who still remembers what it promised. Raft survives the loss of a minority of the voters' disks at a time and
// promises nothing beyond that, so the plan may not go beyond it either: a disk is lost, or a membership
// change proposed, only if every configuration that holds or may yet come to hold keeps a majority with its memory.

import { incarnationOf, nodeIdOf, type PeerKey } from "../../core/kit/ids.ts";
import type { Configuration } from "../../core/raft/index.ts";

export class Memory {
  /** The incarnation that each node's disk carries now, as far as it was ever started. */
  readonly #disks = new Map<string, string>();
  /** Proposed changes whose fate is open: until something is committed at their index. */
  #proposed: { readonly index: number; readonly configuration: Configuration }[] = [];

  readonly #losing: (nodeId: string) => void;

  constructor(losing: (nodeId: string) => void) {
    this.#losing = losing;
  }

  diskOf(nodeId: string): string | undefined {
    return this.#disks.get(nodeId);
  }

  stamped(peer: PeerKey): void {
    this.#disks.set(nodeIdOf(peer), incarnationOf(peer));
  }

  /** To be called before the disk is touched. */
  lost(nodeId: string): void {
    this.#losing(nodeId);
    this.#disks.delete(nodeId);
  }

  proposed(index: number, configuration: Configuration): void {
    this.#proposed.push({ index, configuration });
  }

  mayLose(nodeId: string, present: Configuration, committedIndex: number): boolean {
    this.#proposed = this.#proposed.filter((one) => one.index > committedIndex);
    return [present, ...this.#proposed.map((one) => one.configuration)].every((one) =>
      this.#keepsMajority(one, nodeId),
    );
  }

  mayPropose(next: Configuration): boolean {
    return this.#keepsMajority(next, null);
  }

  #keepsMajority(configuration: Configuration, losing: string | null): boolean {
    return [configuration.voters, configuration.votersOutgoing].every((half) => {
      const kept = half.filter(
        (peer) => nodeIdOf(peer) !== losing && this.#disks.get(nodeIdOf(peer)) === incarnationOf(peer),
      );
      return half.length === 0 || kept.length > half.length / 2;
    });
  }
}
