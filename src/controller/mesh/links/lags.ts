// How far this site and those that it is linked with are apart, in events and in time. Events are counted from what heads say; a time is how long ago
// it was first seen here that there is more than the other side has, by this node's monotonic clock: no two clocks are compared.
//
// Invariant: only lines of which somebody lacks something are remembered, with MARKS_MAX places each.

import type { LineId } from "../../../core/mesh/model.ts";
import type { LinkId } from "../../../core/mesh/spread/index.ts";
import { MARKS_MAX } from "../limits.ts";

/** How much of a line there is at the other end of a link. */
export interface LagLane {
  readonly link: LinkId;
  readonly line: LineId;
  readonly size: number;
  /** The other side has asked to be sent this line from here: only then it is this link that is late. */
  readonly isAsked: boolean;
  /** This site takes the line. */
  readonly isWanted: boolean;
}

export interface Lag {
  readonly events: number;
  /** Since when the oldest of them is known of. */
  readonly ms: number;
}

const NONE: Lag = { events: 0, ms: 0 };
export const NO_LAGS: readonly [Lag, Lag] = [NONE, NONE];

/** When a line was seen to have grown, since the place that everybody has. */
class Growth {
  readonly #marks: { size: number; readonly atMs: number }[] = [];

  grew(nowMs: number, size: number, hadByAll: number): void {
    while (this.#marks.length > 0 && this.#marks[0]!.size <= hadByAll) this.#marks.shift();
    const last = this.#marks.at(-1);
    if (size <= (last?.size ?? hadByAll)) return;
    // The newest is the one whose age matters least: what follows is counted as old as it.
    if (last !== undefined && this.#marks.length >= MARKS_MAX) last.size = size;
    else this.#marks.push({ size, atMs: nowMs });
  }

  /** The age of the first event after `has`. */
  ageMs(nowMs: number, has: number): number {
    const first = this.#marks.find(({ size }) => size > has);
    return first === undefined ? 0 : nowMs - first.atMs;
  }
}

export class Lags {
  /** Of what others lack, and of what is lacking here; by line. */
  #here = new Map<LineId, Growth>();
  #there = new Map<LineId, Growth>();

  /** Every second, and before it is read. */
  review(nowMs: number, lanes: Iterable<LagLane>, sizeOf: (line: LineId) => number): void {
    const extremes = new Map<LineId, { least: number; most: number }>();
    for (const { line, size } of lanes) {
      const known = extremes.get(line);
      if (known === undefined) extremes.set(line, { least: size, most: size });
      else {
        known.least = Math.min(known.least, size);
        known.most = Math.max(known.most, size);
      }
    }
    const [here, there] = [new Map<LineId, Growth>(), new Map<LineId, Growth>()];
    for (const [line, { least, most }] of extremes) {
      const ours = sizeOf(line);
      if (ours > least) here.set(line, grown(this.#here.get(line), nowMs, ours, least));
      if (most > ours) there.set(line, grown(this.#there.get(line), nowMs, most, ours));
    }
    this.#here = here;
    this.#there = there;
  }

  /** What each link's other end lacks, and what it has that is lacking here; links without a lane are left out. */
  ofLinks(
    nowMs: number,
    lanes: Iterable<LagLane>,
    sizeOf: (line: LineId) => number,
  ): ReadonlyMap<LinkId, readonly [Lag, Lag]> {
    const byLink = new Map<LinkId, readonly [Lag, Lag]>();
    for (const lane of lanes) {
      let [lag, missing] = byLink.get(lane.link) ?? NO_LAGS;
      const ours = sizeOf(lane.line);
      const ageMs = lane.isAsked ? this.#here.get(lane.line)?.ageMs(nowMs, lane.size) : 0;
      if (ours > lane.size) lag = added(lag, ours - lane.size, ageMs);
      if (ours < lane.size && lane.isWanted)
        missing = added(missing, lane.size - ours, this.#there.get(lane.line)?.ageMs(nowMs, ours));
      byLink.set(lane.link, [lag, missing]);
    }
    return byLink;
  }

  /** What is lacking here of each line, as far as anybody who is linked says; lines of which nothing is are left out. */
  lines(nowMs: number, lanes: Iterable<LagLane>, sizeOf: (line: LineId) => number): ReadonlyMap<LineId, Lag> {
    const lacking = new Map<LineId, Lag>();
    for (const { line, size, isWanted } of lanes) {
      const ours = sizeOf(line);
      if (!isWanted || size - ours <= (lacking.get(line)?.events ?? 0)) continue;
      lacking.set(line, { events: size - ours, ms: this.#there.get(line)?.ageMs(nowMs, ours) ?? 0 });
    }
    return lacking;
  }
}

function grown(growth: Growth | undefined, nowMs: number, size: number, hadByAll: number): Growth {
  const kept = growth ?? new Growth();
  kept.grew(nowMs, size, hadByAll);
  return kept;
}

function added({ events, ms }: Lag, more: number, ageMs = 0): Lag {
  return { events: events + more, ms: Math.max(ms, ageMs) };
}
