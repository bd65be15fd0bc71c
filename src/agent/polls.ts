// The poll: asks for as many jobs as there is room for, one call at a time, parked at the leader until there are some. It
// names the leases that go on, so that a cancellation is heard at once; one that is known to end is left to the beat.
//
// Each has a number, and says which was the last that was answered. The leases that were given to one whose answer got lost
// (it was refused in the end, nobody answered in time, the connection broke) come back by the next one, at once. So an answer
// that was given up must not be heard any more, and none is asked for before the one before it is over.
//
// A lease counts from when its call was sent (trap 51), so no poll waits for longer than a third of a lease.

import { POLL_ANSWER_MS } from "../core/kit/timeouts.ts";
import { pause } from "./bell.ts";
import { type Crew, instantOf, isReplaced } from "./crew.ts";

/** A leader that is being drained gives nothing, and says so at once. */
const DRAINING_MS = 500;
/** Nothing was given, and nobody waited. */
const EMPTY_MS = 20;

export class Polls {
  readonly #crew: Crew;
  readonly #stopped = new AbortController();
  #number = 0;
  #answered = 0;

  constructor(crew: Crew) {
    this.#crew = crew;
  }

  /** No new jobs. */
  stop(): void {
    this.#stopped.abort();
    this.#crew.pollBell.ring();
  }

  async run(): Promise<void> {
    const { attempts, settings, pollBell } = this.#crew;
    const { signal } = this.#stopped;
    for (let failures = 0; !signal.aborted;) {
      const room = settings.capacity - attempts.size;
      if (room <= 0) {
        await pollBell.wait(null);
        continue;
      }
      try {
        await this.#poll(room);
        failures = 0;
      } catch (error) {
        if (signal.aborted) return;
        if (isReplaced(error)) return this.#crew.onReplaced(error);
        await pause(this.#crew.world.clock, this.#crew.failed(error, failures++), signal);
      }
    }
  }

  async #poll(room: number): Promise<void> {
    const { world, info, settings, attempts } = this.#crew;
    const { clock, desk } = world;
    const { signal } = this.#stopped;
    const held = [...attempts.values()].filter(
      (one) => one.aborted === null && one.outcome === null && !one.needsRenewal,
    );
    const agentEpoch = this.#crew.epoch;
    const call = { agent: info, agentEpoch, renew: held.map((one) => one.ref), progress: [], logs: [] };
    const poll = ++this.#number;
    const sentAt = instantOf(clock);
    const answer = await desk.lease(
      { ...call, max: room, waitMs: settings.beatMs, ttlMs: settings.leaseMs, poll, answered: this.#answered },
      { signal, timeoutMs: settings.beatMs + POLL_ANSWER_MS },
    );
    this.#answered = poll;
    this.#crew.heard(sentAt, answer);
    for (const lease of answer.leases) this.#crew.begin(lease, sentAt);
    if (answer.isDraining) await pause(clock, DRAINING_MS, signal);
    else if (answer.leases.length === 0 && clock.monotonicMs() - sentAt.monotonicMs < EMPTY_MS)
      await pause(clock, EMPTY_MS, signal);
  }
}
