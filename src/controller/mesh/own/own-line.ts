// This site's own lines, shown to others: pages with a signed note of exactly their size, heads, and proofs. Any node whose key is in the
// ring signs; one whose key is not asks a member whose key is. Only applied events are signed.
//
// A page of the time before a change of rings is signed by a key of the ring that was in force then, which this node may not have had:
// the other members are asked for that note. It is checked before it is given out.
//
// Invariants:
// - A note is made once for each (after, size), while it is kept: every peer gets the same head.
// - No note is made while `held` names a reason: after a restore two histories could be signed under one name.

import { TenureError } from "../../../core/kit/errors.ts";
import type { OwnPart } from "../../../core/mesh/gate/index.ts";
import type { Checkpoint, LineId, Page, Ring } from "../../../core/mesh/model.ts";
import {
  checkNote,
  ringHashOf,
  ringKeyOf,
  signCheckpoint,
  toBase64,
  withheldHash,
} from "../../../core/mesh/proof/index.ts";
import { type Possession, type PossessionProof, possessionText, provenKey } from "../../../core/mesh/registry/index.ts";
import { sleep } from "../../../loops/time.ts";
import type { Clock } from "../../../ports/clock.ts";
import type { Digest } from "../../../ports/digest.ts";
import type { ConsistencyProof, Events, InclusionProof } from "../../../ports/events.ts";
import type { LineSource, OwnLineStatus, OwnLineView } from "../../../ports/mesh/lines.ts";
import type { Signer, VerifySignature } from "../../../ports/signatures.ts";
import { NOTES_KEPT_MAX } from "../limits.ts";
import { type OwnGeneration, type OwnLineFold, ringAt, ringChangeAfter, ringOf } from "./own-line-fold.ts";
import { PageReader, type PageReaderOptions } from "./page-reader.ts";

export interface OwnLineOptions extends PageReaderOptions {
  readonly fold: Pick<OwnLineFold, "lines">;
  readonly events: PageReaderOptions["events"] & Pick<Events, "consistency" | "inclusion">;
  readonly key: { readonly node: string; readonly signer: Signer };
  readonly verify: VerifySignature;
  readonly clock: Clock;
  readonly digest: Digest;
  /** Asks the members with a key of this ring; null: none of them answers. */
  readonly askNote: (ring: Ring, asked: NoteAsked) => Promise<string | null>;
  /** Asks the members with a key of this ring; null: none of them answers. */
  readonly askProof: (ring: Ring, possession: Possession) => Promise<PossessionProof | null>;
  /** Why the leader has written no ring yet, or not the one that is wanted; null: it has. */
  readonly ringWaits: () => string | null;
  /** Why nothing is signed; null: it is. */
  readonly held?: (() => string | null) | undefined;
}

/** Which note: of a page, or of a head where `after` is `size`. */
export interface NoteAsked {
  readonly line: LineId;
  readonly after: number;
  readonly size: number;
}

export class OwnLine implements LineSource {
  readonly #options: OwnLineOptions;
  readonly #reader: PageReader;
  /** By line, after and size; the oldest first. */
  readonly #notes = new Map<string, Promise<string>>();

  constructor(options: OwnLineOptions) {
    this.#options = options;
    this.#reader = new PageReader(options);
    options.events.onReplaced(() => this.#notes.clear());
  }

  get publicKey(): string {
    return toBase64(this.#options.key.signer.publicKey);
  }

  /** Why nothing is signed; null: it is. */
  get held(): string | null {
    return this.#options.held?.() ?? null;
  }

  /** What is here of an own line, next to a head of this size; null: it is no line of this site that this node knows. */
  async partAt(line: LineId, size: number): Promise<OwnPart | null> {
    const own = this.#options.fold.lines;
    const generation = own?.generations.find((one) => one.line === line);
    if (generation === undefined) {
      return own?.earlier?.includes(line) === true ? { size: 0, isEnded: true, root: null } : null;
    }
    const through = this.#through(generation);
    const isEnded = generation.end !== null;
    return { size: through, isEnded, root: size > through || isEnded ? null : await this.#rootAt(size) };
  }

  /** Under any ring that the line has had. */
  hasSigned(line: LineId, note: string): boolean {
    const { fold, digest, verify } = this.#options;
    const rings = fold.lines?.generations.find((one) => one.line === line)?.rings ?? [];
    return rings.some(({ ring }) => checkNote(note, ring, { digest, verify }).kind === "signed");
  }

  /**
   * That this site has its keys: by a key of the first ring of its newest line, where a member that has one answers. Whoever meets the site for the first
   * time knows no later ring: those are in the line, which it takes only from a site that it has met. Whoever has met it in an earlier line takes the
   * newest one by a key of that line alone: so a key that both have comes first.
   */
  async prove(possession: Possession): Promise<PossessionProof> {
    const { askProof, verify } = this.#options;
    for (const ring of this.#provers()) {
      if (this.#isOurs(ring)) break;
      const proof = await askProof(ring, possession);
      const key = proof === null ? null : provenKey(proof, possession, verify);
      if (proof !== null && ring.keys.some((one) => one.key === key)) return proof;
    }
    return this.proofFor(possession);
  }

  /** The first ring of the newest line, and before it, with fewer keys each, what of it was in the lines before. */
  #provers(): readonly Ring[] {
    const [newest, ...before] = (this.#options.fold.lines?.generations ?? []).toReversed();
    if (newest === undefined) return [];
    let ring = newest.rings[0]!.ring;
    const provers = [ring];
    for (const { rings } of before) {
      // Its first ring is known to everybody who has met the site in that line, the last one to those who have all of it.
      const known = [rings[0]!.ring, rings.at(-1)!.ring].map((one) => common(ring, one));
      const next = known.find(({ keys }) => keys.length > 0);
      if (next === undefined) break;
      if (next.keys.length < ring.keys.length) provers.unshift(next);
      ring = next;
    }
    return provers;
  }

  /** By this node's own key. */
  proofFor(possession: Possession): PossessionProof {
    const { signer } = this.#options.key;
    return { key: this.publicKey, signature: toBase64(signer.sign(possessionText(possession))) };
  }

  lines(): readonly LineId[] {
    return (this.#options.fold.lines?.generations ?? []).map(({ line }) => line);
  }

  has(line: LineId): boolean {
    return this.#options.fold.lines?.generations.some((one) => one.line === line) ?? false;
  }

  view(): OwnLineView | null {
    const { fold, events, digest } = this.#options;
    const own = fold.lines;
    const last = own?.generations.at(-1);
    if (own === null || last === undefined) return null;
    const { controller, name, urls, generations } = own;
    const ring = ringOf(last);
    return {
      controller,
      name,
      urls,
      line: last.line,
      generation: ring.generation,
      size: this.#through(last),
      first: events.head().first,
      ring,
      ringHash: ringHashOf(ring, digest),
      lines: generations.map((one) => ({
        line: one.line,
        generation: ringOf(one).generation,
        after: one.after,
        size: this.#through(one),
        firstRing: one.rings[0]!.ring,
        firstRingHash: ringHashOf(one.rings[0]!.ring, digest),
        ringChanges: one.rings.length - 1,
      })),
    };
  }

  status(): OwnLineStatus {
    const { fold, key, ringWaits } = this.#options;
    const last = fold.lines?.generations.at(-1);
    const waits = ringWaits();
    if (last === undefined) return { kind: "waiting", why: waits ?? "the leader has not written the ring of keys yet" };
    if (last.end !== null) {
      const why = `this site was recovered after event ${last.end.through}, and the ring of its next generation is not written yet`;
      return { kind: "waiting", why: waits ?? why };
    }
    if (!this.#isOurs(ringOf(last))) {
      const why = `the key of ${key.node} is not in the ring of keys: the other nodes sign`;
      return { kind: "not-signing", why: waits === null ? why : `${why}. ${waits}` };
    }
    if (waits !== null) return { kind: "waiting", why: waits };
    const { held } = this;
    return held === null ? { kind: "signing" } : { kind: "gated", why: held };
  }

  size(line: LineId): number {
    return this.#through(this.#generation(line));
  }

  checkpoint(line: LineId): Promise<string> {
    const generation = this.#generation(line);
    const size = this.#through(generation);
    return this.#note(generation, { line, after: size, size });
  }

  async page(line: LineId, from: number): Promise<Page | null> {
    const { clock } = this.#options;
    const generation = this.#generation(line);
    // What is before the line is in the one of the generation before: whoever does not know where it begins is shown that.
    const after = Math.max(from, generation.after);
    const through = Math.min(this.#through(generation), ringChangeAfter(generation, after) ?? Infinity);
    const cut = await this.#reader.cut(after, through);
    if (cut === null) return null;
    // The tree and the texts of a page take some milliseconds, and so does its JSON: not in one turn of the loop.
    await sleep(clock, 0);
    const { items, size, root, withheld } = cut;
    const checkpoint: Checkpoint = { line, size, root, withheld: { after, hash: withheld } };
    const note = await this.#once({ line, after, size }, () => this.#signed(generation, checkpoint));
    return { line, after, items, checkpoint: note };
  }

  /** The author cuts as much as a page may have: one is enough. */
  async pages(line: LineId, after: number): Promise<readonly Page[]> {
    const page = await this.page(line, after);
    return page === null ? [] : [page];
  }

  async consistency(line: LineId, from: number, to: number): Promise<ConsistencyProof> {
    this.#checkOpen();
    this.#checkWithin(line, to);
    return this.#options.events.consistency(from, to);
  }

  async inclusion(line: LineId, sequence: number, size: number): Promise<InclusionProof> {
    this.#checkOpen();
    this.#checkWithin(line, size);
    return this.#options.events.inclusion(sequence, size);
  }

  /** For another member, whose key is not in that ring: signed by this node's own key, or null. */
  async noteFor({ line, after, size }: NoteAsked): Promise<string | null> {
    const generation = this.#options.fold.lines?.generations.find((one) => one.line === line);
    if (generation === undefined || size > this.#through(generation) || !this.#isOurs(ringAt(generation, after))) {
      return null;
    }
    return this.#note(generation, { line, after, size });
  }

  async #note(generation: OwnGeneration, asked: NoteAsked): Promise<string> {
    return this.#once(asked, async () => {
      const { line, after, size } = asked;
      const checkpoint = after === size ? await this.#head(line, size) : await this.#ofPage(asked);
      return this.#signed(generation, checkpoint);
    });
  }

  async #head(line: LineId, size: number): Promise<Checkpoint> {
    const { digest } = this.#options;
    return {
      line,
      size,
      root: await this.#reader.root(size),
      withheld: { after: size, hash: withheldHash([], digest) },
    };
  }

  async #ofPage({ line, after, size }: NoteAsked): Promise<Checkpoint> {
    const cut = await this.#reader.cut(after, size);
    if (cut?.size !== size) throw new TenureError("NOT_FOUND", `No page is cut from event ${after} to ${size}.`);
    return { line, size, root: cut.root, withheld: { after, hash: cut.withheld } };
  }

  async #signed(generation: OwnGeneration, checkpoint: Checkpoint): Promise<string> {
    const { key, digest, askNote, verify } = this.#options;
    this.#checkOpen();
    const { line, size, withheld } = checkpoint;
    const ring = ringAt(generation, withheld.after);
    if (this.#isOurs(ring)) return signCheckpoint(checkpoint, key, digest);
    const note = await askNote(ring, { line, after: withheld.after, size });
    const checked = note === null ? null : checkNote(note, ring, { digest, verify });
    if (note !== null && checked?.kind === "signed" && isSame(checked.checkpoint, checkpoint)) return note;
    const nodes = ring.keys.map(({ node }) => node).join(", ");
    const why = `Events ${withheld.after} to ${size} of ${line} are signed by a key of ${nodes}, which this node does not have, and none of them answers`;
    throw new TenureError("BACKEND_UNAVAILABLE", `${why}. Ask one of them, or this node again later.`);
  }

  #checkOpen(): void {
    const why = this.held;
    if (why !== null)
      throw new TenureError("BACKEND_UNAVAILABLE", `Nothing of this site's line is given out now: ${why}.`);
  }

  /** Throws where nothing is given out, also of what was signed before. */
  #once({ line, after, size }: NoteAsked, make: () => Promise<string>): Promise<string> {
    this.#checkOpen();
    const name = `${line} ${after} ${size}`;
    const kept = this.#notes.get(name);
    if (kept !== undefined) return kept;
    const made = make();
    this.#notes.set(name, made);
    // What could not be signed now may be later.
    made.catch(() => this.#notes.delete(name));
    if (this.#notes.size > NOTES_KEPT_MAX) {
      const [oldest] = this.#notes.keys();
      this.#notes.delete(oldest!);
    }
    return made;
  }

  #isOurs(ring: Ring): boolean {
    const { node, signer } = this.#options.key;
    const own = ringKeyOf(node, signer.publicKey);
    return ring.keys.some((one) => one.node === own.node && one.key === own.key);
  }

  /** Null: it is not kept any more. */
  async #rootAt(size: number): Promise<string | null> {
    try {
      return await this.#reader.root(size);
    } catch (error) {
      if (TenureError.is(error) && error.code === "LOG_COMPACTED") return null;
      throw error;
    }
  }

  #through({ end }: OwnGeneration): number {
    return end?.through ?? this.#options.events.head().sequence;
  }

  #generation(line: LineId): OwnGeneration {
    const found = this.#options.fold.lines?.generations.find((one) => one.line === line);
    if (found === undefined) throw new TenureError("NOT_FOUND", `There is no line ${line} here.`);
    return found;
  }

  #checkWithin(line: LineId, size: number): void {
    const through = this.size(line);
    if (size <= through) return;
    throw new TenureError("NOT_FOUND", `The line ${line} has ${through} events here; ${size} are asked for.`);
  }
}

/** The keys of a ring that another one has, too. */
function common(ring: Ring, { keys: others }: Ring): Ring {
  return { ...ring, keys: ring.keys.filter(({ key }) => others.some((one) => one.key === key)) };
}

function isSame(one: Checkpoint, other: Checkpoint): boolean {
  return (
    one.line === other.line &&
    one.size === other.size &&
    one.root === other.root &&
    one.withheld.after === other.withheld.after &&
    one.withheld.hash === other.withheld.hash
  );
}
