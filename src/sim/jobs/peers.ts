// What simulated servers say to each other next to consensus, over the world's links: beacons, and questions with their answers.
// Answers come late or never, and one server of a run may send other bytes than those that it has.

import { nodeIdOf, type PeerKey } from "../../core/kit/ids.ts";
import type { Random } from "../../core/kit/random.ts";
import type { Peers } from "../../ports/peers/peers.ts";
import type { Answering, PeerQueries } from "../../ports/peers/queries.ts";
import type { Boot, World } from "../kernel/index.ts";
import type { JobsKnobs } from "./knobs.ts";

/** Servers of a run speak it, or a later one (values/releases.ts). */
export const PROTOCOL = 1;
const WAY_MS: readonly [number, number] = [0.2, 4];
/** Longer than this is a question that nobody answers: the fetcher does not wait for so long. */
const UNANSWERED_RATE = 0.05;
const LIE_RATE = 0.3;
/** Longer answers are pieces of the history. */
const SHORT_BYTES = 64;

/** A process that listens. */
interface Listener {
  readonly isAlive: () => boolean;
  readonly self: PeerKey;
  beacon: (from: PeerKey, beacon: Uint8Array) => void;
  answer: Answering;
  askable: (peer: PeerKey) => void;
}

/** Servers of one cluster. Several clusters may be in one world, with streams of their own. */
interface PeersStage {
  readonly world: World;
  readonly random: Random;
  readonly names: readonly string[];
  readonly knobs: Pick<JobsKnobs, "historyLies" | "historyFetchMs">;
  /** A question that was not answered by then is answered with null; undefined: whoever asks has a limit of its own. */
  readonly answersInMs?: number | undefined;
  /** By server; undefined: PROTOCOL. */
  readonly protocolOf?: ((node: string) => number) | undefined;
}

export class SimPeers {
  readonly liar: string | null;
  readonly #cluster: PeersStage;
  readonly #listeners = new Map<string, Listener>();
  readonly #random: Random;
  readonly #beacons: Random;

  constructor(cluster: PeersStage) {
    this.#cluster = cluster;
    this.#random = cluster.random.fork("histories");
    this.#beacons = cluster.random.fork("beacons");
    this.liar = cluster.knobs.historyLies ? this.#random.pick(cluster.names) : null;
  }

  /** As the server of this process, which is that peer, sees the others. */
  of({ node, isAlive }: Boot, self: PeerKey): Peers & PeerQueries {
    const own: Listener = {
      isAlive,
      self,
      beacon: () => undefined,
      answer: () => Promise.resolve(null),
      askable: () => undefined,
    };
    this.#listeners.set(node, own);
    const others = this.#cluster.names.filter((name) => name !== node);
    const heard = others.filter((name) => this.#connected(node, name) !== undefined);
    for (const name of heard) this.#at(name, async () => this.#listeners.get(name)!.askable(self));
    return {
      list: () =>
        others.map((name) => {
          const isConnected = this.#connected(node, name) !== undefined;
          const peer = this.#listeners.get(name)?.self ?? null;
          const protocol = this.#cluster.protocolOf?.(name) ?? PROTOCOL;
          const known = { nodeId: name, peer, address: `${name}:7000`, apiUrl: `http://${name}`, protocol };
          return { ...known, isConnected, trouble: isConnected ? null : "nobody listens" };
        }),
      broadcast: (beacon) => {
        for (const to of others)
          this.#carry(this.#beacons, [node, to], WAY_MS, async (there) => there.beacon(self, beacon));
      },
      onBeacon: (listener) => (own.beacon = listener),
      askable: () => others.flatMap((name) => this.#connected(node, name)?.self ?? []),
      ask: (peer, query) => this.#ask(own, [node, nodeIdOf(peer)], query),
      onQuery: (answer) => (own.answer = answer),
      onAskable: (listener) => (own.askable = listener),
    };
  }

  #ask(own: Listener, [node, to]: readonly [string, string], query: Uint8Array): Promise<Uint8Array | null> {
    return new Promise((resolve) => {
      const { world, answersInMs } = this.#cluster;
      if (answersInMs !== undefined) {
        const { scheduler } = world;
        scheduler.schedule(scheduler.nowMs + answersInMs, scheduler.owner(`peers/${node}`), () =>
          this.#at(node, async () => resolve(null)),
        );
      }
      this.#carry(this.#random, [node, to], WAY_MS, async (there) => {
        const answer = await there.answer(own.self, query);
        if (this.#random.chance(UNANSWERED_RATE)) return;
        const isLong = (answer?.length ?? 0) > SHORT_BYTES;
        const withinMs = isLong ? ([0, this.#cluster.knobs.historyFetchMs / 8] as const) : WAY_MS;
        this.#carry(this.#random, [to, node], withinMs, async (back) => {
          if (back === own) resolve(this.#sent(to, answer));
        });
      });
    });
  }

  /** Who listens there; undefined: nobody, or not for this one. */
  #connected(from: string, to: string): Listener | undefined {
    const { world } = this.#cluster;
    const listener = this.#listeners.get(to);
    const isUp = listener?.isAlive() === true;
    return isUp && world.network.link(from, to).open && world.network.link(to, from).open ? listener : undefined;
  }

  #carry(
    random: Random,
    [from, to]: readonly [string, string],
    withinMs: readonly [number, number],
    arrived: (there: Listener) => Promise<void>,
  ): void {
    const { scheduler } = this.#cluster.world;
    const atMs = scheduler.nowMs + random.between(...withinMs);
    scheduler.schedule(atMs, scheduler.owner(`peers/${from}`), () => {
      const there = this.#connected(from, to);
      if (there !== undefined) this.#at(to, () => arrived(there));
    });
  }

  /** In the process that listens there. */
  #at(node: string, what: () => Promise<void>): void {
    const { world } = this.#cluster;
    const isAlive = this.#listeners.get(node)?.isAlive;
    world.call(node, () => {
      if (isAlive?.() === true) what().catch((error: unknown) => isAlive() && world.report(node, error));
    });
  }

  /** A liar's: one bit is another. */
  #sent(from: string, answer: Uint8Array | null): Uint8Array | null {
    if (answer === null || from !== this.liar || answer.length < SHORT_BYTES) return answer;
    if (!this.#random.chance(LIE_RATE)) return answer;
    const bytes = answer.slice();
    bytes[this.#random.below(bytes.length)]! ^= 1 << this.#random.below(8);
    return bytes;
  }
}
