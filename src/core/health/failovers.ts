// Changes of leader that nobody had asked for, as this node saw them. The first leader after the start is no change, and
// neither is a leader that is elected again.
//
//   none ──another leader──▶ undecided ──it was asked for──▶ none
//                                └──its winner says no, or nobody says anything for a while──▶ counted
//
// The new leader knows at once whether it was asked to campaign, the old one whether it handed over; everybody else learns
// it from the new leader's next beacon. One that dies before it could say so was not planned to.

import type { PeerKey } from "../kit/ids.ts";
import { FAILOVERS_WINDOW_MS, UNDECIDED_MAX, UNDECIDED_MS_MAX, WINDOW_FAILOVERS_MAX } from "./limits.ts";
import type { HealthOutput } from "./outputs.ts";

type Failover = HealthOutput & { readonly kind: "failover" };

interface Undecided {
  readonly change: Failover;
  readonly sinceMs: number;
}

export class Failovers {
  count = 0;
  readonly #recentMs: number[] = [];
  #leader: PeerKey | null = null;
  #undecided: readonly Undecided[] = [];

  leaderSeen(nowMs: number, term: number, to: PeerKey): Failover[] {
    const from = this.#leader;
    this.#leader = to;
    if (from === null || from === to) return [];
    this.#undecided = [...this.#undecided, { change: { kind: "failover", from, to, term }, sinceMs: nowMs }];
    const newest = this.#undecided.slice(-UNDECIDED_MAX);
    return this.#decide(nowMs, (one) => !newest.includes(one));
  }

  /** The winner of this term had been asked to campaign. */
  wasAskedFor(term: number): void {
    this.#undecided = this.#undecided.filter(({ change }) => change.term !== term);
  }

  wasNotAskedFor(nowMs: number, term: number): Failover[] {
    return this.#decide(nowMs, ({ change }) => change.term === term);
  }

  /** This node has handed its leadership over. */
  handedTo(leader: PeerKey | null): void {
    const latest = this.#undecided.at(-1);
    if (latest?.change.to === leader) this.wasAskedFor(latest.change.term);
  }

  timePassed(nowMs: number): Failover[] {
    return this.#decide(nowMs, ({ sinceMs }) => nowMs - sinceMs >= UNDECIDED_MS_MAX);
  }

  /** In the last hour. */
  recent(nowMs: number): number {
    while (this.#recentMs.length > 0 && this.#recentMs[0]! <= nowMs - FAILOVERS_WINDOW_MS) this.#recentMs.shift();
    return this.#recentMs.length;
  }

  /** These were failovers. */
  #decide(nowMs: number, which: (one: Undecided) => boolean): Failover[] {
    const decided = this.#undecided.filter(which);
    if (decided.length === 0) return [];
    this.#undecided = this.#undecided.filter((one) => !decided.includes(one));
    this.count += decided.length;
    this.#recentMs.push(...decided.map(() => nowMs));
    this.#recentMs.splice(0, this.#recentMs.length - WINDOW_FAILOVERS_MAX);
    return decided.map(({ change }) => change);
  }
}
