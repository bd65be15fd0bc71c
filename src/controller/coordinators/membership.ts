// Membership: this node announces itself to everybody whom it knows of, and leaves.

import { isVoter } from "../../core/lease/index.ts";
import { sleep } from "../../loops/time.ts";
import type { CoordinatorContext } from "./context.ts";
import { ANNOUNCE_EVERY_MS, HEARD_ENDPOINTS_MAX, LEAVE_MS } from "./limits.ts";

/** `refused`: it is a member as before. */
export type LeaveOutcome = "left" | "sole-voter" | "refused";

export class Membership {
  readonly #context: CoordinatorContext;
  /** What others listed last. */
  #heard: ReadonlySet<string> = new Set();
  #leaving: Promise<unknown> = Promise.resolve();

  constructor(context: CoordinatorContext) {
    this.#context = context;
  }

  async live(): Promise<void> {
    const { clock } = this.#context.options;
    while (!this.#context.isStopped) {
      if (this.#context.members.isAnnouncing) await this.announce();
      await sleep(clock, ANNOUNCE_EVERY_MS);
    }
  }

  /** Here, and at everybody known; the seeds too, as long as one of them or a voter is not listed. */
  async announce(): Promise<void> {
    const { members, options, selfId, otherEndpoints } = this.#context;
    const { endpoint, clock, seeds } = options;
    members.announce(clock.wallMs(), selfId, endpoint);
    this.#context.changed();
    const listed = new Set(members.endpoints(clock.wallMs()));
    const isComplete = [...seeds, ...otherEndpoints].every((one) => listed.has(one));
    const to = new Set([...otherEndpoints, ...this.#heard, ...(isComplete ? [] : seeds)]);
    to.delete(endpoint);
    const calls = [...to].map((one) => this.#context.call(one, { kind: "announce", endpoint }));
    const answers = await Promise.all(calls);
    const heard = answers.flatMap((answer) => answer?.endpoints ?? []);
    this.#heard = new Set(heard.slice(0, HEARD_ENDPOINTS_MAX));
  }

  /** `resign`: gives up a leadership of this node; resolves when its work has ended. One leave at a time. */
  leave(resign: () => Promise<void>): Promise<LeaveOutcome> {
    const leaving = this.#leaving.then(() => this.#leave(resign));
    this.#leaving = leaving.catch(() => undefined);
    return leaving;
  }

  async #leave(resign: () => Promise<void>): Promise<LeaveOutcome> {
    const { desk, members, options, otherEndpoints } = this.#context;
    const { self } = options;
    const { roster } = desk.ledger;
    if (roster !== null && isVoter(roster, self) && roster.voters.length === 1) return "sole-voter";
    const statuses = await Promise.all(otherEndpoints.map((endpoint) => this.#context.statusOf(endpoint)));
    if (statuses.includes(null)) return "refused";
    desk.isLeaving = true;
    members.pause();
    await resign();
    const isRemoved = await this.#context.until(() => !this.#isVoter, LEAVE_MS);
    if (isRemoved && (await this.#leaveAll())) return "left";
    await this.#return();
    return "refused";
  }

  /** After a leave: a member again. */
  async rejoin(): Promise<void> {
    await this.#leaving;
    await this.#return();
  }

  async #return(): Promise<void> {
    const { desk, members } = this.#context;
    desk.isLeaving = false;
    members.resume();
    await this.announce();
  }

  get #isVoter(): boolean {
    const { desk, options } = this.#context;
    return desk.ledger.roster !== null && isVoter(desk.ledger.roster, options.self);
  }

  /** Every list is another one: one that keeps the lease would differ from the others until it expires. */
  async #leaveAll(): Promise<boolean> {
    const { otherEndpoints, members, selfId } = this.#context;
    const answers = await Promise.all(
      otherEndpoints.map((endpoint) => this.#context.call(endpoint, { kind: "leave" })),
    );
    if (answers.includes(null)) return false;
    members.leave(selfId);
    this.#context.changed();
    return true;
  }
}
