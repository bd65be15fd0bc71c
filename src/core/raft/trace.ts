// The names of etcd's state trace (etcd-io/raft state_trace.go), so that etcd's own TLA+ specification
// can check our runs. The core only says what happened; src/sim/etcd-trace.ts gives it etcd's shape.

import type { Trace } from "./options.ts";
import type { Message, MessageType } from "./types.ts";

export type TraceName =
  | "InitState"
  | "BecomeCandidate"
  | "BecomeFollower"
  | "BecomeLeader"
  | "Commit"
  | "Replicate"
  | "ChangeConf"
  | "ApplyConfChange"
  | "Ready"
  | "SendAppendEntriesRequest"
  | "ReceiveAppendEntriesRequest"
  | "SendAppendEntriesResponse"
  | "ReceiveAppendEntriesResponse"
  | "SendRequestVoteRequest"
  | "ReceiveRequestVoteRequest"
  | "SendRequestVoteResponse"
  | "ReceiveRequestVoteResponse";

/** Messages that are not listed (pre-votes, reads, transfers) are no part of etcd's specification. */
export const SEND_NAMES: Partial<Record<MessageType, TraceName>> = {
  MsgApp: "SendAppendEntriesRequest",
  MsgHeartbeat: "SendAppendEntriesRequest",
  MsgSnap: "SendAppendEntriesRequest",
  MsgAppResp: "SendAppendEntriesResponse",
  MsgHeartbeatResp: "SendAppendEntriesResponse",
  MsgVote: "SendRequestVoteRequest",
  MsgVoteResp: "SendRequestVoteResponse",
};

const RECEIVE_NAMES: Partial<Record<MessageType, TraceName>> = {
  MsgApp: "ReceiveAppendEntriesRequest",
  MsgHeartbeat: "ReceiveAppendEntriesRequest",
  MsgSnap: "ReceiveAppendEntriesRequest",
  MsgAppResp: "ReceiveAppendEntriesResponse",
  MsgHeartbeatResp: "ReceiveAppendEntriesResponse",
  MsgVote: "ReceiveRequestVoteRequest",
  MsgVoteResp: "ReceiveRequestVoteResponse",
};

export function traceReceive(trace: Trace | undefined, message: Message): void {
  if (trace === undefined) return;
  const name = RECEIVE_NAMES[message.type];
  if (name !== undefined) trace(name, message, null);
}
