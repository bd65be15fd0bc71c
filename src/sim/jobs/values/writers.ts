// Who writes values: each writer competes for a scope, as a client of the servers would that trusts only what was answered, and writes with
// its epoch while it believes that it leads, and now and then after that. Next to it every writer counts, creates and deletes without a scope.

import type { Random } from "../../../core/kit/random.ts";
import type { AcquireAnswer } from "../../../ports/scopes.ts";
import type { ValueFence, ValueView } from "../../../ports/values.ts";
import type { Owner } from "../../kernel/index.ts";
import type { JobsCluster, JobsServer } from "../cluster.ts";
import { type Answer, post } from "../post.ts";
import { reached } from "../probes.ts";
import type { ValueCall } from "../oracle/values-ledger.ts";
import {
  WRITER_BURSTS_MAX,
  WRITER_LAST_EVERY_MS,
  WRITER_STANDSTILL_MS,
  WRITER_TTL_MS,
  WRITER_UNANSWERED_MS,
  WRITER_WAIT_MS,
} from "./limits.ts";

const SCOPES = ["s1", "s2"];
export const COUNTERS = ["count/a", "count/b"];
const FREE = ["free/a", "free/b", "free/c"];
/** What a clock may be off. */
const TRUST = 0.8;
/** How often whoever leads stands still for so long that it leads no more, and goes on as if nothing had been. */
const STANDSTILL_RATE = 0.04;
const RESIGN_RATE = 0.06;
const OLD_EPOCH_RATE = 0.1;
/** Several requests that come in one turn, of which each nearly fills what may be uncommitted. */
const BURST_RATE = 0.03;
const BURST_BYTES = 1_000;
const LAST = "last";
/** Grants and renewals are refused with it for now. */
const CALM: readonly string[] = [
  "NOT_LEADER",
  "OUTCOME_UNKNOWN",
  "OVERLOADED",
  "UNCOMMITTED_LIMIT",
  "TRANSFER_IN_PROGRESS",
  "ERR_NO_LEADER",
];

interface Writer {
  readonly name: string;
  readonly scope: string;
  readonly random: Random;
  readonly owner: Owner;
  session: string;
  sessions: number;
  /** 0: it does not lead, as far as it knows. */
  epoch: number;
  /** The last in which it led. */
  oldEpoch: number;
  untilMs: number;
  askedMs: number;
}

type Change = Pick<ValueCall, "kind" | "name" | "ifVersion" | "fence"> & {
  readonly count?: number;
  readonly fill?: string;
  /** Undefined: whoever leads, mostly. */
  readonly to?: string | undefined;
};

export class Writers {
  readonly #cluster: JobsCluster;
  readonly #random: Random;
  #posts = 0;
  #bursts = 0;
  #isStopped = false;
  #isLastWritten = false;

  constructor(cluster: JobsCluster) {
    this.#cluster = cluster;
    this.#random = cluster.random.fork("writers");
  }

  start(): void {
    const { world, knobs } = this.#cluster;
    const counting = this.#random.fork("count");
    if (knobs.valueWriters > 0) this.#cluster.countAt = (to) => this.#count(counting, to);
    for (let at = 0; at < knobs.valueWriters; at++) {
      const name = `v${at + 1}`;
      const random = this.#random.fork(name);
      const owner = world.scheduler.owner(`writer/${name}`);
      const scope = SCOPES[at % Math.min(SCOPES.length, Math.ceil(knobs.valueWriters / 2))]!;
      const nobody = {
        session: `${name}/0`,
        sessions: 0,
        epoch: 0,
        oldEpoch: 0,
        untilMs: 0,
        askedMs: -WRITER_UNANSWERED_MS,
      };
      this.#next({ name, scope, random, owner, ...nobody }, random.between(200, 1_500));
    }
  }

  stop(): void {
    this.#isStopped = true;
  }

  /** After the faults: one more write, until it is answered. */
  last(): void {
    if (this.#isLastWritten) return;
    const { world } = this.#cluster;
    const change: Change = { kind: "put", name: LAST, ifVersion: null, fence: null };
    const done = (answer: Answer<number | null>): void => {
      if (answer.ok) this.#isLastWritten = true;
    };
    this.#write(this.#random.fork(`last/${world.nowMs}`), change, done);
    this.#cluster.later(world.scheduler.owner("writer/last"), WRITER_LAST_EVERY_MS, () => this.last());
  }

  get isLastWritten(): boolean {
    return this.#isLastWritten;
  }

  #next(writer: Writer, afterMs: number): void {
    this.#cluster.later(writer.owner, afterMs, () => {
      if (this.#isStopped) return;
      const { random } = writer;
      const standsStill = writer.epoch > 0 && random.chance(STANDSTILL_RATE);
      // It has looked at its clock before.
      if (standsStill) {
        const { epoch } = writer;
        this.#cluster.later(writer.owner, WRITER_STANDSTILL_MS, () => this.#lead(writer, epoch));
        return this.#next(writer, WRITER_STANDSTILL_MS);
      }
      this.#act(writer);
      this.#next(writer, random.between(0.3, 1.7) * this.#cluster.knobs.writerPauseMs);
    });
  }

  #act(writer: Writer): void {
    const { random } = writer;
    const { nowMs } = this.#cluster.world;
    if (writer.epoch > 0 && nowMs >= writer.untilMs) this.#lost(writer);
    if (writer.epoch === 0) this.#campaign(writer);
    else if (writer.untilMs - nowMs < (TRUST * WRITER_TTL_MS) / 2) this.#renew(writer);
    if (writer.epoch > 0 && random.chance(0.5)) this.#lead(writer, writer.epoch);
    else if (writer.oldEpoch > 0 && random.chance(OLD_EPOCH_RATE)) this.#lead(writer, writer.oldEpoch);
    else if (random.chance(BURST_RATE)) this.#burst(random);
    else if (random.chance(0.5)) this.#count(random);
    else this.#free(random);
    if (writer.epoch > 0 && random.chance(RESIGN_RATE)) this.#resign(writer);
  }

  // ---- leading -------------------------------------------------------------------------------------

  #lost(writer: Writer): void {
    writer.oldEpoch = writer.epoch;
    writer.epoch = 0;
    writer.session = `${writer.name}/${++writer.sessions}`;
    writer.askedMs = -WRITER_UNANSWERED_MS;
  }

  #campaign(writer: Writer): void {
    const { world, values } = this.#cluster;
    const { name, scope, session, random } = writer;
    const sentMs = world.nowMs;
    if (sentMs - writer.askedMs < WRITER_UNANSWERED_MS) return;
    writer.askedMs = sentMs;
    const waitMs = random.chance(0.5) ? WRITER_WAIT_MS : 0;
    const request = { scope, session, identity: name, metadata: {}, ttlMs: WRITER_TTL_MS, waitMs };
    this.#post<AcquireAnswer>(random, {
      ask: ({ scopes }) => scopes.acquire(request, new AbortController().signal),
      judge: (node, answer) => {
        if (answer.ok && answer.value.granted) values.granted(node, scope, answer.value.epoch, session);
        if (!answer.ok) this.#calm(node, answer);
      },
      arrived: (answer) => {
        if (writer.session !== session || !answer.ok || !answer.value.granted) return;
        writer.epoch = answer.value.epoch;
        writer.untilMs = sentMs + TRUST * WRITER_TTL_MS;
      },
    });
  }

  #renew(writer: Writer): void {
    const { world, values } = this.#cluster;
    const { scope, session, epoch, random } = writer;
    const sentMs = world.nowMs;
    let from = 0;
    this.#post(random, {
      ask: ({ scopes }) => {
        from = values.head;
        return scopes.renew(scope, session, epoch);
      },
      judge: (node, answer) => {
        if (answer.ok) return;
        if (answer.error.code === "STALE_EPOCH") values.stale(node, from, { scope, epoch });
        else this.#calm(node, answer);
      },
      arrived: (answer) => {
        if (writer.epoch !== epoch) return;
        if (answer.ok) writer.untilMs = sentMs + TRUST * WRITER_TTL_MS;
        else if (answer.error.code === "STALE_EPOCH") this.#lost(writer);
      },
    });
  }

  /** What was written a moment before may come later than it. */
  #resign(writer: Writer): void {
    const { scope, session, epoch, random } = writer;
    this.#post(random, {
      ask: ({ scopes }) => scopes.resign(scope, session, epoch),
      judge: (node, answer) => answer.ok || this.#calm(node, answer),
      arrived: () => undefined,
    });
    if (random.chance(0.7)) this.#lead(writer, epoch);
    this.#lost(writer);
    writer.askedMs = this.#cluster.world.nowMs;
  }

  #calm(node: string, answer: Answer<unknown>): void {
    if (answer.ok || CALM.includes(answer.error.code)) return;
    const { code, message } = answer.error;
    this.#cluster.world.report(node, new Error(`${node} answered a writer's claim with ${code}: ${message}`));
  }

  #lead({ scope, random }: Writer, epoch: number): void {
    const fence: ValueFence = { scope, epoch };
    const kind = random.chance(0.2) ? "delete" : "put";
    this.#write(random, { kind, name: `led/${scope}`, ifVersion: null, fence });
  }

  // ---- without a scope -----------------------------------------------------------------------------

  #count(random: Random, to?: string): void {
    const name = random.pick(COUNTERS);
    this.#read(random, name, (view) => {
      const count = ((view?.value as { count?: number } | undefined)?.count ?? 0) + 1;
      this.#write(random, { kind: "put", name, ifVersion: view?.version ?? 0, fence: null, count, to });
    });
  }

  #free(random: Random): void {
    const name = random.pick(FREE);
    const anyhow = { name, ifVersion: null, fence: null };
    const choice = random.next();
    if (choice < 0.3) return this.#write(random, { ...anyhow, kind: "put" });
    if (choice < 0.6) return this.#write(random, { ...anyhow, kind: "put", ifVersion: 0 });
    if (choice < 0.8) return this.#write(random, { ...anyhow, kind: "delete" });
    this.#read(random, name, (view) => {
      if (view !== null) this.#write(random, { ...anyhow, kind: "delete", ifVersion: view.version });
    });
  }

  /** One thing that fills the log, and then three that want the same name: what the log has no room for never was. */
  #burst(random: Random): void {
    if (this.#bursts >= WRITER_BURSTS_MAX) return;
    const name = `burst/${++this.#bursts}`;
    const fill = "x".repeat(BURST_BYTES);
    const create: Change = { kind: "put", name, ifVersion: 0, fence: null, fill };
    const changes = [{ ...create, name: "burst/fill", ifVersion: null }, create, create, create];
    const calls = changes.map((change) => this.#call(change));
    let from = 0;
    this.#post(random, {
      ask: (server) => {
        from = this.#cluster.values.head;
        return Promise.all(calls.map((call) => answered(changed(server, call))));
      },
      judge: (node, answers) => {
        if (!answers.ok) return;
        const codes = answers.value.map((answer, at) => {
          this.#judge(node, from, calls[at]!, answer);
          return answer.ok ? "ok" : answer.error.code;
        });
        // It was found there, and then it was not.
        if (codes[1] === "UNCOMMITTED_LIMIT" && codes[2] === "UNCOMMITTED_LIMIT" && codes[3] !== "VERSION_CONFLICT")
          reached(this.#cluster.probes, "refusal-decided-again");
      },
      arrived: () => undefined,
    });
  }

  #read(random: Random, name: string, then: (view: ValueView | null) => void): void {
    const { names, values } = this.#cluster;
    const to = random.pick(names);
    this.#post<ValueView | null>(random, {
      to,
      ask: async (server) => {
        const view = server.values.get(name);
        values.shown(to, name, view);
        return view;
      },
      judge: () => undefined,
      arrived: (answer) => answer.ok && !this.#isStopped && then(answer.value),
    });
  }

  #call({ kind, name, ifVersion, fence, count = 0, fill = "" }: Change): ValueCall {
    return this.#cluster.values.call({ kind, name, ifVersion, fence }, (call) => JSON.stringify({ call, count, fill }));
  }

  #write(random: Random, change: Change, done: (answer: Answer<number | null>) => void = () => undefined): void {
    const call = this.#call(change);
    let from = 0;
    this.#post<number | null>(random, {
      to: change.to,
      ask: (server) => {
        from = this.#cluster.values.head;
        return changed(server, call);
      },
      judge: (node, answer) => this.#judge(node, from, call, answer),
      arrived: done,
    });
  }

  #judge(node: string, from: number, call: ValueCall, answer: Answer<number | null>): void {
    const { values } = this.#cluster;
    if (answer.ok) values.written(node, from, call, answer.value);
    else values.refused(node, from, call, answer.error);
  }

  /** Mostly to whoever leads, or says so: there may be two. */
  #post<T>(from: Random, letter: Letter<T>): void {
    const cluster = this.#cluster;
    const random = from.fork(`post/${++this.#posts}`);
    const to = letter.to ?? this.#leaderOrAny(random);
    const { ask, judge, arrived } = letter;
    post<T>(cluster, { random, from: null, to, ask, judge: (_asked, answer) => judge(to, answer), arrived });
  }

  #leaderOrAny(random: Random): string {
    const { names } = this.#cluster;
    const choice = random.next();
    if (choice < 0.6) return this.#cluster.leader() ?? random.pick(names);
    const leaders = names.filter((name) => this.#cluster.server(name)?.engine.status().role === "leader");
    return random.pick(choice < 0.85 && leaders.length > 0 ? leaders : names);
  }
}

interface Letter<T> {
  readonly to?: string | undefined;
  readonly ask: (server: JobsServer) => Promise<T>;
  readonly judge: (node: string, answer: Answer<T>) => unknown;
  readonly arrived: (answer: Answer<T>) => unknown;
}

/** The version, or null: there was nothing to delete. */
async function changed(
  { values }: JobsServer,
  { kind, name, text, ifVersion, fence }: ValueCall,
): Promise<number | null> {
  if (kind === "delete") return (await values.delete({ name, ifVersion, fence })).version;
  return (await values.put({ name, value: JSON.parse(text), ifVersion, fence })).version;
}

function answered<T>(promise: Promise<T>): Promise<Answer<T>> {
  return promise.then(
    (value) => ({ ok: true, value }),
    (error) => ({ ok: false, error }),
  );
}
