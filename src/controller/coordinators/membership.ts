// Membership: this node announces itself to everybody whom it knows of, and leaves.

import { isVoter } from "../../core/lease/index.ts";
import { sleep, within } from "../../loops/time.ts";
import type { LeaveResult, RegistryAnswer } from "../../ports/coordinators.ts";
import type { CoordinatorContext } from "./context.ts";
import { ANNOUNCE_AGAIN_MS, ANNOUNCE_EVERY_MS, HEARD_ENDPOINTS_MAX, LEAVE_MS, LEFT_FAN_OUT_MS } from "./limits.ts";

/** What else of a node takes part in its leave. */
export interface Departure {
  /** Gives up a leadership of this node; resolves when its work has ended. */
  resign(): Promise<void>;
  /** Takes this node's endpoint out of the registry, for as long as it is away. */
  withdraw(): Promise<RegistryAnswer>;
  /** It is a member again. */
  returned(): void;
}

export class Membership {
  readonly #context: CoordinatorContext;
  readonly #departure: Departure;
  /** What others listed last; at first whom this node's file names. */
  #heard: ReadonlySet<string>;
  #leaving: Promise<unknown> = Promise.resolve();
  #isKeeping = false;
  #hasLeft = false;
  /** The process is about to end: there is no way back. */
  #isEnding = false;

  constructor(context: CoordinatorContext, departure: Departure) {
    this.#context = context;
    this.#departure = departure;
    const { clock, leases = [], endpoint } = context.options;
    // Its own lease may name an address that it has left.
    const others = leases.filter(({ identity }) => identity !== context.selfId);
    context.members.restore(clock.wallMs(), others);
    this.#heard = new Set(others.map((lease) => lease.endpoint).filter((one) => one !== endpoint));
  }

  /** It left, and announces itself no more. */
  get hasLeft(): boolean {
    return this.#hasLeft;
  }

  async live(): Promise<void> {
    const { clock } = this.#context.options;
    while (!this.#context.isStopped) {
      const nextMs = clock.monotonicMs() + ANNOUNCE_EVERY_MS;
      if (this.#context.members.isAnnouncing) await this.#announceTwice();
      void this.#keep();
      await sleep(clock, Math.max(0, nextMs - clock.monotonicMs()));
    }
  }

  /** Who does not answer is asked once more: it may have been about to start, and a lease lasts for little more than two announcements. */
  async #announceTwice(): Promise<void> {
    const silent = await this.announce();
    if (silent.length === 0) return;
    await sleep(this.#context.options.clock, ANNOUNCE_AGAIN_MS);
    if (!this.#context.members.isAnnouncing || this.#context.isStopped) return;
    const { heard } = await this.#announceTo(silent);
    this.#hear([...this.#heard, ...heard]);
  }

  /** Here, and at everybody known; the seeds too, as long as one of them or a voter is not listed. Returns who did not answer. */
  async announce(): Promise<readonly string[]> {
    const { members, options, selfId, otherEndpoints } = this.#context;
    const { endpoint, clock, seeds } = options;
    members.announce(clock.wallMs(), selfId, endpoint);
    this.#context.changed();
    const listed = new Set(members.endpoints(clock.wallMs()));
    const isComplete = [...seeds, ...otherEndpoints].every((one) => listed.has(one));
    const to = new Set([...otherEndpoints, ...this.#heard, ...(isComplete ? [] : seeds)]);
    to.delete(endpoint);
    const { heard, silent } = await this.#announceTo([...to]);
    this.#hear(heard);
    return silent;
  }

  #hear(endpoints: readonly string[]): void {
    this.#heard = new Set(endpoints.slice(0, HEARD_ENDPOINTS_MAX));
  }

  async #announceTo(to: readonly string[]): Promise<{ heard: readonly string[]; silent: readonly string[] }> {
    const { endpoint } = this.#context.options;
    const answers = await Promise.all(to.map((one) => this.#context.call(one, { kind: "announce", endpoint })));
    const heard = answers.flatMap((answer) => answer?.endpoints ?? []);
    return { heard, silent: to.filter((_, at) => answers[at] === null) };
  }

  /** Nobody waits for that file: after a restart it saves the time until the others announce themselves again. */
  async #keep(): Promise<void> {
    const { members, options } = this.#context;
    // Who stops keeps the lease that it had: at another address it takes this one out of the registry.
    if (this.#isKeeping || this.#isEnding || this.#context.isStopped || options.membershipFile === undefined) return;
    this.#isKeeping = true;
    try {
      await options.membershipFile.write(members.active(options.clock.wallMs()));
    } catch {
      // A disk in trouble shows in the ledger, where it counts.
    }
    this.#isKeeping = false;
  }

  /** All or nothing: whoever is in its way is named. One leave at a time. */
  leave(): Promise<LeaveResult> {
    const leaving = this.#leaving.then(() => this.#leave());
    this.#leaving = leaving.catch(() => undefined);
    return leaving;
  }

  async #leave(): Promise<LeaveResult> {
    const { desk, members, otherEndpoints } = this.#context;
    // Asked again, where the first answer was lost: what fails now would bring it back.
    if (this.#hasLeft) return { kind: "left" };
    if (this.#isSoleVoter) return { kind: "sole-voter" };
    const statuses = await Promise.all(otherEndpoints.map((endpoint) => this.#context.statusOf(endpoint)));
    const silent = otherEndpoints.filter((_, at) => statuses[at] === null);
    if (silent.length > 0)
      return this.#stay(`${silent.join(", ")} did not answer: a leave is known by all members, or it is none`);
    const isMember = desk.ledger.clusterId !== null;
    const withdrawn = isMember ? await this.#departure.withdraw() : { kind: "done" };
    if (withdrawn.kind !== "done") return this.#stay(`the registry could not be changed (${withdrawn.kind})`);
    desk.isLeaving = true;
    members.pause();
    const { clock } = this.#context.options;
    const untilMs = clock.monotonicMs() + LEAVE_MS;
    const resigned = this.#departure.resign().then(() => true);
    if (!(await within(clock, LEAVE_MS, resigned, false)))
      return this.#stay(`the work of its leadership has not ended within ${LEAVE_MS / 1_000} s`);
    if (!(await this.#removedWithin(untilMs - clock.monotonicMs())))
      return this.#stay(
        `no leader has removed this voter within ${LEAVE_MS / 1_000} s: a majority of the others has to answer`,
      );
    const deaf = await this.#leaveAll();
    if (deaf.length > 0) return this.#stay(`${deaf.join(", ")} did not confirm it`);
    this.#hasLeft = true;
    return { kind: "left" };
  }

  /**
   * Before the process ends: whatever can be done within the time, and no way back. The registry keeps this node's endpoint: most that stop come
   * back, and what is decided meanwhile is for the data that is still there.
   */
  async leaveWithin(withinMs: number): Promise<LeaveResult> {
    const { desk, members, options } = this.#context;
    const { clock } = options;
    const untilMs = clock.monotonicMs() + withinMs;
    const leftMs = (): number => Math.max(0, untilMs - clock.monotonicMs());
    this.#isEnding = true;
    const isSole = this.#isSoleVoter;
    // Also of a sole voter: it campaigns no more.
    desk.isLeaving = true;
    members.pause();
    await within(clock, leftMs(), this.#departure.resign(), undefined);
    if (isSole) return { kind: "sole-voter" };
    const isRemoved = await this.#removedWithin(leftMs() - LEFT_FAN_OUT_MS);
    const deaf = await within(clock, leftMs(), this.#leaveAll(), ["some members"]);
    this.#hasLeft = true;
    const stays = "It is still a voter, and is expected back: no leader has removed it in time.";
    if (!isRemoved) return { kind: "refused", message: stays };
    const late = `${deaf.join(", ")} did not confirm it in time.`;
    return deaf.length > 0 ? { kind: "refused", message: late } : { kind: "left" };
  }

  /** A leader removes this voter: whoever leads hears of the leave at once, and need not wait for its next round. */
  async #removedWithin(withinMs: number): Promise<boolean> {
    const { desk, options } = this.#context;
    let askedTerm = -1;
    const look = (): boolean => {
      const { leader } = desk;
      if (leader !== null && leader.peer !== options.self && leader.endpoint !== null && leader.term !== askedTerm) {
        askedTerm = leader.term;
        void this.#context.call(leader.endpoint, { kind: "leave" });
      }
      return !this.#isVoter;
    };
    return this.#context.until(look, Math.max(0, withinMs));
  }

  /** After a leave: a member again. */
  async rejoin(): Promise<void> {
    await this.#leaving;
    await this.#return();
  }

  async #return(): Promise<void> {
    const { desk, members } = this.#context;
    if (this.#isEnding) return;
    this.#hasLeft = false;
    desk.isLeaving = false;
    members.resume();
    this.#departure.returned();
    await this.announce();
  }

  async #stay(why: string): Promise<LeaveResult> {
    await this.#return();
    const message = `${why}. This node is a member as before; leave again when the others are well.`;
    return { kind: "refused", message };
  }

  get #isVoter(): boolean {
    const { desk, options } = this.#context;
    return desk.ledger.roster !== null && isVoter(desk.ledger.roster, options.self);
  }

  get #isSoleVoter(): boolean {
    return this.#isVoter && this.#context.desk.ledger.roster!.voters.length === 1;
  }

  /** Every list is another one: one that keeps the lease would differ from the others until it expires. Returns who did not confirm. */
  async #leaveAll(): Promise<readonly string[]> {
    const { otherEndpoints, members, selfId } = this.#context;
    const answers = await Promise.all(
      otherEndpoints.map((endpoint) => this.#context.call(endpoint, { kind: "leave" })),
    );
    const deaf = otherEndpoints.filter((_, at) => answers[at] === null);
    if (deaf.length > 0 && !this.#isEnding) return deaf;
    members.leave(selfId);
    this.#context.changed();
    return deaf;
  }
}
