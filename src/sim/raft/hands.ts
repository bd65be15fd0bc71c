// The hands with which faults reach into a cluster: small acts on nodes and links, done now or a little later.

import { nodeIdOf } from "../../core/kit/ids.ts";
import { strike } from "../kernel/index.ts";
import type { Cluster } from "./cluster.ts";

/** Who leads, and the rest. */
export function leaderAndOthers(cluster: Cluster): { leader: string | undefined; others: readonly string[] } {
  const led = cluster.leader();
  const leader = led === undefined ? undefined : nodeIdOf(led.engine.peer);
  return { leader, others: cluster.names.filter((name) => name !== leader) };
}

/** Unless it is on its way already: asked again, a candidate starts over. */
export function campaign(cluster: Cluster, name: string): void {
  cluster.world.call(name, () => {
    const engine = cluster.member(name)?.engine;
    if (engine?.status().role === "follower" || engine?.status().role === "pre-candidate") engine.campaign();
  });
}

export function crash(
  cluster: Cluster,
  node: string,
  restartAfterMs: number,
  hit: () => void,
  tear: "random" | "keep" | "vanish" = "random",
): void {
  strike(cluster.world, { kind: "crash", node, restartAfterMs, silent: true, tear }, hit);
}

export function cut(cluster: Cluster, a: string, b: string, forMs: number, hit: () => void): void {
  if (a !== b) strike(cluster.world, { kind: "cut", a, b, forMs }, hit);
}

export function later(cluster: Cluster, afterMs: number, fire: () => void): void {
  const { scheduler } = cluster.world;
  scheduler.schedule(scheduler.nowMs + afterMs, scheduler.owner("faults"), () => {
    // The faults are over when they are over: a ploy under way is given up.
    if (!cluster.faultsOver) fire();
  });
}
