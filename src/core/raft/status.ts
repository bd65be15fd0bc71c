// What a server shows of itself: one object, because it is asked several times for each request.

import type { PeerKey } from "../kit/ids.ts";
import type { Freshness } from "./freshness.ts";
import type { Leader } from "./leader/leader.ts";
import type { LeaderTransfer } from "./leader/transfer.ts";
import type { RaftStatus } from "./options.ts";
import type { Patience } from "./patience.ts";
import type { ServerState } from "./state.ts";

export function statusOf(
  peer: PeerKey,
  state: ServerState,
  leadership: Leader | null,
  transfer: LeaderTransfer,
  patience: Patience,
  freshness: Freshness,
): RaftStatus {
  const { log } = state;
  return {
    peer,
    role: state.role,
    term: state.term,
    vote: state.vote,
    leader: state.leader,
    commit: log.commit,
    applied: log.applied,
    firstIndex: log.firstIndex,
    lastIndex: log.lastIndex,
    lastTerm: log.lastTerm,
    configuration: state.configuration,
    committedConfiguration: state.committedConfiguration,
    established: leadership?.established ?? false,
    leaseUntilMs: leadership?.leaseUntilMs ?? 0,
    quorumContactMs: leadership?.quorumContactMs ?? 0,
    transfer: transfer.phase,
    leaderContactMs: leadership === null ? patience.leaderContactMs : 0,
    freshAsOfMs: leadership?.established === true ? leadership.quorumContactMs : freshness.asOfMs,
    willing: state.willing,
    isDiskStalled: state.diskStalled,
    strainMs: state.strainMs,
  };
}
