// The sites of a simulated mesh in one world: their nodes, the network between them, who works there, and what is known to be true.

import { TenureError } from "../../core/kit/errors.ts";
import { readNote } from "../../core/mesh/proof/index.ts";
import { fakeSigner, fakeVerify } from "../../core/mesh/test-signatures.ts";
import type { Digest } from "../../ports/digest.ts";
import type { Signer, VerifySignature } from "../../ports/signatures.ts";
import { World } from "../kernel/index.ts";
import { Branch } from "./branch.ts";
import { type MeshKnobs, parentsOf, SITES } from "./knobs.ts";
import { Ledger } from "./ledger.ts";
import { Liar } from "./liar.ts";
import { type MeshProbeCounts, reached } from "./probes.ts";
import type { MeshRunOptions } from "./run.ts";
import { namesOf, SimSite } from "./site.ts";
import { Transport } from "./transport.ts";
import { siteOfLine, WireOracle } from "./wire-oracle.ts";
import { SiteWork } from "./work.ts";

const RESTART_AFTER_EXIT_MS = 50;
const MINUTE_MS = 60_000;
/** What a message met, as a probe. */
const MET = {
  cut: "cut-met-a-message",
  lost: "request-lost",
  twice: "request-twice",
  late: "request-late",
  overtaken: "request-overtaken",
} as const;

export interface MeshStageOptions extends Pick<MeshRunOptions, "digest" | "narrate" | "reversed"> {
  readonly seed: string;
  readonly knobs: MeshKnobs;
}

/** An event `controller:forked`. */
interface Called {
  readonly entityId: string;
  readonly payload: { readonly evidence: { readonly smaller: string; readonly larger: string } };
}

export class MeshStage {
  readonly world: World;
  readonly knobs: MeshKnobs;
  readonly digest: Digest;
  readonly probes: MeshProbeCounts = {};
  readonly ledger: Ledger;
  readonly nodes: readonly string[];
  readonly sites: readonly SimSite[];
  readonly verify: VerifySignature;
  /** Null: all sites are honest. */
  readonly liar: Liar | null;
  readonly wires: WireOracle;
  readonly transport: Transport;
  readonly #works: readonly SiteWork[];
  readonly #truths = new Map<string, Branch>();
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
    this.ledger = new Ledger(this.world, {
      nodesOf: (site) => namesOf(site, this.knobs),
      forked: (site, node, text) => this.#calledForked(site, node, JSON.parse(text) as Called),
    });
    this.verify = fakeVerify(this.digest);
    this.wires = new WireOracle(this);
    this.transport = new Transport(this.world, this.knobs.weather, {
      sent: (from, to, parcel) => this.wires.sent(from, to, parcel),
      changed: (from, to, parcel) => {
        const changed = this.liar === null ? parcel : this.liar.changed(from, to, parcel);
        if (changed !== null) this.wires.arrives(to, changed);
        return changed;
      },
      underWay: (from, to, by) => this.wires.underWay(from, to, by),
      met: (what) => reached(this.probes, MET[what]),
    });
    this.sites = SITES.map((id) => new SimSite(id, this));
    for (const site of this.sites) for (const node of site.names) this.#siteOf.set(node, site);
    this.#works = this.sites.map((site) => new SiteWork(site, this.ledger));
    for (const { id } of this.sites) this.#truths.set(id, new Branch(() => this.ledger.of(id), Infinity, this.digest));
    this.liar = this.knobs.lie === null ? null : new Liar(this);
    if (this.knobs.skewsMs.some((skewMs) => Math.abs(skewMs) > MINUTE_MS)) reached(this.probes, "clock-minutes-off");
    for (const [at, { names }] of this.sites.entries())
      for (const node of names) this.world.node(node).process.jumpWall(this.knobs.skewsMs[at] ?? 0);
  }

  site(id: string): SimSite {
    return this.sites.find((site) => site.id === id)!;
  }

  /** Grows with everything that any node applies. */
  get applied(): number {
    return this.ledger.applied;
  }

  /** Without the one that lies. */
  get honest(): readonly SimSite[] {
    return this.sites.filter(({ id }) => id !== this.liar?.site);
  }

  /** The line of a site, as one of its own nodes has it; null: it has none yet. */
  lineOf(id: string): string | null {
    const { names } = this.site(id);
    const lines = names.map((name) => this.site(id).server(name)?.fold.ownLine.lines?.generations.at(-1)?.line);
    return lines.find((line) => line !== undefined) ?? null;
  }

  siteOf(node: string): string {
    return this.#siteOf.get(node)!.id;
  }

  /** Whoever it dials, and whoever dials it. */
  neighboursOf(site: string): readonly string[] {
    const { topology } = this.knobs;
    return SITES.filter(
      (other) => parentsOf(topology, site).includes(other) || parentsOf(topology, other).includes(site),
    );
  }

  /** Of a node: the same in all of its lives, as a key file is. */
  signerOf(node: string): Signer {
    return fakeSigner(node, this.digest);
  }

  /** The history of a site's line that all others must have in the end. */
  toldBy(site: string): Branch | null {
    const instead = this.liar?.site === site ? this.liar.instead : null;
    return instead ?? this.#truths.get(site) ?? null;
  }

  /** The history of a line as its site has it. */
  truthOf(line: string): Branch | null {
    return this.#truths.get(siteOfLine(line)) ?? null;
  }

  /** The histories that a site has signed: one, or two of a liar. */
  branchesOf(site: string): readonly Branch[] {
    const truth = this.#truths.get(site);
    const second = this.liar?.site === site ? (this.liar.second ?? this.liar.instead) : null;
    return [truth, second].filter((branch) => branch !== null && branch !== undefined);
  }

  begin(): void {
    for (const work of this.#works) work.start();
  }

  /** The faults are over, and nobody submits any more. */
  calm(): void {
    this.world.calm();
    this.liar?.calm();
    this.transport.weather = { ...this.transport.weather, lossRate: 0, lateRate: 0 };
    for (const work of this.#works) work.stop();
  }

  /** An honest site calls only the one forked that signed two histories, and shows a note of each. */
  #calledForked(site: string, node: string, { entityId, payload }: Called): void {
    const { liar } = this;
    if (site === liar?.site) return;
    const wrong = (what: string): void =>
      this.world.report(node, new Error(`${node} calls ${entityId} forked, ${what}`));
    const second = liar?.site === entityId ? liar.second : null;
    if (liar === null || second === null) return wrong("which signed one history");
    const shown = [payload.evidence.smaller, payload.evidence.larger].map((note) => {
      const read = readNote(note);
      if (read.kind !== "note" || read.checkpoint.size < second.from) return "neither";
      const { root, size } = read.checkpoint;
      return root === second.root(size) ? "second" : root === liar.truth.root(size) ? "first" : "neither";
    });
    if (shown.toSorted().join() !== "first,second") wrong(`and shows notes of its histories ${shown.join(" and ")}`);
  }

  /** As somebody does who has only an old copy of the disks: what was written meanwhile is lost to the site. */
  restore(id: string, afterMs: number, hit: () => void): void {
    const { world, ledger } = this;
    const { names } = this.site(id);
    const images = names.map((name) => world.node(name).disk.image());
    world.scheduler.schedule(world.nowMs + afterMs, world.scheduler.owner("restore"), () => {
      reached(this.probes, "disk-restored");
      hit();
      ledger.restored(id);
      for (const [at, name] of names.entries()) {
        world.crash(name);
        world.node(name).disk.restore(images[at]!);
        world.startAfter(name, RESTART_AFTER_EXIT_MS);
      }
    });
  }

  /** Once, where both know each other. */
  evict(at: string, site: string, hit: () => void): void {
    const { world } = this;
    const leader = this.site(at).leader();
    const server = leader === undefined ? undefined : this.site(at).server(leader);
    if (leader === undefined || server?.fold.controllers.registry.site(site) === undefined) return;
    world.call(leader, () => {
      server.parts.controllers.evict({ caller: "operator", idempotencyKey: null, bodyHash: "" }, site).then(
        () => {
          reached(this.probes, "site-evicted");
          hit();
        },
        (error: unknown) => TenureError.is(error) || world.report(leader, error),
      );
    });
  }
}
