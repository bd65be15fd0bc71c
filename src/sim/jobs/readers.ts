// Clients that only read: a job, a list, or `wait`, linearizable or not, at whichever node, and above all at one whose views are being
// built again. Each answer is judged where it leaves the server. What waits is production's own (client/until-final.ts), over a
// stream of events that breaks and goes on at another node.

import { untilFinal } from "../../client/until-final.ts";
import type { Random } from "../../core/kit/random.ts";
import type { TenureError } from "../../core/kit/errors.ts";
import type { JobState } from "../../core/jobs/model.ts";
import type { Owner } from "../kernel/index.ts";
import type { JobsCluster, JobsServer } from "./cluster.ts";
import { isFinal } from "./oracle/history.ts";
import { isForgotten } from "./oracle/kit.ts";
import { type Answer, post } from "./post.ts";
import { reached } from "./probes.ts";
import type { How, ShownJob, ShownPage } from "./reading.ts";
import type { ReadBegun } from "./oracle/reads.ts";

const GIVE_UP_MS = 4_000;
/** Between two looks at a stream of events; how often it breaks by itself, for each of them. */
const STREAM_MS: readonly [number, number] = [2, 80];
const BREAKS = 0.01;
const AGAIN_MS: readonly [number, number] = [10, 250];
const WAITS_MAX = 8;
const STATES: readonly JobState[] = ["pending", "assigned", "building", "completed", "failed", "cancelled"];
const LIST_LIMITS = [3, 1_000, 1_000] as const;

/** Codes that say that a node can't answer now. */
const NOT_NOW: readonly string[] = ["ERR_NO_LEADER", "TOO_STALE", "BACKEND_UNAVAILABLE", "OVERLOADED", "DISK_DAMAGED"];

interface Wait {
  readonly jobId: string;
  isOver: boolean;
}

export class Readers {
  /** Waits that have ended, and reads that were answered. */
  readonly counts = { waits: 0, reads: 0 };
  readonly #cluster: JobsCluster;
  /** Ids that somebody was answered; new ones are added by whoever reads lists. */
  readonly #known: () => readonly string[];
  readonly #learn: (jobId: string) => void;
  readonly #waits = new Set<Wait>();
  #calls = 0;
  #isStopped = false;

  constructor(cluster: JobsCluster, known: () => readonly string[], learn: (jobId: string) => void) {
    this.#cluster = cluster;
    this.#known = known;
    this.#learn = learn;
  }

  start(): void {
    const { world, knobs } = this.#cluster;
    for (let at = 0; at < knobs.readers; at++) {
      const random = world.random.fork(`reader/${at}`);
      const owner = world.scheduler.owner(`reader/${at}`);
      this.#cluster.later(owner, random.between(300, 800), () => this.#next(owner, random));
    }
  }

  stop(): void {
    this.#isStopped = true;
  }

  /** Null: nobody waits for a job that has ended. */
  overdue(): string | null {
    for (const { jobId } of this.#waits) {
      const job = this.#cluster.oracle.jobs.get(jobId);
      if (job?.isFinal === true) return `somebody waits for job ${jobId}, which is ${job.now.state}`;
    }
    return null;
  }

  #next(owner: Owner, random: Random): void {
    if (this.#isStopped) return;
    const { readerPauseMs } = this.#cluster.knobs;
    this.#cluster.later(owner, random.between(0.2, 1.8) * readerPauseMs, () => this.#next(owner, random));
    const what = random.next();
    const node = this.#node(random);
    const jobId = this.#jobAt(node, random);
    const how: How = random.chance(0.6) ? "linearizable" : "local";
    const call = random.fork(`read/${++this.#calls}`);
    if (what < 0.15) return this.#list(call, node, how);
    if (jobId === null) return;
    if (what < 0.25 && this.#waits.size < WAITS_MAX) return this.#wait(owner, call, jobId);
    this.#read(call, node, jobId, how, () => undefined);
  }

  /** Mostly one whose views are being built, where there is one. */
  #node(random: Random): string {
    const { names, stores } = this.#cluster;
    const rebuilding = names.filter((name) => stores.isRebuilding(name));
    return rebuilding.length > 0 && random.chance(0.7) ? random.pick(rebuilding) : random.pick(names);
  }

  /** Mostly one that the node's book has dropped. */
  #jobAt(node: string, random: Random): string | null {
    const known = this.#known();
    if (known.length === 0) return null;
    const drawn = Array.from({ length: 3 }, () => random.pick(known));
    const book = this.#cluster.server(node)?.fold.book;
    return drawn.find((jobId) => book?.known(jobId) === false) ?? drawn[0]!;
  }

  // ---- one read ------------------------------------------------------------------------------------

  #read(random: Random, to: string, jobId: string, how: How, arrived: (answer: Answer<ShownJob>) => void): void {
    let begun: ReadBegun | null = null;
    post<ShownJob>(this.#cluster, {
      random,
      from: null,
      to,
      ask: (server) => {
        begun = this.#begun(to, server, jobId);
        return server.reading.job(jobId, how);
      },
      judge: (_asked, answer) => {
        this.counts.reads++;
        if (answer.ok) this.#oracle.jobAnswered(begun!, how, jobId, answer.value);
        else if (answer.error.code === "NOT_FOUND") this.#oracle.jobAnswered(begun!, how, jobId, null);
        else this.#refused(begun!, answer.error);
      },
      arrived,
    });
  }

  #list(random: Random, to: string, how: How): void {
    const state = random.chance(0.5) ? random.pick(STATES) : undefined;
    const limit = random.pick(LIST_LIMITS);
    let begun: ReadBegun | null = null;
    post<ShownPage>(this.#cluster, {
      random,
      from: null,
      to,
      ask: (server) => {
        begun = this.#begun(to, server, null);
        return server.reading.list(state, limit, how);
      },
      judge: (_asked, answer) => {
        this.counts.reads++;
        if (answer.ok) this.#oracle.listAnswered(begun!, how, state, answer.value);
        else this.#refused(begun!, answer.error);
      },
      arrived: (answer) => {
        if (answer.ok) for (const { id } of answer.value.jobs) this.#learn(id);
      },
    });
  }

  #begun(node: string, { fold }: JobsServer, jobId: string | null): ReadBegun {
    const { oracle, stores } = this.#cluster;
    const applied = oracle.positionOf(node);
    const moment = jobId === null ? null : (oracle.jobs.get(jobId)?.at(applied) ?? null);
    const isDropped = moment !== null && !isForgotten(moment) && !fold.book.known(jobId!);
    return { ...oracle.asked(node), applied, isRebuilding: stores.isRebuilding(node), isDropped };
  }

  #refused(begun: ReadBegun, error: TenureError): void {
    const { node } = begun;
    if (error.code === "TOO_STALE") this.#oracle.tooStale(begun);
    else if (!NOT_NOW.includes(error.code))
      this.#cluster.world.report(node, new Error(`${node} answered a read with ${error.code}: ${error.message}`));
  }

  get #oracle() {
    return this.#cluster.oracle.reads;
  }

  // ---- waiting -------------------------------------------------------------------------------------

  #wait(owner: Owner, random: Random, jobId: string): void {
    const { probes, oracle, world } = this.#cluster;
    const wait: Wait = { jobId, isOver: false };
    this.#waits.add(wait);
    if (oracle.jobs.get(jobId)?.isFinal === true) reached(probes, "waited-for-a-job-that-had-ended");
    const ended = (): void => {
      wait.isOver = true;
      this.#waits.delete(wait);
      this.counts.waits++;
    };
    const items = this.#items(owner, random.fork("stream"), wait);
    const look = (): Promise<ShownJob> => this.#look(owner, random, jobId);
    untilFinal(items, look, (ms, wake) => this.#cancellable(owner, ms, wake)).then(
      ({ state }) => {
        ended();
        reached(probes, "wait-ended");
        const isTrue = oracle.jobs.get(jobId)?.everBetween(0, oracle.head, (moment) => moment.state === state) === true;
        if (!isTrue)
          world.report("", new Error(`a client waited for ${jobId} until it was ${state}, which it never was`));
      },
      (error: unknown) => {
        ended();
        if (error !== FORGOTTEN) return world.report("", error);
        reached(probes, "waited-for-a-job-that-was-forgotten");
      },
    );
  }

  /** As client/events.ts: "open", and then each final event of the job, over whichever nodes there are. */
  async *#items(owner: Owner, random: Random, wait: Wait): AsyncGenerator<"open" | "event", void, void> {
    const { oracle, names } = this.#cluster;
    let node = random.pick(names);
    let connected: JobsServer | undefined;
    let last: number | null = null;
    while (!wait.isOver) {
      await this.#pause(owner, random.between(...STREAM_MS));
      const server = this.#cluster.server(node);
      if (server === undefined || server !== connected || random.chance(BREAKS)) {
        if (server === undefined || connected !== undefined) node = random.pick(names);
        connected = this.#cluster.server(node);
        continue;
      }
      // A node that is behind waits until it has caught up.
      const position = oracle.positionOf(node);
      const from = last;
      last = Math.max(position, last ?? 0);
      if (from === null) yield "open";
      else if (position > from && hasEnded(oracle.jobs.get(wait.jobId)?.between(from, position))) yield "event";
    }
  }

  async #look(owner: Owner, random: Random, jobId: string): Promise<ShownJob> {
    for (;;) {
      const answer = await this.#lookOnce(owner, random.fork(`look/${++this.#calls}`), jobId);
      if (answer?.ok === true) return answer.value;
      if (answer?.error.code === "NOT_FOUND") throw FORGOTTEN;
      await this.#pause(owner, random.between(...AGAIN_MS));
    }
  }

  /** Undefined: nobody answered. */
  #lookOnce(owner: Owner, random: Random, jobId: string): Promise<Answer<ShownJob> | undefined> {
    const node = this.#node(random);
    if (this.#cluster.stores.isRebuilding(node)) reached(this.#cluster.probes, "wait-looked-during-rebuild");
    return new Promise((resolve) => {
      this.#cluster.later(owner, GIVE_UP_MS, () => resolve(undefined));
      this.#read(random, node, jobId, "linearizable", resolve);
    });
  }

  #pause(owner: Owner, forMs: number): Promise<void> {
    return new Promise((resolve) => this.#cluster.later(owner, forMs, resolve));
  }

  #cancellable(owner: Owner, afterMs: number, fire: () => void): () => void {
    const scheduled = this.#cluster.later(owner, afterMs, fire);
    return () => scheduled.cancel();
  }
}

/** How a wait ends whose job is gone. */
const FORGOTTEN = new Error("the job was forgotten");

function hasEnded(moments: readonly { readonly state: string }[] = []): boolean {
  return moments.some(({ state }) => state !== "forgotten" && isFinal(state as ShownJob["state"]));
}
