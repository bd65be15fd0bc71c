// Holds what nodes say against what their disks hold at that moment, synced bytes alone (trap 2, 25, 26): chance needs a crash at
// the right instant to show that a promise was told too early; the disks show it at once.
//
// - an entry is committed, as first reported by anybody: it is on the disks of a majority of the voters, of both halves where
//   the configuration is joint;
// - an acknowledged append is on the disk of whoever acknowledges it;
// - a vote, a candidate's for itself included, is on the disk of whoever gives it.
//
// A disk that was lost counts as it was when it was lost: what it had promised was true then.

import { incarnationOf, nodeIdOf, type PeerKey } from "../../core/kit/ids.ts";
import { decodeMessage, type Configuration, type Message } from "../../core/raft/index.ts";
import { ENVELOPE_HEADER_BYTES } from "../../engine/envelope.ts";
import type { Digest } from "../../ports/digest.ts";
import type { World } from "../kernel/index.ts";
import { Platter } from "./platter.ts";

/** What promises anything is short; the rest is not decoded a second time. */
export const PROMISE_BYTES_MAX = 300;

/** Every founder begins with the same first entry, whatever the others have written yet. */
const FOUNDING_INDEX = 1;

export class DiskWitness {
  readonly #world: World;
  readonly #digest: Digest;
  readonly #platters = new Map<PeerKey, Platter>();
  readonly #lost = new Set<PeerKey>();

  constructor(world: World, digest: Digest) {
    this.#world = world;
    this.#digest = digest;
  }

  /** Its disk may hold less than before the restart: a torn tail was cut, or somebody else's mistake forgot more. */
  started(peer: PeerKey): void {
    for (const other of this.#platters.keys()) {
      if (nodeIdOf(other) === nodeIdOf(peer) && incarnationOf(other) !== incarnationOf(peer)) this.#lost.add(other);
    }
    this.#lost.delete(peer);
    this.#platters.delete(peer);
    this.#platter(peer);
  }

  /** Before a disk is lost or damaged. */
  losing(node: string): void {
    for (const peer of this.#platters.keys()) {
      if (nodeIdOf(peer) !== node) continue;
      this.#platter(peer);
      this.#lost.add(peer);
    }
  }

  /** A message leaves, as the network carries it. */
  sent(clusterId: string, bytes: Uint8Array): void {
    if (bytes.length > PROMISE_BYTES_MAX) return;
    const decoded = decodeMessage(bytes.subarray(ENVELOPE_HEADER_BYTES), clusterId);
    if (decoded.ok) this.says(decoded.message);
  }

  says(message: Message): void {
    const { from, to, term } = message;
    switch (message.type) {
      case "MsgVoteResp":
        if (!message.reject) this.#checkVote(from, to, term);
        return;
      case "MsgVote":
        this.#checkVote(from, from, term);
        return;
      case "MsgAppResp": {
        if (message.reject) return;
        const { lastIndex, highestIndex, hardState } = this.#platter(from);
        // One write may hold the entries of one leader and, after them, those of the next one, which cut them off. The first
        // leader is answered after that write: too late to be of use, and true as of between the two. Nobody is misled: what a
        // voter has taken it counts as its own from then on, on disk or not, when it compares logs.
        const wasCutOff = hardState.term > term && highestIndex >= message.index;
        if (lastIndex < message.index && !wasCutOff)
          this.#fail(from, `acknowledged before durable: entry ${message.index}, its disk ends at ${lastIndex}`);
        return;
      }
      default:
        return;
    }
  }

  committed(node: string, index: number, term: number, { voters, votersOutgoing }: Configuration): void {
    if (index <= FOUNDING_INDEX) return;
    for (const half of [voters, votersOutgoing]) {
      const holders = half.filter((peer) => this.#holds(peer, index, term));
      if (half.length > 0 && holders.length <= half.length / 2) {
        const where = holders.length === 0 ? "no disk" : `the disks of ${holders.join(", ")} alone`;
        this.#fail(node, `committed before durable: entry ${index} is on ${where}, of ${half.join(", ")}`);
      }
    }
  }

  #checkVote(from: PeerKey, to: PeerKey, term: number): void {
    const { hardState } = this.#platter(from);
    if (hardState.term > term || (hardState.term === term && hardState.vote === to)) return;
    const held = `term ${hardState.term} and a vote for ${hardState.vote ?? "nobody"}`;
    this.#fail(from, `a vote told before it was durable: for ${to} in term ${term}; its disk holds ${held}`);
  }

  #holds(peer: PeerKey, index: number, term: number): boolean {
    return this.#platters.get(peer)?.has(index, term) === true || this.#platter(peer).has(index, term);
  }

  /** As its disk is now. */
  #platter(peer: PeerKey): Platter {
    const known = this.#platters.get(peer);
    const platter = known ?? new Platter(peer, this.#digest);
    if (known === undefined) this.#platters.set(peer, platter);
    if (this.#lost.has(peer)) return platter;
    platter.look(this.#world.node(nodeIdOf(peer)).disk);
    if (platter.fault !== null) this.#fail(peer, platter.fault);
    return platter;
  }

  #fail(node: string, message: string): void {
    this.#world.report(node, new Error(message));
  }
}
