// What each fault of a plan does to simulated islands. `hit` is called when it had an effect.

import { assertNever } from "../../core/kit/assert.ts";
import { apply, type Fault, strike } from "../kernel/index.ts";
import { nodesOf } from "./knobs.ts";
import type { TxnFault, TxnOwnFault } from "./plan.ts";
import { reached } from "./probes.ts";
import type { TxnStage } from "./stage.ts";

const OWN_KINDS: ReadonlySet<string> = new Set<TxnOwnFault["kind"]>([
  "crash-coordinator",
  "pause-coordinator",
  "isolate-coordinator",
  "resign-coordinator",
  "crash-leader",
  "pause-leader",
  "isolate-leader",
  "hang-leader-disk",
  "transfer",
  "crash-island",
  "cut-islands",
  "cut-islands-one-way",
  "jump-island",
  "recover",
  "recover-both",
  "crash-in-txn",
  "pause-in-txn",
  "crash-in-prepare",
]);

function isOwn(fault: TxnFault): fault is TxnOwnFault {
  return OWN_KINDS.has(fault.kind);
}

export function applyTxnFault(stage: TxnStage, fault: TxnFault, hit: () => void): void {
  if (!isOwn(fault)) return apply(stage.world, fault, { hit });
  switch (fault.kind) {
    case "crash-coordinator":
    case "pause-coordinator":
    case "isolate-coordinator":
    case "resign-coordinator":
      return onCoordinator(stage, fault, hit);
    case "crash-leader":
    case "pause-leader":
    case "isolate-leader":
    case "hang-leader-disk":
    case "transfer":
      return onLeader(stage, fault, hit);
    case "crash-island":
      for (const node of nodesOf(fault.island, stage.knobs))
        strike(stage.world, { kind: "crash", node, restartAfterMs: fault.forMs }, hit);
      return;
    case "cut-islands":
      return strike(
        stage.world,
        { kind: "partition", groups: groupsOf(stage, fault.a, fault.b), forMs: fault.forMs },
        hit,
      );
    case "cut-islands-one-way":
      for (const from of nodesOf(fault.from, stage.knobs))
        for (const to of nodesOf(fault.to, stage.knobs))
          strike(stage.world, { kind: "cut-one-way", from, to, forMs: fault.forMs }, hit);
      return;
    case "jump-island":
      return jump(stage, fault, hit);
    case "recover":
      return stage.operator.recover(fault.node, fault.forMs, hit);
    case "recover-both":
      return stage.operator.recoverBoth(fault.node, fault.other, fault.forMs, hit);
    case "crash-in-txn":
    case "pause-in-txn":
      return stage.afterMessages(fault.messages, (node) => {
        reached(stage.probes, "coordinator-gone-in-between");
        strike(stage.world, ended(fault.kind === "crash-in-txn" ? "crash" : "pause", node, fault.forMs), hit);
      });
    case "crash-in-prepare":
      return stage.onPrepare(fault.island, (node) => strike(stage.world, ended("crash", node, fault.forMs), hit));
    default:
      return assertNever(fault, "fault");
  }
}

type Only<K extends TxnOwnFault["kind"]> = Extract<TxnOwnFault, { kind: K }>;
type Unscheduled = Fault extends infer F ? (F extends Fault ? Omit<F, "atMs"> : never) : never;

function ended(kind: "crash" | "pause", node: string, forMs: number): Unscheduled {
  return kind === "crash" ? { kind, node, restartAfterMs: forMs } : { kind, node, forMs };
}

function groupsOf({ knobs }: TxnStage, a: string, b: string): readonly (readonly string[])[] {
  return [nodesOf(a, knobs), nodesOf(b, knobs)];
}

function isolate(stage: TxnStage, node: string, forMs: number, hit: () => void): void {
  const others = stage.names.filter((name) => name !== node);
  strike(stage.world, { kind: "partition", groups: [[node], others], forMs }, hit);
}

function onCoordinator(
  stage: TxnStage,
  fault: Only<"crash-coordinator" | "pause-coordinator" | "isolate-coordinator" | "resign-coordinator">,
  hit: () => void,
): void {
  const { coordinator, world } = stage;
  if (coordinator === undefined) return;
  const { name } = coordinator;
  switch (fault.kind) {
    case "crash-coordinator":
      return strike(world, ended("crash", name, fault.forMs), hit);
    case "pause-coordinator":
      return strike(world, ended("pause", name, fault.forMs), hit);
    case "isolate-coordinator":
      return isolate(stage, name, fault.forMs, hit);
    case "resign-coordinator":
      if (world.call(name, () => void coordinator.coordinator.resign())) hit();
      return;
    default:
      return assertNever(fault, "fault of the coordinator");
  }
}

function onLeader(
  stage: TxnStage,
  fault: Only<"crash-leader" | "pause-leader" | "isolate-leader" | "hang-leader-disk" | "transfer">,
  hit: () => void,
): void {
  const { world } = stage;
  const island = stage.island(fault.island);
  const node = island.leader();
  if (node === undefined) return;
  switch (fault.kind) {
    case "crash-leader":
      return strike(world, ended("crash", node, fault.forMs), hit);
    case "pause-leader":
      return strike(world, ended("pause", node, fault.forMs), hit);
    case "isolate-leader":
      return isolate(stage, node, fault.forMs, hit);
    case "hang-leader-disk":
      return strike(world, { kind: "disk-hang", node, forMs: fault.forMs }, hit);
    case "transfer":
      if (island.names.length > 1 && world.call(node, () => island.server(node)?.transfer())) hit();
      return;
    default:
      return assertNever(fault, "fault of a leader");
  }
}

/** All clocks of the island, and back again. */
function jump(stage: TxnStage, { island, byMs, forMs }: Only<"jump-island">, hit: () => void): void {
  const { scheduler, nowMs } = stage.world;
  const by = (ms: number): void => {
    for (const node of nodesOf(island, stage.knobs)) stage.world.node(node).process.jumpWall(ms);
  };
  hit();
  reached(stage.probes, "clock-days-off");
  by(byMs);
  scheduler.schedule(nowMs + forMs, scheduler.owner("faults"), () => by(-byMs));
}
