// Clients outside of every process: each writes and reads in a loop against whichever node it believes to
// lead, follows refusals, gives up after a while, and tells the oracle what it was answered. What was not
// answered is a third class: neither done nor failed.

import type { Random } from "../../core/kit/random.ts";
import { nodeIdOf } from "../../core/kit/ids.ts";
import type { Owner } from "../kernel/index.ts";
import type { Cluster } from "./cluster.ts";
import { writeCommand } from "./machine.ts";
import { reached } from "./probes.ts";

const GIVE_UP_MS = 1_500;
const READ_TIMEOUT_MS = 700;
const KEYS = 4;

type WriteEnd = "acknowledged" | "refused" | "unknown";

export interface ClientCounts extends Record<WriteEnd, number> {
  reads: number;
  readsUnanswered: number;
}

export class Clients {
  readonly counts: ClientCounts = { acknowledged: 0, refused: 0, unknown: 0, reads: 0, readsUnanswered: 0 };
  readonly #cluster: Cluster;
  #nextId = 0;
  #stopped = false;

  constructor(cluster: Cluster) {
    this.#cluster = cluster;
  }

  start(): void {
    const { world, knobs } = this.#cluster;
    for (let at = 0; at < knobs.clients; at++) {
      const random = world.random.fork(`client/${at}`);
      const owner = world.scheduler.owner(`client/${at}`);
      // Some stay at one node whatever it says: they are the ones who ask a deposed leader.
      const pinned = random.chance(0.4) ? random.pick(this.#cluster.names) : null;
      this.#later(owner, random.between(0, 50), () =>
        this.#next(random, owner, pinned ?? this.#cluster.names[0]!, pinned),
      );
    }
  }

  stop(): void {
    this.#stopped = true;
  }

  /** One write at the node that leads now; true once it is acknowledged. */
  probe(onDone: (acknowledged: boolean) => void): void {
    const leader = this.#cluster.leader();
    if (leader === undefined) return onDone(false);
    const owner = this.#cluster.world.scheduler.owner("probe");
    this.#write(
      this.#cluster.world.random.fork(`probe/${this.#nextId}`),
      owner,
      nodeIdOf(leader.engine.peer),
      (answer) => onDone(answer === "acknowledged"),
    );
  }

  writeAt(node: string): void {
    const { world } = this.#cluster;
    this.#write(world.random.fork(`single/${this.#nextId}`), world.scheduler.owner("single"), node, () => undefined);
  }

  readAt(node: string): void {
    this.#read(this.#cluster.world.scheduler.owner("single"), node, () => undefined);
  }

  #next(random: Random, owner: Owner, believed: string, pinned: string | null): void {
    if (this.#stopped) return;
    const { knobs } = this.#cluster;
    const target = this.#cluster.member(believed) === undefined ? random.pick(this.#cluster.names) : believed;
    const again = (): void => {
      const next = pinned ?? this.#leaderAsSeenBy(target, random);
      this.#later(owner, random.between(0.2, 1.8) * knobs.clientPauseMs, () => this.#next(random, owner, next, pinned));
    };
    if (random.chance(pinned === null ? 0.3 : 0.6)) this.#read(owner, target, again);
    else this.#write(random, owner, target, again);
  }

  #leaderAsSeenBy(node: string, random: Random): string {
    const leader = this.#cluster.member(node)?.engine.status().leader ?? null;
    if (leader === null || random.chance(0.1)) return random.pick(this.#cluster.names);
    return nodeIdOf(leader);
  }

  #write(random: Random, owner: Owner, node: string, done: (end: WriteEnd) => void): void {
    const { oracle } = this.#cluster;
    const floor = oracle.floor();
    const data = writeCommand(`k${random.below(KEYS)}`, this.#nextId++, this.#cluster.knobs.paddingBytes);
    const batch = random.chance(0.1) ? [writeCommand("pad", this.#nextId++, 0), data] : [data];
    let open = true;
    const settle = (answer: WriteEnd): void => {
      if (!open) return;
      open = false;
      this.counts[answer]++;
      done(answer);
    };
    this.#later(owner, GIVE_UP_MS, () => settle("unknown"));
    this.#call(node, async (engine) => {
      const result = await engine.propose(batch);
      this.#cluster.world.scheduler.trace(result.outcome);
      if (result.outcome === "refused") {
        if (result.code === "UNCOMMITTED_LIMIT") reached(this.#cluster.probes, "uncommitted-limit-refused");
        for (const one of batch) oracle.refused(node, one);
        settle("refused");
      } else if (result.outcome === "unknown") settle("unknown");
      else {
        // Also an answer that comes after the client gave up tells the truth.
        oracle.writeAnswered(node, floor, result.index, data);
        if (!open) reached(this.#cluster.probes, "outcome-unknown-but-committed");
        settle("acknowledged");
      }
    });
  }

  #read(owner: Owner, node: string, done: () => void): void {
    const { oracle, probes } = this.#cluster;
    const floor = oracle.floor();
    let open = true;
    const settle = (): void => {
      if (!open) return;
      open = false;
      done();
    };
    this.#later(owner, GIVE_UP_MS, settle);
    this.#call(node, async (engine) => {
      const before = engine.status();
      const index = await engine.readIndex(READ_TIMEOUT_MS);
      if (index === null || !open) {
        this.counts.readsUnanswered++;
        settle();
        return;
      }
      const member = this.#cluster.member(node);
      if (member?.engine === engine) {
        this.counts.reads++;
        oracle.readAnswered(node, floor, engine.status().applied);
        if (before.role !== "leader") reached(probes, "read-on-follower");
        else reached(probes, before.leaseUntilMs > 0 ? "read-by-lease" : "read-by-round");
      }
      settle();
    });
  }

  #call(node: string, work: (engine: NonNullable<ReturnType<Cluster["member"]>>["engine"]) => Promise<void>): void {
    this.#cluster.world.call(node, () => {
      const member = this.#cluster.member(node);
      if (member !== undefined) void work(member.engine);
    });
  }

  #later(owner: Owner, afterMs: number, fire: () => void): void {
    const { scheduler } = this.#cluster.world;
    scheduler.schedule(scheduler.nowMs + afterMs, owner, fire);
  }
}
