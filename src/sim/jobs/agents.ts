// A simulated agent: one process on a machine of its own, with its own clock. It polls, renews, works for a while, reports,
// hands back, and falls silent when it is paused or dies; its next life is another session.
//
// What it believes: a lease is its own until the call that gave or renewed it was sent, plus its duration, less what clocks
// may drift; of an attempt with a time limit no longer than that. Where a grant is older than that when it comes, it renews
// before it begins. It goes on working when it has lost its lease, and says so late: such results must not be taken.
//
// It names its epoch from its first answer on, unless it is of an older release, which knows none; one that is refused as replaced
// ends, and its next life registers.
//
// Its polls have numbers, and an answer that it has given up on brings it no lease: what it was to bring comes back by the
// next poll. Now and then a poll comes once more, late, and nobody hears what is answered to that.

import type { Random } from "../../core/kit/random.ts";
import type { Clock } from "../../ports/clock.ts";
import type { GivenLease, LeaseAnswer, LeaseCall, ResultAnswer, ResultCall } from "../../ports/jobs.ts";
import type { Boot } from "../kernel/index.ts";
import type { AnsweredAgent, JobsCluster, JobsServer } from "./cluster.ts";
import { SIM_DRIFT_MAX } from "./knobs.ts";
import type { Asked } from "./oracle/oracle.ts";
import { type Answer, post } from "./post.ts";
import { reached } from "./probes.ts";

/** Both clocks may drift, in opposite directions. */
const TRUSTED_SHARE = 1 - 3 * SIM_DRIFT_MAX;
/** Next to the time that a poll may wait: the leases of one whose answer is lost may be over by then, or not. */
const GIVE_UP_MS: readonly number[] = [150, 500, 3_000];
const RENEW_GIVE_UP_MS = 600;
const IDLE_WAIT_MS = 2_500;
const AGAIN_MS = 30;
const TWICE_RATE = 0.1;
const TWICE_AFTER_MS = 400;
const LATE_RESULT_MS = 1_500;
const RESULT_TRIES_MAX = 60;
/** Agents of a release before there were epochs. */
const OLDER_RATE = 0.5;
/** A process that was replaced goes on for so long. */
const ENDS_AFTER_MS = 200;
const KINDS = ["work", "heavy"];

interface Work {
  readonly lease: GivenLease;
  /** By the attempt's own limit. */
  readonly limitMs: number;
  readonly outcome: ResultCall["outcome"];
  readonly doneAtMs: number;
  untilMs: number;
  leaderEpoch: number;
  state: "held" | "reporting" | "lost";
  tries: number;
}

export function startAgent(cluster: JobsCluster, boot: Boot): void {
  new Agent(cluster, boot).start();
}

class Agent {
  readonly #cluster: JobsCluster;
  readonly #clock: Clock;
  readonly #random: Random;
  readonly #name: string;
  readonly #session: string;
  readonly #life: number;
  readonly #isAlive: () => boolean;
  readonly #work = new Map<string, Work>();
  #believed: string;
  #isPolling = false;
  #polls = 0;
  /** Of polls for more: the number of the last, and of the last that was answered. */
  #asked = 0;
  #answeredUpTo = 0;
  #epoch: number | undefined;
  readonly #isOlder: boolean;
  #isEnding = false;

  constructor(cluster: JobsCluster, { node, life, clock, random, isAlive }: Boot) {
    this.#cluster = cluster;
    this.#clock = clock;
    this.#random = random.fork("agent");
    this.#name = node;
    this.#life = life;
    this.#isAlive = isAlive;
    this.#session = `${node}-${life}`;
    this.#believed = this.#random.pick(cluster.names);
    this.#isOlder = this.#random.fork("older").chance(OLDER_RATE);
  }

  start(): void {
    this.#cluster.oracle.session(this.#name, this.#session);
    this.#cluster.renewals.set(this.#name, (to) => this.#here(() => this.#work.size > 0 && this.#poll(false, to)));
    const before = this.#cluster.sessions.get(this.#name);
    const firstMs = this.#random.between(0, 100);
    this.#later(firstMs, () => this.#turn());
    // One that does not know that it was registered may register late.
    if (before?.isSure !== true || !this.#random.chance(0.6)) return;
    for (const afterMs of [firstMs, firstMs + this.#random.between(0, 20), firstMs + 300]) {
      this.#later(afterMs, () => this.#haunt(before));
    }
  }

  /** A call of the process before, that comes late: not its first one, which its epoch shows, or that it was answered. */
  #haunt({ session, epoch: agentEpoch, answeredUpTo: answered }: AnsweredAgent): void {
    const call: LeaseCall = {
      agent: this.#agent(session),
      agentEpoch,
      ...(answered > 0 && { poll: answered, answered }),
      renew: [],
      progress: [],
      logs: [],
      max: 0,
      waitMs: 0,
      ttlMs: 1_000,
      // One of an older release shows by its numbers that it was answered.
      ...(agentEpoch === undefined ? { poll: 2, answered: 1 } : {}),
    };
    this.#call(`ghost/${++this.#polls}`, call);
  }

  #call(
    label: string,
    call: LeaseCall,
    to: string = this.#believed,
    signal: AbortSignal = new AbortController().signal,
    arrived: (answer: Answer<LeaseAnswer>) => void = () => undefined,
  ): void {
    post<LeaseAnswer>(this.#cluster, {
      random: this.#random.fork(label),
      from: this.#name,
      to,
      ask: ({ service }) => service.lease(call, signal),
      judge: (asked, answer, server) => this.#judge(asked, call, answer, server),
      arrived,
    });
  }

  #agent(session: string): LeaseCall["agent"] {
    const capacity = this.#cluster.knobs.agentCapacity;
    return { name: this.#name, session, kinds: KINDS, labels: {}, platform: "sim", capacity };
  }

  #judge(asked: Asked, call: LeaseCall, answer: Answer<LeaseAnswer>, { engine }: JobsServer): void {
    const { oracle } = this.#cluster;
    if (answer.ok) oracle.leaseAnswered(asked, call, answer.value);
    else if (answer.error.code === "STALE_EPOCH") oracle.sessionRefused(asked, call, engine.status().term);
  }

  #later(afterMs: number, fire: () => void): void {
    this.#clock.setTimer(this.#clock.monotonicMs() + afterMs, fire);
  }

  /** Polls for more where it has room, and renews well before the end. */
  #turn(): void {
    const { ttlMs } = this.#cluster.knobs;
    this.#later(this.#random.between(0.15, 0.3) * ttlMs, () => this.#turn());
    if (!this.#isPolling) this.#poll(true);
    else if (this.#work.size > 0) this.#poll(false);
  }

  #poll(isForMore: boolean, to: string = this.#believed): void {
    const { ttlMs, agentCapacity } = this.#cluster.knobs;
    const held = [...this.#work.values()].filter(({ state }) => state !== "lost");
    const renew = held.map(({ lease: { jobId, jobEpoch, leaseId } }) => ({ jobId, jobEpoch, leaseId }));
    const number = ++this.#polls;
    const waitMs = isForMore ? this.#random.pick([0, 0.3 * ttlMs, IDLE_WAIT_MS]) : 0;
    const progress = renew
      .slice(0, this.#random.below(2))
      .map((ref) => ({ ...ref, progress: { share: 0.5, message: null } }));
    const max = isForMore ? Math.max(0, agentCapacity - held.length) : 0;
    const numbers = max > 0 ? { poll: ++this.#asked, answered: this.#answeredUpTo } : {};
    const call: LeaseCall = {
      agent: this.#agent(this.#session),
      agentEpoch: this.#epoch,
      renew,
      progress,
      logs: [],
      max,
      waitMs,
      ttlMs,
      ...numbers,
    };
    const sentMs = this.#clock.monotonicMs();
    const gone = new AbortController();
    let isOpen = true;
    if (isForMore) this.#isPolling = true;
    const over = (): void => {
      isOpen = false;
      if (isForMore) this.#isPolling = false;
    };
    // In a race only servers fail: agents are patient, and say everything once.
    const { race } = this.#cluster.knobs;
    const patienceMs = race ? GIVE_UP_MS.at(-1)! : this.#random.pick(GIVE_UP_MS);
    const giveUpMs = isForMore ? waitMs + patienceMs : RENEW_GIVE_UP_MS;
    this.#later(giveUpMs, () => {
      if (!isOpen) return;
      over();
      gone.abort();
      this.#elsewhere();
    });
    this.#call(`poll/${number}`, call, to, gone.signal, (answer) =>
      this.#here(() => this.#answered(call, sentMs, answer, isOpen, over)),
    );
    // Not its first: that registers it, also when it comes after many others.
    const isSure = this.#epoch !== undefined || this.#answeredUpTo > 0;
    if (max > 0 && !race && isSure && this.#random.chance(TWICE_RATE))
      this.#later(this.#random.between(0, TWICE_AFTER_MS), () => this.#call(`twice/${number}`, call));
  }

  /** In this process, if it is still this one. */
  #here(fire: () => void): void {
    if (this.#isAlive()) this.#cluster.world.call(this.#name, () => this.#isAlive() && fire());
  }

  #answered(call: LeaseCall, sentMs: number, answer: Answer<LeaseAnswer>, isOpen: boolean, over: () => void): void {
    // By then another may be under way.
    if (isOpen) over();
    if (!answer.ok) return answer.error.code === "STALE_EPOCH" ? this.#end() : this.#elsewhere();
    const { renewed, leases, leaderEpoch, agentEpoch } = answer.value;
    if (!this.#isOlder) this.#epoch ??= agentEpoch;
    if (isOpen) this.#answeredUpTo = call.poll ?? this.#answeredUpTo;
    const isSure = this.#epoch !== undefined || this.#answeredUpTo > 0;
    const known = { epoch: this.#epoch, answeredUpTo: this.#answeredUpTo, isSure };
    const process = { life: this.#life, session: this.#session, ...known };
    this.#cluster.sessions.set(this.#name, process);
    for (const { leaseId, outcome } of renewed) {
      const work = this.#work.get(leaseId);
      if (work === undefined) continue;
      if (outcome === "renewed" || outcome === "cancelled") {
        work.leaderEpoch = Math.max(work.leaderEpoch, leaderEpoch);
        if (work.state === "held") this.#believe(work, sentMs + call.ttlMs * TRUSTED_SHARE);
        if (outcome === "cancelled" && work.state === "held" && this.#random.chance(0.7))
          this.#report(work, { kind: "cancelled" });
      } else {
        this.#giveUp(work, outcome === "lost");
      }
    }
    // Who has given up hearing of it says so with the next poll.
    if (!isOpen) return;
    if (leases.length > 0 && call.waitMs > 0) reached(this.#cluster.probes, "given-to-a-waiting-poll");
    for (const lease of leases) this.#begin(lease, sentMs);
  }

  #begin(lease: GivenLease, sentMs: number): void {
    this.#cluster.oracle.given(this.#session, lease.jobId, lease.leaseId);
    const { workMs, ttlMs } = this.#cluster.knobs;
    const nowMs = this.#clock.monotonicMs();
    const limitMs = lease.spec.timeoutMs === null ? Infinity : sentMs + lease.spec.timeoutMs * TRUSTED_SHARE;
    const doneAtMs = nowMs + this.#random.between(workMs[0], workMs[1]);
    const work: Work = {
      lease,
      limitMs,
      outcome: this.#outcome(lease),
      doneAtMs,
      untilMs: -Infinity,
      leaderEpoch: lease.leaderEpoch,
      state: "held",
      tries: 0,
    };
    this.#work.set(lease.leaseId, work);
    this.#believe(work, sentMs + ttlMs * TRUSTED_SHARE);
    if (work.untilMs <= nowMs) {
      reached(this.#cluster.probes, "grant-too-old-to-trust");
      this.#poll(false);
    }
    this.#later(doneAtMs - nowMs, () => this.#report(work, work.outcome));
  }

  #outcome({ jobId, leaseId, spec }: GivenLease): ResultCall["outcome"] {
    const random = this.#random.fork(`work/${leaseId}`);
    const { race: isSound, failures } = this.#cluster.knobs;
    if (!isSound && random.chance(0.06)) return { kind: "handed-back" };
    if (!isSound && random.chance(spec.kind === "heavy" ? failures.heavy : failures.work)) {
      return { kind: "failed", error: { message: "it broke", detail: null }, retry: random.chance(0.8) };
    }
    return { kind: "completed", result: { lease: this.#cluster.secrets.leaseHash(leaseId), job: jobId } };
  }

  #believe(work: Work, untilMs: number): void {
    const { jobId, leaseId } = work.lease;
    work.untilMs = Math.max(work.untilMs, Math.min(untilMs, work.limitMs));
    const { usurped } = this.#cluster;
    const isHeld = (): boolean =>
      this.#isAlive() &&
      work.state === "held" &&
      this.#clock.monotonicMs() < work.untilMs &&
      !usurped.has(this.#name, this.#session);
    if (isHeld()) this.#cluster.oracle.believes({ agent: this.#session, jobId, leaseId, isHeld });
  }

  #giveUp(work: Work, isLost: boolean): void {
    const { leaseId } = work.lease;
    this.#cluster.oracle.gaveUp(leaseId);
    work.state = "lost";
    if (!isLost || !this.#random.chance(0.5)) return void this.#work.delete(leaseId);
    // It did not stop, and its result comes late.
    this.#later(this.#random.between(0, LATE_RESULT_MS), () => {
      this.#work.delete(leaseId);
      this.#send(work, work.outcome, () => undefined);
    });
  }

  /** From here on it does not run any more, whatever becomes of what it says. */
  #report(work: Work, outcome: ResultCall["outcome"]): void {
    if (work.state !== "held") return;
    work.state = "reporting";
    this.#cluster.oracle.gaveUp(work.lease.leaseId);
    this.#insist(work, outcome);
  }

  #insist(work: Work, outcome: ResultCall["outcome"]): void {
    if (work.state !== "reporting") return;
    const mayGiveUp = !this.#cluster.knobs.race;
    if (++work.tries > RESULT_TRIES_MAX && mayGiveUp) return void this.#work.delete(work.lease.leaseId);
    let isOpen = true;
    const again = (): void => {
      if (!isOpen) return;
      isOpen = false;
      this.#later(this.#random.between(1, 2) * AGAIN_MS, () => this.#insist(work, outcome));
    };
    this.#later(RENEW_GIVE_UP_MS, () => {
      if (isOpen) this.#elsewhere();
      again();
    });
    const said = work.leaderEpoch;
    this.#send(work, outcome, (answer) => {
      if (!isOpen) return;
      if (!answer.ok) {
        this.#elsewhere();
        return again();
      }
      const one = answer.value[0]!;
      // By what was said then: it may have been renewed under another leader since.
      if (one.ok || one.leaderEpoch === said) {
        isOpen = false;
        this.#work.delete(work.lease.leaseId);
        // Also who was answered may say it again.
        if (one.ok && this.#random.chance(0.1)) this.#send(work, outcome, () => undefined);
        return;
      }
      // Another leader: it must be renewed there first, and that answer says how things stand.
      this.#poll(false);
      again();
    });
  }

  #send(work: Work, outcome: ResultCall["outcome"], arrived: (answer: Answer<readonly ResultAnswer[]>) => void): void {
    const { jobId, jobEpoch, leaseId } = work.lease;
    const call: ResultCall = { jobId, jobEpoch, leaseId, leaderEpoch: work.leaderEpoch, outcome };
    const to = this.#random.chance(0.1) ? this.#random.pick(this.#cluster.names) : this.#believed;
    post<readonly ResultAnswer[]>(this.#cluster, {
      random: this.#random.fork(`result/${leaseId}/${++this.#polls}`),
      from: this.#name,
      to,
      ask: ({ service }) => service.results(this.#session, [call]),
      look: ({ service }) => {
        this.#cluster.oracle.reads.shown(to, jobId, service.job(jobId));
        this.#cluster.onResult?.(to, jobId);
      },
      judge: (asked, answer) => {
        if (answer.ok) this.#cluster.oracle.resultAnswered(asked, this.#session, call, answer.value[0]!);
      },
      arrived: (answer) => this.#here(() => arrived(answer)),
    });
    // It says in the same moment that it wants to keep it: what is told must rest on what is committed.
    if (this.#random.chance(0.3)) this.#poll(false);
  }

  /** Another process has its name. Its supervisor starts it again. */
  #end(): void {
    if (this.#isEnding) return;
    this.#isEnding = true;
    this.#later(ENDS_AFTER_MS, () => {
      const { world } = this.#cluster;
      world.crash(this.#name);
      world.startAfter(this.#name, ENDS_AFTER_MS);
    });
  }

  #elsewhere(): void {
    const { names } = this.#cluster;
    const leader = this.#cluster.server(this.#believed)?.engine.status().leader ?? null;
    this.#believed = leader !== null && this.#random.chance(0.7) ? leader.split("@")[0]! : this.#random.pick(names);
  }
}
