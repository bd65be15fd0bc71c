// The history of events of simulated servers: production's archive (logs/archive) on each server's own disk, and its exchange of
// segments with the others. Answers come late or never, and one server of a run may send other bytes than those that it has.

import type { ReplayHistory } from "../../controller/jobs/replay.ts";
import type { PeerKey } from "../../core/kit/ids.ts";
import type { Random } from "../../core/kit/random.ts";
import { members } from "../../core/raft/index.ts";
import type { Engine } from "../../engine/engine.ts";
import { Archive, exchangeSegments } from "../../logs/index.ts";
import type { Digest } from "../../ports/digest.ts";
import type { Answering, PeerQueries } from "../../ports/peers/queries.ts";
import type { Boot, World } from "../kernel/index.ts";
import type { JobsKnobs } from "./knobs.ts";
import { type JobsProbeCounts, reached } from "./probes.ts";

/** Small, so that a run has many segments. */
const LIMITS = { bytesMax: 1024 * 1024, blockBytesMax: 2_048 };
const WAY_MS: readonly [number, number] = [0.2, 4];
/** Longer than this is a question that nobody answers: the fetcher does not wait for so long. */
const UNANSWERED_RATE = 0.05;
const LIE_RATE = 0.3;
const NO_LOGGER = { debug() {}, info() {}, warn() {}, error() {} };

interface HistoriesOptions {
  readonly world: World;
  readonly names: readonly string[];
  readonly digest: Digest;
  readonly knobs: JobsKnobs;
  readonly probes: JobsProbeCounts;
}

/** Of a process that answers. */
interface Answerer {
  readonly life: number;
  answer: Answering;
  askable: (peer: PeerKey) => void;
}

export class Histories {
  readonly #options: HistoriesOptions;
  readonly #answerers = new Map<string, Answerer>();
  readonly #random: Random;
  readonly #liar: string | null;

  constructor(options: HistoriesOptions) {
    this.#options = options;
    this.#random = options.world.random.fork("histories");
    this.#liar = options.knobs.historyLies ? this.#random.pick(options.names) : null;
  }

  async open({ disk, clock, fatal }: Boot): Promise<Archive> {
    const { digest, knobs } = this.#options;
    const limits = { ...LIMITS, eventsMax: knobs.segmentEvents };
    const { archive } = await Archive.open({ disk, digest, clock, limits, failed: fatal });
    return archive;
  }

  /** What the views of this server are built from. */
  replayed(archive: Archive): ReplayHistory {
    const { probes } = this.#options;
    return {
      stats: () => archive.stats(),
      missing: () => archive.missing(),
      lost: () => archive.lost(),
      read: (from, max) => {
        reached(probes, "missed-events-read");
        if (archive.missing().some(({ first, last }) => first < from + max && last >= from))
          reached(probes, "missed-events-not-there-yet");
        return archive.read(from, max);
      },
    };
  }

  exchange(boot: Boot, engine: Engine, archive: Archive, changed: () => void): void {
    const { probes } = this.#options;
    const others = (): PeerKey[] => {
      const { peer, configuration } = engine.status();
      return members(configuration).filter((member) => member !== peer);
    };
    const fetcher = exchangeSegments({
      archive,
      queries: this.#queries(boot, engine.peer, others),
      members: others,
      clock: boot.clock,
      random: boot.random.fork("history"),
      logger: NO_LOGGER,
      changed: () => {
        reached(probes, "segment-fetched");
        if (fetcher.counts.refused > 0) reached(probes, "segment-refused");
        changed();
      },
    });
    for (const [name, one] of this.#answerers) if (name !== boot.node && this.#isUp(name)) one.askable(engine.peer);
  }

  /** While it does not run: its history is gone, but not of what nobody else has. */
  wipe(node: string): void {
    const { world, names } = this.#options;
    const { disk } = world.node(node);
    const holders = names.filter((name) => name !== node && name !== this.#liar);
    const isElsewhere = (name: string): boolean => {
      const bytes = disk.durableContent(name)?.length ?? 0;
      return holders.some((one) => (world.node(one).disk.durableContent(name)?.length ?? -1) >= bytes);
    };
    const isHistory = (name: string): boolean => /^(tmp-|damaged-|former-)?events-/.test(name);
    if (disk.directory.names().every((name) => !/^events-\d/.test(name) || isElsewhere(name))) disk.lose(isHistory);
  }

  #isUp(node: string): boolean {
    return this.#options.world.node(node).process.life?.number === this.#answerers.get(node)?.life;
  }

  #queries({ node, life }: Boot, self: PeerKey, others: () => PeerKey[]): PeerQueries {
    const { network } = this.#options.world;
    const own: Answerer = { life, answer: () => Promise.resolve(null), askable: () => undefined };
    this.#answerers.set(node, own);
    const isOpen = (to: string): boolean => network.link(node, to).open && network.link(to, node).open;
    return {
      askable: () => others().filter((peer) => this.#isUp(nameOf(peer)) && isOpen(nameOf(peer))),
      ask: (peer, query) =>
        new Promise((resolve) => {
          const to = nameOf(peer);
          this.#later(node, WAY_MS, () => {
            if (!isOpen(to)) return;
            this.#at(to, this.#answerers.get(to)?.life, async () => {
              const answer = await this.#answerers.get(to)!.answer(self, query);
              const fetchMs = this.#options.knobs.historyFetchMs / 8;
              if (this.#random.chance(UNANSWERED_RATE)) return;
              this.#later(to, [0, fetchMs], () => {
                if (isOpen(to)) this.#at(node, life, () => Promise.resolve(resolve(this.#sent(to, answer))));
              });
            });
          });
        }),
      onQuery: (answer) => (own.answer = answer),
      onAskable: (listener) => (own.askable = listener),
    };
  }

  /** A liar's: one bit is another. */
  #sent(from: string, answer: Uint8Array | null): Uint8Array | null {
    if (answer === null || from !== this.#liar || answer.length < 64 || !this.#random.chance(LIE_RATE)) return answer;
    const bytes = answer.slice();
    bytes[this.#random.below(bytes.length)]! ^= 1 << this.#random.below(8);
    return bytes;
  }

  #at(node: string, life: number | undefined, what: () => Promise<void>): void {
    const { world } = this.#options;
    const lives = (): boolean => world.node(node).process.life?.number === life;
    world.call(node, () => {
      if (lives()) what().catch((error: unknown) => lives() && world.report(node, error));
    });
  }

  #later(node: string, withinMs: readonly [number, number], what: () => void): void {
    const { scheduler } = this.#options.world;
    scheduler.schedule(scheduler.nowMs + this.#random.between(...withinMs), scheduler.owner(`history/${node}`), what);
  }
}

function nameOf(peer: PeerKey): string {
  return peer.split("@")[0]!;
}
