// The people of a simulated mesh. One has only an old copy of a site's disks and starts it from that; one looks after gates of signing, and
// begins a new line where a site finds that it is behind, or lets it go on where it waits for one that has evicted it; one evicts a site.
//
// A site is restored when nothing of it is on its way any more: it is cut off first, until all others run and have applied what they have
// logged. Whoever starts an old copy while a page of the lost part is under way can't be protected: peers that are asked do not have it yet.

import { TenureError } from "../../core/kit/errors.ts";
import type { Random } from "../../core/kit/random.ts";
import { CUT_OFF_FOR_MS, OPERATOR_LOOKS_MS, SETTLED_LOOKS, SITE_RESTART_MS } from "./limits.ts";
import { reached } from "./probes.ts";
import type { SimSite, SiteServer } from "./site.ts";
import type { MeshStage } from "./stage.ts";

/** How long somebody takes to see that a site is behind. */
const NOTICED_MS: readonly [number, number] = [100, 3_000];

export class Operator {
  readonly #stage: MeshStage;
  readonly #random: Random;
  /** Sites whose new line was asked for, by somebody who looks again later. */
  readonly #asked = new Set<string>();
  #restoring = 0;

  constructor(stage: MeshStage) {
    this.#stage = stage;
    this.#random = stage.world.random.fork("operator");
  }

  /** A site is being restored: nothing is over before that. */
  get isRestoring(): boolean {
    return this.#restoring > 0;
  }

  start(): void {
    this.#later(OPERATOR_LOOKS_MS, () => this.#look());
  }

  /** The site is started again from what its disks are now, some time after this. */
  restore(id: string, afterMs: number, hit: () => void): void {
    const { world } = this.#stage;
    const known = this.#peersOf(id);
    const images = this.#stage.site(id).names.map((name) => world.node(name).disk.image());
    this.#restoring++;
    this.#later(afterMs, () => {
      for (const name of this.#stage.site(id).names) this.#stage.transport.cutOff.add(name);
      this.#whenSettled(id, world.nowMs + CUT_OFF_FOR_MS, 0, () => {
        this.#restoring--;
        for (const name of this.#stage.site(id).names) this.#stage.transport.cutOff.delete(name);
        if (this.#isProtected(id, known)) this.#start(id, images, hit);
      });
    });
  }

  /**
   * Whether that disk names all whom the site has to ask. Of those that it has met since, the gate can't know; where it knows nobody it
   * waits for the first, and there is no second.
   */
  #isProtected(id: string, known: readonly string[]): boolean {
    if (known.length === 0) return this.#stage.neighboursOf(id).length === 1;
    return this.#peersOf(id).every((site) => known.includes(site));
  }

  /** Sites that it has met, as its nodes have them. */
  #peersOf(id: string): readonly string[] {
    const site = this.#stage.site(id);
    return site.names.flatMap((name) => site.server(name)?.fold.controllers.registry.peers() ?? []);
  }

  /** Once, where both know each other. */
  evict(at: string, site: string, hit: () => void): void {
    const { world } = this.#stage;
    const leader = this.#stage.site(at).leader();
    const server = leader === undefined ? undefined : this.#stage.site(at).server(leader);
    if (leader === undefined || server?.fold.controllers.registry.site(site) === undefined) return;
    world.call(leader, () => {
      server.parts.controllers.evict({ caller: "operator", idempotencyKey: null, bodyHash: "" }, site).then(
        () => {
          reached(this.#stage.probes, "site-evicted");
          hit();
        },
        (error: unknown) => TenureError.is(error) || world.report(leader, error),
      );
    });
  }

  #later(afterMs: number, fire: () => void): void {
    const { world } = this.#stage;
    world.scheduler.schedule(world.nowMs + afterMs, world.scheduler.owner("operator"), fire);
  }

  #whenSettled(id: string, fromMs: number, looks: number, go: () => void): void {
    const others = this.#stage.sites.filter((site) => site.id !== id);
    const isSettled = this.#stage.world.nowMs >= fromMs && others.every((site) => this.#hasAppliedAll(site));
    if (isSettled && looks + 1 >= SETTLED_LOOKS) return go();
    this.#later(OPERATOR_LOOKS_MS, () => this.#whenSettled(id, fromMs, isSettled ? looks + 1 : 0, go));
  }

  #hasAppliedAll(site: SimSite): boolean {
    return site.names.every((name) => {
      const { process } = this.#stage.world.node(name);
      const status = site.server(name)?.engine.status();
      return process.state === "running" && status !== undefined && status.applied === status.lastIndex;
    });
  }

  #start(id: string, images: readonly ReadonlyMap<string, Uint8Array>[], hit: () => void): void {
    const { world, ledger, probes } = this.#stage;
    const line = this.#stage.linesOf(id).at(-1);
    // It had no line yet, or does not run: there is nothing to go back from.
    if (line === undefined) return;
    reached(probes, "disk-restored");
    hit();
    ledger.restored(id, line, this.#had(id, line));
    for (const [at, name] of this.#stage.site(id).names.entries()) {
      world.crash(name);
      world.node(name).disk.restore(images[at]!);
      world.startAfter(name, SITE_RESTART_MS);
    }
  }

  /** How much of a line each of the others has. */
  #had(id: string, line: string): ReadonlyMap<string, number> {
    const others = this.#stage.sites.filter((site) => site.id !== id);
    const sizeAt = (site: SimSite): number[] =>
      site.names.map((name) => site.server(name)?.mesh.state.line(line)?.size ?? 0);
    return new Map(others.map((site) => [site.id, Math.max(...sizeAt(site))]));
  }

  #look(): void {
    this.#later(OPERATOR_LOOKS_MS, () => this.#look());
    for (const site of this.#stage.sites) {
      const leader = site.leader();
      const server = leader === undefined ? undefined : site.server(leader);
      if (server === undefined || this.#asked.has(site.id)) continue;
      const { state, missing } = server.lines.gate();
      if (state === "behind") this.#noticed(site, server);
      // Whoever has evicted a site never answers it: its operator says that it may go on.
      const isRefused = (peer: string): boolean => this.#stage.ledger.hasEvicted(peer, site.id);
      if (state === "comparing" && missing.length > 0 && missing.every(isRefused))
        this.#later(0, () => this.#resume(site.id, false));
    }
  }

  #noticed({ id }: SimSite, { node, fold }: SiteServer): void {
    const { world, probes, ledger } = this.#stage;
    reached(probes, "site-behind");
    if (!ledger.isBehind(id, fold.chain.sequence))
      return world.report(node, new Error(`${node} finds itself behind, and nobody has more of its line than it has`));
    this.#asked.add(id);
    this.#later(this.#random.between(...NOTICED_MS), () => {
      this.#asked.delete(id);
      this.#resume(id, true);
    });
  }

  /** As `tenure mesh resume`, with `--new-line` or without, at whoever leads by now. */
  #resume(id: string, isNewLine: boolean): void {
    const { world, probes } = this.#stage;
    const site = this.#stage.site(id);
    const leader = site.leader();
    const server = leader === undefined ? undefined : site.server(leader);
    if (leader === undefined || server?.lines.gate().state !== (isNewLine ? "behind" : "comparing")) return;
    world.call(leader, () => {
      server.lines.resume({ caller: "operator", idempotencyKey: null, bodyHash: "" }, isNewLine).then(
        () => reached(probes, isNewLine ? "line-renewed" : "gate-resumed"),
        (error: unknown) => TenureError.is(error) || world.report(leader, error),
      );
    });
  }
}
