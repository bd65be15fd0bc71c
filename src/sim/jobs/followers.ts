// Clients that follow the log of events, over whichever node: a stream that breaks, with its server or by itself, and goes on at
// another one after the last event that was seen; and next to it pages, proofs and verifications anywhere. What a stream is asked with
// and how its frames are read is production's (client/events.ts, client/sse.ts).

import { Point } from "../../client/events.ts";
import { SseParser, type SseFrame } from "../../client/sse.ts";
import { TenureError } from "../../core/kit/errors.ts";
import type { Random } from "../../core/kit/random.ts";
import type { Owner } from "../kernel/index.ts";
import type { JobsCluster, JobsServer } from "./cluster.ts";
import { type Answer, post } from "./post.ts";
import { reached } from "./probes.ts";
import type { How } from "./reading.ts";

const WAY_MS: readonly [number, number] = [0.2, 8];
/** From when a connection is looked at to the next time, and how often it is broken then. */
const LOOK_MS: readonly [number, number] = [50, 400];
const BREAKS = 0.15;
/** How often there is no room for more after a piece of a stream, and for how long. */
const FULL_RATE = 0.1;
const FULL_MS: readonly [number, number] = [1, 200];
const AGAIN_MS: readonly [number, number] = [5, 100];
/** What a node says that can't answer now. */
const NOT_NOW: readonly string[] = ["ERR_NO_LEADER", "BACKEND_UNAVAILABLE", "OVERLOADED"];
/** What some follow alone. */
const TYPES = "key:*,schedule:fired";

interface Follower {
  readonly random: Random;
  readonly owner: Owner;
  readonly point: Point;
  /** Undefined: all. */
  readonly type: string | undefined;
  connection: Connection | null;
}

interface Connection {
  readonly node: string;
  readonly server: JobsServer;
  readonly parser: SseParser;
  readonly ended: AbortController;
  /** Of what is on the way. */
  arrivesAtMs: number;
  isOpen: boolean;
}

export class Followers {
  readonly #cluster: JobsCluster;
  readonly #followers: Follower[] = [];
  #calls = 0;
  #isStopped = false;

  constructor(cluster: JobsCluster) {
    this.#cluster = cluster;
  }

  start(): void {
    const { world, knobs } = this.#cluster;
    for (let at = 0; at < knobs.followers; at++) {
      const random = world.random.fork(`follower/${at}`);
      const owner = world.scheduler.owner(`follower/${at}`);
      const type = at > 0 && random.chance(0.5) ? TYPES : undefined;
      const point = new Point({ after: 0 }, type !== undefined);
      const follower: Follower = { random, owner, point, type, connection: null };
      this.#followers.push(follower);
      this.#cluster.later(owner, random.between(100, 1_500), () => this.#look(follower));
    }
  }

  /** They ask no more; streams go on. */
  stop(): void {
    this.#isStopped = true;
  }

  /** Null: all have seen everything. */
  overdue(): string | null {
    const { head } = this.#cluster.oracle;
    const late = this.#followers.find(({ type, point }) => type === undefined && (point.last ?? 0) < head);
    return late === undefined ? null : `a stream has come to event ${late.point.last} of ${head}`;
  }

  // ---- streams -------------------------------------------------------------------------------------

  #look(follower: Follower): void {
    const { random, owner, connection } = follower;
    this.#cluster.later(owner, random.between(...LOOK_MS), () => this.#look(follower));
    if (!this.#isStopped) this.#ask(random.fork(`ask/${++this.#calls}`));
    const isGone = connection !== null && this.#cluster.server(connection.node) !== connection.server;
    if (isGone || (connection !== null && !this.#isStopped && random.chance(BREAKS))) this.#break(follower, connection);
    if (follower.connection === null) this.#connect(follower);
  }

  #break(follower: Follower, connection: Connection): void {
    if (follower.connection !== connection) return;
    follower.connection = null;
    if (this.#cluster.server(connection.node) === connection.server)
      this.#cluster.world.call(connection.node, () => connection.ended.abort("the client has gone"));
  }

  #connect(follower: Follower): void {
    const { random, owner, point, type } = follower;
    const { world, names, probes } = this.#cluster;
    const node = random.pick(names);
    world.call(node, () => {
      const server = this.#cluster.server(node);
      if (server === undefined || follower.connection !== null) return;
      if ((point.last ?? 0) > 0) reached(probes, "stream-resumed");
      const connection = {
        node,
        server,
        parser: new SseParser(),
        ended: new AbortController(),
        arrivesAtMs: 0,
        isOpen: false,
      };
      follower.connection = connection;
      const over = (error: unknown): void => {
        if (this.#cluster.server(node) !== server) return;
        this.#judgeEnd(node, error);
        this.#cluster.later(owner, random.between(...AGAIN_MS), () => this.#break(follower, connection));
      };
      server.following
        .open(point.headers, type)
        .then((stream) => stream(this.#outlet(follower, connection)))
        .then(() => over(null), over);
    });
  }

  #judgeEnd(node: string, error: unknown): void {
    const { world, probes } = this.#cluster;
    if (error === null) return reached(probes, "stream-ended-by-a-snapshot");
    if (error === GONE || (TenureError.is(error) && NOT_NOW.includes(error.code))) return;
    const text = error instanceof Error ? (error.stack ?? error.message) : JSON.stringify(error);
    world.report(node, new Error(`${node} ended a stream of events: ${text}`));
  }

  #outlet(follower: Follower, connection: Connection) {
    const { owner, random } = follower;
    const { signal } = connection.ended;
    const push = (bytes: Uint8Array): boolean => {
      if (signal.aborted) throw GONE;
      const { nowMs } = this.#cluster.world;
      connection.arrivesAtMs = Math.max(connection.arrivesAtMs, nowMs + random.between(...WAY_MS));
      this.#cluster.later(owner, connection.arrivesAtMs - nowMs, () => {
        if (follower.connection !== connection) return;
        for (const frame of connection.parser.push(bytes)) this.#take(follower, connection, frame);
      });
      return !random.chance(FULL_RATE);
    };
    const room = (): Promise<void> =>
      new Promise((resolve, reject) => {
        this.#cluster.later(owner, random.between(...FULL_MS), () => {
          this.#cluster.world.call(connection.node, () => (signal.aborted ? reject(GONE) : resolve()));
        });
      });
    return { push, room, signal, write: async (text: string) => void push(new TextEncoder().encode(text)) };
  }

  /** Each event that is asked for once, in order. */
  #take({ point, type }: Follower, connection: Connection, { id, data }: SseFrame): void {
    const { oracle, chronicle, world } = this.#cluster;
    const { node } = connection;
    const last = point.last ?? 0;
    const wrong = (what: string): void => world.report(node, new Error(`${node} ${what}`));
    if (data === null) {
      if (id === undefined) return;
      const sequence = Number(id);
      if (!connection.isOpen && sequence !== last)
        return wrong(`opens a stream at ${id}, which was asked for from ${last}`);
      connection.isOpen = true;
      const missed = this.#wanted(type, last, sequence);
      if (missed !== undefined) return wrong(`passed a stream on from ${last} to ${id} without event ${missed}`);
      return point.skipTo(sequence, sequence === 0 ? null : chronicle.hash(sequence));
    }
    const { sequence } = JSON.parse(data) as { sequence: number };
    if (sequence > oracle.head) return wrong(`sends event ${sequence}, and ${oracle.head} is committed`);
    const next = this.#wanted(type, last, oracle.head);
    if (sequence !== next) return wrong(`sends event ${sequence} behind ${last}, and the next one is ${next}`);
    if (data !== chronicle.wire(sequence)) return wrong(`sends another event ${sequence} than the committed one`);
    const [previousHash, eventHash] = [sequence === 1 ? null : chronicle.hash(sequence - 1), chronicle.hash(sequence)];
    point.take({ sequence, previousHash, eventHash });
  }

  /** The first event after `after`, up to `through`, that is followed. */
  #wanted(type: string | undefined, after: number, through: number): number | undefined {
    if (type === undefined) return after < through ? after + 1 : undefined;
    for (let sequence = after + 1; sequence <= through; sequence++) {
      const { eventType } = this.#cluster.chronicle.event(sequence);
      if (eventType === "schedule:fired" || eventType.startsWith("key:")) return sequence;
    }
    return undefined;
  }

  // ---- pages and proofs ----------------------------------------------------------------------------

  #ask(random: Random): void {
    const { names, chronicle, probes } = this.#cluster;
    const what = random.next();
    const to = random.pick(names);
    if (what < 0.55) return this.#page(random, to);
    if (what > 0.95)
      return this.#send(
        random,
        to,
        ({ following }) => following.verify(),
        (verified) => {
          if (verified.valid) reached(probes, "history-verified");
          return verified.valid || / are not here; /.test(verified.reason) ? null : verified.reason;
        },
      );
    const isInclusion = random.chance(0.5);
    this.#send(
      random,
      to,
      async ({ following }) => {
        const size = 1 + random.below(following.head());
        if (following.head() === 0) return null;
        const from = 1 + random.below(size);
        const proof = isInclusion ? await following.inclusion(from, size) : await following.consistency(from, size);
        reached(probes, "proof-verified");
        return "sequence" in proof ? chronicle.inclusionProblem(proof) : chronicle.consistencyProblem(proof);
      },
      (problem) => problem,
      ["LOG_COMPACTED"],
    );
  }

  #page(random: Random, to: string): void {
    const { oracle, chronicle, probes } = this.#cluster;
    const after = random.below(oracle.head + 1);
    const how: How = random.chance(0.5) ? "linearizable" : "local";
    const limit = random.pick([1, 7, 1_000]);
    this.#send(
      random,
      to,
      ({ following, archive }) => {
        if (after + 1 < archive.lastSequence) reached(probes, "history-read-from-segments");
        return following.page(after, limit, how);
      },
      (body) => {
        const { throughSequence: through } = JSON.parse(body) as { throughSequence: number };
        if (through < after || through > Math.min(oracle.head, after + limit))
          return `a page behind ${after} to ${through}`;
        const texts = Array.from({ length: through - after }, (_, at) => chronicle.text(after + 1 + at));
        const should = `{"events":[${texts.join(",")}],"throughSequence":${through}}`;
        return body === should ? null : `a page behind ${after} that is not as committed: ${body.slice(0, 300)}`;
      },
    );
  }

  #send<T>(
    random: Random,
    to: string,
    ask: (server: JobsServer) => Promise<T>,
    problemOf: (value: T) => string | null,
    codes: readonly string[] = [],
  ): void {
    const judge = (_asked: unknown, answer: Answer<T>): void => {
      const isRefusal = !answer.ok && (NOT_NOW.includes(answer.error.code) || codes.includes(answer.error.code));
      const problem = answer.ok ? problemOf(answer.value) : isRefusal ? null : answer.error.message;
      if (problem !== null) this.#cluster.world.report(to, new Error(`${to} answers a reader of events: ${problem}`));
    };
    post<T>(this.#cluster, { random, from: null, to, ask, judge, arrived: () => undefined });
  }
}

const GONE = new Error("the client has gone");
