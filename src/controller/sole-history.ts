// Keeps a disk in the cluster while it may hold the only copy of a part of the history: a voter lacks events, and none of those
// that would stay is known to have them. `member remove` and `replace` are refused then, unless they are forced; the leader's
// own swap of a lost disk waits, until somebody has fetched them or an operator forces it.
//
//   a new disk of a member is seen ──▶ its old disk is kept ──every member was asked, nothing is at risk──▶ it may be swapped
//
// Members that do not answer, or are of an earlier release, count for nobody: they may have everything, or nothing.

import { soleCopies, type EventRange, type Lacks } from "../core/archive/index.ts";
import { TenureError } from "../core/kit/errors.ts";
import { nodeIdOf, type PeerKey } from "../core/kit/ids.ts";
import { members, type Configuration } from "../core/raft/index.ts";
import type { Clock, Timer } from "../ports/clock.ts";
import type { Consensus } from "../ports/consensus.ts";
import type { Logger } from "../ports/logger.ts";
import type { Peers } from "../ports/peers.ts";

/** Below the silence after which a leader swaps a disk: it is kept before that. */
const LOOK_INTERVAL_MS = 500;
const RANGES_SHOWN_MAX = 4;

export interface SoleHistoryOptions {
  readonly consensus: Consensus;
  readonly peers: Pick<Peers, "list">;
  readonly clock: Clock;
  readonly logger: Logger;
  /** What a member lacks, this one too; null: it does not say. Absent: there is no history that could be lost. */
  readonly lacks?: ((peer: PeerKey) => Promise<Lacks | null>) | undefined;
}

export class SoleHistory {
  readonly #options: SoleHistoryOptions;
  #timer: Timer | null = null;
  #isStopped = false;
  #kept: readonly PeerKey[] = [];
  /** Nothing is at risk with them, as the last look found. */
  #cleared: ReadonlySet<PeerKey> = new Set();
  readonly #told = new Map<PeerKey, string>();

  constructor(options: SoleHistoryOptions) {
    this.#options = options;
  }

  start(): void {
    if (this.#options.lacks !== undefined) this.#lookAgain();
  }

  stop(): void {
    this.#isStopped = true;
    this.#timer?.cancel();
  }

  /** Throws CONF_CHANGE_INVALID where events may be lost with the disks that leave. */
  async refuse(configuration: Configuration, leaving: readonly PeerKey[]): Promise<void> {
    const risked = await this.#risked(configuration, leaving);
    if (risked.length === 0) return;
    const nodeId = nodeIdOf(leaving[0]!);
    const why = `${eventsText(risked)} of the history are missing on another voter, no member that stays is known to have them, and ${nodeId} may: they could be lost with its disk. Wait until the others have fetched them (\`tenure event verify\`), bring back members that are down, or use --force to give them up`;
    throw new TenureError("CONF_CHANGE_INVALID", why);
  }

  async #risked(configuration: Configuration, leaving: readonly PeerKey[]): Promise<EventRange[]> {
    const { lacks } = this.#options;
    if (lacks === undefined) return [];
    const asked = (peers: readonly PeerKey[]): Promise<(Lacks | null)[]> =>
      Promise.all(peers.map((peer) => lacks(peer)));
    const staying = members(configuration).filter((peer) => !leaving.includes(peer));
    const isVoter = (peer: PeerKey): boolean =>
      configuration.voters.includes(peer) || configuration.votersOutgoing.includes(peer);
    const [voters, others, gone] = await Promise.all([
      asked(staying.filter(isVoter)),
      asked(staying.filter((peer) => !isVoter(peer))),
      asked(leaving),
    ]);
    return soleCopies(voters, others, gone);
  }

  // ---- the leader's own swaps ----------------------------------------------------------------------

  #lookAgain(): void {
    const { clock } = this.#options;
    if (this.#isStopped) return;
    this.#timer = clock.setTimer(clock.monotonicMs() + LOOK_INTERVAL_MS, () => {
      void this.#look().then(
        () => this.#lookAgain(),
        () => this.#lookAgain(),
      );
    });
  }

  async #look(): Promise<void> {
    const { consensus } = this.#options;
    const { role, peer: self, configuration } = consensus.status();
    const replaced = role === "leader" ? this.#replacedDisks(self, configuration) : [];
    for (const peer of this.#told.keys()) if (!replaced.includes(peer)) this.#told.delete(peer);
    // A new one is kept before the others have answered: a leader does not wait for long.
    this.#keep(replaced.filter((peer) => !this.#cleared.has(peer)));
    const cleared = new Set<PeerKey>();
    for (const peer of replaced) {
      const risked = await this.#risked(configuration, [peer]);
      if (risked.length === 0) cleared.add(peer);
      else this.#tell(peer, eventsText(risked));
    }
    if (this.#isStopped) return;
    this.#cleared = cleared;
    this.#keep(replaced.filter((peer) => !cleared.has(peer)));
  }

  /** Disks of members that another one was seen in the place of. */
  #replacedDisks(self: PeerKey, configuration: Configuration): PeerKey[] {
    const present = new Map(this.#options.peers.list().map(({ nodeId, peer }) => [nodeId, peer]));
    return members(configuration).filter((peer) => {
      const seen = peer === self ? null : (present.get(nodeIdOf(peer)) ?? null);
      return seen !== null && seen !== peer;
    });
  }

  #keep(peers: readonly PeerKey[]): void {
    if (peers.length === 0 && this.#kept.length === 0) return;
    this.#kept = peers;
    this.#options.consensus.keepDisks(peers);
  }

  #tell(peer: PeerKey, events: string): void {
    if (this.#told.get(peer) === events) return;
    this.#told.set(peer, events);
    const nodeId = nodeIdOf(peer);
    const text = `the new disk of ${nodeId} does not take the place of the old one yet: ${events} of the history are missing on another voter, and only the old disk may have them. Start ${nodeId} with the old disk if it can be read, or give them up with \`tenure member replace ${nodeId} --force\``;
    this.#options.logger.warn({ event: "disk-kept", about: nodeId, disk: peer }, text);
  }
}

function eventsText(ranges: readonly EventRange[]): string {
  const shown = ranges.slice(0, RANGES_SHOWN_MAX).map(({ first, last }) => `${first} to ${last}`);
  return `events ${shown.join(", ")}${ranges.length > shown.length ? " and more" : ""}`;
}
