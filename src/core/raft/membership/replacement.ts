// Design D5: a node that comes back with another disk is another peer. It is at most a learner until the
// leader swaps it, by a joint change, for the voter whose disk was lost. The leader does so by itself
// only while the old disk is silent, because two living disks under one node id are an operator's matter.

import type { PeerKey } from "../../kit/ids.ts";
import { nodeIdOf } from "../../kit/ids.ts";
import { isMember, members } from "./quorum.ts";
import type { ConfChange, Configuration } from "../types.ts";

export interface ReplacementView {
  readonly configuration: Configuration;
  /** The disk last seen under a node id, as authenticated by the wire; for the leader's own, its own. */
  presentDisk(nodeId: string): PeerKey | undefined;
  /** Node ids for which an operator asked, with the new disk, whether or not the old one still answers. */
  readonly requested: ReadonlyMap<string, PeerKey>;
  isSilent(peer: PeerKey): boolean;
  /** Nothing is lost with it. Without that, or an operator's word, it stays a member, and the new disk a learner. */
  isCleared(peer: PeerKey): boolean;
  isCaughtUp(peer: PeerKey): boolean;
}

/** The next change to propose, or null when there is nothing to swap. One step at a time. */
export function nextReplacement(view: ReplacementView): ConfChange | null {
  for (const old of members(view.configuration)) {
    const nodeId = nodeIdOf(old);
    const fresh = view.presentDisk(nodeId);
    if (fresh === undefined || fresh === old) continue;
    if (!view.isSilent(old) && !view.requested.has(nodeId)) continue;
    const add: ConfChange["operations"] = isMember(view.configuration, fresh)
      ? []
      : [{ op: "add-learner", peer: fresh }];
    const isHeldBack = !view.isCleared(old) && !view.requested.has(nodeId);
    if (isHeldBack && add.length === 0) continue;
    if (view.configuration.learners.includes(old) && !isHeldBack) {
      return { operations: [{ op: "remove", peer: old }, ...add] };
    }
    if (add.length > 0) return { operations: add };
    if (view.isCaughtUp(fresh)) {
      return {
        operations: [
          { op: "remove", peer: old },
          { op: "add-voter", peer: fresh },
        ],
      };
    }
  }
  return null;
}
