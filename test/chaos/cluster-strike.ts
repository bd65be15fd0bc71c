// One fault on a running cluster: does it, says when, and proves afterwards that it has happened (trap 33).
//
//   strike ─▶ struck {atMs} ─▶ settle: what the fault must have led to has happened, and it is undone

import { assertNever } from "../../src/core/kit/assert.ts";
import type { Random } from "../../src/core/kit/random.ts";
import type { KvCluster } from "../kv/cluster.ts";
import type { KvNode } from "../kv/node-handle.ts";
import type { DiskFault } from "../kv/messages.ts";
import { type TcpProxy, waitFor } from "../servers/index.ts";
import type { ClusterFault } from "./cluster-faults.ts";
import { isStopped } from "./stopped.ts";

export interface Struck {
  readonly atMs: number;
  /** Proves that the fault has fired, and ends it. */
  settle(): Promise<void>;
}

const END_MS_MAX = 5_000;
const SWAP_MS_MAX = 30_000;
const SLOW_SYNC_MS = 40;

export class Strikes {
  readonly #cluster: KvCluster;
  readonly #random: Random;

  constructor(cluster: KvCluster, random: Random) {
    this.#cluster = cluster;
    this.#random = random;
  }

  /** `members`: those that vote, the leader first. */
  async strike(kind: ClusterFault, members: readonly KvNode[]): Promise<Struck> {
    const leader = members[0]!;
    const follower = members[1 + this.#random.below(members.length - 1)]!;
    switch (kind) {
      case "kill":
        return this.#kill([leader]);
      case "kill-follower":
        return this.#kill([follower]);
      case "kill-majority":
        return this.#kill(members.slice(0, Math.floor(members.length / 2) + 1));
      case "blackout":
        return this.#kill(members);
      case "term":
        return this.#term(leader);
      case "transfer":
        return this.#transfer(leader);
      case "stop":
        return this.#stop(leader);
      case "stop-follower":
        return this.#stop(follower);
      case "cut":
      case "cut-out":
      case "cut-in":
        return this.#cut(leader, members, kind);
      case "cut-follower":
        return this.#cut(follower, members, "cut");
      case "cut-refused":
        return this.#refuse(leader);
      case "reset":
        return this.#reset(leader);
      case "disk-full":
        return this.#disk(leader, { kind: "full" });
      case "slow-sync":
        return this.#disk(leader, { kind: "slow", ms: SLOW_SYNC_MS });
      case "hung-disk":
        return this.#disk(leader, { kind: "hung" });
      case "hung-disk-follower":
        return this.#disk(follower, { kind: "hung" });
      case "sync-error":
        return this.#syncError(leader);
      case "sync-error-follower":
        return this.#syncError(follower);
      case "wipe":
        return this.#wipe(this.#random.chance(0.5) ? leader : follower);
      case "members":
        return this.#swapMember(this.#random.chance(0.5) ? leader : follower);
      default:
        return assertNever(kind, "strike");
    }
  }

  // ---- processes -----------------------------------------------------------------------------------

  #kill(victims: readonly KvNode[]): Struck {
    const pids = victims.map((victim) => victim.pid);
    const atMs = performance.now();
    for (const victim of victims) this.#die(victim, () => victim.killAtOnce());
    return {
      atMs,
      settle: async () => {
        await Promise.all(victims.map((victim) => victim.gone));
        for (const victim of victims) await this.#revive(victim);
        await Promise.all(victims.map((victim) => ready(victim)));
        if (victims.some((victim, at) => victim.pid === pids[at])) throw new Error("a killed process lives on");
      },
    };
  }

  #term(victim: KvNode): Struck {
    const atMs = performance.now();
    victim.signal("SIGTERM");
    const gone = victim.gone.then(() => this.#die(victim, () => undefined));
    return {
      atMs,
      settle: async () => {
        await waitFor(`${victim.name} to end after SIGTERM`, () => !victim.isRunning, END_MS_MAX);
        await gone;
        await this.#revive(victim);
        await ready(victim);
      },
    };
  }

  async #transfer(victim: KvNode): Promise<Struck> {
    const atMs = performance.now();
    const reply = await victim.ask({ ask: "transfer" });
    if (reply.ask !== "transfer" || !reply.result.success) {
      throw new Error(
        `a transfer between healthy nodes failed: ${reply.ask === "transfer" ? reply.result.message : ""}`,
      );
    }
    return { atMs, settle: async () => undefined };
  }

  #stop(victim: KvNode): Struck {
    const atMs = performance.now();
    victim.signal("SIGSTOP");
    return {
      atMs,
      settle: async () => {
        await waitFor(`${victim.name} to be stopped`, () => isStopped(victim.pid));
        await waitForHold(this.#random);
        victim.signal("SIGCONT");
      },
    };
  }

  /** As when the machine ends the process: connections are reset, and nobody listens there any more. */
  #die(victim: KvNode, kill: () => void): void {
    // Its connections are closed at the latest when it is healed.
    for (const link of this.#cluster.linksTo(victim.name)) link.end().catch(() => undefined);
    kill();
  }

  async #revive(victim: KvNode): Promise<void> {
    for (const link of this.#cluster.linksTo(victim.name)) await link.heal();
    victim.launch();
  }

  // ---- the network ---------------------------------------------------------------------------------

  /** All that passes between the victim and the others: in and out, as the victim sees it. */
  #cut(victim: KvNode, members: readonly KvNode[], kind: "cut" | "cut-out" | "cut-in"): Struck {
    const pairs = members
      .filter((other) => other !== victim)
      .map((other) => ({ dialled: victim.links.get(other.name)!, accepted: other.links.get(victim.name)! }));
    const links = pairs.flatMap(({ dialled, accepted }) => [dialled, accepted]);
    requireConnections(links);
    const atMs = performance.now();
    for (const { dialled, accepted } of pairs) {
      if (kind !== "cut-in") {
        dialled.cut("to-server");
        accepted.cut("to-client");
      }
      if (kind !== "cut-out") {
        dialled.cut("to-client");
        accepted.cut("to-server");
      }
    }
    const how = this.#random.chance(0.5) ? "resume" : "reset";
    return {
      atMs,
      settle: async () => {
        await waitForHold(this.#random);
        for (const link of links) await link.heal(how);
      },
    };
  }

  /** Alive, but every connection to it is reset and refused: design D6 takes that for dead, and must survive the mistake. */
  #refuse(victim: KvNode): Struck {
    const links = this.#cluster.linksTo(victim.name);
    requireConnections(links);
    const atMs = performance.now();
    const ended = links.map((link) => link.end());
    return {
      atMs,
      settle: async () => {
        await Promise.all(ended);
        await waitForHold(this.#random);
        for (const link of links) await link.heal();
      },
    };
  }

  #reset(victim: KvNode): Struck {
    const links = [...this.#cluster.linksTo(victim.name), ...victim.links.values()];
    requireConnections(links);
    const atMs = performance.now();
    for (const link of links) link.reset();
    return { atMs, settle: async () => undefined };
  }

  // ---- the disk ------------------------------------------------------------------------------------

  async #disk(victim: KvNode, fault: DiskFault): Promise<Struck> {
    const before = (await victim.status()).struck;
    const atMs = performance.now();
    await victim.disk(fault);
    return {
      atMs,
      settle: async () => {
        await waitFor(`${fault.kind} on ${victim.name} to strike`, async () => (await victim.status()).struck > before);
        await waitForHold(this.#random);
        await victim.disk({ kind: "none" });
      },
    };
  }

  /** Trap 23: the process ends itself, and starts again on what is really on the disk. */
  async #syncError(victim: KvNode): Promise<Struck> {
    victim.expectEnd();
    const atMs = performance.now();
    await victim.disk({ kind: "sync-error" });
    const gone = victim.gone.then(() => this.#die(victim, () => undefined));
    return {
      atMs,
      settle: async () => {
        await waitFor(`${victim.name} to end itself after a failed sync`, () => !victim.isRunning, END_MS_MAX);
        await gone;
        if (victim.fatal === null) throw new Error(`${victim.name} ended without saying that its disk failed`);
        await this.#revive(victim);
        await ready(victim);
      },
    };
  }

  // ---- members -------------------------------------------------------------------------------------

  #wipe(victim: KvNode): Struck {
    const old = victim.peer;
    const atMs = performance.now();
    this.#die(victim, () => victim.killAtOnce());
    return {
      atMs,
      settle: async () => {
        await victim.gone;
        victim.wipe();
        await this.#revive(victim);
        await ready(victim);
        const { peer } = victim;
        if (peer === old) throw new Error(`${victim.name} lost its disk and came back as the same peer (trap 13)`);
        const isSwapped = async (): Promise<boolean> => {
          const status = await (await this.#cluster.findLeader())?.tryStatus();
          return status?.voters.includes(peer!) === true && !status.voters.includes(old!) && !status.isJoint;
        };
        await waitFor(`the new disk of ${victim.name} to be swapped in`, isSwapped, SWAP_MS_MAX);
      },
    };
  }

  /** The spare joins and `leaving` goes; it is the next spare, with an empty disk. */
  async #swapMember(leaving: KvNode): Promise<Struck> {
    const spare = [...this.#cluster.nodes.values()].find((node) => !node.isRunning)!;
    const atMs = performance.now();
    await this.#revive(spare);
    await ready(spare);
    await this.#cluster.join(spare.name);
    return {
      atMs,
      settle: async () => {
        await this.#cluster.change([{ op: "remove", peer: leaving.peer! }]);
        this.#die(leaving, () => leaving.killAtOnce());
        await leaving.gone;
        leaving.wipe();
        delete this.#cluster.ports[leaving.name];
      },
    };
  }
}

/** A fault on a connection that is not there would be none. */
function requireConnections(links: readonly TcpProxy[]): void {
  if (links.every((link) => link.connections === 0)) throw new Error("there was no connection to hurt");
}

async function waitForHold(random: Random): Promise<void> {
  await new Promise((resolve) => setTimeout(resolve, random.between(0, 120)));
}

async function ready(node: KvNode): Promise<void> {
  await waitFor(`${node.name} to be ready again (${node.errors.slice(-300)})`, () => node.isReady);
}
