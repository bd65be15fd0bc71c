// What time it is, by the clocks of all voters: each node says in its beacons what its wall clock shows, and this node holds
// that against its own monotonic clock. No single clock is believed, because one that is days off looks like any other
// (trap 74): a majority of the voters' clocks has to agree within CLOCK_SKEW_MS_MAX.
//
//   a majority agrees, this node's clock too ──▶ its own clock is believed
//   a majority agrees on another time         ──▶ theirs is; this node is unwilling to lead, and says so
//   no majority agrees, or too few are heard  ──▶ none is believed: time passes on monotonic clocks (controller/journal/event-time.ts)
//
// A cluster of one voter has one clock. Where that jumps against the monotonic clock while the process runs, it is not believed
// until it has gone on evenly for CLOCK_PROBATION_MS; after a start there is nothing to hold it against.
//
// Invariants: a clock that was not heard for CLOCK_HEARD_MS_MAX, or shows no possible time of day, does not count; judgements of others' clocks are late by what a
// beacon takes, which is far below the bound; what is off once is only judged when it was off at SKEWED_TICKS ticks in a row.

import type { PeerKey } from "../kit/ids.ts";
import {
  CLOCK_HEARD_MS_MAX,
  CLOCK_MS_MAX,
  CLOCK_MS_MIN,
  CLOCK_PROBATION_MS,
  CLOCK_SKEW_MS_MAX,
} from "../kit/limits.ts";
import type { Moment } from "./outputs.ts";

/** In a row, before it is said and acted upon: beacons that were held up somewhere make all others look slow for a moment. */
const SKEWED_TICKS = 3;
/** A clock that was off is well again below this share of the bound: no node changes its mind to and fro. */
const WELL_AGAIN = 0.5;

export type ClockState =
  /** A majority agrees, and this clock with it. */
  | "ok"
  /** Too few clocks are heard of: nobody knows. */
  | "unknown"
  /** Enough are heard of, and no majority agrees. */
  | "disagreeing"
  /** A majority agrees on another time than this clock shows. */
  | "skewed"
  /** The only clock has jumped. */
  | "jumped";

export interface ClockView {
  readonly state: ClockState;
  /** How far this node's clock is ahead of the agreed time; negative: it is slow. Null: there is none. */
  readonly skewMs: number | null;
}

interface Heard {
  /** Its wall clock, less our monotonic clock when that was heard. */
  readonly offsetMs: number;
  readonly atMs: number;
}

export class Clocks {
  readonly #self: PeerKey;
  readonly #heard = new Map<PeerKey, Heard>();
  #view: ClockView = { state: "unknown", skewMs: null };
  /** The time that a majority agreed on, less the monotonic clock, when it was last looked at; null: none did. */
  #agreed: Heard | null = null;
  /** Voters whose clocks were known then. */
  #known = 0;
  #next: ClockState = "unknown";
  #ticks = 0;
  /** Wall clock less monotonic clock, and since when it is about that; null: never read. */
  #own: { offsetMs: number; sinceMs: number } | null = null;

  constructor(self: PeerKey) {
    this.#self = self;
  }

  /** As of the last tick. */
  get view(): ClockView {
    return this.#view;
  }

  /** A member says what its wall clock shows. */
  heard(at: Moment, from: PeerKey, wallMs: number, voters: readonly PeerKey[]): void {
    if (isPossible(wallMs)) this.#heard.set(from, { offsetMs: wallMs - at.nowMs, atMs: at.nowMs });
    else this.#heard.delete(from);
    this.#read(at, voters);
  }

  /** The time of day, as far as it can be believed; null: it can't. Called with every decision. */
  believedMs({ nowMs, wallMs }: Moment): number | null {
    if (this.#agreed === null || nowMs - this.#agreed.atMs > CLOCK_HEARD_MS_MAX) return null;
    const agreedMs = this.#agreed.offsetMs + nowMs;
    return isNear(wallMs, agreedMs) ? wallMs : agreedMs;
  }

  /** To be called about once a second. */
  tick(at: Moment, voters: readonly PeerKey[]): ClockView {
    for (const [peer, { atMs }] of this.#heard) if (at.nowMs - atMs > CLOCK_HEARD_MS_MAX) this.#heard.delete(peer);
    this.#read(at, voters);
    const skewMs = this.#agreed === null ? null : at.wallMs - at.nowMs - this.#agreed.offsetMs;
    const state = this.#judge(skewMs, voters);
    this.#ticks = state === this.#next ? this.#ticks + 1 : 1;
    this.#next = state;
    const isSure = state === "ok" || state === "unknown" || this.#ticks >= SKEWED_TICKS;
    this.#view = { state: isSure ? state : this.#view.state, skewMs };
    return this.#view;
  }

  #judge(skewMs: number | null, voters: readonly PeerKey[]): ClockState {
    if (skewMs === null) {
      if (this.#isAlone(voters)) return "jumped";
      return this.#known >= majorityOf(voters) ? "disagreeing" : "unknown";
    }
    const boundMs = CLOCK_SKEW_MS_MAX * (this.#view.state === "skewed" ? WELL_AGAIN : 1);
    return Math.abs(skewMs) > boundMs ? "skewed" : "ok";
  }

  #read(at: Moment, voters: readonly PeerKey[]): void {
    const agreedMs = this.#agreedMs(at, voters);
    this.#agreed = agreedMs === null ? null : { offsetMs: agreedMs - at.nowMs, atMs: at.nowMs };
  }

  #agreedMs(at: Moment, voters: readonly PeerKey[]): number | null {
    this.#watchOwn(at);
    const ownMs = isPossible(at.wallMs) ? at.wallMs : null;
    this.#known = 1;
    if (this.#isAlone(voters)) return this.#isSteady(at) ? ownMs : null;
    const times: number[] = [];
    for (const voter of voters) {
      const timeMs = voter === this.#self ? ownMs : this.#timeOf(at, voter);
      if (timeMs !== null) times.push(timeMs);
    }
    this.#known = times.length;
    return agreedOf(times, majorityOf(voters));
  }

  #timeOf({ nowMs }: Moment, peer: PeerKey): number | null {
    const heard = this.#heard.get(peer);
    return heard === undefined || nowMs - heard.atMs > CLOCK_HEARD_MS_MAX ? null : heard.offsetMs + nowMs;
  }

  #isAlone(voters: readonly PeerKey[]): boolean {
    return voters.length === 1 && voters[0] === this.#self;
  }

  #watchOwn({ nowMs, wallMs }: Moment): void {
    const offsetMs = wallMs - nowMs;
    if (this.#own === null) this.#own = { offsetMs, sinceMs: -Infinity };
    else if (!isNear(offsetMs, this.#own.offsetMs)) this.#own = { offsetMs, sinceMs: nowMs };
  }

  #isSteady({ nowMs }: Moment): boolean {
    return this.#own === null || nowMs - this.#own.sinceMs >= CLOCK_PROBATION_MS;
  }
}

function majorityOf(voters: readonly PeerKey[]): number {
  return Math.floor(voters.length / 2) + 1;
}

/** Of a time of day: no clock that works shows another. */
export function isPossible(wallMs: number): boolean {
  return wallMs >= CLOCK_MS_MIN && wallMs <= CLOCK_MS_MAX;
}

function isNear(one: number, other: number): boolean {
  return Math.abs(one - other) <= CLOCK_SKEW_MS_MAX;
}

/** The median of the first so many clocks, from the slowest on, that lie within the bound. Any two such groups have one in common. */
function agreedOf(times: readonly number[], majority: number): number | null {
  if (majority < 1) return null;
  const sorted = times.toSorted((one, other) => one - other);
  for (let first = 0; first + majority <= sorted.length; first++) {
    const group = sorted.slice(first, first + majority);
    if (isNear(group.at(-1)!, group[0]!)) return group[Math.floor((majority - 1) / 2)]!;
  }
  return null;
}
