// Whether a page continues a line: the one place where foreign bytes become events that a site believes.
//
//   page ─▶ shape and bounds ─▶ its place ─▶ signature ─▶ items ─▶ root ─▶ withheld ─▶ what the items say ─▶ accepted
//              │ bad             │ gap, duplicate  │ bad           │ suspected │ bad         │ bad
//
// Invariants:
// - Exactly the bytes that came are hashed; nothing is serialised again (trap 57).
// - The signature is checked before any item is read, with a key of the ring in force before the page, never one of the page's own.
// - A valid signature over another root than the bytes give is *suspected*, whatever else is wrong with the items: either the
//   deliverer changed them, or the site signed another history, and only a proof of consistency tells which (fork.ts).
// - A change of the ring is in force after its page, which it ends. So no page has events of two rings, however a relay cuts.
// - The scanner accepts only what `decodeEvent` would read (a property test compares them), so what it has accepted is not looked at twice.
//   Whatever is not a plain event at its place is read in full, which also names what is wrong with it.
// - What is known already is skipped. Only whether it is withheld counts, because the site signs that for the page as a whole.

import { checkLink, withHash } from "../../events/chain.ts";
import { EventScanner } from "../../events/event-scanner.ts";
import { type ChainEvent, eventDigestOf, type StoredEvent } from "../../events/event.ts";
import { bytesOfHash, hexOf, standsAt } from "../../events/hex.ts";
import type { MerkleFrontier } from "../../events/merkle.ts";
import { parseJson } from "../../kit/parse-json.ts";
import type { Checkpoint, LineState, Page, PageItem, Ring } from "../model.ts";
import { SLICE_BYTES, SLICE_ITEMS } from "./limits.ts";
import { frontierOf, rootOf } from "./line-state.ts";
import { checkNote, type ProofTools, readNote } from "./note.ts";
import { bytesUntilNext, itemBytes, pageProblem } from "./page.ts";
import { haveSameKeys, ringOfRegistration } from "./ring.ts";
import { recoveredProblem } from "./successor.ts";
import { isWithheld, withheldHash } from "./withheld.ts";

/** Its `sequence` is its place in the line. */
export interface CheckedEvent {
  readonly kind: "event";
  readonly event: ChainEvent;
  /** As it came: what is stored and passed on. */
  readonly text: string;
}

/** An event whose text stays at its site. */
export interface Stub {
  readonly kind: "stub";
  readonly sequence: number;
  readonly hash: string;
}

export type Verdict =
  /** `firstNew`: the sequence of the first of `events`, which are those after what was known. */
  | {
      readonly kind: "accepted";
      readonly state: LineState;
      readonly firstNew: number;
      readonly events: readonly (CheckedEvent | Stub)[];
    }
  | { readonly kind: "duplicate" }
  | { readonly kind: "gap"; readonly have: number }
  | { readonly kind: "bad"; readonly sequence?: number | undefined; readonly problem: string }
  | { readonly kind: "suspected"; readonly checkpoint: Checkpoint; readonly note: string; readonly problem: string };

export interface PageQuestion extends ProofTools {
  readonly state: LineState;
  readonly page: Page;
  /** Authors of other sites. Before a line has stated its own, it may have earlier ones, but none of these. */
  readonly isOthers?: ((author: string) => boolean) | undefined;
  /** Everything is checked all the same, but nobody reads the events: of what is accepted, `events` has the stubs alone. */
  readonly isOnlyJudged?: boolean | undefined;
}

const textEncoder = new TextEncoder();
const scanner = new EventScanner();

/** Yields after the signature and after every few items, so that callers can work in slices. */
export function* checkPage(question: PageQuestion): Generator<void, Verdict> {
  const { state, page, digest } = question;
  const placed = placeOf(question);
  if (placed.kind !== "next") return placed;
  const { checkpoint } = placed;
  const signed = checkNote(page.checkpoint, state.ring, question);
  if (signed.kind !== "signed") return bad(signed.problem);
  yield;

  const walk = new Walk(question);
  let [items, bytes] = [0, 0];
  for (const item of page.items) {
    walk.take(item);
    items++;
    bytes += itemBytes(item);
    if (items < SLICE_ITEMS && bytes < SLICE_BYTES) continue;
    [items, bytes] = [0, 0];
    yield;
  }

  if (walk.root() !== checkpoint.root) {
    const problem = walk.problem?.text ?? "its items do not give the root that is signed";
    return { kind: "suspected", checkpoint, note: page.checkpoint, problem };
  }
  if (withheldHash(walk.withheld, digest) !== checkpoint.withheld.hash)
    return bad("its hashes without a text are not at the positions that are signed as withheld");
  if (walk.problem !== null) return bad(walk.problem.text, walk.problem.sequence);
  return { kind: "accepted", state: walk.state(), firstNew: state.size + 1, events: walk.events };
}

type Placed = { readonly kind: "next"; readonly checkpoint: Checkpoint };

/** Where the page is in the line, as far as that can be said without trust. */
function placeOf(question: PageQuestion): Placed | Verdict {
  const { state, page, digest } = question;
  const problem = pageProblem(page);
  if (problem !== null) return bad(problem);
  if (page.line !== state.line) return bad("it is of another line");
  const note = readNote(page.checkpoint);
  if (note.kind === "malformed") return bad(`checkpoint: ${note.problem}`);
  const { checkpoint } = note;
  const end = page.after + page.items.length;
  if (checkpoint.line !== page.line) return bad("its checkpoint is of another line");
  if (checkpoint.size !== end)
    return bad(`its checkpoint is of ${checkpoint.size} events, and its items end at ${end}`);
  if (checkpoint.withheld.after !== page.after)
    return bad(
      `its checkpoint says what is withheld after ${checkpoint.withheld.after}, and its items begin after ${page.after}`,
    );
  if (page.after > state.size) return { kind: "gap", have: state.size };
  if (end > state.size) return { kind: "next", checkpoint };
  // Of an earlier size the root is not at hand: heads are compared for that (fork.ts).
  if (end < state.size || checkpoint.root === rootOf(state, digest)) return { kind: "duplicate" };
  const signed = checkNote(page.checkpoint, state.ring, question);
  if (signed.kind !== "signed") return bad(signed.problem);
  return { kind: "suspected", checkpoint, note: page.checkpoint, problem: "a checkpoint of our size has another root" };
}

/** Goes over the items, from the state on. The first thing that is wrong is kept; hashing goes on, because the root decides first. */
class Walk {
  readonly events: (CheckedEvent | Stub)[] = [];
  /** Sequences of all items of the page that have no text. */
  readonly withheld: number[] = [];
  problem: { readonly sequence: number; readonly text: string } | null = null;
  readonly #question: PageQuestion;
  readonly #tree: MerkleFrontier;
  readonly #end: number;
  /** As an event spells it, without its quotes. */
  readonly #author: Uint8Array;
  #sequence: number;
  /** Of the last event: its raw hash, and its time. */
  #hash: Uint8Array | null;
  #timestamp: number;
  #ring: Ring;
  #isStated: boolean;

  constructor(question: PageQuestion) {
    const { state, page, digest } = question;
    this.#question = question;
    this.#tree = frontierOf(state, digest);
    this.#end = page.after + page.items.length;
    this.#author = textEncoder.encode(JSON.stringify(state.ring.author).slice(1, -1));
    this.#sequence = page.after;
    this.#hash = state.hash === null ? null : bytesOfHash(state.hash);
    this.#timestamp = state.timestamp;
    this.#ring = state.ring;
    this.#isStated = state.isStated;
  }

  take(item: PageItem): void {
    const sequence = ++this.#sequence;
    if (typeof item !== "string") this.withheld.push(sequence);
    if (sequence <= this.#question.state.size) return;
    this.#hash = typeof item === "string" ? this.#text(sequence, item) : this.#stub(sequence, item.hash);
    this.#tree.append(this.#hash);
  }

  root(): string {
    return hexOf(this.#tree.root());
  }

  state(): LineState {
    const { state, page } = this.#question;
    const frontier = this.#tree.encode().slice();
    return {
      line: state.line,
      ring: this.#ring,
      isStated: this.#isStated,
      size: this.#sequence,
      hash: this.#hash === null ? null : hexOf(this.#hash),
      timestamp: this.#timestamp,
      frontier,
      checkpoint: page.checkpoint,
    };
  }

  #stub(sequence: number, hash: string): Uint8Array {
    this.events.push({ kind: "stub", sequence, hash });
    return bytesOfHash(hash);
  }

  #text(sequence: number, text: string): Uint8Array {
    const { digest } = this.#question;
    const bytes = bytesUntilNext(text);
    const hash = eventDigestOf(bytes, digest);
    if (this.problem !== null) return hash;
    const problem = scanner.scan(bytes);
    if (problem === null && this.#isPlain(sequence, bytes)) {
      this.#timestamp = scanner.timestamp;
      this.#keep(text, () => withHash(parseJson(text) as StoredEvent, hexOf(hash)));
    } else this.#readWhole(sequence, text, bytes, problem);
    return hash;
  }

  /** Of what was just scanned: it continues the chain in its place, and says nothing about the line itself. */
  #isPlain(sequence: number, bytes: Uint8Array): boolean {
    const { previousHashAt, eventType } = scanner;
    return (
      scanner.sequence === sequence &&
      scanner.timestamp > this.#timestamp &&
      (this.#hash === null ? previousHashAt < 0 : previousHashAt >= 0 && standsAt(this.#hash, bytes, previousHashAt)) &&
      !isWithheld(eventType) &&
      !eventType.startsWith("controller:") &&
      scanner.hasSource(this.#author) &&
      (this.#isStated || this.#ring.generation === 1)
    );
  }

  #readWhole(sequence: number, text: string, bytes: Uint8Array, scanned: string | null): void {
    const hash = this.#hash === null ? null : hexOf(this.#hash);
    const link = checkLink({ sequence: sequence - 1, hash, timestamp: this.#timestamp }, bytes, this.#question.digest);
    if (link.kind === "broken") return this.#wrong(sequence, link.reason);
    const { event } = link;
    const problem = scanned ?? this.#problemOf(event);
    if (problem !== null) this.#wrong(sequence, problem);
    this.#timestamp = event.timestamp;
    this.#keep(text, () => event);
  }

  #keep(text: string, eventOf: () => ChainEvent): void {
    if (this.#question.isOnlyJudged !== true) this.events.push({ kind: "event", event: eventOf(), text });
  }

  #problemOf(event: ChainEvent): string | null {
    const { ring } = this.#question.state;
    if (isWithheld(event.eventType)) return `${event.eventType} is withheld, and never has a text`;
    // Written before the site had a ring, or before it knew that its disk had gone back.
    if (event.sourceControllerId !== ring.author) {
      const isForged = this.#isStated || (this.#question.isOthers?.(event.sourceControllerId) ?? false);
      return isForged ? `its author is not ${ring.author}` : null;
    }
    if (ring.generation > 1 && !this.#isStated) return this.#recovered(event);
    if (event.eventType === "controller:registered" && event.entityId === ring.controller) return this.#register(event);
    return null;
  }

  /** The first event of its own author, in a line that continues another one (successor.ts). */
  #recovered(event: ChainEvent): string | null {
    const { state } = this.#question;
    const problem = recoveredProblem(event, state, state.checkpoint === null && event.sequence === state.size + 1);
    this.#isStated = problem === null;
    return problem;
  }

  /** The site's own registration: it states the ring, and may change it. */
  #register(event: ChainEvent): string | null {
    const { state } = this.#question;
    const stated = ringOfRegistration(state.ring.controller, event.payload);
    if (stated.kind === "malformed") return stated.problem;
    const { ring } = stated;
    if (
      event.payload["line"] !== state.line ||
      ring.generation !== state.ring.generation ||
      ring.author !== state.ring.author
    )
      return "it registers the site for another line";
    this.#isStated = true;
    if (haveSameKeys(ring, state.ring)) return null;
    if (event.sequence !== this.#end) return "a change of the ring ends its page";
    this.#ring = ring;
    return null;
  }

  #wrong(sequence: number, text: string): void {
    this.problem ??= { sequence, text };
  }
}

function bad(problem: string, sequence?: number): Verdict {
  return { kind: "bad", sequence, problem };
}
