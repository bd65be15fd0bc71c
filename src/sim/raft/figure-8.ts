// The Raft paper's figure 8, played out on a living cluster: the one schedule in which committing an entry of an
// earlier term by counting its copies loses it (trap 1). It waits for each situation instead of for a time, and
// gives up where the cluster, or another fault, does not go along.
//
//   s1 takes an entry e that nobody else gets, and dies;
//   s2 wins the next term, writes its no-op for itself alone, and dies;
//   s1 comes back, wins, brings e to s3, and dies before anything of its own term gets there;
//   s2 comes back with the later term and is elected by s3: e is gone.

import type { Random } from "../../core/kit/random.ts";
import type { Message } from "../../core/raft/index.ts";
import { campaign, crash, cut, later, leaderAndOthers } from "./hands.ts";
import type { Cluster } from "./cluster.ts";

const PATIENCE_MS = 700;
const POLL_MS = 1;
/** Longer than any healthy sync takes in these runs. */
const WRITTEN_AFTER_MS = 70;

export function figure8(cluster: Cluster, random: Random, hit: () => void): void {
  const { leader: s1, others } = leaderAndOthers(cluster);
  if (s1 === undefined || others.length < 2) return;
  const [s2, s3] = random.chance(0.5) ? [others[0]!, others[1]!] : [others[1]!, others[0]!];
  const acts = new Acts(cluster, hit);
  const before = acts.lastIndex(s1);
  acts.alone(s1);
  cluster.traffic?.writeAt(s1);
  acts.when(
    () => acts.lastIndex(s1) > before,
    () => {
      acts.afterWriting(s1, () => {
        cluster.onNextSend(s2, "MsgApp", () => acts.alone(s2));
        acts.whenLeading(s2, () => acts.afterWriting(s2, () => bringOldEntry(acts, s1, s2, s3, before + 1)));
      });
    },
  );
}

function bringOldEntry(acts: Acts, s1: string, s2: string, s3: string, index: number): void {
  const { cluster } = acts;
  cluster.world.start(s1);
  cluster.world.network.heal(s1, s3);
  const stopOwnTerm = (): void =>
    cluster.onNextSend(s1, "MsgApp", (message: Message) => {
      const last = message.type === "MsgApp" ? message.entries.at(-1) : undefined;
      if (acts.lastIndex(s3) >= index && last?.term === message.term) acts.alone(s1);
      else later(cluster, 0, stopOwnTerm);
    });
  stopOwnTerm();
  acts.whenLeading(s1, () => {
    acts.when(
      () => acts.lastIndex(s3) >= index && acts.isAlone(s1),
      () => {
        acts.end(s1);
        cluster.world.start(s2);
        cluster.world.network.heal(s2, s3);
        acts.whenLeading(s2, () => acts.finish([s1, s2]));
      },
    );
  });
}

class Acts {
  readonly cluster: Cluster;
  readonly #hit: () => void;
  readonly #deadlineMs: number;

  constructor(cluster: Cluster, hit: () => void) {
    this.cluster = cluster;
    this.#hit = hit;
    this.#deadlineMs = cluster.world.nowMs + 4 * PATIENCE_MS;
  }

  lastIndex(name: string): number {
    return this.cluster.member(name)?.engine.status().lastIndex ?? 0;
  }

  alone(node: string): void {
    for (const other of this.cluster.names) cut(this.cluster, node, other, 4 * PATIENCE_MS, this.#hit);
  }

  isAlone(node: string): boolean {
    return this.cluster.names.every((other) => other === node || !this.cluster.world.network.link(node, other).open);
  }

  when(condition: () => boolean, then: () => void): void {
    if (condition()) return then();
    if (this.cluster.world.nowMs > this.#deadlineMs) return this.finish(this.cluster.names);
    later(this.cluster, POLL_MS, () => this.when(condition, then));
  }

  whenLeading(name: string, then: () => void): void {
    const leads = (): boolean => this.cluster.member(name)?.engine.status().role === "leader";
    const press = (): void => {
      if (leads() || this.cluster.world.nowMs > this.#deadlineMs) return;
      const role = this.cluster.member(name)?.engine.status().role;
      if (role === "follower") campaign(this.cluster, name);
      later(this.cluster, 30, press);
    };
    press();
    this.when(leads, then);
  }

  /** Gives the disk its time, ends the process with everything written, and goes on. */
  afterWriting(name: string, then: () => void): void {
    later(this.cluster, WRITTEN_AFTER_MS, () => {
      this.end(name);
      then();
    });
  }

  end(name: string): void {
    crash(this.cluster, name, 4 * PATIENCE_MS, this.#hit, "keep");
  }

  finish(names: readonly string[]): void {
    this.cluster.world.network.heal();
    for (const name of names) this.cluster.world.start(name);
  }
}
