// Agents that wait on one leader, for work or for news of the work that they have: parked long polls.
//
// A job is handed over in the turn in which it becomes ready, so the one who waits must be found fast: polls of agents that
// could take the same jobs (equal kinds, labels and platform) stand in one queue, and queues are found by each kind and each
// label of theirs. What a class of jobs asks for is looked up by the rarest of its demands: five thousand agents with a label
// of their own cost a job that is for one of them no more than that one.
//
// Invariants: an agent has at most one poll, its newest; a poll ends once: given jobs, told something, timed out, or gone.

import { TenureError } from "../../core/kit/errors.ts";
import type { WantedKinds } from "../../core/jobs/index.ts";
import type { AgentInfo } from "../../core/jobs/model.ts";
import type { Clock, Timer } from "../../ports/clock.ts";
import { POLLS_MAX } from "./limits.ts";

export interface Poll<Call> {
  readonly call: Call;
  /** Null: it wants no jobs, and waits for news alone. */
  readonly group: string | null;
  /** Wakes it: whoever waits looks again what there is for it. */
  readonly wake: () => void;
}

/** What jobs ask of an agent. */
export interface Demand {
  readonly kind: string;
  readonly labels: Readonly<Record<string, string>>;
  /** Null: this agent may run them. */
  missingAt(agent: AgentInfo): string | null;
}

interface Group<Call> {
  /** As each of them. */
  readonly agent: AgentInfo;
  readonly polls: Set<Poll<Call>>;
}

export class JobsPolls<Call extends { readonly agent: AgentInfo; readonly max: number }> {
  readonly #clock: Clock;
  readonly #byAgent = new Map<string, Poll<Call>>();
  readonly #groups = new Map<string, Group<Call>>();
  readonly #byKind = new Map<string, Set<Group<Call>>>();
  readonly #byLabel = new Map<string, Set<Group<Call>>>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  get size(): number {
    return this.#byAgent.size;
  }

  /** Whether anybody waits for jobs. */
  get isWanting(): boolean {
    return this.#groups.size > 0;
  }

  /** Of those who want jobs. */
  get kinds(): WantedKinds {
    return this.#byKind;
  }

  ofAgent(name: string): Poll<Call> | undefined {
    return this.#byAgent.get(name);
  }

  /** Queues of agents that may run such jobs, each with its first first. They may be changed while they are walked through. */
  *fitting(demand: Demand): Generator<Iterable<Poll<Call>>, void, void> {
    let rarest = this.#byKind.get(demand.kind);
    for (const [name, value] of Object.entries(demand.labels)) {
      const groups = this.#byLabel.get(labelKey(name, value));
      if (groups === undefined) return;
      if (rarest !== undefined && groups.size < rarest.size) rarest = groups;
    }
    for (const { agent, polls } of rarest ?? []) if (demand.missingAt(agent) === null) yield polls;
  }

  /** Resolves when it is woken, its time is over, or nobody waits for it any more. */
  park(call: Call, waitMs: number, signal: AbortSignal): Promise<void> {
    // Who is gone already does not say so again.
    if (signal.aborted) return Promise.resolve();
    this.#byAgent.get(call.agent.name)?.wake();
    if (this.#byAgent.size >= POLLS_MAX) {
      const message = `${POLLS_MAX} agents wait for jobs on this node. Nothing was done; retry in a moment.`;
      return Promise.reject(new TenureError("OVERLOADED", message));
    }
    return new Promise((resolve) => {
      const wake = (): void => {
        timer.cancel();
        signal.removeEventListener("abort", wake);
        this.#remove(poll);
        resolve();
      };
      const poll: Poll<Call> = { call, group: call.max === 0 ? null : groupOf(call.agent), wake };
      const timer: Timer = this.#clock.setTimer(this.#clock.monotonicMs() + waitMs, wake);
      signal.addEventListener("abort", wake, { once: true });
      this.#add(poll);
    });
  }

  wakeAll(): void {
    // Deleting what was visited is allowed while a map is walked through.
    for (const poll of this.#byAgent.values()) poll.wake();
  }

  #add(poll: Poll<Call>): void {
    const { agent } = poll.call;
    this.#byAgent.set(agent.name, poll);
    if (poll.group === null) return;
    const known = this.#groups.get(poll.group);
    if (known !== undefined) return void known.polls.add(poll);
    const group: Group<Call> = { agent, polls: new Set([poll]) };
    this.#groups.set(poll.group, group);
    for (const kind of agent.kinds) file(this.#byKind, kind, group);
    for (const key of labelKeys(agent)) file(this.#byLabel, key, group);
  }

  #remove(poll: Poll<Call>): void {
    const { agent } = poll.call;
    if (this.#byAgent.get(agent.name) === poll) this.#byAgent.delete(agent.name);
    if (poll.group === null) return;
    const group = this.#groups.get(poll.group);
    if (group?.polls.delete(poll) !== true || group.polls.size > 0) return;
    this.#groups.delete(poll.group);
    for (const kind of agent.kinds) unfile(this.#byKind, kind, group);
    for (const key of labelKeys(agent)) unfile(this.#byLabel, key, group);
  }
}

function file<G>(index: Map<string, Set<G>>, key: string, group: G): void {
  const groups = index.get(key);
  if (groups === undefined) index.set(key, new Set([group]));
  else groups.add(group);
}

function unfile<G>(index: Map<string, Set<G>>, key: string, group: G): void {
  const groups = index.get(key);
  if (groups?.delete(group) === true && groups.size === 0) index.delete(key);
}

/** With the length of the name: no two labels have the same text. */
function labelKey(name: string, value: string): string {
  return `${name.length}:${name}${value}`;
}

function labelKeys({ labels }: AgentInfo): string[] {
  return Object.entries(labels).map(([name, value]) => labelKey(name, value));
}

function groupOf({ kinds, labels, platform }: AgentInfo): string {
  return JSON.stringify([
    kinds.toSorted(),
    Object.keys(labels)
      .toSorted()
      .map((name) => [name, labels[name]]),
    platform,
  ]);
}
