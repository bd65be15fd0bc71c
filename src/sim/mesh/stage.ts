// The sites of a simulated mesh in one world: their nodes, the network between them, who works there, and what is known to be true.

import type { Digest } from "../../ports/digest.ts";
import { World } from "../kernel/index.ts";
import { type MeshKnobs, SITES } from "./knobs.ts";
import { Ledger } from "./ledger.ts";
import type { MeshProbeCounts } from "./probes.ts";
import type { MeshRunOptions } from "./run.ts";
import { namesOf, SimSite } from "./site.ts";
import { SiteWork } from "./work.ts";

const RESTART_AFTER_EXIT_MS = 50;

export interface MeshStageOptions extends Pick<MeshRunOptions, "digest" | "narrate" | "reversed"> {
  readonly seed: string;
  readonly knobs: MeshKnobs;
}

export class MeshStage {
  readonly world: World;
  readonly knobs: MeshKnobs;
  readonly digest: Digest;
  readonly probes: MeshProbeCounts = {};
  readonly ledger: Ledger;
  readonly nodes: readonly string[];
  readonly sites: readonly SimSite[];
  readonly #works: readonly SiteWork[];
  readonly #siteOf = new Map<string, SimSite>();

  constructor(options: MeshStageOptions) {
    this.knobs = options.knobs;
    this.digest = options.digest;
    this.nodes = SITES.flatMap((site) => namesOf(site, this.knobs));
    this.world = new World({
      seed: options.seed,
      nodes: options.reversed === true ? this.nodes.toReversed() : this.nodes,
      link: this.knobs.link,
      disk: this.knobs.disk,
      restartAfterExitMs: RESTART_AFTER_EXIT_MS,
      start: (boot) => this.#siteOf.get(boot.node)!.start(boot),
      trace: options.narrate,
    });
    this.ledger = new Ledger(this.world);
    this.sites = SITES.map((id) => new SimSite(id, this));
    for (const site of this.sites) for (const node of site.names) this.#siteOf.set(node, site);
    this.#works = this.sites.map((site) => new SiteWork(site, this.ledger));
    for (const [at, { names }] of this.sites.entries())
      for (const node of names) this.world.node(node).process.jumpWall(this.knobs.skewsMs[at] ?? 0);
  }

  site(id: string): SimSite {
    return this.sites.find((site) => site.id === id)!;
  }

  begin(): void {
    for (const work of this.#works) work.start();
  }

  /** No new work. */
  stopWork(): void {
    for (const work of this.#works) work.stop();
  }

  restore(_site: string, _forMs: number): boolean {
    return false;
  }
}
