// How the core's values look in a golden transcript: one fact a line, and only what a reader needs. The
// first disk of a node is shown by the node's id alone ("n1"), a later one whole ("n1@2").

import { assertNever } from "../../src/core/kit/assert.ts";
import { incarnationOf, nodeIdOf, type PeerKey } from "../../src/core/kit/ids.ts";
import { decodeConfChange } from "../../src/core/raft/codec.ts";
import type {
  Configuration,
  Entry,
  Message,
  PersistRequest,
  RaftEvent,
  RaftStatus,
} from "../../src/core/raft/index.ts";
import type { Progress } from "../../src/core/raft/leader/progress.ts";

const TEXT = new TextDecoder();

export function nameOf(peer: PeerKey | null): string {
  if (peer === null) return "nobody";
  return incarnationOf(peer) === "1" ? nodeIdOf(peer) : peer;
}

function namesOf(peers: readonly PeerKey[]): string {
  return `(${peers.map(nameOf).join(",")})`;
}

export function entryText(entry: Entry): string {
  const at = `${entry.term}/${entry.index}`;
  if (entry.type === "EntryNormal") return `${at} "${TEXT.decode(entry.data)}"`;
  const operations = decodeConfChange(entry.data)?.operations ?? [];
  if (operations.length === 0) return `${at} leave-joint`;
  return `${at} ${operations.map(({ op, peer }) => `${op} ${nameOf(peer)}`).join(" + ")}`;
}

export function entriesText(entries: readonly Entry[]): string {
  return `[${entries.map(entryText).join(", ")}]`;
}

export function configurationText(configuration: Configuration): string {
  const { voters, votersOutgoing, learners, learnersNext } = configuration;
  const parts = [`voters:${namesOf(voters)}`];
  if (votersOutgoing.length > 0) parts.push(`outgoing:${namesOf(votersOutgoing)}`);
  if (learners.length > 0) parts.push(`learners:${namesOf(learners)}`);
  if (learnersNext.length > 0) parts.push(`learners-next:${namesOf(learnersNext)}`);
  return parts.join(" ");
}

export function messageText(message: Message): string {
  const facts = messageFacts(message);
  const head = `${nameOf(message.from)}->${nameOf(message.to)} ${message.type} term:${message.term}`;
  return facts === "" ? head : `${head} ${facts}`;
}

function messageFacts(message: Message): string {
  switch (message.type) {
    case "MsgApp": {
      const entries = message.entries.length === 0 ? "" : ` entries:${entriesText(message.entries)}`;
      return `log:${message.logTerm}/${message.index} commit:${message.commit}${entries}`;
    }
    case "MsgAppResp":
      return message.reject
        ? `index:${message.index} rejected hint:${message.logTerm}/${message.rejectHint}`
        : `index:${message.index}`;
    case "MsgHeartbeat":
      return `commit:${message.commit} round:${message.round}`;
    case "MsgHeartbeatResp":
      return `round:${message.round}`;
    case "MsgSnap": {
      const { term, index, configuration } = message.snapshot;
      return `snapshot:${term}/${index} ${configurationText(configuration)}`;
    }
    case "MsgVote":
    case "MsgPreVote":
      return `log:${message.logTerm}/${message.index}${message.transfer ? " transfer" : ""}`;
    case "MsgVoteResp":
    case "MsgPreVoteResp":
      return message.reject ? "rejected" : "granted";
    case "MsgTimeoutNow":
      return [message.force ? "force" : "", attemptOf(message)].filter(Boolean).join(" ");
    case "MsgTransferRefused":
      return attemptOf(message);
    case "MsgReadIndex":
      return `context:${message.context}`;
    case "MsgReadIndexResp":
      return `context:${message.context} index:${message.index}`;
    case "MsgAskMembers":
      return "";
    case "MsgMembers":
      return `configuration:${message.index}${message.committed ? "" : " uncommitted"} members:${namesOf(message.members)}`;
    default:
      return assertNever(message, "messageFacts");
  }
}

/** What leaves behind the write is shown when it leaves, not here. */
export function persistText(request: PersistRequest): string {
  const parts: string[] = [];
  const { snapshot, hardState, entries, afterSync } = request;
  if (snapshot !== null) parts.push(`snapshot:${snapshot.term}/${snapshot.index}`);
  if (hardState !== null)
    parts.push(`term:${hardState.term} vote:${nameOf(hardState.vote)} commit:${hardState.commit}`);
  if (entries.length > 0) parts.push(`entries:${entriesText(entries)}`);
  if (!request.mustSync) parts.push("(a barrier, nothing to sync)");
  if (afterSync.length > 0) parts.push(`then ${afterSync.length} message${afterSync.length > 1 ? "s" : ""}`);
  return `writes #${request.sequence} ${parts.join(" ")}`;
}

function attemptOf({ attempt }: { readonly attempt: number }): string {
  return attempt === 0 ? "" : `attempt:${attempt}`;
}

export function eventText(event: RaftEvent): string {
  switch (event.kind) {
    case "role": {
      const whose = event.role === "leader" || event.leader === null ? "" : ` of ${nameOf(event.leader)}`;
      return `is ${event.role}${whose} at term ${event.term}`;
    }
    case "established":
      return `is established: its no-op ${event.term}/${event.index} is applied`;
    case "election": {
      const { stage, term, result, votes, reason, candidates } = event.record;
      const cast = votes.map(({ voter, granted }) => `${granted ? "+" : "-"}${nameOf(voter)}`).join(" ");
      const rivals = candidates.length > 1 ? ` candidates:${namesOf(candidates)}` : "";
      return `${result} the ${stage} of term ${term} (${reason}) votes:(${cast})${rivals}`;
    }
    case "transfer": {
      const { success, message, oldLeaderId, newLeaderId } = event.result;
      return `transfer ${success ? "done" : "failed"}: ${message} (old:${nameOf(oldLeaderId)} new:${nameOf(newLeaderId)})`;
    }
    case "configuration":
      return `switches at ${event.index} to ${configurationText(event.configuration)}`;
    case "leader-suspect":
      return `suspects ${nameOf(event.leader)}, silent for ${event.silentMs}ms`;
    case "follower-unresponsive":
      return `misses ${nameOf(event.peer)}`;
    case "follower-recovered":
      return `hears ${nameOf(event.peer)} again`;
    case "stranger-leads":
      return `refuses to follow ${nameOf(event.peer)} at term ${event.term}: no member vouches for it`;
    case "removed":
      return `hears from ${event.by} that it was removed`;
    default:
      return assertNever(event, "eventText");
  }
}

export function statusText(status: RaftStatus): string {
  const parts = [
    `${nameOf(status.peer)} ${status.role} term:${status.term} vote:${nameOf(status.vote)} leader:${nameOf(status.leader)}`,
    `last:${status.lastTerm}/${status.lastIndex} commit:${status.commit} applied:${status.applied}`,
  ];
  if (status.established) parts.push("established");
  if (status.transfer !== null) parts.push("transferring");
  return parts.join(" ");
}

export function progressText(peer: PeerKey, progress: Progress): string {
  const parts = [`${nameOf(peer)} ${progress.state} match:${progress.match} next:${progress.next}`];
  if (progress.pendingSnapshot > 0) parts.push(`snapshot:${progress.pendingSnapshot}`);
  const { count, isFull } = progress.inflights;
  if (count > 0) parts.push(`inflight:${count}${isFull ? "(full)" : ""}`);
  if (progress.isPaused()) parts.push("paused");
  if (progress.unhealthy) parts.push("unhealthy");
  return parts.join(" ");
}
