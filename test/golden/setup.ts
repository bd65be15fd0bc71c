// What a node of a golden transcript is started with, and messages that no honest node would send.

import { peerKey, parsePeerKey, type PeerKey } from "../../src/core/kit/ids.ts";
import {
  configurationOf,
  type ElectionConfig,
  ELECTION_DEFAULTS,
  electionConfig,
  type Entry,
  type Message,
} from "../../src/core/raft/index.ts";
import type { RaftLimits } from "../../src/core/raft/options.ts";
import type { Disk, HostOptions } from "./host.ts";
import type { Command } from "./script.ts";

type Options = Command["options"];

const LIMITS: Readonly<Record<string, keyof RaftLimits>> = {
  inflight: "inflightMessagesMax",
  "inflight-bytes": "inflightBytesMax",
  "append-bytes": "appendBytesMax",
  "uncommitted-bytes": "uncommittedBytesMax",
};

/**
 * `voters=(1,2,3)`, `learners=(4)`: none of them is a node that has not joined. `index=10`: where the
 * log starts, after a snapshot of term 1. `log=(1,4,4)`: the terms of the entries after it, `term=5`,
 * `vote=n2`, `commit=3`: the hard state. `timeout=170`: the election timeout. Limits and the fields of ElectionConfig by name.
 */
export function hostOptions(nodeId: string, options: Options): HostOptions {
  return {
    peer: peerKey(nodeId, "1"),
    election: electionOf(options),
    limits: limitsOf(options),
    timeoutMs: Number(options.get("timeout")?.[0] ?? 130 + 20 * Number(nodeId.slice(1))),
    disk: diskOf(options),
  };
}

function diskOf(options: Options): Disk {
  const voters = (options.get("voters") ?? []).map(peerOf);
  if (voters.length === 0) return { hardState: { term: 0, vote: null, commit: 0 }, snapshot: null, entries: [] };
  const configuration = configurationOf(voters, (options.get("learners") ?? []).map(peerOf));
  const index = Number(options.get("index")?.[0] ?? 1);
  const terms = (options.get("log") ?? []).map(Number);
  const entries = terms.map((term, at): Entry => {
    const data = new TextEncoder().encode(`t${term}`);
    return { term, index: index + 1 + at, type: "EntryNormal", data };
  });
  const vote = options.get("vote")?.[0];
  const hardState = {
    term: Number(options.get("term")?.[0] ?? terms.at(-1) ?? 1),
    vote: vote === undefined ? null : peerOf(vote),
    commit: Number(options.get("commit")?.[0] ?? index),
  };
  return { hardState, snapshot: { index, term: 1, configuration }, entries };
}

function limitsOf(options: Options): Partial<RaftLimits> {
  const limits: Partial<Record<keyof RaftLimits, number>> = {};
  for (const [option, limit] of Object.entries(LIMITS)) {
    const value = options.get(option)?.[0];
    if (value !== undefined) limits[limit] = Number(value);
  }
  return limits;
}

function electionOf(options: Options): ElectionConfig {
  const given: Record<string, number | boolean> = {};
  for (const [name, usual] of Object.entries(ELECTION_DEFAULTS)) {
    const value = options.get(name)?.[0];
    if (value !== undefined) given[name] = typeof usual === "boolean" ? value === "true" : Number(value);
  }
  return electionConfig(given);
}

/** "2" and "n2" are the first disk of n2; another disk is named whole. */
function peerOf(word: string): PeerKey {
  return parsePeerKey(word) ?? peerKey(word.startsWith("n") ? word : `n${word}`, "1");
}

/** `inject n3->n1 MsgVote term=9 log=1/5`: handed to n1 as if it had come over the wire. */
export function forgedMessage({ words, options }: Command, resolve: (word: string) => PeerKey): Message {
  const [from = "", to = ""] = (words[0] ?? "").split("->");
  const type = words[1] ?? "";
  const number = (name: string): number => Number(options.get(name)?.[0] ?? 0);
  const [logTerm = 0, index = 0] = (options.get("log")?.[0] ?? "0/0").split("/").map(Number);
  const head = { from: resolve(from), to: resolve(to), term: number("term") };
  switch (type) {
    case "MsgVote":
    case "MsgPreVote":
      return { ...head, type, index, logTerm, transfer: words.includes("transfer"), priority: 0 };
    case "MsgVoteResp":
    case "MsgPreVoteResp":
      return { ...head, type, reject: words.includes("rejected") };
    case "MsgApp":
      return { ...head, type, index, logTerm, entries: [], commit: number("commit"), round: 0 };
    case "MsgAppResp":
      return {
        ...head,
        type,
        index: number("index"),
        reject: false,
        rejectHint: 0,
        logTerm: 0,
        round: number("round"),
      };
    case "MsgHeartbeat":
      return { ...head, type, commit: number("commit"), announced: number("commit"), echo: 0, round: number("round") };
    case "MsgTimeoutNow":
      return { ...head, type, force: words.includes("force"), attempt: 0 };
    case "MsgSnap": {
      const configuration = configurationOf((options.get("voters") ?? []).map(peerOf));
      return { ...head, type, snapshot: { index, term: logTerm, configuration }, round: 0 };
    }
    default:
      throw new Error(`no forged message of type ${type}`);
  }
}
