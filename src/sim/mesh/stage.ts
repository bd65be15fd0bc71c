// The sites of a simulated mesh in one world: their nodes, the network between them, who works there, and what is known to be true.

import { readNote } from "../../core/mesh/proof/index.ts";
import { fakeSigner, fakeVerify } from "../../core/mesh/test-signatures.ts";
import type { Digest } from "../../ports/digest.ts";
import type { Signer, VerifySignature } from "../../ports/signatures.ts";
import { World } from "../kernel/index.ts";
import { Branch } from "./branch.ts";
import { type MeshKnobs, parentsOf, SITES } from "./knobs.ts";
import { Ledger, type OwnEvent } from "./ledger.ts";
import { Liar } from "./liar.ts";
import { Operator } from "./operator.ts";
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
  readonly operator: Operator;
  readonly #works: readonly SiteWork[];
  /** By history. */
  readonly #truths = new WeakMap<readonly OwnEvent[], Branch>();
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
      ttlMs: this.knobs.ttlMs,
      neighboursOf: (site) => this.neighboursOf(site),
      expired: () => reached(this.probes, "site-expired"),
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
    this.operator = new Operator(this);
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

  /** The lines of a site, one for each generation, as one of its own nodes has them. */
  linesOf(id: string): readonly string[] {
    const site = this.site(id);
    const known = site.names.map((name) => site.server(name)?.fold.ownLine.lines?.generations ?? []);
    const most = known.toSorted((one, other) => other.length - one.length)[0] ?? [];
    return most.map(({ line }) => line);
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

  /** How much of a line this site must have in the end. */
  sizeAt(site: string, line: string): number {
    const author = siteOfLine(line);
    const all = this.toldBy(line).size;
    const [first] = this.linesOf(author);
    if (this.ledger.endOf(author) === null || line !== first) return all;
    // What its author has lost, and where it ended its line, is with others: from them it comes to all that they reach without the author.
    const had = this.ledger.hadOf(author);
    return Math.max(this.#endedAt(author), ...[...this.#reachedFrom(site, author)].map((other) => had.get(other) ?? 0));
  }

  /** Of a node: the same in all of its lives, as a key file is. */
  signerOf(node: string): Signer {
    return fakeSigner(node, this.digest);
  }

  /** The history of a line that all others must have in the end. */
  toldBy(line: string): Branch {
    const instead = this.liar?.site === siteOfLine(line) ? this.liar.instead : null;
    return instead ?? this.truthOf(line);
  }

  /** The history of a line as its site has it, or, of one that was restored since, as the others had it. */
  truthOf(line: string): Branch {
    const events = this.ledger.ofLine(siteOfLine(line), line);
    const known = this.#truths.get(events);
    if (known !== undefined) return known;
    const truth = new Branch(() => events, Infinity, this.digest);
    this.#truths.set(events, truth);
    return truth;
  }

  /** The histories of a line that its site has signed: one, or two of a liar. */
  branchesOf(line: string): readonly Branch[] {
    const second = this.liar?.site === siteOfLine(line) ? (this.liar.second ?? this.liar.instead) : null;
    return [this.truthOf(line), ...(second === null ? [] : [second])];
  }

  begin(): void {
    for (const work of this.#works) work.start();
    this.operator.start();
  }

  /** The faults are over, and nobody submits any more. */
  calm(): void {
    this.world.calm();
    this.liar?.calm();
    this.transport.weather = { ...this.transport.weather, lossRate: 0, lateRate: 0 };
    for (const work of this.#works) work.stop();
  }

  /** Where a site has ended its first line. */
  #endedAt(id: string): number {
    const site = this.site(id);
    const ends = site.names.map((name) => site.server(name)?.fold.ownLine.lines?.generations[0]?.end?.through ?? 0);
    return Math.max(...ends);
  }

  /** All that have a way to this site which does not lead over that one. */
  #reachedFrom(site: string, without: string): ReadonlySet<string> {
    const reachedSites = new Set([site]);
    for (const one of reachedSites)
      for (const other of this.neighboursOf(one)) if (other !== without) reachedSites.add(other);
    return reachedSites;
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
}
