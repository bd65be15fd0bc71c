// Who led when, made from the elections that the nodes remember: a term begins when a vote is won, and ends when the campaign
// for the next begins; what lies between is a gap. Pure. A gap begins where the first candidate began, so it is as long as
// the nodes know of it, or as this page has seen it: a leader that was frozen has been gone for longer, by up to the election
// timeout. A node that is started again has forgotten the elections that it won: where epochs are missing nobody knows when
// the term before them ended, nor who led until the next that is known.

import type { ElectionView } from "../../src/client/index.ts";
import type { Seen, SeenTerm } from "./seen.ts";
import { duration } from "./words.ts";

export interface TermBar {
  readonly nodeId: string;
  readonly epoch: number;
  readonly fromMs: number;
  /** False: this page has only seen it lead since then. */
  readonly isBeginKnown: boolean;
  /** Null: it lasts. */
  readonly toMs: number | null;
  /** False: it ended then or, nobody knows when, before. */
  readonly isEndKnown: boolean;
  /** How it began; null where no node remembers, and this page has only seen it lead. */
  readonly election: ElectionView | null;
}

export interface Gap {
  readonly fromMs: number;
  /** Null: nobody leads now. */
  readonly toMs: number | null;
  /** The epoch that ended it; null while nobody leads. */
  readonly epoch: number | null;
  /** False: it may have begun before. */
  readonly isBeginKnown: boolean;
}

export interface Timeline {
  /** Oldest first. */
  readonly bars: readonly TermBar[];
  readonly gaps: readonly Gap[];
}

/** Candidacies that follow each other within this are one campaign; longer before, one has failed alone while another led. */
const CAMPAIGN_PAUSE_MS = 2_000;

/** Every node remembers what it saw: the same election, seen by several, is one. Newest first. */
export function mergedElections(lists: readonly (readonly ElectionView[])[]): ElectionView[] {
  const found = new Map<string, ElectionView>();
  for (const election of lists.flat()) {
    // Two nodes note the same start a little apart: a term is won once.
    const at = election.stage === "vote" && election.result === "won" ? "won" : election.startedAtMs;
    const key = `${election.term} ${election.stage} ${election.candidate} ${at}`;
    const other = found.get(key);
    if (other === undefined || election.votes.length >= other.votes.length) found.set(key, election);
  }
  return [...found.values()].toSorted((a, b) => b.term - a.term || b.startedAtMs - a.startedAtMs);
}

export function timelineOf(elections: readonly ElectionView[], { goneSinceMs, last, terms }: Seen): Timeline {
  const ordered = elections.toSorted((a, b) => a.startedAtMs - b.startedAtMs);
  const begun = beginnings(ordered, terms);
  const bars: TermBar[] = [];
  const gaps: Gap[] = [];
  for (const [at, term] of begun.entries()) {
    const next = begun[at + 1];
    const isEndKnown =
      next === undefined
        ? goneSinceMs === null || last === term.epoch
        : terms.get(next.epoch)?.after === term.epoch || isFollowedBy(ordered, term, next);
    const toMs =
      next === undefined ? goneSinceMs : Math.max(term.fromMs, goneFrom(ordered, term, next, terms.get(next.epoch)));
    bars.push({ ...term, toMs, isEndKnown });
    // Where nobody has seen the change there is nothing to say about its gap.
    if (toMs === null || toMs === next?.fromMs) continue;
    gaps.push({ fromMs: toMs, toMs: next?.fromMs ?? null, epoch: next?.epoch ?? null, isBeginKnown: isEndKnown });
  }
  return { bars, gaps };
}

type Begun = Omit<TermBar, "toMs" | "isEndKnown">;

/** Oldest first. What a node remembers says more than what was seen. */
function beginnings(ordered: readonly ElectionView[], terms: Seen["terms"]): Begun[] {
  const found = new Map<number, Begun>();
  for (const [epoch, { nodeId, fromMs, after }] of terms)
    found.set(epoch, { nodeId, epoch, fromMs, isBeginKnown: after !== null, election: null });
  for (const election of ordered) {
    const { stage, result, candidate, term: epoch } = election;
    if (stage === "vote" && result === "won")
      found.set(epoch, { nodeId: nodeOf(candidate), epoch, fromMs: endOf(election), isBeginKnown: true, election });
  }
  return [...found.values()].toSorted((a, b) => a.epoch - b.epoch);
}

/** As the nodes know it: how the next began, and of every epoch between that its candidate got no majority. */
function isFollowedBy(ordered: readonly ElectionView[], term: Begun, next: Begun): boolean {
  if (next.election === null) return false;
  // One that has lost may have lost to somebody who led then.
  const unwon = new Set(
    ordered.filter(({ stage, result }) => stage === "vote" && result === "timed-out").map(({ term: epoch }) => epoch),
  );
  for (let epoch = term.epoch + 1; epoch < next.epoch; epoch++) if (!unwon.has(epoch)) return false;
  return true;
}

/** From when on it is known that nobody led, before another followed. */
function goneFrom(ordered: readonly ElectionView[], term: Begun, next: Begun, seen: SeenTerm | undefined): number {
  const campaignMs = next.election === null ? next.fromMs : campaignStart(ordered, term.fromMs, next.election);
  return Math.min(campaignMs, seen?.goneSinceMs ?? Number.POSITIVE_INFINITY);
}

function endOf({ startedAtMs, durationMs }: ElectionView): number {
  return startedAtMs + durationMs;
}

/** Back from the win, candidacy by candidacy. */
function campaignStart(ordered: readonly ElectionView[], afterMs: number, win: ElectionView): number {
  let startMs = win.startedAtMs;
  for (const one of ordered.toReversed()) {
    if (one.startedAtMs >= startMs || one.startedAtMs < afterMs) continue;
    if (startMs - one.startedAtMs > CAMPAIGN_PAUSE_MS) break;
    startMs = one.startedAtMs;
  }
  return startMs;
}

/** `n1@3f9a…` is the node n1 with one of its disks. */
export function nodeOf(peer: string): string {
  return peer.split("@", 1)[0] ?? peer;
}

export interface Placed {
  /** In percent of the window. */
  readonly left: number;
  readonly width: number;
}

/** Null where nothing of it is in the window. */
export function placed(fromMs: number, toMs: number, windowFromMs: number, windowToMs: number): Placed | null {
  const spanMs = windowToMs - windowFromMs;
  if (spanMs <= 0 || toMs < windowFromMs || fromMs > windowToMs) return null;
  const left = Math.max(0, (fromMs - windowFromMs) / spanMs);
  const right = Math.min(1, (toMs - windowFromMs) / spanMs);
  return { left: left * 100, width: Math.max(0, right - left) * 100 };
}

/** No longer than is known. */
export function lastedText({ fromMs, toMs, isBeginKnown, isEndKnown }: TermBar, nowMs: number): string {
  if (!isEndKnown) return "end not known";
  return `for ${isBeginKnown ? "" : "at least "}${duration((toMs ?? nowMs) - fromMs)}`;
}

export function gapText({ fromMs, toMs, isBeginKnown }: Gap, nowMs: number): string {
  return `${isBeginKnown ? "" : "at least "}${duration((toMs ?? nowMs) - fromMs)}`;
}

export const REASONS: Readonly<Record<ElectionView["reason"], string>> = {
  timeout: "nothing was heard from the leader in time",
  "leader-gone": "the leader's connection closed, and it could not be reached again",
  transfer: "leadership was handed over",
  requested: "the node was asked to campaign",
};
