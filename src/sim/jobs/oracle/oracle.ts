// The ledger outside of the code under test: which events are committed, and what clients and agents were told. Whatever
// does not go together is a violation.
//
// - A record is committed when any node applies it. All nodes apply the same bytes at the same place, have the same state at
//   the same sequence, and tell whoever follows only of what is committed.
// - What was told rests on committed events, also a refusal; a request is done at most once under its key, and not at all
//   where that was said.
// - Who has a job in its hands: holders.ts.

import type { TenureError } from "../../../core/kit/errors.ts";
import type { Job } from "../../../core/jobs/model.ts";
import type { LeaseAnswer, LeaseCall, ResultAnswer, ResultCall } from "../../../ports/jobs.ts";
import type { LeaseSecrets } from "../../../controller/jobs/lease-secrets.ts";
import { JobHistory, isFinal, type LeaseEnd, type Moment, type SeenEvent } from "./history.ts";
import { type Belief, goesOn, Holders } from "./holders.ts";
import { isForgotten, isReported, isSame } from "./kit.ts";
import type { JobsCluster } from "../cluster.ts";
import { type JobsProbeCounts, reached } from "../probes.ts";
import { ReadsOracle } from "./reads.ts";

export interface Asked {
  readonly node: string;
  /** The committed head when the node was asked. */
  readonly from: number;
  /** The highest term that was established anywhere by then. */
  readonly term: number;
}

const decoder = new TextDecoder();

export class JobsOracle {
  readonly probes: JobsProbeCounts;
  readonly jobs = new Map<string, JobHistory>();
  readonly holders = new Holders((node, what) => this.wrong(node, what));
  /** What readers are answered. */
  readonly reads: ReadsOracle;
  readonly #cluster: JobsCluster;
  readonly #records: Uint8Array[] = [];
  readonly #submitted: number[] = [0];
  readonly #states = new Map<number, string>();
  readonly #positions = new Map<string, number>();
  readonly #requests = new Map<string, number>();
  readonly #answers = new Map<string, string>();
  readonly #done = new Set<number>();
  readonly #notDone = new Set<number>();
  readonly #unknown = new Set<number>();
  readonly #running = new Map<string, Set<string>>();
  readonly #sessions = new Map<string, string>();
  readonly #agents = new Map<string, string>();
  /** Sessions whose agents had a newer one, by what is committed: since and until which event (a first call may come late). */
  readonly #replaced = new Map<string, { readonly from: number; readonly to: number }>();
  #term = 0;
  #epoch = 0;
  /** Agents name what they have, and events its hashes. */
  readonly #secrets: LeaseSecrets;

  constructor(cluster: JobsCluster) {
    this.#cluster = cluster;
    this.probes = cluster.probes;
    this.#secrets = cluster.secrets;
    this.reads = new ReadsOracle(cluster, this);
  }

  /** The last committed event's sequence. */
  get head(): number {
    return this.#records.length;
  }

  /** What is committed there. */
  record(sequence: number): Uint8Array {
    return this.#records[sequence - 1]!;
  }

  positionOf(node: string): number {
    return this.#positions.get(node) ?? 0;
  }

  asked(node: string): Asked {
    return { node, from: this.head, term: this.#term };
  }

  established(term: number): void {
    this.#term = Math.max(this.#term, term);
  }

  // ---- what is committed ---------------------------------------------------------------------------

  committed(node: string, position: number, data: Uint8Array): void {
    const before = this.positionOf(node);
    if (position !== before + 1) this.wrong(node, `applied ${position} behind ${before}`);
    this.#positions.set(node, position);
    const known = this.#records[position - 1];
    if (known !== undefined) {
      if (!isSame(known, data)) this.wrong(node, `applied another event ${position} than others`);
      return;
    }
    this.#records.push(data.slice());
    const event = JSON.parse(decoder.decode(data)) as SeenEvent;
    if (event.sequence !== position) this.wrong(node, `event ${event.sequence} stands at ${position}`);
    this.#submitted.push(this.#submitted.at(-1)! + (event.eventType === "build:submitted" ? 1 : 0));
    if (event.leaderEpoch < this.#epoch)
      this.wrong(node, `event ${position} of epoch ${event.leaderEpoch} behind ${this.#epoch}`);
    if (event.leaderEpoch > this.#epoch) reached(this.probes, "failover");
    this.#epoch = event.leaderEpoch;
    const mistimed = this.#cluster.clocks.problemOf(event.timestamp);
    if (mistimed !== null) this.wrong(node, `event ${position} ${mistimed}`);
    this.#requested(node, event);
    if (event.eventType.startsWith("build:")) this.#build(node, event);
    if (event.eventType === "worker:registered") this.#registered(event);
    if (event.eventType === "worker:removed") this.#removed(event);
  }

  /** The state after the last applied record. */
  folded(node: string, hash: () => string): void {
    const position = this.positionOf(node);
    if (position % this.#cluster.knobs.statesEvery === 0) this.state(node, hash());
  }

  restored(node: string, position: number, hash: string): void {
    if (position > this.head) this.wrong(node, `restored event ${position}, which nobody has`);
    if (position > 0) reached(this.probes, "snapshot-restored");
    this.#positions.set(node, position);
    this.state(node, hash);
  }

  started(node: string): void {
    this.#positions.set(node, 0);
  }

  state(node: string, hash: string): void {
    const position = this.positionOf(node);
    const known = this.#states.get(position);
    if (known === undefined) this.#states.set(position, hash);
    else if (known !== hash) this.wrong(node, `has another state than others at event ${position}`);
  }

  /** A follower was notified of this event. */
  told(node: string, sequence: number, bytes: Uint8Array): void {
    const known = this.#records[sequence - 1];
    if (known === undefined || this.positionOf(node) < sequence)
      this.wrong(node, `told of event ${sequence} before it was committed`);
    else if (!isSame(known, bytes)) this.wrong(node, `told of another event ${sequence} than the committed one`);
  }

  #requested(node: string, { payload, sequence, eventType }: SeenEvent): void {
    const mark = payload["request"] as { caller: string; key: string } | undefined;
    if (mark !== undefined) {
      const id = `${mark.caller}/${mark.key}`;
      const first = this.#requests.get(id);
      if (first !== undefined) this.wrong(node, `request ${id} was done at ${first} and again at ${sequence}`);
      this.#requests.set(id, sequence);
    }
    if (eventType !== "build:submitted") return;
    const { call } = (payload["spec"] as { payload: { call: number } }).payload;
    this.#done.add(call);
    if (this.#notDone.has(call))
      this.wrong(node, `call ${call} was told that nothing was done, and is committed at ${sequence}`);
    if (this.#unknown.has(call)) reached(this.probes, "unknown-but-committed");
  }

  #registered({ entityId: agent, payload, sequence }: SeenEvent): void {
    const session = payload["sessionHash"] as string;
    const before = this.#agents.get(agent);
    if (before !== undefined && before !== session) this.#replaced.set(before, { from: sequence, to: Infinity });
    const gone = this.#replaced.get(session);
    if (gone?.to === Infinity) this.#replaced.set(session, { ...gone, to: sequence });
    this.#agents.set(agent, session);
  }

  /** Nothing of its process goes on: it is refused as if another had come. */
  #removed({ entityId: agent, sequence }: SeenEvent): void {
    const session = this.#agents.get(agent);
    if (session !== undefined) this.#replaced.set(session, { from: sequence, to: Infinity });
  }

  #build(node: string, event: SeenEvent): void {
    const { entityId: jobId, eventType, sequence, payload } = event;
    const job = this.jobs.get(jobId);
    if (eventType === "build:submitted") {
      if (job !== undefined) this.wrong(node, `job ${jobId} is submitted twice, again at ${sequence}`);
      this.jobs.set(jobId, new JobHistory(event));
      return;
    }
    if (job === undefined) return this.wrong(node, `${eventType} at ${sequence} of a job that was never submitted`);
    if (eventType === "build:forgotten") reached(this.probes, "job-forgotten");
    if (eventType === "build:forgotten" && this.reads.mayBeDropped(jobId))
      reached(this.probes, "dropped-job-forgotten");
    const trouble = job.take(event, this.#cluster.world.nowMs);
    if (trouble !== null) return this.wrong(node, `job ${jobId} at ${sequence}: ${trouble}`);
    this.#count(node, jobId, job);
    if (job.isFinal && eventType !== "build:forgotten") this.reads.finished(sequence);
    if (eventType === "build:assigned") this.holders.assigned(node, event);
    const cause = eventType === "build:completed" ? "completed" : payload["cause"];
    this.holders.ended(node, jobId, payload["leaseHash"], cause);
    if (cause === "undelivered") reached(this.probes, "lost-answer-taken-back");
    if (payload["cause"] === "lost") reached(this.probes, "lease-expired");
    if (payload["cause"] === "timed-out") reached(this.probes, "attempt-timed-out");
    if (eventType === "build:cancelling") reached(this.probes, "running-job-cancelled");
    if (eventType === "build:retried" && payload["cause"] === "asked") reached(this.probes, "retried-by-hand");
    if (payload["job"] !== undefined) reached(this.probes, "dropped-job-retried");
  }

  #count(node: string, jobId: string, { spec, now }: JobHistory): void {
    if (spec.concurrency === null) return;
    const { key, limit } = spec.concurrency;
    const running = this.#running.get(key) ?? new Set();
    this.#running.set(key, running);
    if (now.leaseId === null) running.delete(jobId);
    else running.add(jobId);
    if (running.size > limit) this.wrong(node, `${running.size} jobs run with ${key}, and ${limit} may`);
    if (running.size === limit) reached(this.probes, "concurrency-limit-reached");
  }

  // ---- agents --------------------------------------------------------------------------------------

  session(agent: string, session: string): void {
    if (this.#sessions.has(agent)) reached(this.probes, "agent-came-back");
    this.#sessions.set(agent, session);
  }

  believes({ leaseId: secret, ...rest }: Belief): void {
    this.holders.believes({ ...rest, leaseId: this.#secrets.leaseHash(secret) });
  }

  gaveUp(leaseId: string): void {
    this.holders.gaveUp(this.#secrets.leaseHash(leaseId));
  }

  /** It has come to the agent. */
  given(agent: string, jobId: string, leaseId: string): void {
    this.holders.given(agent, jobId, this.#secrets.leaseHash(leaseId), this.jobs.get(jobId));
  }

  leaseAnswered(asked: Asked, call: LeaseCall, answer: LeaseAnswer): void {
    const { node } = asked;
    const session = this.#secrets.sessionHash(call.agent.session);
    const { from, to } = this.#replaced.get(session) ?? { from: Infinity, to: Infinity };
    if (goesOn(call) && from <= asked.from && asked.from < to)
      this.wrong(node, `answered ${call.agent.session}, whose name ${call.agent.name} another process has taken`);
    this.holders.polled(node, session, asked.from, call);
    for (const { jobId, leaseId: secret, jobEpoch } of answer.leases) {
      const leaseId = this.#secrets.leaseHash(secret);
      const isTrue = this.#job(node, jobId)?.everBetween(
        0,
        this.head,
        (moment) => moment.leaseId === leaseId && moment.jobEpoch === jobEpoch && moment.session === session,
      );
      if (isTrue === false) this.wrong(node, `gave lease ${leaseId} of ${jobId}, which is not committed`);
    }
    for (const { jobId, leaseId: secret, outcome } of answer.renewed) {
      const leaseId = this.#secrets.leaseHash(secret);
      const job = this.#job(node, jobId);
      if (job === undefined) continue;
      const isHolders = ({ leaseId: held, session: by }: Moment): boolean => held === leaseId && by === session;
      const ever = (isSo: (moment: Moment) => boolean): boolean => job.everBetween(asked.from, this.head, isSo);
      const isTrue = {
        renewed: () => ever(isHolders),
        cancelled: () => ever((moment) => isHolders(moment) && moment.state === "cancelling"),
        lost: () =>
          ever(isForgotten) ||
          this.reads.mayBeDropped(jobId, asked.from) ||
          (ever((moment) => !isHolders(moment)) && !this.#isReportKnown(jobId, job.ends.get(leaseId))),
        committed: () => isReported(job.ends.get(leaseId)?.cause),
      }[outcome]();
      if (!isTrue) this.wrong(node, `said ${outcome} of lease ${leaseId} of ${jobId}, which is not committed`);
      if (outcome === "lost") reached(this.probes, "lease-lost-told");
      if (outcome === "committed") reached(this.probes, "committed-told-by-renewal");
      if (outcome === "cancelled") reached(this.probes, "cancelled-told-by-renewal");
    }
    if (call.renew.length > 0 && answer.leaderEpoch < asked.term)
      this.wrong(node, `answered an agent in epoch ${answer.leaderEpoch}, though ${asked.term} had begun`);
  }

  /** A report that was taken; what a book has dropped, and a retry by hand brought back, has lost the reports of its leases. */
  #isReportKnown(jobId: string, end: LeaseEnd | undefined): boolean {
    return end !== undefined && isReported(end.cause) && !this.reads.mayBeDropped(jobId, end.sequence);
  }

  resultAnswered(asked: Asked, secret: string, call: ResultCall, answer: ResultAnswer): void {
    const { node } = asked;
    const { jobId } = call;
    const session = this.#secrets.sessionHash(secret);
    const leaseId = this.#secrets.leaseHash(call.leaseId);
    const job = this.#job(node, jobId);
    if (job === undefined) return;
    const end = job.ends.get(leaseId);
    if (answer.ok) {
      if (end?.cause !== call.outcome.kind)
        this.wrong(node, `took result ${call.outcome.kind} of lease ${leaseId} of ${jobId}, which is not committed`);
      else if (end.state !== answer.state)
        this.wrong(node, `said that ${jobId} is ${answer.state} by lease ${leaseId}, which made it ${end.state}`);
      if (answer.isRepeated) reached(this.probes, "repeated-result");
      return;
    }
    if (answer.code === "NOT_FOUND") {
      if (job.everBetween(asked.from, this.head, isForgotten) || this.reads.mayBeDropped(jobId, asked.from)) return;
      return this.wrong(node, `does not know job ${jobId}`);
    }
    if (answer.leaderEpoch < asked.term)
      this.wrong(node, `said stale in epoch ${answer.leaderEpoch}, though ${asked.term} had begun`);
    if (answer.leaderEpoch !== call.leaderEpoch) return reached(this.probes, "old-leader-epoch-told");
    reached(this.probes, "stale-result-told");
    const isTrue = job.everBetween(
      asked.from,
      this.head,
      (moment) => moment.leaseId !== leaseId || moment.session !== session,
    );
    if (!isTrue) this.wrong(node, `said stale of lease ${leaseId} of ${jobId}, which is held`);
  }

  /** A lease call was refused as of an old process: for good, so a newer one is committed. */
  sessionRefused({ node, term }: Asked, { agent, agentEpoch }: LeaseCall, termNow: number): void {
    reached(this.probes, "old-session-refused");
    if (agentEpoch !== undefined) reached(this.probes, "old-agent-epoch-refused");
    if (!this.#replaced.has(this.#secrets.sessionHash(agent.session)))
      this.wrong(node, `refused ${agent.session}, the newest of ${agent.name}`);
    if (termNow < term) this.wrong(node, `refused ${agent.session} in term ${termNow}, though ${term} had begun`);
  }

  // ---- clients -------------------------------------------------------------------------------------

  submitAnswered({ node }: Asked, key: string | null, caller: string, jobIds: readonly string[]): void {
    for (const jobId of jobIds) this.#job(node, jobId);
    if (key !== null && this.#answers.has(`${caller}/${key}`) && jobIds.some((jobId) => this.reads.mayBeDropped(jobId)))
      reached(this.probes, "key-of-a-dropped-job-answered");
    this.#sameAnswer(node, key === null ? null : `${caller}/${key}`, jobIds.join());
  }

  cancelAnswered({ node }: Asked, shown: Job): void {
    const job = this.#job(node, shown.id);
    const isTrue = job?.everBetween(0, this.head, ({ state }) => state === "cancelling" || state === "cancelled");
    if (isTrue === false) this.wrong(node, `said that ${shown.id} is cancelled, which is not committed`);
  }

  retryAnswered({ node }: Asked, shown: Job, key: string | null, caller: string): void {
    this.#job(node, shown.id);
    if (key !== null && !this.#requests.has(`${caller}/${key}`))
      this.wrong(node, `said that ${shown.id} is sent once more, which is not committed`);
  }

  /** A refusal for good, about this job. */
  refused(
    { node, from, term }: Asked,
    command: "cancel" | "retry" | "submit",
    jobId: string | null,
    error: TenureError,
    termNow: number,
  ): void {
    reached(this.probes, "refusal-told");
    if (termNow < term)
      this.wrong(node, `refused ${command} in term ${termNow} (${error.code}), though ${term} had begun`);
    if (error.code === "IDEMPOTENCY_MISMATCH") return reached(this.probes, "idempotency-mismatch-told");
    const job = jobId === null ? undefined : this.jobs.get(jobId);
    if (error.code === "NOT_FOUND" && job?.everBetween(from, this.head, isForgotten) === true) return;
    const isTrue =
      job?.everBetween(from, this.head, (moment) => isFinal(moment.state) === (command === "cancel")) === true;
    const isKnown =
      (command === "cancel" && error.code === "JOB_FINISHED") || (command === "retry" && error.code === "BAD_REQUEST");
    if (isTrue && command === "cancel" && this.reads.mayBeDropped(jobId!, from))
      reached(this.probes, "dropped-job-found-finished");
    if (!isKnown || !isTrue)
      this.wrong(node, `refused ${command} of ${jobId} (${error.code}), which is not so: ${error.message}`);
  }

  /** A call was notified that nothing of it was done. */
  notDone(node: string, call: number): void {
    this.#notDone.add(call);
    if (this.#done.has(call)) this.wrong(node, `told call ${call} that nothing was done, and it is committed`);
  }

  unknown(call: number): void {
    reached(this.probes, "outcome-unknown");
    this.#unknown.add(call);
    if (this.#done.has(call)) reached(this.probes, "unknown-but-committed");
  }

  counted(node: string, submitted: number): void {
    const should = this.#submitted[this.positionOf(node)];
    if (submitted !== should) this.wrong(node, `shows ${submitted} submitted jobs; committed here are ${should}`);
  }

  #sameAnswer(node: string, id: string | null, answer: string): void {
    if (id === null) return;
    const first = this.#answers.get(id);
    if (first !== undefined) reached(this.probes, "repeated-idempotent-answer");
    if (first !== undefined && first !== answer)
      this.wrong(node, `answered request ${id} with ${answer}, before with ${first}`);
    this.#answers.set(id, answer);
  }

  #job(node: string, jobId: string): JobHistory | undefined {
    const job = this.jobs.get(jobId);
    if (job === undefined) this.wrong(node, `told somebody of job ${jobId}, which is not committed`);
    return job;
  }

  wrong(node: string, what: string): void {
    this.#cluster.world.report(node, new Error(`${node} ${what}`));
  }
}
