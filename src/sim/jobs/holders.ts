// Who has which job in its hands, as agents themselves believe it by their own clocks, and what they were given.
//
// - Of one job at most one agent believes that it may run it.
// - No lease is taken from an agent that still believes in it: neither for silence, nor for the time that it takes.
// - A lease is given to one agent. Where another is given the same job, the lease before has ended in the log.

import type { JobHistory } from "./history.ts";

export interface Belief {
  readonly agent: string;
  readonly jobId: string;
  readonly leaseId: string;
  readonly isHeld: () => boolean;
}

/** Causes of an end that the leader decides alone. */
const TAKEN: readonly unknown[] = ["lost", "timed-out"];

export class Holders {
  readonly #wrong: (node: string, what: string) => void;
  readonly #beliefs = new Map<string, Belief>();
  /** By job: which lease was given to whom. */
  readonly #given = new Map<string, Map<string, string>>();

  constructor(wrong: (node: string, what: string) => void) {
    this.#wrong = wrong;
  }

  /** How often any job came to an agent, and how many of these times to another than before. */
  get deliveries(): { readonly all: number; readonly again: number } {
    const all = [...this.#given.values()].reduce((sum, { size }) => sum + size, 0);
    return { all, again: all - this.#given.size };
  }

  believes(belief: Belief): void {
    this.#beliefs.set(belief.leaseId, belief);
    this.alone(belief.agent, belief.jobId, belief.leaseId);
  }

  gaveUp(leaseId: string): void {
    this.#beliefs.delete(leaseId);
  }

  /** This lease of the job is the only one that anybody believes in. */
  alone(node: string, jobId: string, leaseId: string): void {
    for (const belief of this.#beliefs.values()) {
      if (belief.leaseId === leaseId || belief.jobId !== jobId) continue;
      const { agent } = belief;
      if (!belief.isHeld()) this.#beliefs.delete(belief.leaseId);
      else this.#wrong(node, `job ${jobId} has lease ${leaseId} while ${agent} rightly runs it by ${belief.leaseId}`);
    }
  }

  ended(node: string, jobId: string, leaseId: unknown, cause: unknown): void {
    const belief = typeof leaseId === "string" ? this.#beliefs.get(leaseId) : undefined;
    if (belief === undefined || !TAKEN.includes(cause) || !belief.isHeld()) return;
    this.#wrong(
      node,
      `lease ${belief.leaseId} of job ${jobId} is ${String(cause)} while ${belief.agent} rightly holds it`,
    );
  }

  given(agent: string, jobId: string, leaseId: string, job: JobHistory | undefined): void {
    const given = this.#given.get(jobId) ?? new Map<string, string>();
    this.#given.set(jobId, given);
    const before = given.get(leaseId);
    if (before !== undefined && before !== agent)
      this.#wrong(agent, `lease ${leaseId} of ${jobId} was given to ${before} too`);
    given.set(leaseId, agent);
    // The order of answers is nobody's: what counts is that one of the two was over when the other was given out.
    const open = [...given.keys()].filter((one) => job?.ends.has(one) !== true);
    if (open.length > 1) this.#wrong(agent, `job ${jobId} was given by ${open.join(" and ")}, and neither has ended`);
  }
}
