// The faults of `chaos mesh`, in two lanes at the same time: sites and their nodes, and the wires between them. Every kind happens once
// before any happens twice; each is known to have happened, or the run fails.

import { assertNever } from "../../src/core/kit/assert.ts";
import { setTimeout as sleep } from "node:timers/promises";
import type { Random } from "../../src/core/kit/random.ts";
import { type TenureNode, waitFor } from "../servers/index.ts";
import type { TestSite } from "../mesh/test-sites.ts";
import type { MeshStage, Wire } from "./mesh-stage.ts";
import { isStopped } from "./stopped.ts";

export const SITE_FAULTS = ["kill-site", "kill-leader", "stop-site", "stop-leader", "term-site", "blackout"] as const;
export const WIRE_FAULTS = ["cut", "cut-to-parent", "cut-to-child", "refuse", "reset"] as const;
export type MeshFault = (typeof SITE_FAULTS)[number] | (typeof WIRE_FAULTS)[number];

const PAUSE_MS_MAX = 1_200;
const DOWN_MS_MAX = 2_500;
const CUT_MS_MIN = 1_000;
const CUT_MS_MAX = 6_000;
const LINK_MS_MAX = 60_000;

export interface FaultsOptions {
  readonly stage: MeshStage;
  readonly random: Random;
  readonly log: (line: string) => void;
}

export class MeshFaults {
  readonly fired = new Map<MeshFault, number>();
  readonly #stage: MeshStage;
  readonly #random: Random;
  readonly #log: (line: string) => void;

  constructor({ stage, random, log }: FaultsOptions) {
    this.#stage = stage;
    this.#random = random;
    this.#log = log;
  }

  get hasTriedAll(): boolean {
    return [...SITE_FAULTS, ...WIRE_FAULTS].every((kind) => this.fired.has(kind));
  }

  /** Until `isDone`; a fault that can't happen rejects. */
  async run(signal: AbortSignal, isDone: () => boolean): Promise<void> {
    const isOver = (): boolean => signal.aborted || isDone();
    await Promise.all([
      this.#lane(SITE_FAULTS, isOver, (kind) => this.#strikeSite(kind)),
      this.#lane(WIRE_FAULTS, isOver, (kind) => this.#strikeWire(kind)),
    ]);
  }

  async #lane<Kind extends MeshFault>(
    kinds: readonly Kind[],
    isOver: () => boolean,
    strike: (kind: Kind) => Promise<string>,
  ): Promise<void> {
    let deck: Kind[] = [];
    while (!isOver()) {
      if (deck.length === 0) deck = shuffled(kinds, this.#random);
      const kind = deck.pop()!;
      const whom = await strike(kind);
      this.fired.set(kind, (this.fired.get(kind) ?? 0) + 1);
      this.#log(`${kind} ${whom}`);
      await sleep(this.#random.below(PAUSE_MS_MAX));
    }
  }

  async #strikeSite(kind: (typeof SITE_FAULTS)[number]): Promise<string> {
    const stage = this.#stage;
    const single = this.#random.pick(stage.singles);
    switch (kind) {
      case "kill-site":
        return await this.#kill(single, [single.node]);
      case "kill-leader":
        return await this.#kill(stage.hub, [await stage.waitForLeader(stage.hub)]);
      case "blackout":
        return await this.#kill(stage.hub, stage.hub.cluster.nodes);
      case "stop-site":
        return await this.#pause(single, single.node);
      case "stop-leader":
        return await this.#pause(stage.hub, await stage.waitForLeader(stage.hub));
      case "term-site":
        return await this.#term(single);
      default:
        return assertNever(kind, "fault");
    }
  }

  async #kill(site: TestSite, nodes: readonly TenureNode[]): Promise<string> {
    const before = nodes.map(({ pid }) => pid);
    await Promise.all(nodes.map((node) => node.kill9()));
    await sleep(this.#random.below(DOWN_MS_MAX));
    for (const node of nodes) this.#stage.start(node, site.id);
    await this.#stage.waitForLeader(site);
    if (nodes.some(({ pid }, at) => before[at] === undefined || pid === before[at])) {
      throw new Error(`${site.id}: a process was not killed`);
    }
    return `${site.id} (${nodes.map(({ id }) => id).join(", ")})`;
  }

  async #pause(site: TestSite, node: TenureNode): Promise<string> {
    node.stop();
    try {
      await waitFor(`${site.id}/${node.id} to be stopped`, () => isStopped(node.pid));
      await sleep(this.#random.between(CUT_MS_MIN, CUT_MS_MAX));
    } finally {
      node.cont();
    }
    await this.#stage.waitForLeader(site);
    return `${site.id}/${node.id}`;
  }

  async #term(site: TestSite): Promise<string> {
    const code = await site.node.term();
    if (code !== 0) throw new Error(`${site.id} ended with ${code} after SIGTERM: ${site.node.log().slice(-1_000)}`);
    this.#stage.start(site.node, site.id);
    await this.#stage.waitForLeader(site);
    return site.id;
  }

  async #strikeWire(kind: (typeof WIRE_FAULTS)[number]): Promise<string> {
    const wire = this.#random.pick(this.#stage.wires);
    // Where nothing passes nothing is cut: its sites may have been killed a moment ago.
    await waitFor(`connections through ${wire.name}`, () => isUsed(wire), LINK_MS_MAX).catch(async (error: unknown) => {
      throw new Error(`${(error as Error).message}\n${await this.#stage.links()}`);
    });
    if (kind === "reset") {
      for (const proxy of wire.proxies) proxy.reset();
      return wire.name;
    }
    for (const proxy of wire.proxies) {
      if (kind === "cut-to-parent") proxy.cut("to-server");
      else if (kind === "cut-to-child") proxy.cut("to-client");
      else proxy.cut("both", kind === "refuse" ? "refused" : "unanswered");
    }
    await sleep(this.#random.between(CUT_MS_MIN, CUT_MS_MAX));
    const how = this.#random.chance(0.5) ? "resume" : "reset";
    for (const proxy of wire.proxies) await proxy.heal(how);
    return `${wire.name}, then ${how}`;
  }
}

function isUsed({ proxies }: Wire): boolean {
  return proxies.some(({ connections }) => connections > 0);
}

function shuffled<T>(of: readonly T[], random: Random): T[] {
  const rest = [...of];
  const deck: T[] = [];
  while (rest.length > 0) deck.push(...rest.splice(random.below(rest.length), 1));
  return deck;
}
