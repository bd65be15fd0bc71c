// The site of a run that lies, by changing what its nodes send. A `fork`: from some event on it has two histories, both signed with its own
// keys, and some of its neighbours are sent the second. `slander`: everybody is sent the second, in which another site is called forked. All other lies are a relay's, about lines of others: it has no key of theirs.
//
// Invariants: an honest site's bytes are never changed; the lies of a relay end with the faults, those of a fork last.

import { assertNever } from "../../core/kit/assert.ts";
import type { Random } from "../../core/kit/random.ts";
import { readNote, signCheckpoint } from "../../core/mesh/proof/index.ts";
import type { Page, PageItem } from "../../core/mesh/model.ts";
import type { Delivered, LineConsistency, LinkMessage } from "../../ports/mesh/sites.ts";
import { Branch, type Retell } from "./branch.ts";
import { reached } from "./probes.ts";
import type { MeshStage } from "./stage.ts";
import type { Parcel } from "./transport.ts";

/** How often a relay changes a page. */
const LIE_RATE = 0.5;
const PAGES_KEPT = 20;
/** The event of the fork is one of these many from the first that may be. */
const FORK_WITHIN = 20;
const FORK_FROM = 4;

export class Liar {
  readonly site: string;
  readonly #stage: MeshStage;
  readonly #random: Random;
  /** Of a fork: who is sent the second history. */
  readonly #victims: readonly string[];
  readonly #truth: Branch;
  #second: Branch | null = null;
  readonly #forkAt: number;
  /** Pages of others that it has relayed. */
  readonly #pages: Page[] = [];
  #isOver = false;
  told = 0;

  constructor(stage: MeshStage) {
    const { knobs, world, ledger, digest } = stage;
    this.#stage = stage;
    this.site = knobs.liar;
    this.#random = world.random.fork("liar");
    const neighbours = stage.neighboursOf(this.site);
    const shuffled = neighbours.toSorted((one, other) => this.#rank(one) - this.#rank(other));
    this.#victims = shuffled.slice(0, Math.max(1, Math.floor(neighbours.length / 2)));
    this.#forkAt = FORK_FROM + this.#random.below(FORK_WITHIN);
    this.#truth = new Branch(() => ledger.of(this.site), Infinity, digest);
  }

  /** The second history that it has signed; null: there is one. */
  get second(): Branch | null {
    return this.#stage.knobs.lie === "fork" ? this.#second : null;
  }

  /** What it says to everybody instead of what is true; null: nothing. */
  get instead(): Branch | null {
    return this.#stage.knobs.lie === "slander" ? this.#second : null;
  }

  get truth(): Branch {
    return this.#truth;
  }

  /** The faults are over. */
  calm(): void {
    this.#isOver = true;
  }

  /** What arrives instead. */
  changed(from: string, to: string, parcel: Parcel): Parcel | null {
    const [sender, receiver] = [this.#stage.siteOf(from), this.#stage.siteOf(to)];
    const { lie } = this.#stage.knobs;
    if (lie === null || sender === receiver) return parcel;
    if (lie === "fork" || lie === "slander") {
      this.#begin();
      if (this.#second === null) return parcel;
      // What others say of the liar's line is said to the liar in terms of the first history: it does not frame itself.
      if (receiver === this.site) return this.#retold(parcel, this.#truth);
      const isTold = lie === "slander" || this.#victims.includes(receiver);
      if (sender === this.site && isTold) return this.#retold(parcel, this.#second);
      return parcel;
    }
    if (sender !== this.site || this.#isOver) return parcel;
    return mapParcel(parcel, {
      page: (page) => (this.#isOwn(page.line) ? page : this.#relayed(page)),
      note: (note) => (lie === "foreign-key" && this.#random.chance(LIE_RATE) ? this.#forged(note) : note),
      consistency: (asked) => asked,
    });
  }

  #rank(site: string): number {
    return this.#random.fork(`rank/${site}`).next();
  }

  #isOwn(line: string): boolean {
    return line.startsWith(`${this.site}.`);
  }

  /** At the first event of its own after `forkAt` that others may read. */
  #begin(): void {
    if (this.#second !== null) return;
    const { ledger, digest, probes } = this.#stage;
    const event = ledger
      .of(this.site)
      .find(
        ({ sequence, eventType }) =>
          sequence >= this.#forkAt && eventType.startsWith("build:") && eventType !== "build:log",
      );
    if (event === undefined) return;
    reached(probes, "lie-told");
    this.told++;
    const retell = this.#stage.knobs.lie === "slander" ? this.#slander() : undefined;
    this.#second = new Branch(() => ledger.of(this.site), event.sequence, digest, retell);
  }

  /** Two notes of another site's line, of one size and with two roots, said to be under that line's ring; both are signed by the liar's own key. */
  #slander(): Retell {
    const { digest } = this.#stage;
    const [node] = this.#stage.site(this.site).names as readonly [string];
    const others = this.#stage.sites.filter(({ id }) => id !== this.site);
    const { id, names } = others[this.#random.below(others.length)]!;
    const line = this.#stage.linesOf(id).at(-1) ?? `${id}.${"0".repeat(32)}`;
    const note = (root: string): string => {
      const checkpoint = { line, size: 1, root, withheld: { after: 1, hash: "0".repeat(64) } };
      return signCheckpoint(checkpoint, { node: names[0]!, signer: this.#stage.signerOf(node) }, digest);
    };
    const [smaller, larger, rootAt] = [note("aa".repeat(32)), note("bb".repeat(32)), "bb".repeat(32)];
    const ring = this.#stage.site(id).server(names[0]!)?.lines.own()?.ringHash ?? "00".repeat(32);
    const evidence = { line, ring, smaller, larger, rootAt, path: [] };
    const said = { eventType: "controller:forked", entityType: "controller", entityId: id } as const;
    return (event) => ({ ...event, ...said, payload: { line, evidence } });
  }

  #retold(parcel: Parcel, branch: Branch): Parcel {
    const note = (text: string): string => {
      const read = readNote(text);
      if (read.kind !== "note" || !this.#isOwn(read.checkpoint.line)) return text;
      const root = branch.root(read.checkpoint.size);
      if (root === null || root === read.checkpoint.root) return text;
      const node = read.keyName.slice(read.keyName.indexOf("/") + 1);
      return signCheckpoint(
        { ...read.checkpoint, root },
        { node, signer: this.#stage.signerOf(node) },
        this.#stage.digest,
      );
    };
    const page = (one: Page): Page => {
      if (!this.#isOwn(one.line)) return one;
      const items = branch.items(one.after, one.items.length);
      return items.length === one.items.length ? { ...one, items, checkpoint: note(one.checkpoint) } : one;
    };
    const consistency = (body: LineConsistency, line: string, from: number, to: number): LineConsistency =>
      this.#isOwn(line) ? (branch.consistency(from, to) ?? body) : body;
    return mapParcel(parcel, { note, page, consistency });
  }

  #relayed(page: Page): Page {
    const { lie } = this.#stage.knobs;
    const before = this.#pages.length > 0 ? this.#random.pick(this.#pages) : null;
    this.#pages.push(page);
    if (this.#pages.length > PAGES_KEPT) this.#pages.shift();
    if (!this.#random.chance(LIE_RATE)) return page;
    const changed = lie === "replay" ? before : this.#mangled(page);
    if (changed === null || JSON.stringify(changed) === JSON.stringify(page)) return page;
    reached(this.#stage.probes, "lie-told");
    this.told++;
    return changed;
  }

  #mangled(page: Page): Page {
    const at = this.#random.below(page.items.length);
    const item = page.items[at] as PageItem;
    const replaced = (...by: readonly PageItem[]): Page => ({ ...page, items: page.items.toSpliced(at, 1, ...by) });
    switch (this.#stage.knobs.lie) {
      case "drop":
        return replaced();
      case "stub": {
        const truth = this.#stage.truthOf(page.line);
        return typeof item === "string" ? replaced({ hash: truth.hash(page.after + at + 1) }) : page;
      }
      case "change":
        return typeof item === "string"
          ? replaced(this.#otherText(item))
          : replaced({ hash: item.hash.replace(/^./, "0") });
      case "foreign-key":
        return this.#resealed(page, at);
      default:
        return page;
    }
  }

  /** The same length, mostly still JSON. */
  #otherText(text: string): string {
    const place = text.indexOf('"payload":') + this.#random.below(40);
    const letter = text[place] ?? "x";
    return text.slice(0, place) + (letter === "1" ? "2" : "1") + text.slice(place + 1);
  }

  /** A page in which all fits together, and that the liar's key has signed, in the name of the line's. */
  #resealed(page: Page, at: number): Page {
    const truth = this.#stage.ledger.of(page.line.slice(0, page.line.indexOf(".")));
    const branch = new Branch(() => truth, page.after + at + 1, this.#stage.digest);
    const items = branch.items(page.after, page.items.length);
    const root = branch.root(page.after + page.items.length);
    if (root === null || items.length !== page.items.length) return page;
    return { ...page, items, checkpoint: this.#forged(page.checkpoint, root) };
  }

  #forged(note: string, root = "ab".repeat(32)): string {
    const read = readNote(note);
    if (read.kind !== "note" || this.#isOwn(read.checkpoint.line)) return note;
    const [node] = this.#stage.site(this.site).names as readonly [string];
    const named = this.#random.chance(0.5) ? read.keyName.slice(read.keyName.indexOf("/") + 1) : node;
    const key = { node: named, signer: this.#stage.signerOf(node) };
    reached(this.#stage.probes, "lie-told");
    this.told++;
    return signCheckpoint({ ...read.checkpoint, root }, key, this.#stage.digest);
  }
}

interface Mapping {
  readonly page: (page: Page) => Page;
  readonly note: (note: string) => string;
  readonly consistency: (body: LineConsistency, line: string, from: number, to: number) => LineConsistency;
}

/** The same parcel with other pages, notes and proofs. */
export function mapParcel(parcel: Parcel, { page, note, consistency }: Mapping): Parcel {
  switch (parcel.kind) {
    case "opening":
      return { ...parcel, opening: { ...parcel.opening, heads: parcel.opening.heads.map(note) } };
    case "message":
      return { ...parcel, message: mapMessage(parcel.message, page, note) };
    case "ended":
      return parcel;
    case "question": {
      const { question } = parcel;
      if (question.kind !== "deliver") return parcel;
      const { pages, heads } = question.delivery;
      const delivery = { ...question.delivery, pages: pages?.map(page), heads: heads?.map(note) };
      return { ...parcel, question: { ...question, delivery } };
    }
    case "answer": {
      const { answer, to } = parcel;
      if (answer.kind !== "answer") return parcel;
      if (to.kind === "deliver") {
        const body = answer.body as Delivered;
        return { ...parcel, answer: { ...answer, body: { ...body, heads: body.heads.map(note) } } };
      }
      if (to.kind !== "consistency") return parcel;
      const body = consistency(answer.body as LineConsistency, to.line, to.from, to.to);
      return { ...parcel, answer: { ...answer, body } };
    }
    default:
      return assertNever(parcel, "parcel");
  }
}

function mapMessage(message: LinkMessage, page: Mapping["page"], note: Mapping["note"]): LinkMessage {
  if (message.kind === "page") return { ...message, page: page(message.page as Page) };
  if (message.kind === "heads") return { ...message, heads: message.heads.map(note) };
  return message;
}
