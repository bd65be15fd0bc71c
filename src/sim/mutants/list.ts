// The planted mistakes, one for each rule that a consensus implementation is known to get wrong. Each must be
// found by the simulator; one that is not found shows what the simulator does not test. (Mistakes that only a
// message from outside our own sending pattern can turn into harm, such as committing what a message did not
// verify, are caught by golden transcripts and unit tests instead.)

import type { KnobLimits } from "../raft/index.ts";
import { type Edit, type Mutant, planting } from "./patch.ts";

const RAFT = "core/raft/raft.ts";
const STATE = "core/raft/state.ts";
const OUTBOX = "core/raft/outbox.ts";
const ADMISSION = "core/raft/admission.ts";
const PATIENCE = "core/raft/patience.ts";
const LEADER = "core/raft/leader/leader.ts";
const LOG = "core/raft/log.ts";

const THREE = { voters: 3, learners: 0, spares: 0 } as const;

const mutant = planting();

function withLease(aims?: KnobLimits["aims"]) {
  return planting({ ...THREE, aims, lease: true });
}

/** Chance leads there too seldom: the runs have more of these faults. */
function aimedBy(aims: KnobLimits["aims"], limits: KnobLimits = {}) {
  return planting({ ...limits, aims });
}

/** A message of this type does not wait for the disk. */
function leavesAtOnce(type: string): Edit {
  return {
    file: OUTBOX,
    find: "switch (message.type) {",
    replace: `if (message.type === "${type}") return void this.#messages.push(message);\n    switch (message.type) {`,
  };
}

export const MUTANTS: readonly Mutant[] = [
  aimedBy(["figure-8"], THREE)("prior-term-committed-by-counting", "trap 1", {
    file: RAFT,
    find: "if (index <= this.#log.commit || this.#log.termAt(index) !== this.#state.term) return;",
    replace: "if (index <= this.#log.commit) return;",
  }),
  mutant("vote-told-before-durable", "trap 2", leavesAtOnce("MsgVoteResp")),
  mutant("candidacy-told-before-durable", "trap 2", leavesAtOnce("MsgVote"), {
    file: RAFT,
    find: 'this.#askForVotes("MsgVote", term, reason);',
    replace: 'this.#askForVotes("MsgVote", term, reason);\n    this.#countVote(this.peer, true);',
  }),
  mutant("append-acknowledged-before-durable", "trap 2", leavesAtOnce("MsgAppResp")),
  mutant("second-vote-in-a-term", "trap 3", {
    file: RAFT,
    find: "= vote === message.from || (vote === null && leader === null);",
    replace: "= true;",
  }),
  aimedBy(["figure-8", "succession"], THREE)("logs-compared-by-index-alone", "trap 4", {
    file: LOG,
    find: "return lastTerm > this.lastTerm || (lastTerm === this.lastTerm && lastIndex >= this.lastIndex);",
    replace: "return lastIndex >= this.lastIndex;",
  }),
  mutant("vote-without-comparing-logs", "§5.4.1", {
    file: RAFT,
    find: "const granted = free && !promised && this.#log.isUpToDate(message.index, message.logTerm);",
    replace: "const granted = free && !promised;",
  }),
  mutant("late-append-truncates", "trap 5", {
    file: LOG,
    find: "const conflict = entries.findIndex((entry) => !this.matches(entry.index, entry.term));",
    replace: "const conflict = entries.length > 0 ? 0 : -1;",
  }),
  mutant("previous-entry-not-compared", "§5.3", {
    file: LOG,
    find: "if (!this.matches(prevIndex, prevTerm)) return null;",
    replace: "if (prevIndex > this.lastIndex || prevIndex < this.firstIndex - 1) return null;",
  }),
  mutant("heartbeat-commits-unmatched", "trap 6", {
    file: LEADER,
    find: "const commit = Math.min(progress.match, log.commit);",
    replace: "const commit = log.commit;",
  }),
  mutant(
    "stale-rejection-believed",
    "trap 7",
    {
      file: "core/raft/leader/progress.ts",
      find: "if (rejectedIndex <= this.#match) return false;",
      replace: "if (rejectedIndex < 0) return false;",
    },
    {
      file: "core/raft/leader/progress.ts",
      find: "this.#next = Math.max(Math.min(rejectedIndex, hintIndex + 1), this.#match + 1);",
      replace: "this.#next = Math.max(Math.min(rejectedIndex, hintIndex + 1), 1);",
    },
  ),
  aimedBy(["membership", "schism"], { spares: 3 })("joint-commit-by-one-half", "trap 8", {
    file: "core/raft/membership/quorum.ts",
    find: "const index = Math.min(incoming, outgoing);",
    replace: "const index = incoming;",
  }),
  mutant("commit-on-one-replica", "§5.3", {
    file: "core/raft/membership/quorum.ts",
    find: "const incoming = majorityIndex(configuration.voters, ackedIndexOf);",
    replace: "const incoming = Math.max(...configuration.voters.map(ackedIndexOf));",
  }),
  mutant("joint-election-by-one-half", "trap 8", {
    file: "core/raft/membership/quorum.ts",
    find: 'return incoming === "lost" || outgoing === "lost" ? "lost" : "pending";',
    replace: 'return incoming === "won" || outgoing === "won" ? "won" : "pending";',
  }),
  mutant("half-is-a-majority", "trap 9", {
    file: "core/raft/membership/quorum.ts",
    find: "return Math.floor(count / 2) + 1;",
    replace: "return Math.ceil(count / 2);",
  }),
  aimedBy(["schism"], { spares: 3 })("change-before-the-last-one-committed", "trap 10", {
    file: "core/raft/leader/membership.ts",
    find: "if (!leader.committedInTerm || log.hasPendingConfChange) {",
    replace: "if (!leader.committedInTerm) {",
  }),
  aimedBy(["schism"], { spares: 3 })("configuration-outlives-its-entry", "trap 11", {
    file: "core/raft/membership/configurations.ts",
    find: "if (termAt(last.index) === last.term) return;",
    replace: "if (termAt(last.index) !== -1) return;",
  }),
  mutant("configuration-only-once-committed", "decision 3", {
    file: STATE,
    find: "return this.#configurations.effective;",
    replace: "return this.#configurations.at(this.log.commit);",
  }),
  mutant("commit-covers-its-own-write", "decision 6", {
    file: "core/raft/outbox.ts",
    find: "const commit = Math.min(log.commit, (entries[0]?.index ?? Infinity) - 1);",
    replace: "const commit = log.commit;",
  }),
  mutant("refused-although-written", "trap 66", {
    file: "engine/engine.ts",
    find: "if (result.ok) return this.#measured(this.#waiters.proposal(result.index, result.term));",
    replace:
      'if (result.ok && result.index % 5 === 0) return Promise.resolve({ outcome: "refused", code: "NOT_LEADER", message: "" });\n    if (result.ok) return this.#measured(this.#waiters.proposal(result.index, result.term));',
  }),
  aimedBy(["oblivion"])(
    "new-disk-is-the-old-voter",
    "D5",
    {
      file: ADMISSION,
      find: 'if (message.to !== peer) return "not-for-us";',
      replace: 'if (nodeIdOf(message.to) !== nodeIdOf(peer)) return "not-for-us";',
    },
    {
      file: ADMISSION,
      find: "if (state.hasMember(peer)) return true;",
      replace:
        "if (state.hasMember(peer) || members(state.configuration).some((one) => nodeIdOf(one) === nodeIdOf(peer))) return true;",
    },
    {
      file: "core/raft/election.ts",
      find: "return voteResult(configuration, (peer) => this.#votes.get(peer));",
      replace:
        'return voteResult(configuration, (peer) => [...this.#votes].find(([voter]) => voter.split("@")[0] === peer.split("@")[0])?.[1]);',
    },
  ),
  aimedBy(["lapse"])("damaged-disk-keeps-its-vote", "D5", {
    file: "engine/data-directory.ts",
    find: "return replace(options, directory, options.newIncarnation(), damage);",
    replace: 'return replace(options, directory, options.bootstrap?.incarnation ?? "a1", damage);',
  }),
  aimedBy(["handover"])("transfer-never-forgotten", "trap 17", {
    file: "core/raft/leader/transfer.ts",
    find: "    this.#transfer = null;\n    outbox.emit(",
    replace: "    if (this.#transfer !== null) this.#transfer.deadlineMs = Infinity;\n    outbox.emit(",
  }),
  withLease(["handover"])("lease-survives-timeout-now", "trap 18", { file: LEADER, find: "this.#leaseVoid = true;" }),
  mutant("read-without-a-round", "trap 20", {
    file: LEADER,
    find: "else this.#reads.add({ context, from }, log.commit);",
    replace: "else this.state.answerRead(from, context, log.commit);",
  }),
  mutant("read-before-the-term-has-committed", "trap 20", {
    file: LEADER,
    find: "if (!this.committedInTerm) this.#reads.addBeforeTerm({ context, from });\n    else if",
    replace: "if",
  }),
  withLease()("lease-from-the-answer", "trap 21", {
    file: LEADER,
    find: "return this.#rounds.confirmedSentMs + leaseMs(this.state.config);",
    replace: "return this.#beatDueMs + leaseMs(this.state.config);",
  }),
  withLease(["drift"])("lease-without-drift", "trap 21", {
    file: "core/raft/config.ts",
    find: "return (config.electionTimeoutMinMs * (1 - CLOCK_DRIFT_MAX)) / (1 + CLOCK_DRIFT_MAX);",
    replace: "return config.electionTimeoutMinMs;",
  }),
  withLease(["usurp"])("restart-forgets-the-lease", "trap 21", {
    file: PATIENCE,
    find: "if (state.config.enableLease) this.#quietUntilMs = state.nowMs + state.config.electionTimeoutMaxMs;",
  }),
  withLease(["hearsay"])(
    "lease-waived-by-a-reset",
    "D6",
    {
      file: RAFT,
      find: "if (peer !== leader || this.#config.enableLease || this.#patience.isWaived) return ACCEPTED;",
      replace: "if (peer !== leader || this.#patience.isWaived) return ACCEPTED;",
    },
    {
      file: "core/raft/patience.ts",
      find: "if (!config.enableLease) return false;",
      replace:
        "const waived = this.#waivedTerm;\n    if (!config.enableLease || (waived >= 0 && waived >= this.#state.term - 1)) return false;",
    },
  ),
  withLease(["hearsay"])("promise-forgotten-with-the-leader", "trap 21", {
    file: "core/raft/patience.ts",
    find: "return nowMs < this.#quietUntilMs || nowMs - this.#lastHeardMs < config.electionTimeoutMinMs;",
    replace: "return nowMs < this.#quietUntilMs;",
  }),
  mutant("failed-sync-ignored", "trap 23", {
    file: "loops/durable-file.ts",
    find: "throw syncFailed(file.name, error);",
    replace: "void error;",
  }),
  aimedBy(["lapse"])("damage-taken-for-a-torn-tail", "trap 24", {
    file: "core/wal/log-files.ts",
    find: "if (testimonyBytes > trouble.at) return damaged(",
    replace: "if (testimonyBytes < 0) return damaged(",
  }),
  aimedBy(["lapse"])("zeros-in-the-middle-taken-for-the-end", "decision 10", {
    file: "core/wal/log-files.ts",
    find: "if (isZeroFrom(file.bytes, trouble.at))",
    replace: "if (file.bytes[trouble.at] === 0)",
  }),
  mutant("leader-counts-itself-before-its-sync", "trap 25", {
    file: LEADER,
    find: "=> this.#progress.get(peer)?.match ?? 0;",
    replace: "=> (peer === this.state.peer ? this.state.log.lastIndex : (this.#progress.get(peer)?.match ?? 0));",
  }),
  mutant("completion-confirms-later-writes", "trap 26", {
    file: LOG,
    find: "this.#stable = Math.max(this.#stable, this.#pending.shift()!.confirms);",
    replace: "this.#pending.shift();\n      this.#stable = this.#handed;",
  }),
  mutant("configuration-does-not-travel-in-the-snapshot", "trap 27", {
    file: STATE,
    find: "this.#configurations = configurationsFrom(snapshot);\n    this.outbox",
    replace: "this.outbox",
  }),
  aimedBy(["membership"], { spares: 3, snapshotAfterEntries: 20 })("snapshot-with-a-later-configuration", "trap 27", {
    file: STATE,
    find: "return { index, term, configuration: this.#configurations.at(index) };",
    replace: "return { index, term, configuration: this.configuration };",
  }),
  aimedBy(["forged"])("wild-term-believed", "trap 31", {
    file: ADMISSION,
    find: 'if (message.term > term + this.#riseAllowed) return "wild-term";',
  }),
  mutant(
    "non-members-may-lead",
    "trap 72",
    {
      file: ADMISSION,
      find: "if (wasRemoved || this.#hasJoined || !this.#introduced.has(peer)) return false;",
      replace: "if (wasRemoved || !this.#introduced.has(peer)) return false;",
    },
    {
      file: ADMISSION,
      find: "return this.#sponsors.includes(nodeIdOf(peer));",
      replace: "return true;",
    },
  ),
  mutant("answer-of-a-non-member-raises-the-term", "trap 72", {
    file: ADMISSION,
    find: 'if (!isOfOurs) return this.#strange(message.from, "not-a-member");',
    replace: 'if (!isOfOurs && !message.type.endsWith("Resp")) return this.#strange(message.from, "not-a-member");',
  }),
  mutant("non-member-gets-a-vote", "trap 72", {
    file: ADMISSION,
    find: 'if (!isOfOurs) return this.#strange(message.from, "not-a-member");',
    replace: 'if (!isOfOurs && message.type !== "MsgVote") return this.#strange(message.from, "not-a-member");',
  }),
  mutant("anybody-vouches", "decision 24", {
    file: ADMISSION,
    find: 'if (message.type === "MsgAskMembers") return null;',
    replace: 'if (message.type === "MsgAskMembers" || message.type === "MsgMembers") return null;',
  }),
  mutant("terms-without-a-bound-in-time", "trap 31", {
    file: ADMISSION,
    find: "this.#riseLeft = this.#riseAllowed - by;",
    replace: "void by;",
  }),
  mutant("gate-open-before-the-no-op", "D9", {
    file: RAFT,
    find: 'this.#state.trace?.("BecomeLeader", null, null);',
    replace: 'this.#state.outbox.emit({ kind: "established", term: this.#state.term, index: this.#log.lastIndex });',
  }),
  mutant("messages-before-the-sync", "contract", {
    file: "engine/engine.ts",
    find: "await this.#storage.persist(group, snapshotData);\n    if",
    replace:
      "for (const request of group) for (const message of request.afterSync) this.#send(message);\n    await this.#storage.persist(group, snapshotData);\n    if",
  }),
  mutant("state-not-loaded-from-the-snapshot", "engine", {
    file: "engine/engine.ts",
    find: "this.#options.stateMachine.restore(this.#snapshots.accept(meta, sequence));",
    replace: "this.#snapshots.accept(meta, sequence);",
  }),
  mutant("torn-tail-not-cut", "wal", {
    file: "engine/data-directory.ts",
    find: 'if (cut !== null && cut.name === tail.name) await file.truncate(cut.sizeBytes, "wal-truncate");',
  }),
  mutant("new-segment-without-directory-sync", "wal", {
    file: "engine/wal-writer.ts",
    find: 'await syncDirectory(disk, "wal-sync-directory");',
  }),
  mutant("log-not-synced", "wal", {
    file: "engine/wal-writer.ts",
    find: 'await syncFile(this.#file, "wal-fdatasync");',
  }),
];
