// Who has which job in its hands, as agents themselves believe it by their own clocks, and what they were given.
//
// - Of one job at most one agent believes that it may run it.
// - No lease is taken from an agent that still believes in it: neither for silence, nor for the time that it takes.
// - What was given in an answer that did not come is not its agent's any more when the next poll that says so is answered.
// - A lease is given to one agent. Where another is given the same job, the lease before has ended in the log.

import type { LeaseCall } from "../../../ports/jobs.ts";
import type { JobHistory, SeenEvent } from "./history.ts";

export interface Belief {
  readonly agent: string;
  readonly jobId: string;
  readonly leaseId: string;
  readonly isHeld: () => boolean;
}

/** Causes of an end that the leader decides alone. */
const TAKEN: readonly unknown[] = ["lost", "timed-out", "undelivered"];

/** Its process was answered before, by its own word: it was registered, and never may be so again. */
export function goesOn({ agentEpoch, renew, answered = 0 }: LeaseCall): boolean {
  return agentEpoch !== undefined || renew.length > 0 || answered > 0;
}

/** A lease that goes on, by what is committed. */
interface Open {
  readonly jobId: string;
  readonly session: string;
  readonly poll: number;
  readonly sequence: number;
}

export class Holders {
  readonly #wrong: (node: string, what: string) => void;
  readonly #beliefs = new Map<string, Belief>();
  /** By job: which lease was given to whom. */
  readonly #given = new Map<string, Map<string, string>>();
  /** By lease. */
  readonly #open = new Map<string, Open>();

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

  assigned(node: string, { entityId: jobId, sequence, payload }: SeenEvent): void {
    const leaseId = payload["leaseHash"] as string;
    this.alone(node, jobId, leaseId);
    const poll = (payload["poll"] ?? 0) as number;
    this.#open.set(leaseId, { jobId, session: payload["sessionHash"] as string, poll, sequence });
  }

  /** A poll of this session was answered. `from`: the committed head when it was asked. */
  polled(node: string, session: string, from: number, { poll = 0, answered = poll }: LeaseCall): void {
    for (const [leaseId, one] of this.#open) {
      const isUnheard = one.session === session && one.poll > answered && one.poll < poll && one.sequence <= from;
      if (isUnheard) this.#wrong(node, `leaves ${one.jobId} by ${leaseId} to ${session}, who never heard of it`);
    }
  }

  ended(node: string, jobId: string, leaseId: unknown, cause: unknown): void {
    if (cause !== undefined) this.#open.delete(String(leaseId));
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
