// `chaos cluster`: rounds of iterations, each with one fault, on a cluster of real node processes with real disks.
//
//   round:     a cluster of three or five ─▶ iterations ─▶ faults over, all caught up ─▶ audit ─▶ all end
//   iteration: steady ─▶ fault ─▶ the next acknowledged write that was asked for after it ─▶ undone
//   audit:     everything is read back; ledger, history, log order, the nodes' state hashes and event logs are compared
//
// What the seed decides: sizes, the order of faults, victims, what clients ask. What it can't: how real processes are
// scheduled.

import { setTimeout as sleep } from "node:timers/promises";
import { seededRandom, type Random } from "../../src/core/kit/random.ts";
import { KvCluster, type KvClusterOptions } from "../kv/cluster.ts";
import type { KvNode } from "../kv/node-handle.ts";
import type { EventLine } from "../kv/messages.ts";
import { checkHistory, describeOperation } from "../linearizability/index.ts";
import { waitFor } from "../servers/index.ts";
import { type ClusterFault, victimOf } from "./cluster-faults.ts";
import { Strikes } from "./cluster-strike.ts";
import { Traffic } from "./cluster-traffic.ts";
import { KeyTraffic } from "./key-traffic.ts";

export interface ClusterRunOptions {
  readonly deck: readonly ClusterFault[];
  readonly minutes: number;
  readonly seed: number;
  /** Undefined: three, and in one round of four five. */
  readonly voters: number | undefined;
  readonly signal: AbortSignal;
  readonly log: (line: string) => void;
  /** Planted mistakes, and other timing. */
  readonly node?: KvClusterOptions["node"];
  readonly linkDelayMs?: number | undefined;
}

export interface ClusterRunResult {
  readonly iterations: number;
  readonly failovers: number;
  readonly faults: Readonly<Partial<Record<ClusterFault, number>>>;
  readonly acked: number;
  readonly reads: number;
  readonly lost: number;
  readonly unknown: number;
  readonly refused: number;
  readonly dualLeader: number;
  readonly linearizable: boolean | null;
  readonly checkedOperations: number;
  /** Replicated keys that were made, calls with them that were answered, and answers that a node can't say (key-traffic.ts). */
  readonly keys: number;
  readonly keyCalls: number;
  readonly keysUnsure: number;
  /** Valid keys that were refused. */
  readonly keysRefused: number;
  /** From the fault to the next acknowledged write, by kind. */
  readonly recoveryMs: ReadonlyMap<ClusterFault, readonly number[]>;
  readonly failed: readonly string[];
}

const ROUND_ITERATIONS = 25;
const STEADY_MS_MAX = 30_000;
const RECOVERY_MS_MAX = 30_000;
/** Fewer acknowledged writes than this for each iteration, and the run has proved little. */
const ACKS_NEEDED = 50;
/** The same of calls with replicated keys. */
const KEY_CALLS_NEEDED = 5;
/** Before the first fault of a round. */
const WARM_ACKS = 200;
/** A voter that is so far behind has not caught up yet. */
const LAG_MAX = 256;
/** Small, so that nodes that were away are brought back by snapshots too. */
const SNAPSHOTS = { afterEntries: 2_000, keepEntries: 200 };
const FINDINGS_MAX = 20;

export async function runCluster(options: ClusterRunOptions): Promise<ClusterRunResult> {
  const run = new ClusterRun(options);
  await run.play();
  return run.result();
}

class ClusterRun {
  readonly #options: ClusterRunOptions;
  readonly #random: Random;
  readonly #untilMs: number;
  readonly #faults: Partial<Record<ClusterFault, number>> = {};
  readonly #recovery = new Map<ClusterFault, number[]>();
  readonly #failed: string[] = [];
  readonly #sum = {
    acked: 0,
    reads: 0,
    unknown: 0,
    refused: 0,
    lost: 0,
    dualLeader: 0,
    checkedOperations: 0,
    keys: 0,
    keyCalls: 0,
    keysUnsure: 0,
    keysRefused: 0,
  };
  #linearizable: boolean | null = true;
  #iterations = 0;
  #failovers = 0;

  constructor(options: ClusterRunOptions) {
    this.#options = options;
    this.#random = seededRandom(options.seed);
    this.#untilMs = performance.now() + options.minutes * 60_000;
  }

  async play(): Promise<void> {
    const { deck } = this.#options;
    for (let from = 0; from < deck.length && this.#failed.length === 0; from += ROUND_ITERATIONS) {
      try {
        await this.#round(deck.slice(from, from + ROUND_ITERATIONS), this.#random.fork(`round ${from}`));
      } catch (error) {
        this.#fail((error as Error).message);
      }
    }
  }

  #fail(reason: string): void {
    if (this.#failed.length < FINDINGS_MAX) this.#failed.push(reason);
  }

  // ---- a round -------------------------------------------------------------------------------------

  async #round(kinds: readonly ClusterFault[], random: Random): Promise<void> {
    const voters = this.#options.voters ?? (random.chance(0.25) ? 5 : 3);
    const node = { snapshots: SNAPSHOTS, ...this.#options.node };
    const cluster = await KvCluster.start(voters, { isProxied: true, spares: 1, hasApi: true, node });
    for (const { links } of cluster.nodes.values()) {
      for (const link of links.values()) link.delay(this.#options.linkDelayMs ?? 0);
    }
    const traffic = new Traffic(cluster.ports, random.fork("traffic"));
    const urls = cluster.apiUrls();
    const keys = new KeyTraffic({ urls, random: random.fork("keys"), make: () => traffic.makeKey() });
    try {
      cluster.onCrash = (crashed, exit) =>
        this.#fail(`${crashed.name} ended by itself (${exit}): ${crashed.errors.trim().slice(-600)}`);
      await waitFor("traffic to run", () => traffic.counts.acked >= WARM_ACKS, STEADY_MS_MAX);
      await this.#iterate(kinds, cluster, traffic, random);
      await keys.stop();
      for (const refusal of keys.refusals) this.#fail(refusal);
      // Also after a failure: what was lost is worth knowing.
      if (!this.#options.signal.aborted) await this.#audit(cluster, traffic, voters);
    } finally {
      await keys.stop();
      traffic.close();
      await cluster.end();
      const { acked, reads, unknown, refused } = traffic.counts;
      this.#sum.acked += acked;
      this.#sum.reads += reads;
      this.#sum.unknown += unknown;
      this.#sum.refused += refused;
      this.#sum.keys += keys.counts.made;
      this.#sum.keyCalls += keys.counts.calls;
      this.#sum.keysUnsure += keys.counts.unsure;
      this.#sum.keysRefused += keys.refusals.length;
    }
  }

  async #iterate(kinds: readonly ClusterFault[], cluster: KvCluster, traffic: Traffic, random: Random): Promise<void> {
    const strikes = new Strikes(cluster, random.fork("strikes"));
    const voters = [...cluster.nodes.values()].filter((node) => node.isRunning).length;
    for (const kind of kinds) {
      if (this.#options.signal.aborted) return this.#fail("interrupted");
      if (performance.now() > this.#untilMs)
        return this.#fail(`the time was over after ${this.#iterations} iterations`);
      try {
        await this.#iteration(kind, cluster, traffic, strikes, voters);
      } catch (error) {
        this.#fail(`iteration ${this.#iterations + 1} (${kind}): ${(error as Error).message}`);
      }
      if (this.#failed.length > 0) return;
      // Not in step with the nodes' own timers.
      await sleep(random.between(0, 40));
    }
  }

  async #iteration(
    kind: ClusterFault,
    cluster: KvCluster,
    traffic: Traffic,
    strikes: Strikes,
    voters: number,
  ): Promise<void> {
    traffic.nextIteration();
    const members = await this.#steady(kind, cluster, traffic, voters);
    const leader = members[0]!;
    const struck = await strikes.strike(kind, members);
    // A fault that leaves no majority must be undone before anybody can be acknowledged.
    const settled = victimOf(kind) === "all" ? struck.settle() : undefined;
    const [ack] = await Promise.all([traffic.nextAck(struck.atMs, RECOVERY_MS_MAX), settled]);
    const tookMs = ack.endedMs - struck.atMs;
    this.#recovery.set(kind, [...(this.#recovery.get(kind) ?? []), tookMs]);
    await (settled ?? struck.settle());
    this.#faults[kind] = (this.#faults[kind] ?? 0) + 1;
    if (ack.node !== leader.name) this.#failovers++;
    this.#iterations++;
    this.#options.log(
      `${String(this.#iterations).padStart(4)}/${this.#options.deck.length}  ${kind.padEnd(19)} of ${voters}: ${leader.name} ─▶ ${ack.node} acknowledged after ${tookMs.toFixed(0)} ms`,
    );
  }

  /** Everybody runs and has caught up, somebody leads, and writes are acknowledged. The leader comes first. */
  async #steady(kind: ClusterFault, cluster: KvCluster, traffic: Traffic, voters: number): Promise<KvNode[]> {
    let members: KvNode[] = [];
    const isSteady = async (): Promise<boolean> => {
      if (this.#options.signal.aborted) throw new Error("interrupted");
      const leader = await cluster.findLeader();
      const status = await leader?.tryStatus();
      if (leader === null || status === null || status === undefined || !status.established) return false;
      if (status.isJoint || status.voters.length !== voters || status.learners.length > 0) return false;
      const isCaughtUp = status.voters.every(
        (peer) => peer === status.peer || (status.match[peer] ?? 0) + LAG_MAX >= status.commit,
      );
      const running = [...cluster.nodes.values()].filter((node) => node.isReady);
      if (!isCaughtUp || !status.voters.every((peer) => running.some((node) => node.peer === peer))) return false;
      members = [leader, ...running.filter((node) => node !== leader && status.voters.includes(node.peer!))];
      return true;
    };
    await waitFor(`a steady cluster before ${kind}`, isSteady, STEADY_MS_MAX);
    await traffic.nextAck(performance.now(), RECOVERY_MS_MAX);
    return members;
  }

  // ---- the audit -----------------------------------------------------------------------------------

  async #audit(cluster: KvCluster, traffic: Traffic, voters: number): Promise<void> {
    await traffic.stop();
    // First what needs nobody to answer: it must be said also of a cluster that does not answer any more.
    const dual = dualLeaders(cluster.eventLines());
    this.#sum.dualLeader += dual.length;
    for (const finding of dual) this.#fail(finding);
    const { lost, findings } = await traffic.audit();
    this.#sum.lost += lost;
    for (const finding of findings) this.#fail(finding);
    await this.#checkHistory(traffic);
    if (this.#failed.length === 0) await this.#compareStates(cluster, voters);
    const { acked, unknown } = traffic.counts;
    this.#options.log(
      `      compared: ${acked} acknowledged, ${unknown} unknown, ${lost} lost, ${dual.length} terms with two leaders, linearizable: ${this.#linearizable}`,
    );
  }

  async #checkHistory(traffic: Traffic): Promise<void> {
    const operations = traffic.history.operations();
    this.#sum.checkedOperations += operations.length;
    const verdict = checkHistory(operations);
    switch (verdict.kind) {
      case "linearizable":
        return;
      case "undecided":
        if (this.#linearizable === true) this.#linearizable = null;
        return this.#fail(`the checker could not decide on ${verdict.keys.join(", ")}`);
      case "not-linearizable":
        this.#linearizable = false;
        return this.#fail(
          `the history of ${verdict.key} is not linearizable:\n${verdict.window.map(describeOperation).join("\n")}`,
        );
    }
  }

  /** Nodes that have applied the same must be the same: a state that differs would show much later, if ever. */
  async #compareStates(cluster: KvCluster, voters: number): Promise<void> {
    let hashes: string[] = [];
    await waitFor("all nodes to have applied the same", async () => {
      const running = [...cluster.nodes.values()].filter((node) => node.isReady);
      const statuses = await Promise.all(running.map((node) => node.tryStatus()));
      hashes = statuses.flatMap((status) => (status === null ? [] : [`${status.hashAt} ${status.hash}`]));
      const indexes = new Set(statuses.map((status) => status?.hashAt));
      return hashes.length === voters && indexes.size === 1;
    });
    if (new Set(hashes).size > 1) this.#fail(`nodes have applied the same entries and differ: ${hashes.join(", ")}`);
  }

  result(): ClusterRunResult {
    const { deck } = this.#options;
    const failed = [...this.#failed];
    const missing = [...new Set(deck)].filter((kind) => this.#faults[kind] === undefined);
    if (missing.length > 0) failed.push(`these faults never fired: ${missing.join(", ")}`);
    if (this.#sum.acked < ACKS_NEEDED * deck.length) {
      failed.push(
        `only ${this.#sum.acked} writes were acknowledged in ${deck.length} iterations: no traffic to speak of`,
      );
    }
    if (this.#sum.keyCalls < KEY_CALLS_NEEDED * deck.length)
      failed.push(`only ${this.#sum.keyCalls} calls with replicated keys were answered: too few`);
    if (this.#sum.lost > 0) failed.push(`${this.#sum.lost} acknowledged writes were lost`);
    if (this.#sum.dualLeader > 0) failed.push(`${this.#sum.dualLeader} terms had two leaders`);
    return {
      iterations: this.#iterations,
      failovers: this.#failovers,
      faults: this.#faults,
      ...this.#sum,
      linearizable: this.#linearizable,
      recoveryMs: this.#recovery,
      failed,
    };
  }
}

/** Trap 22: two leaders at one moment are normal, two of one term never. */
export function dualLeaders(lines: readonly EventLine[]): string[] {
  const leaders = lines.filter(({ event }) => event === "leader" || event === "established");
  return [...Map.groupBy(leaders, ({ term }) => term)].flatMap(([term, ofTerm]) => {
    const peers = new Set(ofTerm.map(({ peer }) => peer));
    return peers.size > 1 ? [`term ${term} had ${peers.size} leaders: ${[...peers].join(", ")}`] : [];
  });
}
