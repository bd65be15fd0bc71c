// Alerts about a node's machine that rest on what is seen of it now, and on nothing before: its clock, copies of disks, who does
// not accept it, and what it lacks of the history.

import { nodeIdOf, type PeerKey } from "../kit/ids.ts";
import { RANGES_SHOWN_MAX } from "../kit/limits.ts";
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

export function judgeRefused(
  board: AlertBoard,
  at: Moment,
  refused: NonNullable<Observation["refused"]>,
): HealthOutput[] {
  const raised = refused.flatMap(({ nodeId, why }) => {
    const message = `${nodeId} answers, and this node and ${nodeId} do not accept each other: ${why}. Certificates, authorities (ca_file) or the secret differ: docs/runbooks/cluster-certificates.md`;
    return board.raise(at, "peer_unauthenticated", message, nodeId);
  });
  const isRefused = (about: string | null): boolean => refused.some(({ nodeId }) => nodeId === about);
  return [...raised, ...board.clearUnless(at, "peer_unauthenticated", isRefused)];
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

export function judgeHistory(
  board: AlertBoard,
  at: Moment,
  self: PeerKey,
  history: Observation["history"],
): HealthOutput[] {
  const { missing = [], lost = [], awaited = [] } = history ?? {};
  const nodeId = nodeIdOf(self);
  return [
    ...board.set(at, "history_incomplete", nodeId, awaited.length > 0, () => {
      const waits = missing.filter(({ first }) => !lost.some((range) => range.first <= first && first <= range.last));
      const names = [...new Set(awaited.map((peer) => nodeIdOf(peer as PeerKey)))].join(", ");
      return `${eventsText(waits)} are missing here, and ${names} may have them and did not send them: they are waited for. See that those nodes run and can be reached`;
    }),
    ...board.set(at, "history_lost", nodeId, lost.length > 0, () => {
      return `${eventsText(lost)} are lost: no member has them. Jobs run on; jobs that changed in them may be missing in lists, and proofs over them are refused. If a disk or a backup has a copy: docs/runbooks/cluster-history.md`;
    }),
  ];
}

function eventsText(ranges: readonly { readonly first: number; readonly last: number }[]): string {
  const shown = ranges.slice(0, RANGES_SHOWN_MAX).map(({ first, last }) => `${first} to ${last}`);
  const more = ranges.length > shown.length ? ` and ${ranges.length - shown.length} more ranges` : "";
  return `events ${shown.join(", ")}${more}`;
}
