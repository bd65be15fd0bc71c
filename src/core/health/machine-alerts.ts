// Alerts about a node's machine that rest on what is seen of it now, and on nothing before: its clock, and copies of disks.

import { nodeIdOf, type PeerKey } from "../kit/ids.ts";
import type { AlertBoard } from "./alert-board.ts";
import type { HealthOutput, Moment, Observation } from "./outputs.ts";

export function judgeClones(board: AlertBoard, at: Moment, cloned: readonly string[]): HealthOutput[] {
  const raised = cloned.flatMap((nodeId) => {
    const message = `two processes speak for one disk of ${nodeId}: its data directory was copied, and both may vote in one term. Stop the copy for good and empty its data directory`;
    return board.raise(at, "disk_cloned", message, nodeId);
  });
  const isCloned = (nodeId: string | null): boolean => nodeId !== null && cloned.includes(nodeId);
  return [...raised, ...board.clearUnless(at, "disk_cloned", isCloned)];
}

export function judgeClock(
  board: AlertBoard,
  at: Moment,
  self: PeerKey,
  { state, skewMs }: Observation["clock"],
): HealthOutput[] {
  return [
    ...board.set(at, "clock_skewed", nodeIdOf(self), state === "skewed" || state === "jumped", () => {
      if (state === "jumped") {
        return "this node's clock has jumped while it ran, and there is no other to hold it against: it is believed again when it has gone on evenly for five minutes. See that it is right";
      }
      const seconds = Math.round(Math.abs(skewMs ?? 0) / 1_000);
      const way = (skewMs ?? 0) > 0 ? "ahead of" : "slower than";
      return `this node's clock is ${seconds} s ${way} that of the majority: it is not believed, and this node hands leadership to another. Set it right (NTP); it goes on by itself`;
    }),
    ...board.set(at, "clocks_disagree", null, state === "disagreeing", () => {
      return "no majority of the voters' clocks agrees within a minute: none is believed, dates and schedules go by what has passed since one did. Set them right (NTP)";
    }),
  ];
}
