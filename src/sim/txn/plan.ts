// What goes wrong in a run of transactions: faults of the kernel, and those of whole islands, of whoever leads one, and of whoever coordinates. Each
// ends by itself, so that any part of a plan is a plan.

import { assertNever } from "../../core/kit/assert.ts";
import type { Random } from "../../core/kit/random.ts";
import { LEASE_TTL_MS } from "../../core/lease/limits.ts";
import { type DrawnKind, type Fault, randomPlan, weighted } from "../kernel/index.ts";
import { islandIds, nodesOf, type TxnAim, type TxnKnobs } from "./knobs.ts";
import { TXN_SIM_FROM_MS } from "./limits.ts";

const HOUR_MS = 3_600_000;

type Shape =
  | { readonly kind: "crash-coordinator" | "pause-coordinator" | "isolate-coordinator"; readonly forMs: number }
  | { readonly kind: "resign-coordinator" }
  /** Of an island's log. */
  | {
      readonly kind: "crash-leader" | "pause-leader" | "isolate-leader" | "hang-leader-disk";
      readonly island: string;
      readonly forMs: number;
    }
  | { readonly kind: "transfer"; readonly island: string }
  | { readonly kind: "crash-island"; readonly island: string; readonly forMs: number }
  | { readonly kind: "cut-islands"; readonly a: string; readonly b: string; readonly forMs: number }
  | { readonly kind: "cut-islands-one-way"; readonly from: string; readonly to: string; readonly forMs: number }
  | { readonly kind: "jump-island"; readonly island: string; readonly byMs: number; readonly forMs: number }
  /** All coordinators are gone but one, which is recovered into the next generation; the others come back. */
  | { readonly kind: "recover"; readonly node: string; readonly forMs: number }
  /** Two recover, each for itself, out of each other's reach: the same terms are won twice. */
  | { readonly kind: "recover-both"; readonly node: string; readonly other: string; readonly forMs: number }
  /** In the middle of a transaction: when the coordinator has sent so many more messages to islands, it dies, or stands still. */
  | { readonly kind: "crash-in-txn" | "pause-in-txn"; readonly messages: number; readonly forMs: number }
  /** When an island's leader is about to answer the next prepare: it dies, or stands still. */
  | { readonly kind: "crash-in-prepare"; readonly island: string; readonly forMs: number };

export type TxnOwnFault = Shape & { readonly atMs: number };
export type TxnFault = Fault | TxnOwnFault;
export type TxnOwnKind = Shape["kind"];

const KERNEL: Partial<Record<DrawnKind, number>> = {
  crash: 3,
  pause: 2,
  cut: 1,
  "cut-one-way": 2,
  partition: 2,
  lossy: 1,
  duplicating: 1,
  "slow-link": 1,
  "wall-jump": 1,
  "disk-slow": 1,
  "disk-hang": 1,
  "disk-torn": 1,
  "disk-fsync-error": 1,
};
const OWN = {
  "crash-coordinator": 3,
  "pause-coordinator": 3,
  "isolate-coordinator": 2,
  "resign-coordinator": 2,
  "crash-leader": 2,
  "pause-leader": 1,
  "isolate-leader": 2,
  "hang-leader-disk": 1,
  transfer: 1,
  "crash-island": 1,
  "cut-islands": 3,
  "cut-islands-one-way": 3,
  "jump-island": 1,
  recover: 0,
  "recover-both": 0,
  "crash-in-txn": 4,
  "pause-in-txn": 3,
  "crash-in-prepare": 2,
} as const satisfies Record<TxnOwnKind, number>;
const OWN_KINDS = weighted<TxnOwnKind>(OWN);

const AIMED: Readonly<Record<TxnAim, readonly TxnOwnKind[]>> = {
  none: [],
  coordinators: ["pause-in-txn", "crash-in-txn", "isolate-coordinator", "resign-coordinator", "pause-coordinator"],
  recovery: ["recover-both", "recover"],
  islands: ["crash-in-prepare", "crash-leader", "isolate-leader", "transfer", "crash-island"],
  links: ["cut-islands", "cut-islands-one-way"],
  late: ["pause-in-txn", "cut-islands-one-way"],
  clocks: ["jump-island"],
};
const AIMED_FAULTS = 4;

export function drawTxnPlan(random: Random, names: readonly string[], knobs: TxnKnobs): TxnFault[] {
  const untilMs = knobs.faultsUntilMs;
  const kernel = randomPlan(random.fork("kernel"), {
    nodes: names,
    fromMs: TXN_SIM_FROM_MS,
    untilMs,
    count: knobs.faults,
    weights: KERNEL,
    durationMs: [50, 12_000],
  }).map(mild);
  const own = Array.from({ length: knobs.faults }, (_, at) => draw(random.fork(`own/${at}`), OWN_KINDS, names, knobs));
  const kinds = AIMED[knobs.aim];
  // Recovery is an operator's last resort: once.
  const count = kinds.length === 0 ? 0 : knobs.aim === "recovery" ? 1 : AIMED_FAULTS;
  const aimed = Array.from({ length: count }, (_, at) => draw(random.fork(`aimed/${at}`), kinds, names, knobs));
  const more =
    knobs.aims.length === 0
      ? []
      : Array.from({ length: AIMED_FAULTS }, (_, at) =>
          draw(random.fork(`more/${at}`), knobs.aims.filter(isOwnKind), names, knobs),
        );
  // One that certainly has an effect (trap 33).
  const sure: TxnFault = {
    atMs: Math.floor(untilMs / 2),
    kind: "pause",
    node: random.fork("sure").pick(names),
    forMs: 50,
  };
  return [...kernel, ...own, ...aimed, ...more, sure].sort((a, b) => a.atMs - b.atMs);
}

function isOwnKind(kind: string): kind is TxnOwnKind {
  return kind in OWN;
}

/** Wall clocks of single nodes are off by seconds: those of days are the island's. Links fail to the point that messages are scarce, not gone. */
function mild(fault: Fault): Fault {
  if (fault.kind === "wall-jump") return { ...fault, byMs: fault.byMs % 5_000 };
  return fault;
}

function draw(random: Random, kinds: readonly TxnOwnKind[], names: readonly string[], knobs: TxnKnobs): TxnFault {
  const kind = random.pick(kinds);
  const atMs = Math.floor(random.between(TXN_SIM_FROM_MS, knobs.faultsUntilMs));
  const islands = islandIds(knobs);
  const island = random.pick(islands);
  const other = random.pick(islands.filter((one) => one !== island));
  // Around a lease, around the time of a transaction, and longer than all of them.
  const drawnMs = LEASE_TTL_MS * random.pick([0.1, 0.4, 0.9, 1.2, 2, 4]) * random.between(0.9, 1.1);
  const forMs = Math.floor(Math.min(drawnMs, Math.max(100, knobs.faultsUntilMs - atMs)));
  switch (kind) {
    case "resign-coordinator":
      return { atMs, kind };
    case "crash-coordinator":
    case "pause-coordinator":
    case "isolate-coordinator":
      return { atMs, kind, forMs };
    case "crash-leader":
    case "pause-leader":
    case "isolate-leader":
    case "hang-leader-disk":
    case "crash-island":
    case "crash-in-prepare":
      return { atMs, kind, island, forMs };
    case "transfer":
      return { atMs, kind, island };
    case "cut-islands":
      return { atMs, kind, a: island, b: other, forMs: random.pick([1, 3]) * forMs };
    case "cut-islands-one-way":
      return { atMs, kind, from: island, to: other, forMs: random.pick([1, 3]) * forMs };
    case "jump-island":
      return {
        atMs,
        kind,
        island,
        byMs: Math.floor(random.between(-1, 1) * knobs.jumpHours * HOUR_MS),
        forMs,
      };
    case "recover":
      return { atMs, kind, node: random.pick(names), forMs };
    case "recover-both": {
      const node = random.pick(nodesOf(island, knobs));
      return { atMs, kind, node, other: random.pick(nodesOf(other, knobs)), forMs: 4 * forMs };
    }
    case "crash-in-txn":
    case "pause-in-txn":
      return { atMs, kind, messages: random.below(8), forMs };
    default:
      return assertNever(kind, "kind of fault");
  }
}
