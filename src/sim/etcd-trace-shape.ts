// The shape of etcd's state trace: the fields of TracingEvent and TracingMessage (etcd-io/raft state_trace.go), and
// how our peers, configurations and messages look in them.

import type { PeerKey } from "../core/kit/ids.ts";
import type { Configuration, Message, RaftStatus, TraceName } from "../core/raft/index.ts";

export type Role = "StateFollower" | "StateCandidate" | "StateLeader";
type Conf = readonly [readonly string[], readonly string[]];

export interface TracingMessage {
  readonly type: string;
  readonly term: number;
  readonly from: string;
  readonly to: string;
  readonly entries: number;
  readonly logTerm: number;
  readonly index: number;
  readonly commit: number;
  readonly vote: string;
  readonly reject: boolean;
  readonly rejectHint: number;
}

/** etcd's TracingEvent, in its order of fields. */
export interface TracingEvent {
  readonly name: TraceName;
  readonly nid: string;
  readonly state: { readonly term: number; readonly vote: string; readonly commit: number };
  readonly role: Role;
  readonly log: number;
  readonly conf: Conf;
  readonly msg?: TracingMessage;
  readonly prop?: object;
}

/** etcd numbers its nodes; we number ours as they are first named. */
export class Names {
  readonly #known = new Map<PeerKey, string>();

  conf({ voters, votersOutgoing }: Configuration): Conf {
    return [voters.map((peer) => this.of(peer)), votersOutgoing.map((peer) => this.of(peer))];
  }

  orNone(peer: PeerKey | null): string {
    return peer === null ? "0" : this.of(peer);
  }

  of(peer: PeerKey): string {
    const known = this.#known.get(peer) ?? String(this.#known.size + 1);
    this.#known.set(peer, known);
    return known;
  }

  message(message: Message): TracingMessage {
    const { type, term } = message;
    const base = {
      type,
      term,
      from: this.of(message.from),
      to: this.of(message.to),
      entries: 0,
      logTerm: 0,
      index: 0,
      commit: 0,
    };
    const rest = { vote: "0", reject: false, rejectHint: 0 };
    switch (message.type) {
      case "MsgApp": {
        const { index, logTerm, entries, commit } = message;
        // No receiver commits past what the message verifies, and the specification's sender says no more.
        return {
          ...base,
          entries: entries.length,
          logTerm,
          index,
          commit: Math.min(commit, index + entries.length),
          ...rest,
        };
      }
      case "MsgHeartbeat":
        return { ...base, commit: message.commit, ...rest };
      case "MsgSnap": {
        // Told as an append of the whole log: no trace can have the specification's answer to a MsgSnap.
        const { index } = message.snapshot;
        return { ...base, type: "MsgApp", entries: index, commit: index, ...rest };
      }
      case "MsgVote":
        return { ...base, logTerm: message.logTerm, index: message.index, ...rest };
      case "MsgAppResp": {
        // Round 0: the answer to a leader of an older term. The specification calls it a rejection.
        const { index, logTerm, rejectHint, round } = message;
        return { ...base, logTerm, index, vote: "0", reject: message.reject || round === 0, rejectHint };
      }
      case "MsgVoteResp":
        return { ...base, ...rest, reject: message.reject };
      default:
        return { ...base, ...rest };
    }
  }
}

/** What etcd sends to itself: its own vote, its own append. */
export function messageToSelf(
  id: string,
  term: number,
  type: "MsgVoteResp" | "MsgAppResp",
  index: number,
): TracingMessage {
  return {
    type,
    term,
    from: id,
    to: id,
    entries: 0,
    logTerm: 0,
    index,
    commit: 0,
    vote: "0",
    reject: false,
    rejectHint: 0,
  };
}

/** Pre-votes are no part of the specification: who asks for them still follows. */
export function roleOf({ role }: RaftStatus): Role {
  return role === "leader" ? "StateLeader" : role === "candidate" ? "StateCandidate" : "StateFollower";
}

/** What a restart finds again. */
export interface Durable {
  readonly term: number;
  readonly vote: string;
  readonly log: number;
  readonly commit: number;
}

export function sameLog(a: Durable, b: Durable): boolean {
  return a.term === b.term && a.vote === b.vote && a.log === b.log;
}

export function same(a: Durable, b: Durable): boolean {
  return sameLog(a, b) && a.commit === b.commit;
}
