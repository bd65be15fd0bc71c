// A random plan of kernel faults: what happens to whom and when, decided by one stream.
// Every fault drawn here ends by itself, so that any sublist of a plan is a plan (shrinking depends on it), and
// each lies inside the window.
// Kinds that need a counterpart (restart, resume, heal) are therefore not drawn; hand-written plans use them.

import { assertNever } from "../../core/kit/assert.ts";
import type { Random } from "../../core/kit/random.ts";
import type { Fault, FaultKind } from "./faults.ts";

export type DrawnKind = Exclude<FaultKind, "restart" | "resume" | "heal">;

export const DRAWN_KINDS: readonly DrawnKind[] = [
  "crash",
  "pause",
  "clock-rate",
  "wall-jump",
  "cut",
  "cut-one-way",
  "partition",
  "bridge",
  "flap",
  "lossy",
  "duplicating",
  "slow-link",
  "reset-accepted",
  "reset-refused",
  "disk-slow",
  "disk-hang",
  "disk-torn",
  "disk-corrupt",
  "disk-wipe",
  "disk-fsync-error",
  "disk-full",
  "garbage",
];

export interface PlanOptions {
  /** At least two. */
  readonly nodes: readonly string[];
  readonly fromMs: number;
  readonly untilMs: number;
  readonly count: number;
  /** Relative frequency of each kind; what is missing is not drawn. Default: all equally. */
  readonly weights?: Partial<Record<DrawnKind, number>> | undefined;
  /** How long a fault lasts: log-uniform between the two, cut at the end of the window. */
  readonly durationMs?: readonly [number, number] | undefined;
}

export function randomPlan(random: Random, options: PlanOptions): Fault[] {
  const faults: Fault[] = [];
  for (let index = 0; index < options.count; index++) {
    // A stream for each, so that one more parameter in one kind leaves the rest of the plan as it was.
    const stream = random.fork(`fault/${index}`);
    const atMs = Math.floor(stream.between(options.fromMs, options.untilMs));
    faults.push(draw(pickKind(stream, options), atMs, stream, options));
  }
  return faults.sort((left, right) => left.atMs - right.atMs);
}

/** Each kind as often as it is to be drawn. */
export function weighted<Kind extends string>(weights: Partial<Record<Kind, number>>): readonly Kind[] {
  const all = Object.entries(weights) as [Kind, number][];
  return all.flatMap(([kind, times]) => Array.from({ length: times }, () => kind));
}

function pickKind(random: Random, { weights }: PlanOptions): DrawnKind {
  if (weights === undefined) return random.pick(DRAWN_KINDS);
  const total = DRAWN_KINDS.reduce((sum, kind) => sum + (weights[kind] ?? 0), 0);
  let ticket = random.next() * total;
  for (const kind of DRAWN_KINDS) {
    ticket -= weights[kind] ?? 0;
    if (ticket < 0) return kind;
  }
  throw new RangeError("a plan needs at least one kind with a weight above 0");
}

function draw(kind: DrawnKind, atMs: number, random: Random, options: PlanOptions): Fault {
  const [a, b, ...others] = shuffled(options.nodes.toSorted(), random) as [string, string, ...string[]];
  const [shortestMs, longestMs] = options.durationMs ?? [20, 2_000];
  const drawnMs = shortestMs * Math.exp(random.next() * Math.log(longestMs / shortestMs));
  const forMs = Math.max(1, Math.floor(Math.min(drawnMs, options.untilMs - atMs)));
  switch (kind) {
    case "crash":
      return { atMs, kind, node: a, restartAfterMs: forMs, tear: "random", silent: random.chance(0.2) };
    case "pause":
    case "disk-hang":
    case "disk-full":
      return { atMs, kind, node: a, forMs };
    case "clock-rate":
      return { atMs, kind, node: a, rate: random.between(0.8, 1.2), forMs };
    case "wall-jump":
      return { atMs, kind, node: a, byMs: Math.floor(random.between(-3_600_000, 3_600_000)) };
    case "cut":
      return { atMs, kind, a, b, forMs };
    case "cut-one-way":
      return { atMs, kind, from: a, to: b, forMs };
    case "partition": {
      const everybody = [a, b, ...others];
      const size = 1 + random.below(everybody.length - 1);
      return { atMs, kind, groups: [everybody.slice(0, size), everybody.slice(size)], forMs };
    }
    case "bridge": {
      const size = 1 + random.below(Math.max(1, others.length));
      const halves = [b, ...others];
      return { atMs, kind, node: a, left: halves.slice(0, size), right: halves.slice(size), forMs };
    }
    case "flap":
      return { atMs, kind, a, b, periodMs: Math.max(1, Math.floor(forMs / (2 + random.below(10)))), forMs };
    case "lossy":
      return { atMs, kind, rate: random.between(0.01, 0.3), forMs };
    case "duplicating":
      return { atMs, kind, rate: random.between(0.01, 0.5), forMs };
    case "slow-link":
      return { atMs, kind, a, b, latencyMinMs: random.between(1, 50), latencyTailMs: random.between(1, 100), forMs };
    case "reset-accepted":
    case "reset-refused":
      return { atMs, kind, a, b };
    case "disk-slow":
      return { atMs, kind, node: a, factor: random.between(5, 100), forMs };
    case "disk-torn":
      return { atMs, kind, node: a, tear: random.chance(0.5) ? "torn" : "sectors", restartAfterMs: forMs };
    case "disk-corrupt":
    case "disk-wipe":
      return { atMs, kind, node: a, restartAfterMs: forMs };
    case "disk-fsync-error":
      return { atMs, kind, node: a };
    case "garbage":
      return { atMs, kind, node: a, from: `${b}@0`, sizeBytes: random.below(256) };
    default:
      return assertNever(kind, "kind of fault");
  }
}

function shuffled<T>(items: readonly T[], random: Random): T[] {
  const result = [...items];
  for (let i = result.length - 1; i > 0; i--) {
    const j = random.below(i + 1);
    [result[i], result[j]] = [result[j] as T, result[i] as T];
  }
  return result;
}
