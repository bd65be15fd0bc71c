// Keeps a disk in the cluster while it may hold the only copy of a part of the history: a voter lacks events, and none of those
// that would stay is known to have them. `member remove` and `replace` are refused then, unless they are forced; the leader's
// own swap of a lost disk waits, until somebody has fetched them or an operator forces it.
//
//   a new disk of a member is seen ──every member was asked, nothing is at risk──▶ its old disk is cleared: it may be swapped
//
// The engine is made with `swapsNeedClearance`: what was not asked about yet, or by a leader before, is kept.
//
// Members that do not answer, or are of an earlier release, count for nobody: they may have everything, or nothing.

import { soleCopies, type EventRange, type Lacks } from "../../core/archive/index.ts";
import { TenureError } from "../../core/kit/errors.ts";
import { nodeIdOf, type PeerKey } from "../../core/kit/ids.ts";
import { RANGES_SHOWN_MAX } from "../../core/kit/limits.ts";
import { emptyConfiguration, isVoter, members, type ClearedDisks, type Configuration } from "../../core/raft/index.ts";
import type { Clock, Timer } from "../../ports/clock.ts";
import type { Lead, Members } from "../../ports/consensus.ts";
import type { Logger } from "../../ports/logger.ts";
import type { Peers } from "../../ports/peers/peers.ts";
import { SOLE_HISTORY_CHECK_MS } from "./limits.ts";

const NONE: ClearedDisks = { peers: [], configuration: emptyConfiguration() };

export interface SoleHistoryOptions {
  readonly consensus: Pick<Lead, "status"> & Pick<Members, "clearDisks">;
  readonly peers: Pick<Peers, "list">;
  readonly clock: Clock;
  readonly logger: Logger;
  /** What a member lacks, this one too; null: it does not say. Absent: there is no history that could be lost. */
  readonly lacks?: ((peer: PeerKey) => Promise<Lacks | null>) | undefined;
  /** The same of receipts of other sites' events. Absent: there are none. */
  readonly lacksReceipts?: ((peer: PeerKey) => Promise<Lacks | null>) | undefined;
}

/** What every member says that it lacks, of each history. */
interface Said {
  readonly events: ReadonlyMap<PeerKey, Lacks | null>;
  readonly receipts: ReadonlyMap<PeerKey, Lacks | null>;
}

export class SoleHistory {
  readonly #options: SoleHistoryOptions;
  #timer: Timer | null = null;
  #isStopped = false;
  /** Nothing is at risk with them, as the last look found. */
  #cleared: ClearedDisks = NONE;
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
    const risk = riskText(configuration, leaving, await this.#said(configuration));
    if (risk === null) return;
    const nodeId = nodeIdOf(leaving[0]!);
    const why = `${risk} of the history are missing on another voter, no member that stays is known to have them, and ${nodeId} may: they could be lost with its disk. Wait until the others have fetched them (\`tenure event verify\`), bring back members that are down, or use --force to give them up`;
    throw new TenureError("CONF_CHANGE_INVALID", why);
  }

  /** What every member says, asked once, all at the same time. */
  async #said(configuration: Configuration): Promise<Said> {
    const { lacks, lacksReceipts } = this.#options;
    const ask = async (asking: SoleHistoryOptions["lacks"]): Promise<ReadonlyMap<PeerKey, Lacks | null>> => {
      if (asking === undefined) return new Map();
      const asked = members(configuration).map(async (peer) => [peer, await asking(peer)] as const);
      return new Map(await Promise.all(asked));
    };
    const [events, receipts] = await Promise.all([ask(lacks), ask(lacksReceipts)]);
    return { events, receipts };
  }

  // ---- the leader's own swaps ----------------------------------------------------------------------

  #lookAgain(): void {
    const { clock } = this.#options;
    if (this.#isStopped) return;
    this.#timer = clock.setTimer(clock.monotonicMs() + SOLE_HISTORY_CHECK_MS, () => {
      void this.#look().then(
        () => this.#lookAgain(),
        () => {
          this.#clear(NONE);
          this.#lookAgain();
        },
      );
    });
  }

  async #look(): Promise<void> {
    const { consensus } = this.#options;
    const { role, peer: self, configuration } = consensus.status();
    const replaced = role === "leader" ? this.#replacedDisks(self, configuration) : [];
    for (const peer of this.#told.keys()) if (!replaced.includes(peer)) this.#told.delete(peer);
    // What was found of one that was back meanwhile holds no longer.
    this.#clear({ ...this.#cleared, peers: this.#cleared.peers.filter((peer) => replaced.includes(peer)) });
    if (replaced.length === 0) return;
    const said = await this.#said(configuration);
    if (this.#isStopped) return;
    const peers = replaced.filter((peer) => {
      const risk = riskText(configuration, [peer], said);
      if (risk !== null) this.#tell(peer, risk);
      return risk === null;
    });
    this.#clear({ peers, configuration });
  }

  /** Disks of members that another one was seen in the place of. */
  #replacedDisks(self: PeerKey, configuration: Configuration): PeerKey[] {
    const present = new Map(this.#options.peers.list().map(({ nodeId, peer }) => [nodeId, peer]));
    return members(configuration).filter((peer) => {
      const seen = peer === self ? null : (present.get(nodeIdOf(peer)) ?? null);
      return seen !== null && seen !== peer;
    });
  }

  #clear(cleared: ClearedDisks): void {
    if (cleared.peers.length === 0 && this.#cleared.peers.length === 0) return;
    this.#cleared = cleared;
    this.#options.consensus.clearDisks(cleared);
  }

  #tell(peer: PeerKey, events: string): void {
    if (this.#told.get(peer) === events) return;
    this.#told.set(peer, events);
    const nodeId = nodeIdOf(peer);
    const text = `the new disk of ${nodeId} does not take the place of the old one yet: ${events} of the history are missing on another voter, and only the old disk may have them. Start ${nodeId} with the old disk if it can be read, or give them up with \`tenure member replace ${nodeId} --force\``;
    this.#options.logger.warn({ event: "disk-kept", about: nodeId, disk: peer }, text);
  }
}

function risked(
  configuration: Configuration,
  leaving: readonly PeerKey[],
  said: ReadonlyMap<PeerKey, Lacks | null>,
): EventRange[] {
  const answers = (peers: readonly PeerKey[]): (Lacks | null)[] => peers.map((peer) => said.get(peer) ?? null);
  const staying = members(configuration).filter((peer) => !leaving.includes(peer));
  return soleCopies(
    answers(staying.filter((peer) => isVoter(configuration, peer))),
    answers(staying.filter((peer) => !isVoter(configuration, peer))),
    answers(leaving),
  );
}

/** Null: nothing is lost with those that leave. */
function riskText(
  configuration: Configuration,
  leaving: readonly PeerKey[],
  { events, receipts }: Said,
): string | null {
  const found = [
    rangesText("events", risked(configuration, leaving, events)),
    rangesText("receipts of other sites' events", risked(configuration, leaving, receipts)),
  ].filter((text) => text !== null);
  return found.length === 0 ? null : found.join(" and ");
}

function rangesText(what: string, ranges: readonly EventRange[]): string | null {
  if (ranges.length === 0) return null;
  const shown = ranges.slice(0, RANGES_SHOWN_MAX).map(({ first, last }) => `${first} to ${last}`);
  return `${what} ${shown.join(", ")}${ranges.length > shown.length ? " and more" : ""}`;
}
