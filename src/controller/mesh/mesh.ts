// This site's part in the mesh, put together: what comes in from other sites, whom it believes, and the links over which pages travel. Every node has
// one; links exist only while it leads.
//
//   links ◀──▶ other sites
//     │ pages ──▶ intake: verified ──▶ word of others: rings, forks ──▶ received through the own log
//     └ heads ──▶ judge: how much others have; forks ──▶ own event `controller:forked`

import { canonicalJson } from "../../core/events/index.ts";
import { eventHashOf } from "../../core/events/event.ts";
import type { Json } from "../../core/kit/json.ts";
import type { Random } from "../../core/kit/random.ts";
import { TenureError } from "../../core/kit/errors.ts";
import type { LineId, LineState } from "../../core/mesh/model.ts";
import { controllerOf, emptyLine } from "../../core/mesh/proof/index.ts";
import type { Receipt } from "../../core/mesh/receipts/index.ts";
import type { Accept } from "../../core/mesh/registry/index.ts";
import type { Clock } from "../../ports/clock.ts";
import type { Controllers } from "../../ports/mesh/controllers.ts";
import type { Digest } from "../../ports/digest.ts";
import type { Request } from "../../ports/jobs.ts";
import type { Logger } from "../../ports/logger.ts";
import type { MeshLines, OwnLineStatus } from "../../ports/mesh/lines.ts";
import type {
  Arrival,
  CutOffView,
  DeliveryAnswer,
  DepartureView,
  HintAnswer,
  LinkView,
  MeshLinks,
  OpenAnswer,
  ReceivedDelivery,
} from "../../ports/mesh/links.ts";
import type { VerifySignature } from "../../ports/signatures.ts";
import type { Introduction, PageOutcome, Sites } from "../../ports/mesh/sites.ts";
import type { JournalService } from "../journal/service.ts";
import type { SiteJournal } from "../journal/site-journal.ts";
import type { Door } from "../leadership/reign.ts";
import { ApprovedRings } from "./links/approved-rings.ts";
import { Blame } from "./links/blame.ts";
import { HeadsJudge } from "./links/heads-judge.ts";
import { IntakeQueue, type KnownLines } from "./links/intake-queue.ts";
import { Links } from "./links/links.ts";
import {
  INTRODUCED_LENGTH_MAX,
  INTRODUCED_LINES_MAX,
  PEERS_BLAMED_MAX,
  REFUSED_COST,
  STREAM_OPENED_EVENTS,
} from "./limits.ts";
import { PeerQuota } from "./links/quota.ts";
import type { PageReceived, VerifiedPage } from "./receipts/receipts-reign.ts";
import { WordOfOthers } from "./links/word-of-others.ts";
import type { SigningGate } from "./own/signing-gate.ts";

const textEncoder = new TextEncoder();
/** Where this node can sign for the site: whoever it is, it proves, also while nothing of its line is given out. */
const SIGNERS: ReadonlySet<OwnLineStatus["kind"]> = new Set(["signing", "gated"]);
const nothing = (): void => undefined;

export interface MeshServiceOptions {
  readonly clock: Clock;
  readonly digest: Digest;
  readonly verify: VerifySignature;
  readonly random: Random;
  readonly logger: Logger;
  readonly journal: JournalService;
  readonly fold: Pick<SiteJournal, "controllers" | "follow">;
  readonly lines: MeshLines;
  readonly gate: Pick<SigningGate, "heard">;
  readonly controllers: Pick<Controllers, "register" | "heartbeat" | "heardMsAgo" | "leave" | "join">;
  readonly receipts: {
    stateOf(line: LineId): LineState | null;
    receive(page: VerifiedPage): Promise<PageReceived>;
    /** A line as it was at an earlier size. LOG_COMPACTED: that is not kept any more. */
    pointOf(line: LineState, size: number): Promise<Pick<LineState, "hash" | "timestamp" | "frontier">>;
    /** All that has arrived and is kept, in that order. */
    all(): AsyncIterable<Receipt>;
    /** Called when more of a line of another site is applied. */
    onGrown(listener: (line: LineId) => void): () => void;
  };
  readonly sites: Sites;
  readonly settings: MeshLinkSettings;
}

export interface MeshLinkSettings {
  readonly accept: Accept;
  readonly parents: readonly string[];
  readonly heartbeatMs: number;
  /** Of this node's API. */
  readonly url: () => string;
  readonly version: string;
}

export class MeshService implements MeshLinks {
  readonly #options: MeshServiceOptions;
  readonly #blame = new Blame();
  readonly #quotas = new Map<string, PeerQuota>();
  readonly #known: KnownLines;
  readonly #intake: IntakeQueue;
  readonly #judge: HeadsJudge;
  readonly #word: WordOfOthers;
  readonly #door: Door<Links>;
  readonly #stops: readonly (() => void)[];
  #ownLine: LineId | null = null;

  constructor(options: MeshServiceOptions) {
    const { journal, fold, receipts, clock, digest, verify, lines } = options;
    this.#options = options;
    this.#known = this.#knownLines();
    const tools = { digest, verify };
    const { registry } = fold.controllers;
    this.#word = new WordOfOthers({ clock, journal, registry, tools, stateOf: (line) => receipts.stateOf(line) });
    const approved = new ApprovedRings({
      clock,
      logger: options.logger,
      registry,
      receipts: () => receipts.all(),
      take: (line, events) => this.#word.take(line, events),
    });
    this.#intake = new IntakeQueue({
      clock,
      ...tools,
      lines: this.#known,
      blame: this.#blame,
      said: (line, events) => this.#word.take(line, events),
      receive: (page) => receipts.receive(page),
      suspected: (peer, { line }, note) => this.#judge.suspected(peer, line, note, this.#links?.askOf(peer) ?? null),
    });
    this.#judge = new HeadsJudge({
      clock,
      tools,
      known: this.#known,
      lines,
      blame: this.#blame,
      ownSize: (line) => lines.own()?.lines.find((one) => one.line === line)?.size ?? null,
      forked: (evidence) => void this.#word.forked(evidence).catch((error: unknown) => this.#lost(error)),
    });
    this.#door = journal.serve((reign) => {
      const links = this.#begin();
      approved.begin();
      reign.watch({ takenBack: nothing, settled: nothing, ended: () => links.end() });
      return links;
    });
    fold.controllers.onChanged(() => void (this.#links === null || approved.look()));
    this.#stops = [fold.follow(() => this.#grewOwn()), receipts.onGrown((line) => this.#links?.grew(line))];
  }

  close(): void {
    for (const stop of this.#stops) stop();
    this.#links?.end();
    this.#options.sites.close();
  }

  arrives(controller: string, bytes: number, isDelivery: boolean): Arrival {
    const arrival = this.#quotaOf(controller).arrives(bytes, isDelivery);
    if (arrival.kind !== "let-in") this.#blame.count(controller, "flood");
    return arrival;
  }

  wasted(controller: string, bytes: number): void {
    this.#quotaOf(controller).fine({ bytes: (REFUSED_COST - 1) * bytes });
    this.#blame.count(controller, "malformed");
  }

  open(controller: string, heads: readonly string[]): OpenAnswer {
    const links = this.#door.serving();
    this.#checkPart();
    const site = this.#options.fold.controllers.registry.site(controller);
    if (site === undefined || site.presence?.hasLeft === true) {
      throw new TenureError("PERMISSION_DENIED", `${controller} is not registered here, or has left. Register first.`);
    }
    // A stream costs a signature and ends the one before it.
    const retryAfterMs = this.#quotaFor(controller).take(STREAM_OPENED_EVENTS + heads.length);
    if (retryAfterMs > 0) return this.#limited(controller, retryAfterMs);
    const link = links.open(controller, heads);
    const close = (): void => {
      link.close();
      links.down(link);
    };
    return { kind: "open", stream: { next: () => link.next(), close } };
  }

  async deliver(delivery: ReceivedDelivery): Promise<DeliveryAnswer> {
    const links = this.#door.serving();
    const { controller, pages = [], heads = [] } = delivery;
    // While this site leaves, whoever is linked says how much of its line has arrived; pages are not wanted any more.
    if (!links.isServed(controller)) this.#checkPart();
    const quota = this.#quotaFor(controller);
    // A head costs a signature, as a page does.
    const retryAfterMs = quota.deliver(pages.reduce(countItems, heads.length));
    if (retryAfterMs > 0) return this.#limited(controller, retryAfterMs);
    const body = await links.deliver(delivery);
    const refused = pages.filter((_, at) => isRefusedForBytes(body.pages[at]));
    quota.fine({ events: (REFUSED_COST - 1) * refused.reduce<number>(countItems, 0) });
    return { kind: "delivered", body };
  }

  #limited(controller: string, retryAfterMs: number) {
    this.#blame.count(controller, "flood");
    return { kind: "limited", retryAfterMs } as const;
  }

  isEvicted(controller: string): boolean {
    return this.#options.fold.controllers.registry.site(controller)?.isEvicted ?? false;
  }

  /** A link to this site is open, whoever dialled. */
  isLinked(controller: string): boolean {
    return this.#links?.isLinked(controller) ?? false;
  }

  hint(event: Readonly<Record<string, unknown>>): HintAnswer {
    this.#door.serving();
    const { registry } = this.#options.fold.controllers;
    const author = event["sourceControllerId"];
    const pinned = registry.sites().flatMap(({ lines }) => lines);
    const line = pinned.findLast(({ ring }) => ring.author === author)?.line;
    if (line === undefined || !this.#known.isWanted(line)) return "line-unknown";
    if (!isSealed(event, this.#options.digest)) return "invalid";
    const have = this.#known.stateOf(line)?.size ?? 0;
    return (event["sequence"] as number) <= have ? "known" : "pending";
  }

  async leave(request: Request): Promise<DepartureView> {
    const links = this.#door.serving();
    await this.#options.controllers.leave(request);
    return this.#departure(await links.left());
  }

  async join(request: Request): Promise<DepartureView> {
    const links = this.#door.serving();
    await this.#options.controllers.join(request);
    links.joined();
    return this.#departure([]);
  }

  views(): readonly LinkView[] {
    return this.#links?.views() ?? [];
  }

  cutOff(): ReadonlyMap<string, CutOffView> {
    const { controllers, fold } = this.#options;
    const known = { registry: fold.controllers.registry, heardMsAgo: controllers.heardMsAgo() };
    return this.#links?.cutOff(known) ?? new Map();
  }

  lacking(): ReturnType<MeshLinks["lacking"]> {
    return this.#links?.lacking() ?? null;
  }

  skewOf(controller: string): number | null {
    return this.#links?.skewOf(controller) ?? null;
  }

  get #links(): Links | null {
    return this.#door?.current ?? null;
  }

  #departure(confirmed: readonly string[]): DepartureView {
    const { registry } = this.#options.fold.controllers;
    const { leftAt, own } = registry;
    const unconfirmed = leftAt === null ? [] : registry.peers().filter((peer) => !confirmed.includes(peer));
    return { controller: own?.controllerId ?? "", leftAt, confirmed, unconfirmed };
  }

  /** A site that has left answers as one that is standalone. */
  #checkPart(): void {
    if (this.#options.fold.controllers.registry.leftAt === null) return;
    throw new TenureError(
      "MESH_DISABLED",
      "This site has left its mesh. Its operator takes it back: `tenure mesh join`.",
    );
  }

  #begin(): Links {
    const { settings, lines, clock, random, sites, controllers, gate, fold } = this.#options;
    const { registry } = fold.controllers;
    return new Links({
      clock,
      random: random.fork("links"),
      sites,
      parents: settings.parents,
      heartbeatMs: settings.heartbeatMs,
      lines,
      known: this.#known,
      intake: this.#intake,
      judge: this.#judge,
      blame: this.#blame,
      ownId: () => lines.own()?.controller ?? "",
      introduce: (receiver) => this.#introduction(receiver),
      met: async (introduction) => void (await controllers.register(introduction)),
      heard: (controller) =>
        void controllers.heartbeat({ id: controller }).catch((error: unknown) => this.#lost(error)),
      isPeer: (controller) => registry.peers().includes(controller),
      isEvicted: (controller) => this.isEvicted(controller),
      leftAt: () => registry.leftAt,
      urls: () => lines.own()?.urls ?? [],
      headsOf: (controller, notes, isAll) => gate.heard(controller, notes, isAll),
    });
  }

  /** Null while this node can't sign for the site; and of one that has left: it would be back. */
  #introduction(receiver: string): Promise<Introduction> | null {
    const { lines, settings, fold } = this.#options;
    if (fold.controllers.registry.leftAt !== null) return null;
    const own = lines.own();
    const newest = own?.lines.at(-1);
    if (own === null || newest === undefined || !SIGNERS.has(lines.status().kind)) return null;
    const { controller: id, name, urls } = own;
    const url = settings.url();
    // From the last line that begins with nothing: whoever is new to this site needs all that the newest one continues.
    const begin = own.lines.findLastIndex(({ after }) => after === 0);
    const before = own.lines.slice(Math.max(begin, 0), -1).slice(-INTRODUCED_LINES_MAX);
    const room = INTRODUCED_LENGTH_MAX - JSON.stringify([urls, newest]).length;
    const earlier = fitting(
      before.map(({ line, firstRing: ring }) => ({ line, ring })),
      room,
    );
    const metadata = { version: settings.version, urls, line: newest.line, ring: newest.firstRing, earlier };
    const proven = lines.prove({ id, url, receiver });
    return proven.then((proof) => ({ id, url, name, metadata: { ...metadata, proof } }));
  }

  #knownLines(): KnownLines {
    const { receipts, settings, fold } = this.#options;
    const { registry } = fold.controllers;
    return {
      isOwn: (line) => registry.own !== null && controllerOf(line) === registry.own.controllerId,
      stateOf: (line) => receipts.stateOf(line),
      begin: (line, after) => this.#beginOf(line, after),
      firstRingOf: (line) => {
        if (registry.leftAt !== null) return null;
        const standing = registry.standingOf(controllerOf(line), line, settings.accept);
        return standing.kind === "wanted" ? standing.firstRing : null;
      },
      isWanted: (line) => {
        // Nothing is taken after the own word that says so: see decision 63.
        if (registry.leftAt !== null) return false;
        const { kind } = registry.standingOf(controllerOf(line), line, settings.accept);
        return kind === "wanted" || kind === "unknown";
      },
      isOthers: (line, author) => {
        const site = controllerOf(line);
        if (registry.own?.author === author) return true;
        const claims = registry.claimsOf(author);
        // A ring may name any author: who has claimed that of another site takes nothing from it.
        return claims.length > 0 && !claims.includes(site);
      },
    };
  }

  /** The state before the first page of a line. Null: nobody has named it here, or of the line before it too little is here. */
  async #beginOf(line: LineId, after: number): Promise<LineState | null> {
    const { digest, fold, receipts } = this.#options;
    const ring = this.#known.firstRingOf(line);
    if (ring === null) return null;
    if (ring.generation === 1 || after === 0) return emptyLine(ring, digest);
    const isHere = (one: LineId): boolean => receipts.stateOf(one) !== null;
    const before = fold.controllers.registry.lineBefore(controllerOf(line), line, isHere);
    const old = before === null ? null : receipts.stateOf(before);
    if (old === null || old.size < after) return null;
    const { hash, timestamp, frontier } = await receipts.pointOf(old, after);
    return { line, ring, isStated: false, size: after, hash, timestamp, frontier, checkpoint: null };
  }

  #grewOwn(): void {
    const { fold, lines } = this.#options;
    const line = fold.controllers.registry.own?.line;
    if (line === undefined) return;
    // Peers know the ring of a line from an introduction.
    if (this.#ownLine !== null && this.#ownLine !== line) this.#links?.introduceAgain();
    this.#ownLine = line;
    if (lines.lines().includes(line)) this.#links?.grew(line);
  }

  /** Of a site that may send. Throws PERMISSION_DENIED. */
  #quotaFor(controller: string): PeerQuota {
    if (this.isEvicted(controller)) throw new TenureError("PERMISSION_DENIED", `${controller} was evicted.`);
    return this.#quotaOf(controller);
  }

  #quotaOf(controller: string): PeerQuota {
    let quota = this.#quotas.get(controller);
    if (quota === undefined) {
      // They refill by themselves: what is forgotten is a second's share at most.
      if (this.#quotas.size >= PEERS_BLAMED_MAX) this.#quotas.clear();
      this.#quotas.set(controller, (quota = new PeerQuota(this.#options.clock)));
    }
    return quota;
  }

  /** It is found and tried again; an operator should know. */
  #lost(error: unknown): void {
    if (!TenureError.is(error)) throw error;
    this.#options.logger.warn({ event: "mesh-registry", code: error.code }, error.message);
  }
}

/** The last ones, as JSON of so many characters at most: more of them, and the receiver takes none. */
function fitting<T>(values: readonly T[], lengthMax: number): readonly T[] {
  let length = 0;
  const without = values.findLastIndex((value) => (length += JSON.stringify(value).length + 1) > lengthMax);
  return values.slice(without + 1);
}

/** Its hash is that of its other fields, in canonical JSON. */
function isSealed({ eventHash, ...fields }: Readonly<Record<string, unknown>>, digest: Digest): boolean {
  return eventHashOf(textEncoder.encode(canonicalJson(fields as Json)), digest) === eventHash;
}

/** Its events were hashed before it was. */
function isRefusedForBytes(outcome: PageOutcome | undefined): boolean {
  return outcome !== undefined && "error" in outcome && ["EVENT_INVALID", "suspected"].includes(outcome.error);
}

function countItems(sum: number, page: unknown): number {
  const items = typeof page === "object" && page !== null && "items" in page ? page.items : null;
  return sum + (Array.isArray(items) ? items.length : 1);
}
