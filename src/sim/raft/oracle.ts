// The one who knows everything: it watches all nodes after every event and every answer that a client got,
// and reports the first sentence of the contract that is not true any more.
//
// - one leader per term; log matching; leader completeness; state machine safety (equal hash at equal index);
// - what is committed is on the disks of a majority, synced, when it is first reported; acknowledged appends and votes are on the
//   disk of whoever sends them (disk-witness.ts);
// - committed entries never change; within a life, term and commit never fall;
// - a vote, once told, is never told differently in the same term by the same disk, restarts included;
// - acknowledged writes are in the committed log; reads and writes are linearizable: the log gives the order,
//   and nothing that was answered before an operation began may come after it;
// - while a lease holds, nobody leads in a higher term; a leader that is established has applied all that was
//   committed before its term (design D9).

import type { PeerKey } from "../../core/kit/ids.ts";
import type { Configuration, RaftStatus } from "../../core/raft/index.ts";
import type { Engine } from "../../engine/engine.ts";
import type { DiskWitness } from "./disk-witness.ts";
import { hashBytes } from "./machine.ts";
import { reached, type ProbeCounts } from "./probes.ts";

interface Committed {
  readonly term: number;
  /** The term of whoever was first seen to have it committed. */
  readonly committedInTerm: number;
}

interface Watched {
  readonly engine: Engine;
  /** The node's own monotonic clock. */
  readonly nowMs: () => number;
  term: number;
  commit: number;
  lastIndex: number;
  lastTerm: number;
  role: string;
  readonly terms: Map<number, number>;
}

export class Oracle {
  readonly #report: (node: string, error: Error) => void;
  readonly #probes: ProbeCounts;
  readonly #disks: DiskWitness;
  readonly #watched = new Map<string, Watched>();
  readonly #leaders = new Map<number, PeerKey>();
  readonly #votes = new Map<string, PeerKey>();
  /** By index: the term of the entry before it and a hash of its data, for each (index, term) ever seen. */
  readonly #entries = new Map<string, string>();
  readonly #committed: (Committed | undefined)[] = [];
  readonly #applied = new Map<number, { readonly data: number; readonly hash: number }>();
  /** Where each write is in the log, and which were refused; ids are unique in a run. */
  readonly #written = new Map<string, number>();
  readonly #refused = new Set<string>();
  #newest: { commit: number; configuration: Configuration } | null = null;
  #answeredIndex = 0;
  elections = 0;

  constructor(probes: ProbeCounts, disks: DiskWitness, report: (node: string, error: Error) => void) {
    this.#probes = probes;
    this.#disks = disks;
    this.#report = report;
  }

  /** The configuration of whoever has committed most so far. */
  get configuration(): Configuration | null {
    return this.#newest === null ? null : this.#newest.configuration;
  }

  get committedIndex(): number {
    return this.#committed.length - 1;
  }

  watch(node: string, engine: Engine, nowMs: () => number): void {
    this.#watched.set(node, {
      engine,
      nowMs,
      term: 0,
      commit: 0,
      lastIndex: 0,
      lastTerm: 0,
      role: "follower",
      terms: new Map(),
    });
  }

  unwatch(node: string): void {
    this.#watched.delete(node);
  }

  /** After every event. */
  check(leases: boolean): void {
    for (const [node, seen] of this.#watched) {
      const status = seen.engine.status();
      if (status.lastIndex !== seen.lastIndex || status.lastTerm !== seen.lastTerm) this.#checkLog(node, seen, status);
      if (status.term !== seen.term || status.role !== seen.role) this.#checkRole(node, seen, status);
      if (status.commit !== seen.commit) this.#checkCommit(node, seen, status);
      if (leases && status.leaseUntilMs > 0 && seen.nowMs() < status.leaseUntilMs) this.#checkLease(node, status);
    }
  }

  /** A message leaves: what it says of a vote is a promise. */
  voteTold(from: PeerKey, to: PeerKey, term: number): void {
    const key = `${from}/${term}`;
    const before = this.#votes.get(key);
    if (before !== undefined && before !== to) {
      this.#fail(from, `double vote: ${from} voted for ${before} and for ${to} in term ${term}`);
    }
    this.#votes.set(key, to);
  }

  applied(node: string, index: number, data: Uint8Array, hash: number): void {
    const known = this.#applied.get(index);
    const dataHash = hashBytes(data, index);
    if (known === undefined) {
      this.#applied.set(index, { data: dataHash, hash });
      this.#firstApplied(node, index, textOf(data));
    } else if (known.data !== dataHash || known.hash !== hash) {
      this.#fail(node, `state machine safety: another state at index ${index}`);
    }
  }

  /** The client was notified that nothing was written; that must stay true (trap 66). */
  refused(node: string, data: Uint8Array): void {
    const key = textOf(data);
    if (this.#written.has(key)) this.#fail(node, `a refused write was applied at index ${this.#written.get(key)}`);
    this.#refused.add(key);
  }

  established(node: string, status: RaftStatus): void {
    const before = this.#lastCommittedBefore(status.term);
    if (status.applied < before) {
      this.#fail(
        node,
        `gate opened early: applied ${status.applied}, but ${before} was committed before term ${status.term}`,
      );
    }
  }

  /** What an operation that starts now must come after. */
  floor(): number {
    return this.#answeredIndex;
  }

  writeAnswered(node: string, floor: number, index: number, data: Uint8Array): void {
    if (index <= floor)
      this.#fail(node, `linearizability: a write got index ${index}, but ${floor} was answered before it began`);
    const applied = this.#applied.get(index);
    if (applied === undefined || applied.data !== hashBytes(data, index)) {
      this.#fail(node, `acknowledged write is not in the log at index ${index}`);
    }
    this.#answeredIndex = Math.max(this.#answeredIndex, index);
  }

  /** A read was answered from a state that had applied `appliedIndex`. */
  readAnswered(node: string, floor: number, appliedIndex: number): void {
    if (appliedIndex < floor) {
      this.#fail(node, `linearizability: a read saw index ${appliedIndex}, but ${floor} was answered before it began`);
    }
    this.#answeredIndex = Math.max(this.#answeredIndex, appliedIndex);
  }

  #firstApplied(node: string, index: number, key: string): void {
    const before = this.#written.get(key);
    if (before !== undefined) this.#fail(node, `one write stands in the log twice, at ${before} and at ${index}`);
    if (this.#refused.has(key)) this.#fail(node, `a write that was refused is applied at index ${index}`);
    this.#written.set(key, index);
  }

  #checkLog(node: string, seen: Watched, status: RaftStatus): void {
    const { raft } = seen.engine;
    for (let index = status.lastIndex; index >= status.firstIndex; index--) {
      const term = raft.termAt(index)!;
      if (seen.terms.get(index) === term) break;
      if (seen.terms.has(index)) reached(this.#probes, "prior-term-entry-overwritten");
      seen.terms.set(index, term);
      const before = raft.termAt(index - 1);
      const content = `${before} ${hashBytes(raft.entryAt(index)!.data, index)}`;
      const known = this.#entries.get(`${index}/${term}`);
      if (known !== undefined && known !== content)
        this.#fail(node, `log matching: two entries at index ${index} in term ${term}`);
      this.#entries.set(`${index}/${term}`, content);
    }
    for (let index = status.lastIndex + 1; index <= seen.lastIndex; index++) seen.terms.delete(index);
    seen.lastIndex = status.lastIndex;
    seen.lastTerm = status.lastTerm;
  }

  #checkRole(node: string, seen: Watched, status: RaftStatus): void {
    if (status.term < seen.term) this.#fail(node, `term fell from ${seen.term} to ${status.term}`);
    const wins = status.role === "leader" && (seen.role !== "leader" || seen.term !== status.term);
    seen.term = status.term;
    seen.role = status.role;
    if (!wins) return;
    this.elections++;
    const other = this.#leaders.get(status.term);
    if (other !== undefined && other !== status.peer)
      this.#fail(node, `two leaders in term ${status.term}: ${other} and ${status.peer}`);
    this.#leaders.set(status.term, status.peer);
    if (status.configuration.votersOutgoing.length > 0) reached(this.#probes, "leader-elected-in-joint");
    const before = this.#lastCommittedBefore(status.term);
    const has = seen.engine.raft.termAt(before);
    if (before > 0 && status.firstIndex <= before && has !== this.#committed[before]!.term) {
      this.#fail(node, `leader completeness: the leader of term ${status.term} lacks committed entry ${before}`);
    }
  }

  #checkCommit(node: string, seen: Watched, status: RaftStatus): void {
    if (status.commit < seen.commit) this.#fail(node, `commit fell from ${seen.commit} to ${status.commit}`);
    const newest = seen.engine.raft.termAt(status.commit);
    // Whoever has an entry on disk has all before it.
    if (newest !== undefined && status.commit > this.committedIndex)
      this.#disks.committed(node, status.commit, newest, status.configuration);
    for (let index = Math.max(seen.commit + 1, status.firstIndex - 1); index <= status.commit; index++) {
      const term = seen.engine.raft.termAt(index);
      if (term === undefined || index === 0) continue;
      const known = this.#committed[index];
      if (known === undefined) this.#committed[index] = { term, committedInTerm: status.term };
      else if (known.term !== term)
        this.#fail(node, `committed entry ${index} changed from term ${known.term} to ${term}`);
    }
    seen.commit = status.commit;
    if (this.#newest === null || status.commit >= this.#newest.commit) {
      this.#newest = { commit: status.commit, configuration: status.committedConfiguration };
    }
  }

  #checkLease(node: string, status: RaftStatus): void {
    for (const [other, seen] of this.#watched) {
      if (other !== node && seen.role === "leader" && seen.term > status.term) {
        this.#fail(
          node,
          `lease exclusivity: it holds a lease of term ${status.term} while ${other} leads term ${seen.term}`,
        );
      }
    }
  }

  #lastCommittedBefore(term: number): number {
    let index = this.#committed.length - 1;
    while (index > 0 && (this.#committed[index]?.committedInTerm ?? Infinity) >= term) index--;
    return Math.max(index, 0);
  }

  #fail(node: string, message: string): void {
    this.#report(node, new Error(message));
  }
}

const decoder = new TextDecoder();

/** A write's key and id; what pads it out is the same for all. */
function textOf(data: Uint8Array): string {
  return decoder.decode(data.subarray(0, 24));
}
