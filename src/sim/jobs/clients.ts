// Clients outside of every process: they submit, cancel, retry and read against whichever node they believe to lead, say the
// same again under the same key where they do not know what became of it, and tell the oracle what they were answered.

import type { Random } from "../../core/kit/random.ts";
import { TenureError } from "../../core/kit/errors.ts";
import { type Job, type JobSpec, PLAIN_SPEC } from "../../core/jobs/model.ts";
import type { Request } from "../../ports/jobs.ts";
import type { Owner } from "../kernel/index.ts";
import type { JobsCluster, JobsServer } from "./cluster.ts";
import type { JobsKnobs } from "./knobs.ts";
import type { Asked } from "./oracle/oracle.ts";
import { type Answer, post } from "./post.ts";
import { reached } from "./probes.ts";
import { RACE_BEGINS_MS, RACE_JOBS, RACE_SPEC } from "./race.ts";

const GIVE_UP_MS = 1_500;
const SAME_AGAIN_MAX = 12;
const REQUESTS_KEPT = 20;
const UNKEYED: Request = { caller: "ploy", idempotencyKey: null, bodyHash: "" };

export interface JobsClientCounts {
  submitted: number;
  refused: number;
  unknown: number;
  reads: number;
}

type Command =
  | { readonly kind: "submit"; readonly request: Request; readonly count: number; readonly spec: JobSpec }
  | { readonly kind: "cancel" | "retry"; readonly request: Request; readonly jobId: string };

/** Codes that say that nothing was done, without a word about any job. */
const NOT_DONE: readonly string[] = [
  "NOT_LEADER",
  "OVERLOADED",
  "UNCOMMITTED_LIMIT",
  "TRANSFER_IN_PROGRESS",
  "ERR_NO_LEADER",
];

export class JobsClients {
  readonly counts: JobsClientCounts = { submitted: 0, refused: 0, unknown: 0, reads: 0 };
  readonly #cluster: JobsCluster;
  readonly #known: string[] = [];
  readonly #sent: Command[] = [];
  #calls = 0;
  #asked = 0;
  #isStopped = false;

  constructor(cluster: JobsCluster) {
    this.#cluster = cluster;
  }

  start(): void {
    const { world, knobs, names } = this.#cluster;
    for (let at = 0; at < knobs.clients; at++) {
      const random = world.random.fork(`client/${at}`);
      const owner = world.scheduler.owner(`client/${at}`);
      const client: Client = {
        caller: `c${at}`,
        random,
        owner,
        believed: random.pick(names),
        isPinned: random.chance(0.3),
      };
      if (knobs.race) this.#cluster.later(owner, random.between(...RACE_BEGINS_MS), () => this.#race(client));
      else this.#cluster.later(owner, random.between(0, 300), () => this.#next(client));
    }
  }

  stop(): void {
    this.#isStopped = true;
  }

  /** Jobs that somebody was answered. */
  get known(): readonly string[] {
    return this.#known;
  }

  learn(jobId: string): void {
    if (!this.#known.includes(jobId)) this.#known.push(jobId);
  }

  /** In this turn of the server: nothing of what it has just decided is committed. */
  askNow(node: string, kind: "cancel" | "retry", jobId: string): void {
    const command: Command = { kind, request: UNKEYED, jobId };
    const { oracle, world } = this.#cluster;
    const server = this.#cluster.server(node);
    if (server === undefined) return;
    const asked = oracle.asked(node);
    const call = ++this.#calls;
    const judge = (answer: Answer<Job>): void => {
      if (this.#cluster.server(node) === server) this.#judge(asked, command, call, answer, server);
    };
    server.service[kind](UNKEYED, jobId).then(
      (value) => judge({ ok: true, value }),
      (error: unknown) => {
        if (TenureError.is(error)) judge({ ok: false, error });
        else world.report(node, error);
      },
    );
  }

  /** Once, by somebody who asks nobody else. */
  submitAt(node: string, random: Random): void {
    const owner = this.#cluster.world.scheduler.owner("client/ploy");
    const client: Client = { caller: UNKEYED.caller, random, owner, isPinned: true, believed: node };
    const spec = drawSpec(random, this.#cluster.knobs);
    this.#send(client, { kind: "submit", request: UNKEYED, count: 1, spec }, 0, () => undefined);
  }

  /** Says the same until somebody has taken it. */
  #race(client: Client): void {
    if (this.counts.submitted > 0) return;
    const request: Request = { caller: client.caller, idempotencyKey: "race", bodyHash: "race" };
    const command: Command = { kind: "submit", request, count: RACE_JOBS, spec: RACE_SPEC };
    this.#send(client, command, 0, () => this.#cluster.later(client.owner, GIVE_UP_MS, () => this.#race(client)));
  }

  #next(client: Client): void {
    if (this.#isStopped) return;
    const { random } = client;
    const again = (): void => {
      const pauseMs = random.between(0.2, 1.8) * this.#cluster.knobs.clientPauseMs;
      this.#cluster.later(client.owner, pauseMs, () => this.#next(client));
    };
    if (this.#known.length > 0 && random.chance(0.2)) {
      this.#read(random);
      return again();
    }
    const old = this.#sent.length > 0 && random.chance(0.1) ? random.pick(this.#sent) : null;
    // Sometimes another request comes under an old key.
    const isMixedUp = old !== null && random.chance(0.3);
    const command =
      old === null ? this.#draw(client) : isMixedUp ? { ...old, request: { ...old.request, bodyHash: "other" } } : old;
    if (command === null) return again();
    this.#send(client, command, 0, again);
  }

  #draw({ random, caller }: Client): Command | null {
    const number = ++this.#asked;
    const key = random.chance(0.85) ? `k${number}` : null;
    const request: Request = { caller, idempotencyKey: key, bodyHash: key === null ? "" : `body-${number}` };
    const jobId = this.#known.length > 0 ? random.pick(this.#known) : null;
    if (jobId !== null && random.chance(0.25)) return { kind: random.chance(0.6) ? "cancel" : "retry", request, jobId };
    if (this.counts.submitted >= this.#cluster.knobs.jobsMax) return null;
    return {
      kind: "submit",
      request,
      count: random.pick([1, 1, 1, 2, 4]),
      spec: drawSpec(random, this.#cluster.knobs),
    };
  }

  #send(client: Client, command: Command, times: number, done: () => void): void {
    const { random } = client;
    const call = ++this.#calls;
    let isOpen = true;
    const settle = (isKnown: boolean): void => {
      if (!isOpen) return;
      isOpen = false;
      if (isKnown) return done();
      if (!client.isPinned || random.chance(0.2)) client.believed = this.#leaderAsSeenBy(client.believed, random);
      const mayRepeat = command.request.idempotencyKey !== null && times < SAME_AGAIN_MAX && random.chance(0.85);
      if (!mayRepeat) return done();
      this.#cluster.later(client.owner, random.between(5, 120), () => this.#send(client, command, times + 1, done));
    };
    this.#cluster.later(client.owner, GIVE_UP_MS, () => settle(false));
    this.#remember(command);
    const to = client.believed;
    const letter = { random: random.fork(`call/${call}`), from: null, to };
    if (command.kind === "submit") {
      const { spec, count, request } = command;
      const specs = Array.from({ length: count }, () => ({ ...spec, payload: { call } }));
      return post<readonly string[]>(this.#cluster, {
        ...letter,
        ask: ({ service }) => service.submit(request, specs),
        look: (server) => this.#look(to, server, null),
        judge: (asked, answer, server) => this.#judge(asked, command, call, answer, server),
        arrived: (answer) => {
          if (answer.ok) for (const id of answer.value) this.learn(id);
          settle(answer.ok || answer.error.code === "IDEMPOTENCY_MISMATCH");
        },
      });
    }
    const { kind, request, jobId } = command;
    return post<Job>(this.#cluster, {
      ...letter,
      ask: ({ service }) => service[kind](request, jobId),
      look: (server) => this.#look(to, server, jobId),
      judge: (asked, answer, server) => this.#judge(asked, command, call, answer, server),
      arrived: (answer) => settle(answer.ok || isRefusal(answer.error)),
    });
  }

  #remember(command: Command): void {
    if (command.request.idempotencyKey === null || this.#sent.includes(command)) return;
    this.#sent.push(command);
    if (this.#sent.length > REQUESTS_KEPT) this.#sent.shift();
  }

  #judge(asked: Asked, command: Command, call: number, answer: Answer<unknown>, { engine }: JobsServer): void {
    const { oracle, probes } = this.#cluster;
    const { caller, idempotencyKey: key } = command.request;
    if (!answer.ok) {
      const { error } = answer;
      if (isRefusal(error)) {
        this.counts.refused++;
        return oracle.refused(
          asked,
          command.kind,
          command.kind === "submit" ? null : command.jobId,
          error,
          engine.status().term,
        );
      }
      if (error.code === "OUTCOME_UNKNOWN") {
        this.counts.unknown++;
        return oracle.unknown(call);
      }
      if (error.code === "NOT_LEADER") reached(probes, "not-leader-told");
      if (error.code === "UNCOMMITTED_LIMIT") reached(probes, "append-refused-and-rolled-back");
      if (NOT_DONE.includes(error.code)) return oracle.notDone(asked.node, call);
      return this.#cluster.world.report(
        asked.node,
        new Error(`${asked.node} answered with ${error.code}: ${error.message}`),
      );
    }
    switch (command.kind) {
      case "submit":
        this.counts.submitted += command.count;
        return oracle.submitAnswered(asked, key, caller, answer.value as readonly string[]);
      case "cancel":
        return oracle.cancelAnswered(asked, answer.value as Job);
      case "retry":
        return oracle.retryAnswered(asked, answer.value as Job, key, caller);
    }
  }

  #read(random: Random): void {
    const node = random.pick(this.#cluster.names);
    const jobId = random.pick(this.#known);
    this.#cluster.world.call(node, () => {
      const server = this.#cluster.server(node);
      if (server === undefined) return;
      this.counts.reads++;
      this.#look(node, server, jobId);
    });
  }

  #look(node: string, { service }: JobsServer, jobId: string | null): void {
    if (jobId !== null) this.#cluster.oracle.reads.shown(node, jobId, service.job(jobId));
    this.#cluster.oracle.counted(node, service.stats().submitted);
  }

  #leaderAsSeenBy(node: string, random: Random): string {
    const leader = this.#cluster.server(node)?.engine.status().leader ?? null;
    return leader === null || random.chance(0.2) ? random.pick(this.#cluster.names) : leader.split("@")[0]!;
  }
}

interface Client {
  readonly caller: string;
  readonly random: Random;
  readonly owner: Owner;
  /** Some stay at one node, whatever it says: they ask leaders that were deposed. */
  readonly isPinned: boolean;
  believed: string;
}

/** About the request or its job, and for good. */
function isRefusal({ code }: TenureError): boolean {
  return ["NOT_FOUND", "JOB_FINISHED", "BAD_REQUEST", "IDEMPOTENCY_MISMATCH", "STALE_EPOCH"].includes(code);
}

function drawSpec(random: Random, { shortLived }: JobsKnobs): JobSpec {
  return {
    ...PLAIN_SPEC,
    kind: random.pick(["work", "work", "heavy"]),
    queue: random.pick(["default", "other"]),
    priority: random.below(3),
    attemptsMax: random.pick([1, 3]),
    lossesMax: random.pick([1, 5, 20]),
    backoff: { baseMs: 100, maxMs: 1_000 },
    timeoutMs: random.chance(0.2) ? random.pick([300, 1_500]) : null,
    retentionMs: random.chance(shortLived) ? random.pick([0, 800, 3_000]) : 3_600_000,
    concurrency: random.chance(0.3) ? { key: "c1", limit: 1 } : random.chance(0.2) ? { key: "c2", limit: 2 } : null,
  };
}
