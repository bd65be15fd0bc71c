// Results of agents that were killed or stopped with jobs in their hands, sent by the harness once the job is another's: with
// the right leader epoch, so that nothing but the job's own epoch is in their way (trap 50). None may be taken.

import { setTimeout as sleep } from "node:timers/promises";
import type { Client } from "../../src/entry/client.ts";
import type { AgentPlace } from "./jobs-agents.ts";
import type { LeaseLine } from "./jobs-journal.ts";

/** Of one agent at one time. */
const LEASES_MAX = 4;
const POLL_MS = 50;
const TAKEN_MS_MAX = 60_000;
const SENDS_MAX = 10;

export interface GhostTold {
  readonly job: string;
  readonly lease: string;
  readonly verdict: "taken" | "refused";
}

export class Ghosts {
  readonly told: GhostTold[] = [];
  readonly #client: Client;
  readonly #signal: AbortSignal;
  readonly #under = new Set<Promise<void>>();

  constructor(client: Client, signal: AbortSignal) {
    this.#client = client;
    this.#signal = signal;
  }

  /** Goes on by itself. */
  haunt(place: AgentPlace): void {
    for (const line of place.openLeases().slice(-LEASES_MAX)) {
      const work = this.#send(line).catch(() => undefined);
      this.#under.add(work);
      void work.then(() => this.#under.delete(work));
    }
  }

  async settled(): Promise<void> {
    await Promise.all(this.#under);
  }

  async #send(line: LeaseLine): Promise<void> {
    const { job, lease, session, jobEpoch } = line;
    if (!(await this.#isAnothers(line))) return;
    for (let sends = 0; sends < SENDS_MAX && !this.#signal.aborted; sends++) {
      const { term: leaderEpoch } = await this.#client.leader();
      const outcome = { kind: "completed", result: { ghost: lease } } as const;
      const ref = { jobId: job, leaseId: lease, jobEpoch, leaderEpoch };
      const [answer] = await this.#client.work.results(session, [{ ...ref, outcome }]);
      if (answer === undefined) return;
      // Another leads by now: it was refused for that, which says nothing about the job.
      if (!answer.ok && answer.leaderEpoch !== leaderEpoch) continue;
      this.told.push({ job, lease, verdict: answer.ok ? "taken" : "refused" });
      return;
    }
  }

  /** Its lease was taken away: from then on its epoch is too low. False: it was not, it had completed. */
  async #isAnothers({ job, jobEpoch }: LeaseLine): Promise<boolean> {
    const untilMs = performance.now() + TAKEN_MS_MAX;
    while (performance.now() < untilMs && !this.#signal.aborted) {
      try {
        const { jobEpoch: now, state } = await this.#client.job(job);
        // Not while nobody has it: a server that does not compare epochs would refuse it all the same.
        if (now > jobEpoch && state !== "pending") return true;
        if (state === "completed") return false;
      } catch {
        // Nobody answers at the moment.
      }
      await sleep(POLL_MS);
    }
    return false;
  }
}
