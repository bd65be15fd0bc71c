// Faults that lead to what chance meets too seldom: small scenes of a few steps, each played against whoever leads when it begins.
// Each ends by itself, and none goes on when the faults are over.
//
//   hasty-cancel      for a while every result comes with a cancel of its job, in the same moment
//   deposed           the leader is cut off from the others; until it knows, agents renew there, and counters are written there
//   orphan            the leader hears no answer of the others, who write down all that it sends: it does not know, and they commit
//   lapse             an agent is out of reach for longer than its leases last
//   reborn            an agent's process dies and begins anew at once, while calls of the one before are under way
//   power-cut         all servers die at once, and begin with what is on their disks
//   serial-forgetting as soon as jobs are forgotten, another leads
//   missed-forgetting a follower is away while jobs are forgotten and the log is cut off after it; when it is back, it leads
//   vain-retry        the leader is cut off and asked to send ended jobs once more, which is never committed; then its views are lost
//   cut-doubt         the leader's disk hangs, while others commit; its views begin anew, and before they have caught up the leader dies: it
//                     comes back with less than it had applied
//   revived           jobs of schedules that have ended are sent once more, again and again, also those that the book has dropped

import type { Random } from "../../../core/kit/random.ts";
import { strike } from "../../kernel/index.ts";
import type { JobsCluster } from "../cluster.ts";

type Ploy = (cluster: JobsCluster, random: Random, hit: () => void) => void;

/** From the last word of a leader until others may elect another; and until it gives up by itself. */
const STICKY_MS = 150;
const GIVES_UP_MS = 300;
const HASTY_MS = 1_500;
const REVIVED_MS = 2_000;
/** Longer than the views take to begin anew after their thread has died. */
const HUNG_MS = 2_000;
const REVIVE_EVERY_MS = 100;
const STEP_MS = 15;
/** Of a lease: it is over by any clock, also where its leader is new and counts it anew. */
const LEASES: readonly [number, number] = [1.5, 2.2];
/** A leader looks for jobs to forget a second after its begin. */
const FIRST_LOOK_MS = 1_000;
const HAND_OVERS = 4;
const LOOK_MS = 20;

export function ploy(cluster: JobsCluster, kind: JobsPloyKind, draw: number, hit: () => void): void {
  PLOYS[kind](cluster, cluster.random.fork(`${kind}/${draw}`), hit);
}

const PLOYS = {
  "hasty-cancel": (cluster, _random, hit) => {
    const untilMs = cluster.world.nowMs + HASTY_MS;
    cluster.onResult = (node, jobId) => {
      if (cluster.world.nowMs > untilMs) return;
      hit();
      cluster.clients?.askNow(node, "cancel", jobId);
    };
  },

  deposed: (cluster, random, hit) => {
    const { leader, others } = leaderAndOthers(cluster);
    if (leader === undefined) return;
    strike(cluster.world, { kind: "partition", groups: [[leader], others], forMs: 2 * GIVES_UP_MS }, hit);
    for (let afterMs = STICKY_MS; afterMs < GIVES_UP_MS + 5 * STEP_MS; afterMs += STEP_MS) {
      later(cluster, afterMs, () => {
        if (cluster.leader() === leader) campaign(cluster, random.pick(others));
        for (const renew of cluster.renewals.values()) renew(leader);
        cluster.countAt?.(leader);
      });
    }
  },

  orphan: (cluster, random, hit) => {
    const { leader, others } = leaderAndOthers(cluster);
    if (leader === undefined) return;
    for (const from of others)
      strike(cluster.world, { kind: "cut-one-way", from, to: leader, forMs: 3 * GIVES_UP_MS }, hit);
    for (let afterMs = 0; afterMs < GIVES_UP_MS; afterMs += 2 * STEP_MS) {
      later(cluster, afterMs, () => cluster.clients?.submitAt(leader, random.fork(`${afterMs}`)));
    }
  },

  lapse: (cluster, random, hit) => {
    const node = random.pick(cluster.agents);
    const forMs = cluster.knobs.ttlMs * random.between(...LEASES);
    // Its letters are no messages of the network's own: that nobody reads them is the effect.
    hit();
    strike(cluster.world, { kind: "partition", groups: [[node], cluster.names], forMs }, hit);
  },

  reborn: (cluster, random, hit) => {
    for (const node of cluster.agents) {
      strike(cluster.world, { kind: "crash", node, restartAfterMs: random.between(1, 20) }, hit);
    }
  },

  "power-cut": (cluster, random, hit) => {
    for (const node of cluster.names)
      strike(cluster.world, { kind: "crash", node, restartAfterMs: random.between(1, 50) }, hit);
  },

  "serial-forgetting": (cluster, _random, hit) => handOverAtForgetting(cluster, HAND_OVERS, hit),

  "missed-forgetting": (cluster, random, hit) => {
    const { leader, others } = leaderAndOthers(cluster);
    if (leader === undefined) return;
    const [away, next] = random.chance(0.5) ? others.toReversed() : others;
    hit();
    transfer(cluster, next!);
    const cutMs = FIRST_LOOK_MS / 2;
    const backMs = cutMs + FIRST_LOOK_MS * random.between(0.8, 1);
    later(cluster, cutMs, () => {
      const rest = cluster.names.filter((name) => name !== away);
      strike(cluster.world, { kind: "partition", groups: [[away!], rest], forMs: backMs - cutMs }, hit);
    });
    for (const afterMs of [200, 400, 600]) later(cluster, backMs + afterMs, () => transfer(cluster, away!));
  },

  "vain-retry": (cluster, random, hit) => {
    const { leader, others } = leaderAndOthers(cluster);
    const ended = [...cluster.oracle.jobs].filter(([, { isFinal }]) => isFinal).map(([jobId]) => jobId);
    if (leader === undefined || ended.length === 0) return;
    strike(cluster.world, { kind: "partition", groups: [[leader], others], forMs: 2 * GIVES_UP_MS }, hit);
    for (let afterMs = 0; afterMs < STICKY_MS; afterMs += STEP_MS) {
      later(cluster, afterMs, () => {
        cluster.world.call(leader, () => cluster.clients?.askNow(leader, "retry", random.pick(ended)));
      });
    }
    later(cluster, STICKY_MS, () => cluster.world.call(leader, () => cluster.stores.discardViews(leader)));
  },

  "cut-doubt": (cluster, _random, hit) => {
    const { leader } = leaderAndOthers(cluster);
    if (leader === undefined) return;
    let isCut = false;
    strike(cluster.world, { kind: "disk-hang", node: leader, forMs: HUNG_MS }, hit);
    later(cluster, STEP_MS, () => cluster.world.call(leader, () => cluster.stores.crashViews(leader)));
    for (let afterMs = STEP_MS; afterMs < HUNG_MS; afterMs += LOOK_MS) {
      later(cluster, afterMs, () => {
        if (isCut || cluster.stores.viewsDoubted(leader) === 0) return;
        isCut = true;
        strike(cluster.world, { kind: "crash", node: leader, restartAfterMs: 1 }, hit);
      });
    }
  },

  revived: (cluster, random, hit) => {
    for (let afterMs = 0; afterMs < REVIVED_MS; afterMs += REVIVE_EVERY_MS) {
      later(cluster, afterMs, () => {
        const ended = cluster.ledger.ended();
        const leader = cluster.leader();
        if (leader === undefined || ended.length === 0) return;
        hit();
        cluster.world.call(leader, () => cluster.clients?.askNow(leader, "retry", random.pick(ended)));
      });
    }
  },
} satisfies Record<string, Ploy>;
export type JobsPloyKind = keyof typeof PLOYS;
export const JOBS_PLOYS = Object.keys(PLOYS) as JobsPloyKind[];

function handOverAtForgetting(cluster: JobsCluster, times: number, hit: () => void): void {
  const forgotten = (): number => cluster.probes["job-forgotten"] ?? 0;
  const before = forgotten();
  const look = (): void => {
    if (forgotten() === before) return later(cluster, LOOK_MS, look);
    const { leader, others } = leaderAndOthers(cluster);
    if (leader === undefined) return later(cluster, LOOK_MS, look);
    hit();
    transfer(cluster, cluster.random.fork(`forgetting/${forgotten()}`).pick(others));
    if (times > 1) handOverAtForgetting(cluster, times - 1, hit);
  };
  look();
}

// ---- hands ---------------------------------------------------------------------------------------------

function leaderAndOthers(cluster: JobsCluster): { leader: string | undefined; others: readonly string[] } {
  const leader = cluster.leader();
  return { leader, others: cluster.names.filter((name) => name !== leader) };
}

/** Unless it is on its way already: asked again, a candidate starts over. */
function campaign(cluster: JobsCluster, node: string): void {
  cluster.world.call(node, () => {
    const engine = cluster.server(node)?.engine;
    const role = engine?.status().role;
    if (role === "follower" || role === "pre-candidate") engine?.campaign();
  });
}

/** From whoever leads now. */
function transfer(cluster: JobsCluster, to: string): void {
  const from = cluster.leader();
  const target = cluster.server(to)?.engine.peer;
  if (from === undefined || from === to || target === undefined) return;
  cluster.world.call(from, () => void cluster.server(from)?.transfer(target));
}

function later(cluster: JobsCluster, afterMs: number, fire: () => void): void {
  const { scheduler } = cluster.world;
  scheduler.schedule(scheduler.nowMs + afterMs, scheduler.owner("faults"), () => {
    if (scheduler.nowMs < cluster.knobs.faultsUntilMs) fire();
  });
}
