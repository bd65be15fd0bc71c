// What readers are answered, held against what is committed: each answer, at every moment, also while views are built again.
//
// - What a node shows of its own book is what its applied events make; a finished job may be missing there once so many were
//   finished after it that the book has dropped it.
// - A read of a job shows it as it was at some moment since the read began: a linearizable one since then by what was committed
//   anywhere, a local one by what was applied there. No state of before that is shown as the present.
// - A list is right as of the position that it states, or newer: no row is of before it, and no job is missing that was there
//   all the time since. A linearizable one states a position that was not committed before the read began.
// - That there is no such job is said only where it was forgotten, or not yet submitted by what the reader may expect.

import { JOBS_FINISHED_BYTES_MAX } from "../../../core/kit/limits.ts";
import type { Job, JobState } from "../../../core/jobs/model.ts";
import { isFinal, type Moment } from "./history.ts";
import { describe, isForgotten } from "./kit.ts";
import type { Asked, JobsOracle } from "./oracle.ts";
import type { JobsCluster } from "../cluster.ts";
import { reached } from "../probes.ts";
import type { How, ShownJob, ShownPage } from "../reading.ts";

/** When a read began: at which node, and what was applied there and committed anywhere by then. */
export interface ReadBegun extends Asked {
  readonly applied: number;
  /** The views there are being built anew. */
  readonly isRebuilding: boolean;
  /** The node's book has dropped the job. */
  readonly isDropped: boolean;
}

export class ReadsOracle {
  readonly #cluster: JobsCluster;
  readonly #oracle: JobsOracle;
  /** Sequences of the events that finished a job. */
  readonly #finishes: number[] = [];

  constructor(cluster: JobsCluster, oracle: JobsOracle) {
    this.#cluster = cluster;
    this.#oracle = oracle;
  }

  finished(sequence: number): void {
    this.#finishes.push(sequence);
  }

  /** Whether a book may have dropped it at some time between the two events, as one of those that were finished first. */
  mayBeDropped(jobId: string, from = this.#oracle.head, to = this.#oracle.head): boolean {
    const { finishedMax, finishedBytesMax } = this.#cluster.knobs;
    const job = this.#oracle.jobs.get(jobId);
    return (job?.during(from, to) ?? []).some(({ moment, through }) => {
      if (!isFinal(moment.state)) return false;
      const since = this.#finishes.filter((sequence) => sequence > moment.sequence && sequence <= through).length;
      return since >= finishedMax || finishedBytesMax < JOBS_FINISHED_BYTES_MAX;
    });
  }

  /** What a node shows of its book is what its own applied events make. */
  shown(node: string, jobId: string, job: Job | null): void {
    const at = this.#oracle.positionOf(node);
    const moment = this.#oracle.jobs.get(jobId)?.at(at) ?? null;
    const known = moment === null || isForgotten(moment) ? null : moment;
    if (job === null && known !== null && this.mayBeDropped(jobId, at, at))
      return reached(this.#cluster.probes, "book-dropped-a-job");
    const [is, should] = [
      describe(job?.state, job?.jobEpoch, job?.lease?.leaseId),
      describe(known?.state, known?.jobEpoch, known?.leaseId),
    ];
    if (is !== should) this.#oracle.wrong(node, `shows ${jobId} as ${is}; by what is committed here it is ${should}`);
  }

  /** Null: it was answered that there is none. */
  jobAnswered(begun: ReadBegun, how: How, jobId: string, shown: ShownJob | null): void {
    this.#count(begun, how);
    const { node } = begun;
    const job = this.#oracle.jobs.get(jobId);
    if (job === undefined) return this.#oracle.wrong(node, `was asked for ${jobId}, which is not committed`);
    const from = how === "linearizable" ? begun.from : begun.applied;
    const isSo = shown === null ? isUnknown : (moment: Moment) => isAs(moment, shown);
    if (job.everBetween(from, this.#oracle.head, isSo) || (shown === null && job.at(from) === null)) return;
    const is = shown === null ? "unknown" : `${shown.state}/${shown.jobEpoch}`;
    const was = job.at(from);
    this.#oracle.wrong(
      node,
      `answers a ${how} read of ${jobId} with ${is}, though it was ${was?.state}/${was?.jobEpoch} at event ${from} already`,
    );
  }

  /** `state`: those alone were asked for. */
  listAnswered(begun: ReadBegun, how: How, state: JobState | undefined, { jobs, position, isLast }: ShownPage): void {
    this.#count(begun, how);
    const { node } = begun;
    const head = this.#oracle.head;
    const what = `a ${how} list of ${state ?? "all"} jobs as of event ${position}`;
    if (position > head) return this.#oracle.wrong(node, `answers ${what}, and ${head} is committed`);
    if (how === "linearizable" && position < begun.from)
      return this.#oracle.wrong(node, `answers ${what}, though ${begun.from} was committed when it was asked`);
    for (const one of jobs) {
      const job = this.#oracle.jobs.get(one.id);
      if (job?.everBetween(position, head, (moment) => isAs(moment, one)) === true) continue;
      const was = job?.at(position);
      return this.#oracle.wrong(
        node,
        `answers ${what} with ${one.id} ${one.state}/${one.jobEpoch}, which was ${was?.state}/${was?.jobEpoch} then, and never so since`,
      );
    }
    if (!isLast) return;
    const listed = new Set(jobs.map(({ id }) => id));
    for (const [id, job] of this.#oracle.jobs) {
      const isMeant = (moment: Moment): boolean =>
        !isForgotten(moment) && (state === undefined || moment.state === state);
      if (listed.has(id) || job.at(position) === null) continue;
      if (!job.everBetween(position, head, (moment) => !isMeant(moment)))
        return this.#oracle.wrong(
          node,
          `answers ${what} without ${id}, which was ${job.at(position)?.state} all the time`,
        );
    }
  }

  /** It was refused because the views there are not far enough. */
  tooStale(begun: ReadBegun): void {
    reached(this.#cluster.probes, begun.isRebuilding ? "too-stale-during-rebuild" : "too-stale");
  }

  #count({ isRebuilding, isDropped }: ReadBegun, how: How): void {
    const { probes } = this.#cluster;
    if (isDropped) reached(probes, "dropped-job-read");
    if (isRebuilding) reached(probes, "read-during-rebuild");
    if (isDropped && isRebuilding) reached(probes, `dropped-job-read-during-rebuild-${how}`);
  }
}

function isUnknown(moment: Moment): boolean {
  return isForgotten(moment);
}

function isAs(moment: Moment, { state, jobEpoch }: ShownJob): boolean {
  return moment.state === state && moment.jobEpoch === jobEpoch;
}
