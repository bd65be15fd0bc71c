// The poll: asks for as many jobs as there is room for, one call at a time, parked at the leader until there are some. It
// names the leases that go on, so that a cancellation is heard at once; one that is known to end is left to the beat.
//
// Each has a number, and says which was the last that was answered. The leases that were given to one whose answer got lost
// (it was refused in the end, nobody answered in time, the connection broke) come back by the next one, at once. So an answer
// that was given up must not be heard any more, and none is asked for before the one before it is over.
//
// A lease counts from when its call was sent (trap 51), so no poll waits for longer than a third of a lease.
//
//   polling ──stop──▶ the poll under way is given up ──▶ a last one, which wants nothing ──answered──▶ ended
//
// The last one hands back what the answer in flight was to bring, at no cost to the job (trap 81). It is repeated under another
// number until it is answered, or the agent is over; where every poll was answered there is none.

import { POLL_ANSWER_MS } from "../core/kit/timeouts.ts";
import { pause } from "../loops/time.ts";
import { type Crew, instantOf, isAboutContent, isReplaced } from "./crew.ts";
import { DRAINING_PAUSE_MS, EMPTY_PAUSE_MS, LAST_POLL_MS } from "./limits.ts";

export class Polls {
  readonly #crew: Crew;
  readonly #stopped = new AbortController();
  #number = 0;
  #answered = 0;
  #isOver = false;

  constructor(crew: Crew) {
    this.#crew = crew;
  }

  /** No new jobs. */
  stop(): void {
    this.#stopped.abort();
    this.#crew.pollBell.ring();
  }

  /** Nothing that was asked for can bring a job any more. */
  get isOver(): boolean {
    return this.#isOver;
  }

  async run(): Promise<void> {
    await this.#ask();
    await this.#handBack();
    this.#isOver = true;
    this.#crew.idleBell.ring();
  }

  async #ask(): Promise<void> {
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
    // It came too late: what it brings goes back with the last one.
    if (signal.aborted) return;
    this.#answered = poll;
    this.#crew.heard(sentAt, answer);
    for (const lease of answer.leases) this.#crew.begin(lease, sentAt);
    if (answer.isDraining) await pause(clock, DRAINING_PAUSE_MS, signal);
    else if (answer.leases.length === 0 && clock.monotonicMs() - sentAt.monotonicMs < EMPTY_PAUSE_MS)
      await pause(clock, EMPTY_PAUSE_MS, signal);
  }

  async #handBack(): Promise<void> {
    const { world, info, settings, over, epoch: agentEpoch } = this.#crew;
    const nothing = { agent: info, renew: [], progress: [], logs: [], max: 0, waitMs: 0, ttlMs: settings.leaseMs };
    for (let failures = 0; this.#answered < this.#number && !over.signal.aborted;) {
      const poll = ++this.#number;
      try {
        await world.desk.lease(
          { ...nothing, agentEpoch, poll, answered: this.#answered },
          { signal: over.signal, timeoutMs: LAST_POLL_MS, attemptMs: LAST_POLL_MS },
        );
        this.#answered = poll;
      } catch (error) {
        if (isReplaced(error)) return this.#crew.onReplaced(error);
        // An older server takes no number here: then its leases end by their time, as they always did.
        if (isAboutContent(error)) return;
        await pause(world.clock, this.#crew.failed(error, failures++), over.signal);
      }
    }
  }
}
