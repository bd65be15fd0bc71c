// Proves a site's whole history from outside, with nothing but a hash of its ring of keys: every page of every generation is pulled from the
// first event on, and judged with the functions with which another site of the mesh takes it in (core/mesh/proof). In the end the signed
// head is compared with what was proven.
//
//   sites ─▶ first ring ─▶ pages of the line ─▶ its end ─▶ the next generation, which names it ─▶ … ─▶ the head, and the hash that was given
//
// Invariants:
// - Nothing that the server says is believed: its rings count because the name of their line is their hash, its events because the ring in
//   force has signed their tree. A ring whose hash was given must be the first one of one of the lines, or have signed the head of one.
// - A next generation counts where a key of the last ring of the generation before signs it, or where its first ring was given.
// - Memory: the page that is checked, MESH_PAGES_AHEAD_MAX more, and the state of one line.

import { setImmediate } from "node:timers/promises";
import { assertNever } from "../../core/kit/assert.ts";
import { bytesOfHash, decodeEvent, eventHashOf, verifyConsistency } from "../../core/events/index.ts";
import type { Checkpoint, LineState, Page, Ring } from "../../core/mesh/model.ts";
import {
  checkNote,
  checkPage,
  controllerOf,
  emptyLine,
  lineIdOf,
  pageProblem,
  readNote,
  type ProofTools,
  readRecovered,
  type Recovered,
  ringHashOf,
  ringProblem,
  rootOf,
  successorOf,
} from "../../core/mesh/proof/index.ts";
import { MESH_PAGES_AHEAD_MAX } from "../limits.ts";

const HASH = /^[0-9a-f]{64}$/;

/** The site, as it is asked. */
export interface AuditedSite {
  lines(): Promise<readonly AuditedLine[]>;
  page(line: string, after: number): Promise<unknown>;
  head(line: string): Promise<string>;
  consistency(line: string, from: number, to: number): Promise<readonly string[]>;
}

/** As the site shows it: nothing of it is believed. */
export interface AuditedLine {
  readonly line: string;
  readonly firstRing: unknown;
}

/** What the caller knows of the site. */
export interface Pin {
  /** Of the first or the last ring of one of the site's lines; null: none is known. */
  readonly ringHash: string | null;
  /** Public key in base64, of the node that is asked: it has signed the head. */
  readonly publicKey: string | null;
}

export interface Proven {
  readonly controller: string;
  readonly lines: readonly ProvenLine[];
  readonly ringHash: string;
  /** False: the caller gave nothing to compare the ring with. */
  readonly isPinned: boolean;
}

export interface ProvenLine {
  readonly line: string;
  readonly generation: number;
  /** The first event of the line, and the last. */
  readonly first: number;
  readonly through: number;
  readonly withheld: number;
  readonly ringChanges: number;
  readonly root: string;
}

/** The history, or what the server sends of it, is not what was signed. */
export class AuditFailed extends Error {
  readonly line: string;
  readonly sequence: number | null;
  readonly problem: string;

  constructor(line: string, sequence: number | null, problem: string) {
    super(sequence === null ? `${line}: ${problem}` : `${line}, event ${sequence}: ${problem}`);
    this.line = line;
    this.sequence = sequence;
    this.problem = problem;
  }
}

interface Audit extends ProofTools {
  readonly site: AuditedSite;
  readonly progress: (through: number) => void;
}

export async function audit(options: Audit, pin: Pin): Promise<Proven> {
  const { digest } = options;
  const shown = await options.site.lines();
  const lines: ProvenLine[] = [];
  const hashes: string[] = [];
  let state: LineState | null = null;
  let signedBy: Proved["signedBy"] | null = null;
  for (const one of shown) {
    const ring = shownRing(one, digest);
    const opened: Opened = await open(options, state, ring, pin);
    const through: Proved = await toHead(options, await pull(options, opened));
    lines.push(provenLine(opened.state, through, digest));
    state = through.state;
    signedBy = through.signedBy;
    // Public keys are public: a ring that a history names counts only where it has signed that history.
    hashes.push(ringHashOf(ring, digest), ringHashOf(signedBy.ring, digest));
  }
  if (state === null || signedBy === null) throw new AuditFailed("the site", null, "it shows no line");
  comparePin(pin, hashes, state, signedBy.key);
  const isPinned = pin.ringHash !== null || pin.publicKey !== null;
  return { controller: controllerOf(state.line), lines, ringHash: ringHashOf(state.ring, digest), isPinned };
}

function shownRing({ line, firstRing }: AuditedLine, digest: ProofTools["digest"]): Ring {
  const problem = ringProblem(firstRing);
  if (problem !== null) throw new AuditFailed(line, null, `its first ring: ${problem}`);
  const ring = firstRing as Ring;
  if (lineIdOf(ring, digest) === line) return ring;
  throw new AuditFailed(line, null, "its name is not the hash of the first ring that the site shows");
}

interface Opened {
  readonly state: LineState;
  /** What is known of the line so far; its first page, where that was asked for already. */
  readonly page: Page | null;
}

async function open(options: Audit, before: LineState | null, ring: Ring, pin: Pin): Promise<Opened> {
  const { digest } = options;
  if (before === null) {
    if (ring.generation === 1) return { state: emptyLine(ring, digest), page: null };
    throw new AuditFailed(lineIdOf(ring, digest), null, "the site does not show the generations before this one");
  }
  const line = lineIdOf(ring, digest);
  const page = await pageOf(options, line, before.size);
  const [first] = page?.items ?? [];
  const read = typeof first === "string" ? decodeEvent(new TextEncoder().encode(first)) : null;
  const recovered = read?.kind === "event" ? readRecovered(read.event.payload, digest) : null;
  const place = before.size + 1;
  // What was written before the site knew that its line had ended comes first, in the name of the author before.
  const isBefore = read?.kind === "event" ? read.event.sourceControllerId !== ring.author : first !== undefined;
  if (page === null || (recovered === null && !isBefore))
    throw new AuditFailed(line, place, "it does not begin with controller:recovered");
  const successor = successorOf({ old: before, ring, recovered: recovered ?? endOf(before), digest });
  if (successor.kind !== "line") {
    throw new AuditFailed(line, place, successor.kind === "refused" ? successor.problem : "it begins elsewhere");
  }
  const signed = checkNote(page.checkpoint, ring, options);
  const isKnown = signed.kind === "signed" && keyIn(before.ring, signed.node) === keyIn(ring, signed.node);
  if (!isKnown && pin.ringHash !== ringHashOf(ring, digest)) {
    const why = `generation ${ring.generation} is signed by a key that generation ${before.ring.generation} did not have. Ask the site's operator for the hash of its ring (tenure mesh key), and give it with --ring`;
    throw new AuditFailed(line, place, why);
  }
  return { state: successor.state, page };
}

/** As if the line said that it continues all of the one before, which is what the site has shown of that. */
function endOf({ line, size, hash, frontier }: LineState): Recovered {
  return { line, through: size, hash, frontier };
}

function keyIn(ring: Ring, node: string): string | undefined {
  return ring.keys.find((one) => one.node === node)?.key;
}

interface Through {
  readonly state: LineState;
  readonly withheld: number;
  readonly ringChanges: number;
}

interface Proved extends Through {
  /** The head: under which ring, and with which of its keys. */
  readonly signedBy: { readonly ring: Ring; readonly key: string };
}

/** All pages, from the state on. `onRing`: each ring that comes into force, in order. */
async function pull(
  options: Audit,
  { state: from, page: known }: Opened,
  onRing: (ring: Ring, since: number) => void = () => undefined,
): Promise<Through> {
  const { progress, digest } = options;
  let [state, withheld, ringChanges] = [from, 0, 0];
  const first = known === null ? pageOf(options, from.line, from.size) : Promise.resolve(known);
  for await (const page of inAdvance(options, first)) {
    const accepted = await checked(options, state, page);
    if (ringHashOf(accepted.state.ring, digest) !== ringHashOf(state.ring, digest)) {
      ringChanges++;
      onRing(accepted.state.ring, accepted.state.size);
    }
    withheld += accepted.events.length;
    state = accepted.state;
    progress(state.size);
  }
  return { state, withheld, ringChanges };
}

/**
 * The pages from the first on. Each is asked for as soon as the one before has come, also while others are checked, so that the site and
 * the audit work at the same time. What goes wrong with a page is thrown where that page is taken.
 */
async function* inAdvance(options: Audit, first: Promise<Page | null>): AsyncGenerator<Page> {
  let isOver = false;
  const following = (before: Promise<Page | null>): Promise<Page | null> => {
    const next = before.then((page) =>
      page === null || isOver ? null : pageOf(options, page.line, page.after + page.items.length),
    );
    next.catch(() => undefined);
    return next;
  };
  const pages = [first];
  try {
    for (;;) {
      while (pages.length <= MESH_PAGES_AHEAD_MAX) pages.push(following(pages.at(-1)!));
      const page = await pages.shift()!;
      if (page === null) return;
      yield page;
    }
  } finally {
    isOver = true;
  }
}

async function pageOf({ site }: Audit, line: string, after: number): Promise<Page | null> {
  const page = await site.page(line, after);
  if (page === null) return null;
  const problem = pageProblem(page);
  if (problem === null) return page as Page;
  throw new AuditFailed(line, after + 1, `the page that begins here: ${problem}`);
}

async function checked(options: Audit, state: LineState, page: Page) {
  const { digest, verify } = options;
  const walk = checkPage({ state, page, digest, verify, isOnlyJudged: true });
  let step = walk.next();
  for (; step.done !== true; step = walk.next()) await setImmediate();
  const verdict = step.value;
  const { line, size } = state;
  switch (verdict.kind) {
    case "accepted":
      return verdict;
    case "bad":
      throw new AuditFailed(line, verdict.sequence ?? size + 1, verdict.problem);
    case "suspected":
      throw new AuditFailed(
        line,
        firstChanged(page, options.digest),
        `what the site has signed is another event: ${verdict.problem}`,
      );
    case "gap":
    case "duplicate":
      throw new AuditFailed(line, size + 1, "a page of another place was sent");
    default:
      return assertNever(verdict, "verdict");
  }
}

/**
 * Whose bytes are not those that were hashed: each event names the hash of the one before it. Where two links in a row do not fit, it is the
 * event between them; the last one is named where all fit.
 */
function firstChanged(page: Page, digest: ProofTools["digest"]): number {
  const encoder = new TextEncoder();
  const items = page.items.map((item) => {
    if (typeof item !== "string") return { hash: item.hash, previous: undefined };
    const bytes = encoder.encode(item);
    const read = decodeEvent(bytes);
    const previous = read.kind === "event" ? read.event.previousHash : "";
    return { hash: eventHashOf(bytes, digest), previous };
  });
  const fits = (at: number): boolean =>
    items[at]!.previous === undefined || items[at]!.previous === items[at - 1]!.hash;
  for (let at = 1; at < items.length; at++) {
    if (items[at]!.previous === "") return page.after + at + 1;
    if (fits(at)) continue;
    const isThis = at + 1 < items.length && !fits(at + 1);
    return page.after + at + (isThis ? 1 : 0);
  }
  return page.after + (items[0]?.previous === "" ? 1 : items.length);
}

/** As far as the signed head goes, at least: what the site has signed and does not send is missing. */
async function toHead(options: Audit, pulled: Through): Promise<Proved> {
  const { site } = options;
  const { line } = pulled.state;
  const note = await site.head(line);
  const read = readNote(note);
  if (read.kind === "malformed") throw new AuditFailed(line, null, `its head: ${read.problem}`);
  const { checkpoint } = read;
  if (checkpoint.line !== line) throw new AuditFailed(line, null, "its head is of another line");
  const signedUnder = (ring: Ring): Proved["signedBy"] | null => {
    const signed = checkNote(note, ring, options);
    return signed.kind === "signed" ? { ring, key: keyIn(ring, signed.node)! } : null;
  };
  let signedBy = signedUnder(pulled.state.ring);
  // The line may have changed its ring since, more than once: what is signed after a place is signed by the ring in force there.
  const onRing = (ring: Ring, since: number): void => {
    if (since <= checkpoint.withheld.after) signedBy = signedUnder(ring) ?? signedBy;
  };
  // It has grown meanwhile.
  const through =
    checkpoint.size > pulled.state.size
      ? added(pulled, await pull(options, { ...pulled, page: null }, onRing))
      : pulled;
  const { state } = through;
  if (checkpoint.size > state.size) {
    throw new AuditFailed(
      line,
      state.size + 1,
      `the site has signed ${checkpoint.size} events and does not send this one`,
    );
  }
  if (signedBy === null) throw new AuditFailed(line, null, "its head is not signed by a key of the ring in force");
  await compareHead(options, state, checkpoint);
  return { ...through, signedBy };
}

function added(one: Through, more: Through): Through {
  const withheld = one.withheld + more.withheld;
  return { state: more.state, withheld, ringChanges: one.ringChanges + more.ringChanges };
}

/** What was proven goes on where the head ends. */
async function compareHead({ site, digest }: Audit, state: LineState, { line, size, root }: Checkpoint): Promise<void> {
  if (size === 0) return;
  const path = size === state.size ? [] : await site.consistency(line, size, state.size);
  const proof = path.every((hash) => HASH.test(hash)) ? path.map((hash) => bytesOfHash(hash)) : [];
  const roots = { firstRoot: bytesOfHash(root), secondRoot: bytesOfHash(rootOf(state, digest)) };
  if (verifyConsistency({ first: size, second: state.size, ...roots, proof }, digest)) return;
  throw new AuditFailed(line, null, `its head of ${size} events is not of the history that it sends`);
}

function comparePin({ ringHash, publicKey }: Pin, hashes: readonly string[], { line }: LineState, key: string): void {
  if (ringHash !== null && !hashes.includes(ringHash)) {
    const why = `its ring is ${hashes.at(-1)}, and not ${ringHash}: it is another site, or a generation that this one does not continue`;
    throw new AuditFailed(line, null, why);
  }
  if (publicKey === null || publicKey === key) return;
  const why = `its head is signed by the key ${key}, and not by ${publicKey}. Ask the node whose key that is, or give the hash of the ring with --ring`;
  throw new AuditFailed(line, null, why);
}

function provenLine(
  from: LineState,
  { state, withheld, ringChanges }: Through,
  digest: ProofTools["digest"],
): ProvenLine {
  return {
    line: state.line,
    generation: state.ring.generation,
    first: from.size + 1,
    through: state.size,
    withheld,
    ringChanges,
    root: rootOf(state, digest),
  };
}
