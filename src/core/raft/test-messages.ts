// Test support: the words in which the tests of the core speak. Messages are written down as they come over the
// wire, with what a test does not care about filled in.

import { peerKey, type PeerKey } from "../kit/ids.ts";
import type { ConfChangeOperation, Entry, Message, MessageType } from "./types.ts";

export function peersNamed(count: number): PeerKey[] {
  return Array.from({ length: count }, (_, i) => peerKey(`n${i + 1}`, "a"));
}

/** Normal entries of these terms from index `first` on; each says where and when it was written. */
export function entriesOf(terms: readonly number[], first = 2): Entry[] {
  return terms.map((term, i) => ({ term, index: first + i, type: "EntryNormal", data: bytes(`${first + i}:${term}`) }));
}

export function bytes(text: string): Uint8Array {
  return Uint8Array.from(text, (character) => character.charCodeAt(0));
}

export function textOf(entry: Entry): string {
  return String.fromCharCode(...entry.data);
}

/** Extract would lose the messages that two types share. */
export type MessageOf<T extends MessageType, M = Message> = M extends { type: infer U }
  ? T extends U
    ? M & { readonly type: T }
    : never
  : never;
type Fields<T extends MessageType> = Partial<Omit<MessageOf<T>, "type" | "from" | "to" | "term">>;
/** Who to whom, in which term. */
type Route = readonly [from: PeerKey, to: PeerKey, term: number];

function head<T extends MessageType>(
  type: T,
  [from, to, term]: Route,
): { type: T; from: PeerKey; to: PeerKey; term: number } {
  return { type, from, to, term };
}

/** After the founding snapshot (index 1, term 1) unless said otherwise. */
export function app(route: Route, fields: Fields<"MsgApp"> = {}): MessageOf<"MsgApp"> {
  return { ...head("MsgApp", route), index: 1, logTerm: 1, entries: [], commit: 1, round: 1, ...fields };
}

export function appResp(route: Route, fields: Fields<"MsgAppResp"> = {}): MessageOf<"MsgAppResp"> {
  return { ...head("MsgAppResp", route), index: 1, reject: false, rejectHint: 0, logTerm: 0, round: 0, ...fields };
}

export function heartbeat(route: Route, fields: Fields<"MsgHeartbeat"> = {}): MessageOf<"MsgHeartbeat"> {
  return { ...head("MsgHeartbeat", route), commit: 0, announced: 0, echo: 0, round: 1, ...fields };
}

export function heartbeatResp(route: Route, fields: Fields<"MsgHeartbeatResp"> = {}): MessageOf<"MsgHeartbeatResp"> {
  return { ...head("MsgHeartbeatResp", route), round: 1, priority: 0, willing: true, stalled: false, ...fields };
}

type VoteFields = Fields<"MsgVote">;

/** From a candidate whose log ends with the founding snapshot. */
export function vote(route: Route, fields: VoteFields = {}): Message {
  return { ...head("MsgVote", route), index: 1, logTerm: 1, transfer: false, priority: 0, ...fields };
}

export function preVote(route: Route, fields: VoteFields = {}): Message {
  return { ...head("MsgPreVote", route), index: 1, logTerm: 1, transfer: false, priority: 0, ...fields };
}

export function voteResp(route: Route, reject = false): Message {
  return { ...head("MsgVoteResp", route), reject };
}

export function preVoteResp(route: Route, reject = false): Message {
  return { ...head("MsgPreVoteResp", route), reject };
}

export const addVoter = (peer: PeerKey): ConfChangeOperation => ({ op: "add-voter", peer });
export const addLearner = (peer: PeerKey): ConfChangeOperation => ({ op: "add-learner", peer });
export const remove = (peer: PeerKey): ConfChangeOperation => ({ op: "remove", peer });
