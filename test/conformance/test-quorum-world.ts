// Coordinators of production on five nodes, for the conformance suite: each with a disk, a clock, and a line to the others that can be cut. Five,
// because one case cuts off two and expects a leader; the suite's instances are on three of them. A coordinator has one scope, so each scope
// of the suite has five of its own, on the same nodes.

import { Coordinator } from "../../src/controller/coordinators/index.ts";
import { nodeIdOf, type PeerKey, peerKey } from "../../src/core/kit/ids.ts";
import { seededRandom } from "../../src/core/kit/random.ts";
import { EMPTY_LEDGER, type Ledger, majorityOf, type RosterVoter } from "../../src/core/lease/index.ts";
import { Life } from "../../src/electors/memory/life.ts";
import { VirtualTime } from "../../src/electors/memory/virtual-time.ts";
import { quorumBackend } from "../../src/electors/quorum/index.ts";
import { type Backend, type Leader, StaleEpochError } from "../../src/entry/index.ts";
import type { ConformanceWorld } from "../../src/entry/testing.ts";
import { CoordinatorQuorum } from "../../src/node/assembly/coordinators.ts";
import type { Timer } from "../../src/ports/clock.ts";
import type { Answered, CoordinatorRequest } from "../../src/ports/coordinators.ts";

const NAMES = ["a", "b", "c", "d", "e"];
const SYNC_MS = 1;
/** To the next node. */
const HALF_WAY_MS = 2;
const TIMING = quorumBackend("any", {} as CoordinatorQuorum).timing;

/** Timers of the process; nobody moves it. */
class RealTime extends VirtualTime {
  readonly #startedMs = performance.now();

  override get nowMs(): number {
    return performance.now() - this.#startedMs;
  }

  override schedule(atMs: number, fire: () => void): Timer {
    const timeout = setTimeout(fire, Math.max(0, atMs - this.nowMs));
    return { cancel: () => clearTimeout(timeout) };
  }

  override settle(): Promise<void> {
    return Promise.resolve();
  }
}

interface CoordinatorNode {
  readonly life: Life;
  readonly self: PeerKey;
  readonly quorum: CoordinatorQuorum;
  readonly backend: Backend;
}

/** The nodes, and by scope the coordinators on them. */
class Nodes {
  readonly time: VirtualTime;
  readonly #lives = new Map<string, Life>();
  readonly #coordinators = new Map<string, CoordinatorNode>();
  readonly #durable = new Map<PeerKey, Ledger>();
  readonly #metadata = new Map<string, Leader["metadata"]>();
  /** By scope: the suite's identities begin with it, and these are node ids. */
  readonly #prefixes = new Map<string, string>();
  #born = 0;

  constructor(time: VirtualTime) {
    this.time = time;
  }

  /** The process of this name; a new one where it is dead. */
  life(name: string): Life {
    const known = this.#lives.get(name);
    if (known !== undefined && known.state !== "dead") return known;
    const life = new Life(name, this.time, HALF_WAY_MS, ++this.#born * 1_000_003);
    this.#lives.set(name, life);
    return life;
  }

  backend(name: string): Backend {
    const life = this.life(name);
    const { clock } = life;
    return {
      kind: "quorum",
      host: name,
      timing: TIMING,
      clock,
      seat: (claim) => {
        const { scope, identity, metadata } = claim;
        this.#metadata.set(identity, metadata);
        if (!this.#prefixes.has(scope)) this.#prefixes.set(scope, identity.slice(0, -name.length));
        for (const one of NAMES) this.#coordinator(scope, one);
        return this.#coordinator(scope, name).backend.seat(claim);
      },
    };
  }

  /** As one whose quorum holds it would: the voters' word of the leader in force. */
  write(scope: string, epoch: number): Promise<void> {
    const inForce = this.#voters(scope).filter(({ peer }) => {
      const { grant, roster } = this.#durable.get(peer) ?? EMPTY_LEDGER;
      return grant?.term === epoch && !grant.released && roster?.term === epoch;
    });
    if (inForce.length >= majorityOf(NAMES.length)) return Promise.resolve();
    return Promise.reject(new StaleEpochError(scope, epoch));
  }

  stop(): void {
    for (const { quorum } of this.#coordinators.values()) void quorum.coordinator.stop();
    for (const life of this.#lives.values()) life.kill();
  }

  #voters(scope: string): RosterVoter[] {
    return NAMES.map((name) => ({ peer: this.#peer(scope, name), endpoint: `${scope}/${name}` }));
  }

  #peer(scope: string, name: string): PeerKey {
    return peerKey(`${this.#prefixes.get(scope)}${name}`, "1");
  }

  #ledgerOf(scope: string, self: PeerKey): Ledger {
    const roster = { term: 0, version: 1, recoveredBy: null, voters: this.#voters(scope), registry: [] };
    return this.#durable.get(self) ?? { ...EMPTY_LEDGER, clusterId: scope, roster };
  }

  #coordinator(scope: string, name: string): CoordinatorNode {
    const endpoint = `${scope}/${name}`;
    const life = this.life(name);
    const known = this.#coordinators.get(endpoint);
    if (known?.life === life) return known;
    const { clock } = life;
    const self = this.#peer(scope, name);
    const quorum = new CoordinatorQuorum({
      self,
      endpoint,
      metadataOf: (identity) => this.#metadata.get(identity) ?? {},
      make: (hooks) => ({
        coordinator: new Coordinator({
          self,
          endpoint,
          seeds: [],
          ledger: this.#ledgerOf(scope, self),
          clock,
          random: seededRandom(`${endpoint}/${this.#born}`),
          file: { write: (ledger) => this.#write(life, self, ledger) },
          calls: { call: (to, request, withinMs) => this.#call(life, self, to, request, withinMs) },
          ...hooks,
          newClusterId: () => scope,
          news: () => {},
          fatal: (error) => {
            throw error;
          },
        }),
      }),
    });
    const node = { life, self, quorum, backend: quorumBackend(scope, quorum) };
    this.#coordinators.set(endpoint, node);
    quorum.coordinator.start();
    return node;
  }

  #write({ clock }: Life, self: PeerKey, ledger: Ledger): Promise<void> {
    return new Promise((resolve) => {
      clock.setTimer(clock.monotonicMs() + SYNC_MS, () => {
        this.#durable.set(self, ledger);
        resolve();
      });
    });
  }

  #call<R extends CoordinatorRequest>(from: Life, self: PeerKey, to: string, request: R, withinMs: number) {
    const { clock } = from;
    return new Promise<Answered<R> | null>((resolve) => {
      const timer = clock.setTimer(clock.monotonicMs() + withinMs, () => resolve(null));
      const answered = (by: CoordinatorNode, answer: Answered<R>["answer"]): void => {
        timer.cancel();
        resolve({ from: nodeIdOf(by.self), answer: structuredClone(answer) });
      };
      const ask = async (node: CoordinatorNode): Promise<void> => {
        const answer = await node.quorum.coordinator.answer(nodeIdOf(self), structuredClone(request));
        node.life.send(() => from.answer(() => answered(node, answer)));
      };
      from.send(() => {
        const node = this.#coordinators.get(to);
        node?.life.answer(() => void ask(node));
      });
    });
  }
}

function worldOf(nodes: Nodes): ConformanceWorld {
  const strike = async (fault: () => void): Promise<void> => {
    fault();
    await nodes.time.settle();
  };
  return {
    create: (name) => nodes.backend(name),
    resource: { write: (scope, epoch) => nodes.write(scope, epoch) },
    // A lease outlives the process that has it.
    killFreesAtOnce: false,
    kill: (name) => strike(() => nodes.life(name).kill()),
    freeze: (name) => strike(() => nodes.life(name).freeze()),
    thaw: (name) => strike(() => nodes.life(name).thaw()),
    cut: (name) => strike(() => nodes.life(name).cut()),
    heal: (name) => strike(() => nodes.life(name).heal()),
    dispose: async () => nodes.stop(),
  };
}

export function quorumWorld(): ConformanceWorld {
  const nodes = new Nodes(new VirtualTime(() => new Promise((resolve) => void setImmediate(resolve))));
  return { ...worldOf(nodes), advance: (ms) => nodes.time.advance(ms) };
}

/** In real time. The suite closes what was killed, too, so it is cut off instead, for ever. */
export function realQuorumWorld(): ConformanceWorld {
  const nodes = new Nodes(new RealTime(() => Promise.resolve()));
  return { ...worldOf(nodes), kill: async (name) => nodes.life(name).cut() };
}
