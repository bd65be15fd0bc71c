// The sites of a run, their edges, and what can go wrong with both. Whoever has a parent dials it for ever: an edge whose connection ended,
// or never came up, is tried again.

import type { Random } from "../../core/kit/random.ts";
import { reached, World } from "../kernel/index.ts";
import { Connection } from "./connection.ts";
import type { SpreadKnobs } from "./knobs.ts";
import { DIAL_AGAIN_MS, SILENCE_NOTICED_MS } from "./limits.ts";
import { SpreadOracle } from "./oracle.ts";
import { Site } from "./site.ts";
import { type Edge, edgesOf } from "./topology.ts";

export interface Joint {
  readonly sites: readonly [Site, Site];
  connection: Connection | null;
  connections: number;
  cutUntilMs: number;
}

interface StageOptions {
  readonly seed: string;
  readonly knobs: SpreadKnobs;
  readonly random: Random;
  readonly narrate?: ((atMs: number, owner: string, text: string) => void) | undefined;
  readonly reversed?: boolean | undefined;
}

export class Stage {
  readonly world: World;
  readonly oracle: SpreadOracle;
  readonly knobs: SpreadKnobs;
  readonly sites: readonly Site[];
  readonly edges: readonly Edge[];
  readonly #joints: readonly Joint[];
  readonly #random: Random;
  readonly #reversed: boolean;
  #isCalm = false;

  constructor({ seed, knobs, random, narrate, reversed }: StageOptions) {
    // Sites are not the kernel's nodes: they have neither disks nor clocks of their own.
    this.world = new World({ seed, nodes: [], start: () => {}, trace: narrate });
    this.knobs = knobs;
    this.#random = random;
    const { world } = this;
    this.oracle = new SpreadOracle(world, knobs.crowd);
    this.sites = Array.from({ length: knobs.sites }, (_, at) => {
      const name = `n${at + 1}`;
      const site = random.fork(`site/${name}`);
      return new Site(name, at < knobs.writers, { world, oracle: this.oracle, knobs, random: site });
    });
    this.edges = edgesOf(knobs.shape, knobs.sites, knobs.linksPerSite, random.fork("edges"));
    const joints = this.edges.map(([a, b]): Joint => {
      return { sites: [this.sites[a]!, this.sites[b]!], connection: null, connections: 0, cutUntilMs: 0 };
    });
    this.#joints = joints;
    this.#reversed = reversed === true;
  }

  begin(): void {
    for (const site of this.sites) site.start();
    const joints = this.#reversed ? this.#joints.toReversed() : this.#joints;
    for (const joint of joints) this.#dialAfter(joint, this.#randomOf(joint).between(0, DIAL_AGAIN_MS));
    for (const site of this.sites)
      if (site.own !== null) this.#writeSoon(site, this.#random.fork(`writes/${site.name}`));
  }

  /** Everything runs and is connected again, and nobody writes any more. */
  calmDown(): void {
    this.#isCalm = true;
    for (const site of this.sites) {
      site.damagedUntilMs = 0;
      site.unreadableUntilMs = 0;
      site.start();
    }
    for (const joint of this.#joints) joint.cutUntilMs = 0;
  }

  // Faults; each ends by itself. What they return: whether they had an effect.

  crash(place: number, forMs: number, isWiped = false): boolean {
    const site = this.sites[place]!;
    if (this.#isCalm || !site.stop()) return false;
    for (const joint of this.#jointsOf(site)) this.#close(joint);
    if (this.knobs.shape === "star" && place === 0) reached(this.oracle.probes, "hub-was-down");
    // What a writer wrote is its history: a writer that loses it begins another line (designs/mesh.md, "Restored disk").
    if (isWiped && site.own === null) {
      site.wipe();
      reached(this.oracle.probes, "wiped-site-came-back");
    }
    this.#after(forMs, site.name, () => site.start());
    return true;
  }

  /** `isSilent`: both ends find out later. */
  cut(edge: number, forMs: number, isSilent: boolean): boolean {
    const [a, b] = this.edges[edge]!;
    const joint = this.#joints.find(({ sites }) => sites[0] === this.sites[a] && sites[1] === this.sites[b])!;
    const { connection } = joint;
    if (this.#isCalm || connection?.isOpen !== true) return false;
    joint.cutUntilMs = this.world.nowMs + forMs;
    if (!isSilent) {
      this.#close(joint);
      return true;
    }
    connection.isBlack = true;
    this.#after(SILENCE_NOTICED_MS, joint.sites[0].name, () => {
      if (joint.connection === connection) this.#close(joint);
    });
    return true;
  }

  damage(place: number, forMs: number): boolean {
    this.sites[place]!.damagedUntilMs = this.world.nowMs + forMs;
    return true;
  }

  hide(place: number, forMs: number): boolean {
    this.sites[place]!.unreadableUntilMs = this.world.nowMs + forMs;
    return true;
  }

  forget(place: number): boolean {
    const hasForgotten = this.sites[place]!.forget();
    if (hasForgotten) reached(this.oracle.probes, "arrived-and-forgotten");
    return hasForgotten;
  }

  // Connections

  #close(joint: Joint): void {
    joint.connection?.close();
    joint.connection = null;
    this.#dialAfter(joint, this.#randomOf(joint).between(1, DIAL_AGAIN_MS));
  }

  #dialAfter(joint: Joint, afterMs: number): void {
    this.#after(afterMs, `${joint.sites[0].name}-${joint.sites[1].name}`, () => this.#dial(joint));
  }

  #dial(joint: Joint): void {
    if (joint.connection !== null) return;
    const { world, knobs, oracle } = this;
    const isReachable = joint.sites.every(({ spread }) => spread !== null) && joint.cutUntilMs <= world.nowMs;
    if (!isReachable) return this.#dialAfter(joint, DIAL_AGAIN_MS);
    const number = ++joint.connections;
    const id = `${joint.sites[0].name}-${joint.sites[1].name}#${number}`;
    const random = this.#randomOf(joint);
    joint.connection = new Connection(world, random, id, joint.sites, knobs, (message) => oracle.lost(message));
  }

  #writeSoon(site: Site, random: Random): void {
    this.#after(this.knobs.writeEveryMs * random.between(0.2, 1.8), site.name, () => {
      if (this.#isCalm) return;
      site.write();
      this.#writeSoon(site, random);
    });
  }

  #jointsOf(site: Site): readonly Joint[] {
    return this.#joints.filter(({ sites }) => sites.includes(site));
  }

  #randomOf({ sites, connections }: Joint): Random {
    return this.#random.fork(`joint/${sites[0].name}/${sites[1].name}/${connections}`);
  }

  #after(afterMs: number, owner: string, fire: () => void): void {
    const { scheduler, nowMs } = this.world;
    scheduler.schedule(nowMs + afterMs, scheduler.owner(owner), fire);
  }
}
