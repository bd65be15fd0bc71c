// What one seed decides about a run before it begins: size, timing, weather and how hard the clients push.
// Everything is drawn here, from streams with names, and printed with a failing seed.

import type { Random } from "../../core/kit/random.ts";
import type { DiskModel, LinkModel } from "../kernel/index.ts";
import type { OwnKind } from "./plan.ts";

const PLAIN_SNAPSHOT_AFTER_ENTRIES = 1_000_000;

/** What `drawAll` draws. */
export type Knobs = Readonly<ReturnType<typeof drawAll>>;

export interface KnobLimits {
  readonly voters?: number | undefined;
  readonly learners?: number | undefined;
  readonly lease?: boolean | undefined;
  readonly spares?: number | undefined;
  /** Faults that lead to what is looked for: some of each run, in addition to what it draws anyway. */
  readonly aims?: readonly OwnKind[] | undefined;
  readonly snapshotAfterEntries?: number | undefined;
  /** A short, quiet run within what etcd's specification describes (docs/etcd-trace.md). */
  readonly plain?: boolean | undefined;
}

export function drawKnobs(random: Random, limits: KnobLimits = {}): Knobs {
  if (limits.plain === true) return plainKnobs(random, limits);
  return drawAll(random, limits);
}

/** Snapshots, leases and priority are no part of that specification; a model checker needs minutes for a few thousand steps. */
function plainKnobs(random: Random, limits: KnobLimits): Knobs {
  const voters = limits.voters ?? 3;
  const drawn = drawAll(random, { ...limits, voters, learners: 0, spares: limits.spares ?? 0 });
  return {
    ...drawn,
    election: { ...drawn.election, enableLease: false, enablePriority: false },
    link: { ...drawn.link, corruptRate: 0 },
    snapshots: { ...drawn.snapshots, afterEntries: PLAIN_SNAPSHOT_AFTER_ENTRIES },
    clients: 1,
    clientPauseMs: 100,
    paddingBytes: 0,
    faults: 4,
    faultsUntilMs: 2_500,
    plain: true,
  };
}

function drawAll(random: Random, limits: KnobLimits) {
  const voters = limits.voters ?? random.fork("voters").pick([1, 2, 3, 3, 3, 3, 3, 4, 5, 5]);
  const learners = limits.learners ?? random.fork("learners").pick([0, 0, 0, 1]);
  const spares = limits.spares ?? random.fork("spares").pick([0, 1, 1, 2, 3]);
  const machines = voters + learners + spares;
  const drifting = random.fork("drifting").chance(0.4);
  const seconds = random.fork("duration").between(4, 12);
  return {
    voters,
    learners,
    /** Machines that wait outside the cluster until a membership change takes them in. */
    spares,
    /** For each node, in the order of their names. */
    priorities: Array.from({ length: machines }, (_, at) => random.fork(`priority/${at}`).below(256)),
    /** How fast each node's clock runs, likewise. */
    clockRates: Array.from({ length: machines }, (_, at) =>
      drifting ? random.fork(`rate/${at}`).pick([0.8, 0.9, 1, 1.1, 1.2]) : 1,
    ),
    ...drawWeather(random),
    ...drawEngine(random, limits),
    clients: 1 + random.fork("clients").below(4),
    clientPauseMs: random.fork("client-pause").pick([2, 10, 30, 60]),
    paddingBytes: random.fork("padding").pick([0, 0, 100, 400, 3_000]),
    faults: 3 + random.fork("faults").below(Math.ceil(seconds * 3)),
    faultsUntilMs: Math.floor(seconds * 1_000),
    /** Faults of etcd's specification only. */
    plain: false,
    aims: limits.aims ?? [],
  };
}

function drawWeather(random: Random): { link: Partial<LinkModel>; disk: Partial<DiskModel> } {
  const pace = random.fork("pace");
  const slow = random.fork("slow").pick([1, 1, 1, 6]);
  return {
    link: {
      latencyMinMs: slow * pace.between(0.05, 2),
      latencyTailMs: slow * pace.between(0.05, 3),
      inOrder: random.fork("order").chance(0.5),
      corruptRate: random.fork("corrupt").chance(0.2) ? 0.005 : 0,
    },
    disk: {
      syncMs: random.fork("sync-ms").pick([
        [0.1, 1],
        [0.5, 3],
        [1, 12],
        [5, 60],
      ]),
    },
  };
}

/** What engines are started with. */
function drawEngine(random: Random, { lease, snapshotAfterEntries }: KnobLimits) {
  // How long a preferred node must have been caught up before leadership is given to it.
  const priorityStableMs = random.fork("stable").pick([500, 1_500, 30_000]);
  return {
    election: {
      enableLease: lease ?? random.fork("lease").chance(0.35),
      enablePriority: random.fork("priority").chance(0.2),
      transferLogSync: random.fork("sync").chance(0.8),
      transferTimeoutMs: random.fork("transfer").pick([500, 2_000, 30_000]),
    },
    limits: {
      uncommittedBytesMax: random.fork("uncommitted").pick([500, 20_000, 1_000_000]),
      inflightMessagesMax: random.fork("inflight").pick([1, 4, 64]),
      appendBytesMax: random.fork("append").pick([20, 20, 1_000, 100_000]),
      compactionHoldEntriesMax: random.fork("hold").pick([0, 0, 0, 1_000]),
      compactionKeptBytesMax: random.fork("kept-bytes").pick([0, 500, 1_000_000]),
      commitNoticeMs: random.fork("notice").pick([0, 1, 5]),
      priorityStableMs,
      priorityIntervalMs: 2 * priorityStableMs,
    },
    snapshots: {
      afterEntries: snapshotAfterEntries ?? random.fork("snapshot").pick([20, 60, 200, 1_000]),
      keepEntries: random.fork("keep").pick([0, 5, 50]),
      memoryBytesMax: random.fork("snapshot-memory").pick([0, 1_000_000]),
    },
    segmentBytesMax: random.fork("segment").pick([2_000, 16_000, 1_000_000]),
    /** How far ahead the log reserves room; 0: not at all. */
    reserveBytes: random.fork("reserve").pick([0, 0, 600, 5_000, 60_000]),
  };
}
