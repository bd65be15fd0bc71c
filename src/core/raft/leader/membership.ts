// The leader's part in changes of membership (§6; thesis §4): which changes it takes, how it leaves a joint
// configuration, and how it swaps lost disks (design D5).
//
//   C_old ──change──▶ joint: both halves decide ──committed──▶ leave, by itself ──committed──▶ C_new
//
// Invariant: one change at a time. The next waits until the one before, and an entry of the leader's own term,
// is committed (trap 10). A disk that was removed is never added again (docs/decisions/0024).

import { nodeIdOf, type PeerKey } from "../../kit/ids.ts";
import { REPLACE_SILENCE_MS } from "../../kit/limits.ts";
import type { Admission } from "../admission.ts";
import { encodeConfChange } from "../codec.ts";
import type { Leader } from "./leader.ts";
import { applyConfChange } from "../membership/membership.ts";
import { isJoint, isVoter, members } from "../membership/quorum.ts";
import { nextReplacement } from "../membership/replacement.ts";
import { ACCEPTED, refused } from "../step-result.ts";
import type { ConfChange, StepResult } from "../types.ts";

export function proposeConfChange(leader: Leader, change: ConfChange): StepResult {
  const { log, configuration } = leader.state;
  if (!leader.committedInTerm || log.hasPendingConfChange) {
    const why = "an earlier change, or this leader's first entry, is not committed yet; retry in a moment";
    return refused("CONF_CHANGE_PENDING", why);
  }
  // Refused here and not where a change is applied: logs of earlier releases may hold such a change.
  const back = change.operations.find(({ op, peer }) => op !== "remove" && configuration.removed?.includes(peer));
  if (back !== undefined) {
    const why = `the disk ${back.peer} was removed from this cluster, and a removed disk does not come back: others may know only of its removal, and refuse it. Start ${nodeIdOf(back.peer)} with an empty data directory, and add that`;
    return refused("CONF_CHANGE_INVALID", why);
  }
  const outcome = applyConfChange(configuration, change);
  if (!outcome.ok) return refused("CONF_CHANGE_INVALID", outcome.reason);
  return appendConfChange(leader, change);
}

/** A joint configuration is left as soon as it is committed, also by a leader that inherited it. */
export function leaveJoint(leader: Leader): void {
  const { log, configuration } = leader.state;
  if (!isJoint(configuration) || !configuration.autoLeave) return;
  if (!leader.committedInTerm || log.hasPendingConfChange) return;
  appendConfChange(leader, { operations: [] });
}

function appendConfChange(leader: Leader, change: ConfChange): StepResult {
  leader.state.trace?.("ChangeConf", null, change);
  return leader.append([{ type: "EntryConfChange", data: encodeConfChange(change) }]);
}

/** An operator wants the new disk of this node in the place of the old one. */
export function requestReplacement(leader: Leader, admission: Admission, nodeId: string): StepResult {
  const { peer: self, configuration } = leader.state;
  if (nodeId === nodeIdOf(self)) {
    const why = `node ${nodeId} leads from the disk that it has; transfer leadership first`;
    return refused("CONF_CHANGE_INVALID", why);
  }
  const fresh = admission.diskOf(nodeId);
  const known = members(configuration).some((peer) => nodeIdOf(peer) === nodeId);
  if (fresh === undefined || !known || isVoter(configuration, fresh)) {
    const why = `no new disk of node ${nodeId} was seen; start it with an empty data directory first`;
    return refused("CONF_CHANGE_INVALID", why);
  }
  leader.replaceRequested.set(nodeId, fresh);
  return ACCEPTED;
}

/** One step of the next replacement that is due. */
export function replaceLostDisks(leader: Leader, admission: Admission, needsClearance: boolean): void {
  const { peer: self, log, configuration, nowMs } = leader.state;
  if (!leader.committedInTerm || log.hasPendingConfChange || isJoint(configuration)) return;
  const { progress, replaceRequested: requested, clearedDisks: cleared } = leader;
  const all = members(configuration);
  const isSilent = (peer: PeerKey): boolean =>
    nowMs - (progress.get(peer)?.lastContactMs ?? nowMs) >= REPLACE_SILENCE_MS;
  for (const [nodeId, fresh] of requested) {
    // A request ends with its swap: the old disk may go on dialling, and must not be swapped back. It also ends
    // when the disk that it named was lost in its turn, and another one is there.
    const isSwapped = !all.some((peer) => nodeIdOf(peer) === nodeId && peer !== fresh);
    if (isSwapped || (isSilent(fresh) && admission.diskOf(nodeId) !== fresh)) requested.delete(nodeId);
  }
  const change = nextReplacement({
    configuration,
    presentDisk: (nodeId) => (nodeId === nodeIdOf(self) ? self : (requested.get(nodeId) ?? admission.diskOf(nodeId))),
    requested,
    isSilent,
    isCleared: (peer) => !needsClearance || (cleared?.configuration === configuration && cleared.peers.includes(peer)),
    isCaughtUp: (peer) => (progress.get(peer)?.caughtUpSinceMs ?? Infinity) < nowMs,
  });
  if (change !== null) proposeConfChange(leader, change);
}
