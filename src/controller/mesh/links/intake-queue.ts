// How pages of other sites' lines come in, whoever delivers them: by the stream of a parent, by a child's request, or pulled.
//
//   waiting (its line's turn, in order of arrival) ──▶ verified in slices, on what the pages before it give ──▶ received through the own log ──▶ applied
//                                                       └─▶ refused, and the deliverer is blamed
//
// Invariants:
// - One page of a line is verified at a time, on the state that is applied, or that the pages before it give which are being written: a relay has many
//   small pages, and an append for each of them would take a minute for what is written in a second. Where one of those is not written,
//   the log refuses what rests on it (ReceiptsReign).
// - Nothing is answered that rests on a page which is not applied yet (trap 56a).
// - So many bytes of a line are being written at most as one record gathers: large pages are verified on applied state alone. So is what follows
//   a change of the ring.
// - Nothing is received that checkPage has not accepted, under the ring that is pinned for the line.
// - A peer has PAGES_WAITING_PER_PEER_MAX pages here at most.
// - Whoever delivers a page is blamed for its bytes, hashes, root and signature, and for a line that nobody has named: never for what this site's own
//   log did, which may have stopped leading, have no room or not answer.
// - A slice is over after a few milliseconds, and what else the site has to do comes first (giveWay).

import { assertNever } from "../../../core/kit/assert.ts";
import { TenureError } from "../../../core/kit/errors.ts";
import { PAGE_TAKEN_MS } from "../../../core/kit/timeouts.ts";
import type { LineId, LineState, Page, Ring } from "../../../core/mesh/model.ts";
import { RECORD_GATHERED_BYTES_MAX } from "../../../core/mesh/receipts/index.ts";
import { checkNote, checkPage, pageProblem, type Verdict } from "../../../core/mesh/proof/index.ts";
import { giveWay, within } from "../../../loops/time.ts";
import type { Clock } from "../../../ports/clock.ts";
import type { Digest } from "../../../ports/digest.ts";
import type { VerifySignature } from "../../../ports/signatures.ts";
import type { PageError, PageOutcome } from "../../../ports/mesh/sites.ts";
import { Slice } from "../../slice.ts";
import type { Blame } from "./blame.ts";
import type { PageReceived, VerifiedPage } from "../receipts/receipts-reign.ts";
import { LINE_SHOWN_LENGTH_MAX, PAGES_WAITING_PER_PEER_MAX } from "../limits.ts";

/** What this site knows of lines, as it is applied. */
export interface KnownLines {
  isOwn(line: LineId): boolean;
  /** Null: nothing of it was received yet. */
  stateOf(line: LineId): LineState | null;
  /** The first ring of a line that a registration here, or one that this site takes another's word for, has named. */
  firstRingOf(line: LineId): Ring | null;
  /** The state before the first page of a line, which begins after `after`; null: it can't be said (yet). Rejects as a read of the history does. */
  begin(line: LineId, after: number): Promise<LineState | null>;
  /** The author of another site, as far as is known here: no line may write in that name. */
  isOthers(line: LineId, author: string): boolean;
  /** False: frozen for a fork, or its site is evicted. */
  isWanted(line: LineId): boolean;
}

type Accepted = Extract<Verdict, { kind: "accepted" }>;

export interface IntakeOptions {
  readonly clock: Clock;
  readonly digest: Digest;
  readonly verify: VerifySignature;
  readonly lines: KnownLines;
  /** Resolves when all that follows from these events for this site is written. Rejects as a write to the log does. None: the line has another ring. */
  readonly said: (line: LineId, events: Accepted["events"]) => Promise<void>;
  /** Resolves when it is applied here. Rejects as a write to the log does. Those of one line are called in their order. */
  readonly receive: (page: VerifiedPage) => Promise<PageReceived>;
  readonly blame: Blame;
  /** A page whose signature is valid, and whose bytes do not give the signed root after what is known here. */
  readonly suspected: (peer: string, page: Page, note: string) => void;
}

/** What is known when a page's turn is over. Never rejects. */
interface Judged {
  readonly outcome: Promise<PageOutcome>;
}

/** The pages of a line that are being written. */
interface Ahead {
  /** Of the line, when they are applied. */
  readonly state: LineState;
  readonly bytes: number;
  /** False: the last of them was not written. */
  readonly isApplied: Promise<boolean>;
}

export class IntakeQueue {
  readonly #options: IntakeOptions;
  /** The last of each line that has one here. */
  readonly #lines = new Map<LineId, Promise<unknown>>();
  readonly #ahead = new Map<LineId, Ahead>();
  readonly #waiting = new Map<string, number>();

  constructor(options: IntakeOptions) {
    this.#options = options;
  }

  /** Never rejects. `peer`: the site that delivers it. */
  async take(peer: string, value: unknown): Promise<PageOutcome> {
    const { blame, clock } = this.#options;
    const problem = pageProblem(value);
    if (problem !== null) {
      blame.count(peer, "malformed");
      return { line: lineOf(value), error: "EVENT_INVALID", problem };
    }
    const page = value as Page;
    const waiting = this.#waiting.get(peer) ?? 0;
    // They may wait for our own log; whoever sends more than a site may is found by its quota.
    if (waiting >= PAGES_WAITING_PER_PEER_MAX) return refused(page.line, "RATE_LIMITED");
    this.#waiting.set(peer, waiting + 1);
    const taken = this.#inTurn(page.line, () => this.#judge(peer, page)).then(({ outcome }) => outcome);
    void taken.finally(() => this.#release(peer));
    return within(clock, PAGE_TAKEN_MS, taken, refused(page.line, "BACKEND_UNAVAILABLE"));
  }

  #release(peer: string): void {
    const left = (this.#waiting.get(peer) ?? 1) - 1;
    if (left === 0) this.#waiting.delete(peer);
    else this.#waiting.set(peer, left);
  }

  #inTurn(line: LineId, work: () => Promise<Judged>): Promise<Judged> {
    const before = this.#lines.get(line) ?? Promise.resolve();
    const run = before.then(work);
    this.#lines.set(line, run);
    void run.finally(() => {
      if (this.#lines.get(line) === run) this.#lines.delete(line);
    });
    return run;
  }

  async #judge(peer: string, page: Page): Promise<Judged> {
    const { lines, digest, verify, blame } = this.#options;
    const { line } = page;
    if (lines.isOwn(line)) return now({ line, accepted: 0, duplicates: page.items.length });
    if (!lines.isWanted(line)) return now(refused(line, "not_wanted"));
    const ahead = this.#ahead.get(line) ?? null;
    const known = ahead?.state ?? lines.stateOf(line);
    if (known === null) {
      const ring = lines.firstRingOf(line);
      if (ring === null) {
        blame.count(peer, "unknown-line");
        return now(refused(line, "LINE_UNKNOWN"));
      }
      // Finding where it begins may read all of the line before it: not for whoever has no key of it.
      const signed = checkNote(page.checkpoint, ring, { digest, verify });
      if (signed.kind !== "signed") return now(this.#refuse(peer, page, { kind: "bad", problem: signed.problem }));
    }
    const state = known ?? (await this.#begin(page));
    // Of the generation before it too little is here: that is fetched first.
    if (state === null) return now(refused(line, "BACKEND_UNAVAILABLE"));
    const verdict = await this.#inSlices(
      checkPage({ state, page, digest, verify, isOthers: (author) => lines.isOthers(line, author) }),
    );
    if (verdict.kind === "accepted") return this.#receive(page, state, verdict, ahead?.bytes ?? 0);
    if (ahead === null) return now(this.#refuse(peer, page, verdict));
    // Where the pages before it were not written, that is this site's failure: it says nothing about the page, nor about whoever brought it.
    const outcome = ahead.isApplied.then((isSo) =>
      isSo ? this.#refuse(peer, page, verdict) : refused(line, "BACKEND_UNAVAILABLE"),
    );
    return { outcome };
  }

  async #begin({ line, after }: Page): Promise<LineState | null> {
    try {
      return await this.#options.lines.begin(line, after);
    } catch (error) {
      if (!TenureError.is(error)) throw error;
      return null;
    }
  }

  async #inSlices(checking: Generator<void, Verdict>): Promise<Verdict> {
    const { clock } = this.#options;
    let slice = new Slice(clock);
    for (let step = checking.next(); ; step = checking.next()) {
      if (step.done === true) return step.value;
      if (!slice.isOver) continue;
      await giveWay(clock);
      slice = new Slice(clock);
    }
  }

  #refuse(peer: string, page: Page, verdict: Exclude<Verdict, Accepted>): PageOutcome {
    const { blame, suspected } = this.#options;
    const { line } = page;
    switch (verdict.kind) {
      case "duplicate":
        return { line, accepted: 0, duplicates: page.items.length };
      case "gap":
        return { line, error: "CHAIN_GAP", have: verdict.have };
      case "bad":
        blame.count(peer, "invalid");
        return {
          line,
          error: "EVENT_INVALID",
          problem: verdict.problem,
          ...(verdict.sequence === undefined ? {} : { sequence: verdict.sequence }),
        };
      case "suspected":
        blame.count(peer, "suspected");
        suspected(peer, page, verdict.note);
        return refused(line, "suspected");
      default:
        return assertNever(verdict, "what a page is found to be");
    }
  }

  async #receive(page: Page, from: LineState, { state, events }: Accepted, bytesBefore: number): Promise<Judged> {
    const { said, receive } = this.#options;
    const { line } = page;
    const timestamps = events.flatMap((one) => (one.kind === "event" ? [one.event.timestamp] : []));
    try {
      await said(line, events);
    } catch (error) {
      return now(failed(line, error));
    }
    const outcome = this.#received(page, () => receive({ page, from, state, timestamps }));
    const isApplied = outcome.then((one) => !("error" in one));
    const ahead = { state, bytes: bytesBefore + lengthOf(page), isApplied };
    this.#ahead.set(line, ahead);
    const applied = isApplied.then(() => {
      if (this.#ahead.get(line) === ahead) this.#ahead.delete(line);
    });
    const isNewRing = state.ring !== from.ring;
    if (ahead.bytes > RECORD_GATHERED_BYTES_MAX || isNewRing) await applied;
    if (isNewRing && (await isApplied)) await this.#lookAgain(line);
    return { outcome };
  }

  /** What others have said about the line waits for its next ring, and is verified under the one that is applied (WordOfOthers): no other page may follow. */
  async #lookAgain(line: LineId): Promise<void> {
    try {
      await this.#options.said(line, []);
    } catch (error) {
      // It waits for the line's next page, then.
      if (!TenureError.is(error)) throw error;
    }
  }

  /** Never rejects. */
  async #received(page: Page, write: () => Promise<PageReceived>): Promise<PageOutcome> {
    const { line } = page;
    try {
      const received = await write();
      switch (received.kind) {
        case "accepted":
          return { line, accepted: received.accepted, duplicates: received.duplicates };
        case "duplicate":
          return { line, accepted: 0, duplicates: received.duplicates };
        case "again":
          return { line, error: "CHAIN_GAP", have: received.have };
        case "full":
          return refused(line, "BACKEND_UNAVAILABLE");
        default:
          return assertNever(received, "what became of a verified page");
      }
    } catch (error) {
      return failed(line, error);
    }
  }
}

function now(outcome: PageOutcome): Judged {
  return { outcome: Promise.resolve(outcome) };
}

/** What a write to the log rejects with. */
function failed(line: LineId, error: unknown): PageOutcome {
  if (!TenureError.is(error)) throw error;
  return refused(line, error.code === "NOT_LEADER" ? "NOT_LEADER" : "BACKEND_UNAVAILABLE");
}

/** Of its items, about as many as its bytes. */
function lengthOf({ items }: Page): number {
  return items.reduce((sum, item) => sum + (typeof item === "string" ? item : item.hash).length, 0);
}

function refused(line: LineId, error: PageError): PageOutcome {
  return { line, error };
}

/** Of what is no page: something to answer with. */
function lineOf(value: unknown): LineId {
  const line = typeof value === "object" && value !== null && "line" in value ? value.line : "";
  return typeof line === "string" ? line.slice(0, LINE_SHOWN_LENGTH_MAX) : "";
}
