// What may pass between sites, checked as it is sent, before a liar changes it: only committed events, with the bytes that their site has
// sealed; nothing of what is withheld, and nothing else withheld; notes of roots that are true; one send under way for each link and
// direction, of consecutive pages that are together no more than one page may be. What a victim of a fork relays is the second history of the liar.

import { PAGE_ITEMS_MAX, readNote } from "../../core/mesh/proof/index.ts";
import type { Page } from "../../core/mesh/model.ts";
import type { Delivered, SiteAnswer } from "../../ports/mesh/sites.ts";
import { mapParcel } from "./liar.ts";
import { reached } from "./probes.ts";
import type { MeshStage } from "./stage.ts";
import type { Parcel } from "./transport.ts";

/** A link has two directions of requests and one stream, and each may have a send under way. */
const SENDS_UNDER_WAY_MAX = 3;
/** As docs/mesh.md has it: one request of a peer. */
const PAGES_TOGETHER_MAX = 16;

export class WireOracle {
  readonly #stage: MeshStage;
  /** By way: requests and messages with pages that were sent and neither answered nor given up. */
  readonly #underWay = new Map<string, number>();
  /** By site: which histories of the liar's line it was shown, in notes that reach past the fork. */
  readonly #shown = new Map<string, Set<"first" | "second">>();
  /** Notes that were found to be true: heads are said again every second. */
  readonly #trueNotes = new Set<string>();
  /** When the last page was sent. */
  lastPageMs = 0;
  pages = 0;

  constructor(stage: MeshStage) {
    this.#stage = stage;
  }

  /** Whether a site was shown both histories of the liar. */
  sawBoth(site: string): boolean {
    return this.#shown.get(site)?.size === 2;
  }

  sent(from: string, to: string, parcel: Parcel): void {
    mapParcel(parcel, {
      page: (page) => {
        this.#page(from, to, page);
        return page;
      },
      note: (note) => {
        this.#note(from, note);
        return note;
      },
      consistency: (body) => body,
    });
    this.#together(from, parcel);
    this.#probe(to, parcel);
  }

  /** Pages of one request. */
  #together(from: string, parcel: Parcel): void {
    if (parcel.kind !== "question" || parcel.question.kind !== "deliver") return;
    const { pages = [] } = parcel.question.delivery;
    if (pages.length < 2) return;
    reached(this.#stage.probes, "pages-together");
    const items = pages.reduce((sum, page) => sum + page.items.length, 0);
    if (pages.length > PAGES_TOGETHER_MAX || items > PAGE_ITEMS_MAX) {
      this.#wrong(from, `sends ${pages.length} pages with ${items} events in one request`);
    }
    for (const [at, { line, after }] of pages.entries()) {
      const before = pages[at - 1];
      const isNext = before === undefined || (before.line === line && after <= before.after + before.items.length);
      if (!isNext) this.#wrong(from, `sends pages together that do not follow one another`);
    }
  }

  #probe(to: string, parcel: Parcel): void {
    const { probes } = this.#stage;
    if (parcel.kind === "message") {
      if (parcel.message.kind === "page") reached(probes, "page-down");
      if (parcel.message.kind === "prune") reached(probes, "prune-sent");
      if (parcel.message.kind === "graft") reached(probes, "graft-sent");
    }
    if (parcel.kind !== "answer" || parcel.to.kind !== "deliver") return;
    for (const outcome of outcomesOf(parcel.answer)) {
      if (outcome === "known") reached(probes, "page-known-already");
      if (outcome === "taken") reached(probes, "page-up");
      if (outcome === "CHAIN_GAP") reached(probes, "page-after-a-gap");
      const isRefused = outcome === "EVENT_INVALID" || outcome === "suspected";
      if (isRefused && this.#stage.siteOf(to) === this.#stage.liar?.site) reached(probes, "lie-refused");
    }
  }

  /** After a liar has changed it. */
  arrives(to: string, parcel: Parcel): void {
    if (this.#stage.liar === null) return;
    const site = this.#stage.siteOf(to);
    mapParcel(parcel, {
      page: (page) => {
        this.#show(site, page.checkpoint);
        return page;
      },
      note: (note) => {
        this.#show(site, note);
        return note;
      },
      consistency: (body) => body,
    });
  }

  /** More or fewer sends are under way. */
  underWay(from: string, to: string, by: 1 | -1): void {
    const way = `${from}>${to}`;
    const count = (this.#underWay.get(way) ?? 0) + by;
    this.#underWay.set(way, count);
    if (count > SENDS_UNDER_WAY_MAX) this.#wrong(from, `has ${count} sends under way to ${to}`);
  }

  #page(from: string, to: string, page: Page): void {
    const { world, probes } = this.#stage;
    this.lastPageMs = world.nowMs;
    this.pages++;
    const author = siteOfLine(page.line);
    if (author === this.#stage.siteOf(to)) this.#wrong(from, `sends ${to} a page of its own line`);
    if (author !== this.#stage.siteOf(from)) reached(probes, "page-relayed");
    this.#note(from, page.checkpoint);
    this.#cut(from, page);
    for (const [at, item] of page.items.entries()) {
      const sequence = page.after + at + 1;
      const event = this.#stage.ledger.ofLine(author, page.line)[sequence - 1];
      const name = `event ${sequence} of ${author}`;
      if (event === undefined) return this.#wrong(from, `sends ${name}, which is not committed`);
      if (typeof item === "string") {
        if (isSecret(event.eventType)) return this.#wrong(from, `sends ${name}, a ${event.eventType}`);
        const told = this.#stage.branchesOf(page.line).map((branch) => branch.items(sequence - 1, 1)[0]);
        if (!told.includes(item)) return this.#wrong(from, `sends other bytes of ${name} than it has: ${item}`);
      } else {
        if (!isSecret(event.eventType)) return this.#wrong(from, `withholds ${name}, a ${event.eventType}`);
        reached(probes, "stub-sent");
      }
    }
  }

  /** A page is as its site has cut and signed it. */
  #cut(from: string, { line, after, items, checkpoint }: Page): void {
    const read = readNote(checkpoint);
    if (read.kind !== "note") return;
    const { size, withheld } = read.checkpoint;
    if (read.checkpoint.line !== line || withheld.after !== after || size !== after + items.length)
      this.#wrong(from, `sends a page of ${line} from ${after} with a note of ${withheld.after} to ${size}`);
  }

  #note(from: string, note: string): void {
    if (this.#trueNotes.has(note)) return;
    const read = readNote(note);
    if (read.kind !== "note") return this.#wrong(from, `sends a note that cannot be read: ${read.problem}`);
    const { line, size, root } = read.checkpoint;
    const roots = this.#stage.branchesOf(line).map((branch) => branch.root(size));
    if (roots.includes(root)) this.#trueNotes.add(note);
    else this.#wrong(from, `sends a note of ${line} at ${size} whose root is not its history's`);
  }

  #show(site: string, note: string): void {
    const { liar } = this.#stage;
    const second = liar?.second ?? null;
    const read = readNote(note);
    if (liar === null || second === null || read.kind !== "note") return;
    const { line, size, root } = read.checkpoint;
    if (siteOfLine(line) !== liar.site || size < second.from) return;
    const which = root === second.root(size) ? "second" : root === liar.truth.root(size) ? "first" : null;
    if (which === null) return;
    const shown = this.#shown.get(site) ?? new Set();
    this.#shown.set(site, shown.add(which));
  }

  #wrong(node: string, what: string): void {
    this.#stage.world.report(node, new Error(`${node} ${what}`));
  }
}

/** What became of the pages of a delivery: taken, known, or the code of a refusal. */
function outcomesOf(answer: SiteAnswer<unknown>): readonly string[] {
  if (answer.kind === "refused") return [answer.code];
  const { pages } = answer.body as Delivered;
  return pages.map((one) => ("error" in one ? one.error : one.accepted > 0 ? "taken" : "known"));
}

/** Said again here, so that a mistake in the rule is found. */
function isSecret(eventType: string): boolean {
  return eventType === "build:log" || eventType.startsWith("key:");
}

export function siteOfLine(line: string): string {
  return line.slice(0, line.indexOf("."));
}
