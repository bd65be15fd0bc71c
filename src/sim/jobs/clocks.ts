// Clocks of servers that are minutes to months off: how a seed sets them, and what has to hold whatever they show. Servers hear
// of each other's by beacons (peers.ts).
//
//   near   all are right within seconds
//   one    one server's is off for the whole run: a majority is right. At the end it is whoever leads then
//   some   clocks of leaders and others jump to and fro: perhaps no two agree
//   most   two of three jump together, as where their time server is wrong: a majority agrees, and is wrong
//   gap    nobody ran for days: all servers are down, and when they come back all clocks have gone on
//
// Always: a request is done once under its key (oracle/oracle.ts), and no finished job is forgotten before its time of the world's own.
// Where a majority is right (near, one, gap): events are stamped with the world's time within OFF_MS_MAX, and a server
// whose clock is off does not lead for long.

import { assertNever } from "../../core/kit/assert.ts";
import type { Random } from "../../core/kit/random.ts";
import { WALL_START_MS } from "../kernel/index.ts";
import type { JobsCluster } from "./cluster.ts";
import { reached } from "./probes.ts";

export type ClockMood = "near" | "one" | "some" | "most" | "gap";

export const CLOCK_MOODS: readonly ClockMood[] = ["near", "one", "one", "some", "most", "gap", "gap"];

export type ClockFault = { readonly atMs: number } & (
  | { readonly kind: "shift-clocks"; readonly nodes: readonly string[]; readonly byMs: number }
  | { readonly kind: "shift-leader"; readonly byMs: number }
  /** All machines are off, for hours or days by all clocks. */
  | { readonly kind: "outage"; readonly forMs: number; readonly hoursMs: number }
);

/** Right clocks differ by four seconds, drift by three in a hundred, and jump by a few seconds; and a minute is allowed. */
const OFF_MS_MAX = 90_000;
/** Clocks this near to each other are taken for the same by any bound. */
const AGREE_MS = 20_000;
/** After a gap: until the clocks of a majority were heard of. */
const SETTLE_MS = 20_000;
const FROM_MS = 600;
const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;
const OFF_MS = [
  2 * MINUTE_MS,
  HOUR_MS,
  25 * HOUR_MS,
  25 * HOUR_MS,
  72 * HOUR_MS,
  40 * 24 * HOUR_MS,
  400 * 24 * HOUR_MS,
];

// ---- faults ----------------------------------------------------------------------------------------

function drawOff(random: Random): number {
  return (random.chance(0.75) ? 1 : -1) * Math.floor(random.pick(OFF_MS) * random.between(1, 1.5));
}

export function drawClockFaults(
  random: Random,
  mood: ClockMood,
  names: readonly string[],
  untilMs: number,
): ClockFault[] {
  const atMs = (from = FROM_MS, to = untilMs): number => Math.floor(random.between(from, to));
  switch (mood) {
    case "near":
      return [];
    case "one": {
      const nodes = [random.pick(names)];
      const first: ClockFault = {
        atMs: atMs(FROM_MS, untilMs / 2),
        kind: "shift-clocks",
        nodes,
        byMs: drawOff(random),
      };
      if (random.chance(0.6)) return [first];
      return [first, { atMs: atMs(untilMs / 2), kind: "shift-clocks", nodes, byMs: drawOff(random) }];
    }
    case "some":
      return Array.from({ length: 2 + random.below(6) }, (): ClockFault => {
        if (random.chance(0.6)) return { atMs: atMs(), kind: "shift-leader", byMs: drawOff(random) };
        return { atMs: atMs(), kind: "shift-clocks", nodes: [random.pick(names)], byMs: drawOff(random) };
      });
    case "most": {
      const spared = random.pick(names);
      const nodes = names.filter((name) => name !== spared);
      const byMs = drawOff(random);
      const first: ClockFault = { atMs: atMs(FROM_MS, untilMs / 2), kind: "shift-clocks", nodes, byMs };
      if (random.chance(0.5)) return [first];
      return [first, { atMs: atMs(untilMs / 2), kind: "shift-clocks", nodes, byMs: -byMs }];
    }
    case "gap": {
      const hoursMs = Math.abs(drawOff(random));
      return [{ atMs: atMs(), kind: "outage", forMs: 50 + random.below(300), hoursMs }];
    }
    default:
      return assertNever(mood, "mood");
  }
}

export class SimClocks {
  readonly #cluster: JobsCluster;
  readonly #offMs = new Map<string, number>();
  /** Time that passed while nobody ran, and when that was. */
  #gapMs = 0;
  #gapAtMs = -Infinity;

  constructor(cluster: JobsCluster) {
    this.#cluster = cluster;
  }

  apply(fault: ClockFault, hit: () => void): void {
    const { world, names, probes } = this.#cluster;
    hit();
    switch (fault.kind) {
      case "shift-clocks":
        return this.#shift(fault.nodes, fault.byMs);
      case "shift-leader":
        return this.#shift([this.#cluster.leader() ?? names[0]!], fault.byMs);
      case "outage":
        this.#cluster.outage(fault.forMs, fault.hoursMs);
        if (fault.hoursMs >= 24 * HOUR_MS) reached(probes, "nobody-for-days");
        this.#gapMs += fault.hoursMs;
        this.#gapAtMs = world.nowMs;
        return;
      default:
        return assertNever(fault, "fault of clocks");
    }
  }

  #shift(nodes: readonly string[], byMs: number): void {
    for (const node of nodes) {
      this.#cluster.world.node(node).process.jumpWall(byMs);
      this.#offMs.set(node, (this.#offMs.get(node) ?? 0) + byMs);
    }
  }

  // ---- what holds ----------------------------------------------------------------------------------

  /** Whether nobody has a reason to give up leading because of clocks. */
  get areAllRight(): boolean {
    return this.#mood === "near" || this.#mood === "gap";
  }

  /** The latest time of day that anybody may believe in. */
  latestMs(): number {
    return this.#isMajorityRight ? this.#worldsMs + OFF_MS_MAX : Infinity;
  }

  /** What a majority of the servers' clocks has reached, by clocks that agree; null: there is no such majority. */
  agreedMs(): number | null {
    const { world, names } = this.#cluster;
    const walls = names.map((name) => world.node(name).process.machine.wallMs()).sort((a, b) => a - b);
    const needed = Math.floor(names.length / 2) + 1;
    const at = walls.findIndex((wallMs, from) => (walls[from + needed - 1] ?? Infinity) - wallMs <= AGREE_MS);
    return walls[at] ?? null;
  }

  get #isMajorityRight(): boolean {
    return this.#mood !== "some" && this.#mood !== "most";
  }

  get #mood(): ClockMood {
    return this.#cluster.knobs.clocks;
  }

  get #worldsMs(): number {
    return WALL_START_MS + this.#cluster.world.nowMs + this.#gapMs;
  }

  /** What is wrong with the time of an event that is committed now; null: nothing. */
  problemOf(timestamp: number): string | null {
    const { world } = this.#cluster;
    if (!this.#isMajorityRight) return null;
    const aheadMs = Math.round(timestamp - this.#worldsMs);
    if (aheadMs > OFF_MS_MAX) return `is stamped ${aheadMs} ms ahead of the time, though most clocks are right`;
    if (aheadMs >= -OFF_MS_MAX || world.nowMs < this.settledAtMs) return null;
    return `is stamped ${-aheadMs} ms too early, though most clocks are right`;
  }

  /** From then on an event that is stamped too early has no excuse. */
  get settledAtMs(): number {
    return this.#gapAtMs + SETTLE_MS;
  }

  /** When the faults are over: the clock that is off is the leader's own, which so far was right. */
  turn(): void {
    const node = this.#cluster.leader();
    if (this.#mood !== "one" || node === undefined) return;
    for (const [one, offMs] of this.#offMs) this.#shift([one], -offMs);
    this.#shift([node], 25 * HOUR_MS);
    reached(this.#cluster.probes, "leader-found-off");
  }

  /** All clocks together, where nobody relies on them; false: somebody does. */
  jumpAll(byMs: number): boolean {
    const { names, probes } = this.#cluster;
    if (this.#isMajorityRight) return false;
    for (const [one, offMs] of this.#offMs) this.#shift([one], -offMs);
    this.#shift(names, byMs);
    reached(probes, "all-clocks-jumped");
    return true;
  }

  /**
   * A server whose clock is off leads, though a majority is right and nothing is wrong with it; null: none does. Two jumps may leave a
   * clock as near to the others as is allowed.
   */
  offLeader(): string | null {
    const node = this.#cluster.leader();
    if (this.#mood !== "one" || node === undefined) return null;
    return Math.abs(this.#offMs.get(node) ?? 0) > OFF_MS_MAX ? node : null;
  }
}
