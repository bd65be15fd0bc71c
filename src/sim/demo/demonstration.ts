// The demonstration: three nodes elect a leader, and it is killed, frozen and asked to hand over, while a client
// writes. Each round tells the whole story once:
//
//   writes ─▶ leader killed ─▶ takeover ─▶ it restarts ─▶ leader frozen ─▶ takeover ─▶ it thaws ─▶ transfer back
//
// Virtual time runs in small slices; between two of them `pace` may sleep, which changes nothing in the run: a
// seed and a length decide every line. The oracle of the simulator watches all the while, as in `npm run sim`.

import { assert } from "../../core/kit/assert.ts";
import type { Random } from "../../core/kit/random.ts";
import { nodeIdOf } from "../../core/kit/ids.ts";
import {
  APPEND_BYTES_MAX,
  INFLIGHT_MESSAGES_MAX,
  SNAPSHOT_AFTER_ENTRIES,
  SNAPSHOT_KEEP_ENTRIES,
  UNCOMMITTED_BYTES_MAX,
  WAL_SEGMENT_BYTES_MAX,
} from "../../core/kit/limits.ts";
import type { RaftEvent, RaftStatus } from "../../core/raft/index.ts";
import type { Digest } from "../../ports/digest.ts";
import { FAST_DISK, LAN } from "../kernel/index.ts";
import { Cluster } from "../raft/cluster.ts";
import type { Knobs } from "../raft/knobs.ts";
import { writeCommand } from "../raft/machine.ts";
import type { Cause, Failover, Summary } from "./summary.ts";
import { Narrator, type RecordKind, type TimelineRecord } from "./timeline.ts";
import { Writer } from "./writer.ts";

const SLICE_MS = 10;
const ROUND_MS = 12_000;
/** Whatever the story waits for comes within this time, or the demonstration has failed. */
const PATIENCE_MS = 5_000;
const STALE_WRITES = 3;
/** Up to so much later than planned: or faults would always meet the client at the same point of its beat. */
const JITTER_MS = 20;
/** When things happen, as a share of the round. */
const ACTS = { kill: 0.25, restart: 0.42, freeze: 0.55, thaw: 0.7, transfer: 0.85, end: 1 };

/** A quiet LAN, an ordinary disk, the limits of production; the story brings its own client and its own faults. */
const KNOBS: Knobs = {
  voters: 3,
  learners: 0,
  spares: 0,
  election: {},
  priorities: [0, 0, 0],
  clockRates: [1, 1, 1],
  link: LAN,
  disk: FAST_DISK,
  snapshotAfterEntries: SNAPSHOT_AFTER_ENTRIES,
  snapshotKeepEntries: SNAPSHOT_KEEP_ENTRIES,
  segmentBytesMax: WAL_SEGMENT_BYTES_MAX,
  uncommittedBytesMax: UNCOMMITTED_BYTES_MAX,
  inflightMessagesMax: INFLIGHT_MESSAGES_MAX,
  priorityStableMs: 30_000,
  appendBytesMax: APPEND_BYTES_MAX,
  clients: 0,
  clientPauseMs: 0,
  paddingBytes: 0,
  plain: true,
  faults: 0,
  faultsUntilMs: 0,
};

export interface DemonstrationOptions {
  readonly seed: number;
  readonly lengthMs: number;
  readonly digest: Digest;
  /** Called between two slices with the virtual time that is reached; what it throws ends the demonstration. */
  readonly pace: (virtualMs: number) => Promise<void>;
}

type Telling<Result> = AsyncGenerator<TimelineRecord, Result, void>;

/** The story can't go on: what it waited for did not come. */
class Stuck extends Error {}

export class Demonstration {
  readonly #options: DemonstrationOptions;
  readonly #cluster: Cluster;
  readonly #writer: Writer;
  readonly #random: Random;
  readonly #narrator = new Narrator();
  readonly #untold: TimelineRecord[] = [];
  readonly #failovers: Failover[] = [];
  readonly #stale: { readonly key: string; outcome: string | null }[] = [];
  readonly #problems: string[] = [];

  constructor(options: DemonstrationOptions) {
    this.#options = options;
    this.#cluster = new Cluster({
      seed: `demo/${options.seed}`,
      knobs: KNOBS,
      digest: options.digest,
      onEvent: (node, event) => this.#event(node, event),
    });
    this.#writer = new Writer(this.#cluster, `demo/${options.seed}`);
    this.#random = this.#cluster.world.random.fork("story");
  }

  /** The story, one line at a time. */
  async *tell(): Telling<void> {
    try {
      yield* this.#story();
    } catch (error) {
      if (!(error instanceof Stuck)) throw error;
      this.#problems.push(error.message);
      this.#note(null, "problem", error.message);
      yield* this.#untold.splice(0);
    }
  }

  /** After an interruption: mends all faults and waits until the nodes agree, untold, so that `summary` is final. */
  async conclude(): Promise<void> {
    const { world } = this.#cluster;
    this.#writer.stop();
    this.#cluster.calm();
    await world.run(() => this.#writer.idle && this.#converged(), { untilMs: world.nowMs + PATIENCE_MS });
  }

  /** For a status line, at any time. */
  status(): { readonly leader: string | null; readonly epoch: number; readonly acknowledged: number } {
    const leader = this.#cluster.leader()?.engine.status();
    return {
      leader: leader === undefined ? null : nodeIdOf(leader.peer),
      epoch: leader?.term ?? 0,
      acknowledged: this.#writer.acknowledged.length,
    };
  }

  /** Meaningful once the story is told or concluded. */
  summary(): Summary {
    const { running, names } = this.#cluster;
    const nodes = names.map((name) => {
      const member = this.#cluster.member(name);
      if (member === undefined) return { name, role: "down", epoch: 0, index: 0, hash: "-" };
      const { role, term, lastIndex } = member.engine.status();
      return { name, role, epoch: term, index: lastIndex, hash: member.machine.hash.toString(16).padStart(8, "0") };
    });
    const has = (key: string): boolean[] => running.map(([, { machine }]) => machine.get(key) !== undefined);
    const { acknowledged, unknown } = this.#writer;
    const { leader, epoch } = this.status();
    const lost = acknowledged.filter((id) => has(this.#writer.keyOf(id)).includes(false)).length;
    const staleCommitted = this.#stale.filter(({ key }) => has(key).includes(true)).length;
    const equal = this.#converged();
    const oneLeader = nodes.filter(({ role }) => role === "leader").length === 1;
    return {
      nodes,
      leader,
      epoch,
      acknowledged: acknowledged.length,
      lost,
      unknown: unknown.length,
      unknownCommitted: unknown.filter((id) => has(this.#writer.keyOf(id)).includes(true)).length,
      staleTried: this.#stale.length,
      staleCommitted,
      failovers: this.#failovers,
      equal,
      problems: this.#problems,
      ok: oneLeader && equal && lost === 0 && staleCommitted === 0 && this.#problems.length === 0,
    };
  }

  async *#story(): Telling<void> {
    const { lengthMs } = this.#options;
    const { world } = this.#cluster;
    world.startAll();
    this.#writer.start();
    this.#note(null, "recovery", "three nodes start with empty disks; a client writes 50 times a second");
    yield* this.#until("a first acknowledged write", () => this.#writer.acknowledged.length > 0);
    this.#note(null, "write", `first write acknowledged, ${ms(world.nowMs)} after the start`);

    const rounds = Math.max(1, Math.floor(lengthMs / ROUND_MS));
    for (let round = 0; round < rounds; round++) {
      yield* this.#round((share) => ((round + share) * lengthMs) / rounds);
    }
    this.#writer.stop();
    yield* this.#until("equal logs on all nodes", () => this.#writer.idle && this.#converged());
  }

  async *#round(at: (share: number) => number): Telling<void> {
    yield* this.#runTo(at(ACTS.kill));
    const killed = yield* this.#kill();
    yield* this.#runTo(at(ACTS.restart));
    yield* this.#restart(killed);
    yield* this.#runTo(at(ACTS.freeze));
    const frozen = yield* this.#freeze();
    yield* this.#runTo(at(ACTS.thaw));
    yield* this.#thaw(frozen);
    yield* this.#runTo(at(ACTS.transfer));
    yield* this.#transferTo(frozen);
    yield* this.#runTo(at(ACTS.end));
  }

  async *#kill(): Telling<string> {
    const leader = this.#leader();
    const name = nodeIdOf(leader.peer);
    this.#note(name, "fault", `kill -9 of the leader of epoch ${leader.term}, ${this.#soFar()}`);
    this.#narrator.died(name);
    this.#cluster.world.crash(name, { tear: "keep" });
    yield* this.#takeover("killed", leader.term);
    return name;
  }

  async *#restart(name: string): Telling<void> {
    const { world } = this.#cluster;
    const startedAtMs = world.nowMs;
    const { commit } = this.#leader();
    const member = (): RaftStatus | undefined => this.#cluster.member(name)?.engine.status();
    world.start(name);
    yield* this.#until(`${name} back`, () => member() !== undefined);
    const had = member()?.lastIndex;
    yield* this.#until(`${name} caught up`, () => (member()?.applied ?? 0) >= commit);
    const tookMs = world.nowMs - startedAtMs;
    this.#note(
      name,
      "recovery",
      `restarts with its log up to index ${had}, has caught up to ${commit} after ${ms(tookMs)}`,
    );
  }

  async *#freeze(): Telling<string> {
    const leader = this.#leader();
    const name = nodeIdOf(leader.peer);
    this.#note(name, "fault", `SIGSTOP of the leader of epoch ${leader.term}, ${this.#soFar()}`);
    this.#cluster.world.pause(name);
    this.#writeInHand(name);
    yield* this.#takeover("frozen", leader.term);
    return name;
  }

  /** What the process was about to write when it was stopped: the first thing that it does when it goes on. */
  #writeInHand(name: string): void {
    const writes = Array.from({ length: STALE_WRITES }, (_, at) => {
      const id = this.#stale.length + at + 1;
      return { key: `stale${id}`, data: writeCommand(`stale${id}`, id, 0), outcome: null as string | null };
    });
    this.#stale.push(...writes);
    this.#cluster.world.call(name, () => {
      for (const write of writes) {
        void this.#cluster
          .member(name)
          ?.engine.propose([write.data])
          .then((result) => {
            write.outcome = result.outcome;
          });
      }
    });
  }

  async *#thaw(name: string): Telling<void> {
    const { world } = this.#cluster;
    const leader = this.#leader();
    const epoch = this.#cluster.member(name)?.engine.status().term;
    const writes = this.#stale.slice(-STALE_WRITES);
    this.#note(name, "recovery", `SIGCONT: thaws, believes that it still leads epoch ${epoch}, and writes`);
    world.resume(name);
    const follows = (): boolean => this.#cluster.member(name)?.engine.status().leader === leader.peer;
    yield* this.#until(`${name} following`, () => follows() && writes.every(({ outcome }) => outcome !== null));
    const counts = ["committed", "refused", "unknown"].flatMap((outcome) => {
      const count = writes.filter((write) => write.outcome === outcome).length;
      return count === 0 ? [] : [`${count} ${outcome}`];
    });
    this.#note(
      name,
      "write",
      `of the ${writes.length} writes it had in hand: ${counts.join(", ")}; epoch ${epoch} is over`,
    );
  }

  async *#transferTo(name: string): Telling<void> {
    const leader = this.#leader();
    const from = nodeIdOf(leader.peer);
    const target = this.#cluster.member(name)?.engine.peer;
    assert(target !== undefined, "the target of the transfer runs", () => name);
    this.#note(from, "fault", `planned transfer of leadership to ${name}, ${this.#soFar()}`);
    this.#cluster.world.call(from, () => void this.#cluster.member(from)?.engine.transfer(target));
    yield* this.#takeover("transferred", leader.term);
  }

  /** From now until a write is acknowledged in a higher epoch than `epoch`. */
  async *#takeover(cause: Cause, epoch: number): Telling<void> {
    const { world } = this.#cluster;
    const sinceMs = world.nowMs;
    this.#writer.write();
    yield* this.#until("a write acknowledged by a new leader", () => this.#writer.acknowledgedEpoch > epoch);
    const tookMs = world.nowMs - sinceMs;
    this.#failovers.push({ cause, ms: tookMs });
    const since = { killed: "the kill", frozen: "the freeze", transferred: "the request" }[cause];
    this.#note(
      null,
      "write",
      `first write acknowledged in epoch ${this.#writer.acknowledgedEpoch}, ${ms(tookMs)} after ${since}`,
    );
  }

  #leader(): RaftStatus {
    const leader = this.#cluster.leader();
    if (leader === undefined) throw new Stuck("nobody leads, though nothing is broken now");
    return leader.engine.status();
  }

  #converged(): boolean {
    const { running, names } = this.#cluster;
    const first = running[0]?.[1];
    return (
      running.length === names.length &&
      running.every(([, { engine, machine }]) => {
        const { applied, lastIndex } = engine.status();
        return (
          applied === lastIndex && applied === first?.engine.status().applied && machine.hash === first.machine.hash
        );
      })
    );
  }

  async *#until(what: string, done: () => boolean): Telling<void> {
    const limitMs = this.#cluster.world.nowMs + PATIENCE_MS;
    if (!(yield* this.#run(limitMs, done))) throw new Stuck(`${what} did not come within ${PATIENCE_MS} ms`);
  }

  async *#runTo(untilMs: number): Telling<void> {
    yield* this.#run(untilMs + this.#random.between(0, JITTER_MS), () => false);
  }

  async *#run(untilMs: number, done: () => boolean): Telling<boolean> {
    const { world } = this.#cluster;
    const afterEach = (): boolean => {
      this.#cluster.check();
      return done();
    };
    for (;;) {
      const sliceEndMs = (Math.floor(world.nowMs / SLICE_MS) + 1) * SLICE_MS;
      const end = await world.run(afterEach, { untilMs: Math.min(untilMs, sliceEndMs) });
      yield* this.#untold.splice(0);
      const [finding] = world.findings;
      if (finding !== undefined) throw new Stuck(`${finding.node}: ${String(finding.error)}`);
      if (end === "predicate") return true;
      if (world.nowMs >= untilMs) return false;
      await this.#options.pace(world.nowMs);
    }
  }

  #event(node: string, event: RaftEvent): void {
    const told = this.#narrator.tell(node, event);
    if (told !== null) this.#note(node, told.kind, told.text);
  }

  #soFar(): string {
    return `after ${this.#writer.acknowledged.length} acknowledged writes`;
  }

  #note(node: string | null, kind: RecordKind, text: string): void {
    this.#untold.push({ atMs: this.#cluster.world.nowMs, node, kind, text });
  }
}

function ms(valueMs: number): string {
  return `${valueMs.toFixed(1)} ms`;
}
