// One node of a golden transcript: the core, a disk that knows what is durable, and the writes and entries
// that were handed out and are not done yet. A crash keeps the disk and nothing else.

import { nodeIdOf, type PeerKey } from "../../src/core/kit/ids.ts";
import type { Random } from "../../src/core/kit/random.ts";
import {
  type Entry,
  type ElectionConfig,
  type HardState,
  type Input,
  type Message,
  type PersistRequest,
  Raft,
  type Ready,
  type SnapshotMeta,
  type StepResult,
} from "../../src/core/raft/index.ts";
import type { RaftLimits } from "../../src/core/raft/options.ts";

export interface HostOptions {
  readonly peer: PeerKey;
  readonly election: ElectionConfig;
  readonly limits: Partial<RaftLimits>;
  /** What every draw of the election timeout gives, so that a transcript says who is first. */
  readonly timeoutMs: number;
  readonly disk: Disk;
}

export interface Disk {
  hardState: HardState;
  snapshot: SnapshotMeta | null;
  entries: readonly Entry[];
}

export class Host {
  readonly peer: PeerKey;
  readonly nodeId: string;
  readonly options: HostOptions;
  readonly disk: Disk;
  timeoutMs: number;
  raft: Raft | null = null;
  writes: PersistRequest[] = [];
  applying: Entry[] = [];
  deadlineMs = Infinity;
  diskHangs = false;
  /** Something was stepped since the last Ready was taken. */
  stepped = false;

  constructor(options: HostOptions, nowMs: number) {
    this.peer = options.peer;
    this.nodeId = nodeIdOf(options.peer);
    this.options = options;
    this.disk = options.disk;
    this.timeoutMs = options.timeoutMs;
    this.start(nowMs);
  }

  get isUp(): boolean {
    return this.raft !== null;
  }

  /** A write is under way and the disk does not hang. */
  get canWrite(): boolean {
    return this.writes.length > 0 && !this.diskHangs;
  }

  get running(): Raft {
    if (this.raft === null) throw new Error(`${this.nodeId} is down`);
    return this.raft;
  }

  start(nowMs: number): void {
    const { peer, election, limits } = this.options;
    const { hardState, snapshot, entries } = this.disk;
    const random = this.#random();
    this.raft = new Raft({
      peer,
      election,
      random,
      nowMs,
      hardState,
      snapshot,
      entries,
      limits: { compactionHoldEntriesMax: 0, ...limits },
    });
    this.stepped = true;
  }

  crash(): void {
    this.raft = null;
    this.writes = [];
    this.applying = [];
    this.deadlineMs = Infinity;
    this.stepped = false;
  }

  step(nowMs: number, input: Input): StepResult {
    this.stepped = true;
    return this.running.step(nowMs, input);
  }

  takeReady(): Ready {
    const ready = this.running.takeReady();
    this.stepped = false;
    this.deadlineMs = ready.deadlineMs;
    if (ready.persist !== null) this.writes.push(ready.persist);
    this.applying.push(...ready.committed);
    return ready;
  }

  /** The oldest write becomes durable; what it held back may leave. */
  completeWrite(nowMs: number): readonly Message[] {
    const write = this.writes.shift()!;
    if (write.snapshot !== null) {
      this.disk.snapshot = write.snapshot;
      this.disk.entries = [];
    }
    if (write.hardState !== null) this.disk.hardState = write.hardState;
    const first = write.entries[0];
    if (first !== undefined) {
      this.disk.entries = [...this.disk.entries.filter((entry) => entry.index < first.index), ...write.entries];
    }
    this.step(nowMs, { kind: "persisted", sequence: write.sequence });
    return write.afterSync;
  }

  /** A durable snapshot of the applied state, and a shorter log. */
  compact(nowMs: number, index: number, keepEntries: number): StepResult {
    this.disk.snapshot = this.running.snapshotMetaAt(index);
    this.disk.entries = this.disk.entries.filter((entry) => entry.index > index);
    return this.step(nowMs, { kind: "compact", index, keepEntries });
  }

  #random(): Random {
    const next = (): number => {
      const { electionTimeoutMinMs: min, electionTimeoutMaxMs: max } = this.options.election;
      return (this.timeoutMs - min) / (max - min);
    };
    return { next, below: unused, between: unused, chance: unused, pick: unused, fork: unused };
  }
}

function unused(): never {
  throw new Error("the core draws election timeouts and nothing else");
}
