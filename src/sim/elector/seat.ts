// The Seat port of one elector on the simulated server, for both flavours (server.ts), and the checks of what ports/backends/backend.ts
// promises a seat: one acquire, beat and release at a time, and nothing left behind by who went away.
//
//   idle ──acquire──▶ asking ──granted──▶ holding ──release──▶ idle
//     ▲                 │ abandon            │ abandon, lost
//     └─────────────────┴────────────────────┘
//
// A lease's requests stand for themselves: a beat of an earlier hold may be answered, or fail, long after it was
// abandoned, and the elector must not mind. A connection's answers end with it.

import { TenureError } from "../../core/kit/errors.ts";
import type { Instant } from "../../core/trust/window.ts";
import type { Beat, Claim, Grant, Hold, LossReason, Seat } from "../../ports/backends/backend.ts";
import type { Timer } from "../../ports/clock.ts";
import type { Leader } from "../../ports/elector.ts";
import type { Answer, Push, Request } from "./messages.ts";
import type { Channel, Post } from "./post.ts";
import type { Flavour } from "./server.ts";

export interface SeatEvents {
  asked(): void;
  released(confirmed: boolean): void;
  /** With the epoch that was held, or null where none was. */
  abandoned(epoch: number | null): void;
  proved(epoch: number, sentAt: Instant): void;
  beating(): void;
  beatFailed(epoch: number): void;
  lost(epoch: number): void;
  /** The elector called what ports/backends/backend.ts says that it does not call. */
  misused(how: string): void;
  /** An answer to a beat of a hold that this seat has no more. */
  answeredLate(): void;
}

export interface SeatTiming {
  readonly askEveryMs: number;
  readonly requestTimeoutMs: number;
  readonly watchEveryMs: number;
}

export interface TermExtras {
  /** A fenced write: resolves false where the epoch was refused, null where no answer came. */
  write(): Promise<boolean | null>;
}

interface Session {
  readonly name: string;
  readonly channel: Channel;
  readonly asks: Map<number, Instant>;
  epoch: number | null;
  reject: (error: TenureError) => void;
  granted: (grant: Grant) => void;
  again: Timer | undefined;
}

export class SimSeat implements Seat<TermExtras> {
  readonly scopeKey = "sim";
  readonly #flavour: Flavour;
  readonly #post: Post;
  readonly #claim: Claim;
  readonly #name: string;
  readonly #timing: SeatTiming;
  readonly #events: SeatEvents;
  /** Of all sessions in the lease flavour, where an answer finds its question whatever became of the session. */
  readonly #pending = new Map<number, (answer: Answer | null) => void>();
  #session: Session | undefined;
  #sessions = 0;
  #acquiring = false;
  #beatingEpoch: number | null = null;

  constructor(
    name: string,
    flavour: Flavour,
    post: Post,
    claim: Claim,
    more: { readonly timing: SeatTiming; readonly events: SeatEvents },
  ) {
    this.#name = name;
    this.#flavour = flavour;
    this.#post = post;
    this.#claim = claim;
    this.#timing = more.timing;
    this.#events = more.events;
  }

  acquire(signal: AbortSignal): Promise<Grant> {
    if (this.#acquiring) this.#events.misused("acquire was called while one is under way");
    if (this.#session !== undefined) this.#events.misused("acquire was called on a seat that still has a session");
    if (signal.aborted) this.#events.misused("acquire was called with a signal that has aborted");
    this.#acquiring = true;
    this.#events.asked();
    const { promise, resolve, reject } = Promise.withResolvers<Grant>();
    const name = `${this.#name}/${++this.#sessions}`;
    const session: Session = {
      name,
      channel: this.#post.open(
        name,
        (body) => this.#hear(session, body),
        () => this.#broken(session),
      ),
      asks: new Map(),
      epoch: null,
      reject: (error) => {
        this.#acquiring = false;
        reject(error);
      },
      granted: (grant) => {
        this.#acquiring = false;
        resolve(grant);
      },
      again: undefined,
    };
    this.#session = session;
    this.#ask(session);
    return promise;
  }

  beat(epoch: number): Promise<Beat> {
    const session = this.#session;
    if (this.#beatingEpoch === epoch) this.#events.misused("beat was called while one is under way");
    if (session?.epoch !== epoch) return Promise.reject(unavailable("the hold was abandoned"));
    this.#beatingEpoch = epoch;
    this.#events.beating();
    return new Promise((resolve, reject) => {
      const make = (id: number): Request => ({ kind: "beat", id, session: session.name, epoch });
      this.#request(session, make, (answer, sentAt) => {
        if (this.#beatingEpoch === epoch) this.#beatingEpoch = null;
        if (this.#session !== session && answer !== null) this.#events.answeredLate();
        if (answer?.kind === "beaten") {
          if (this.#session === session) this.#events.proved(epoch, sentAt);
          return resolve({ sentAt, resignRequested: answer.resignRequested });
        }
        if (answer?.kind === "not-held") {
          this.#lose(epoch, this.#flavour === "lease" ? "lease-gone" : "unlocked");
        } else if (this.#session === session) this.#events.beatFailed(epoch);
        reject(unavailable("a heartbeat was not answered"));
      });
    });
  }

  release(epoch: number): Promise<void> {
    const session = this.#session;
    if (session === undefined) return Promise.reject(unavailable("there is nothing to let go"));
    return new Promise((resolve, reject) => {
      const make = (id: number): Request => ({ kind: "release", id, session: session.name, epoch });
      this.#request(session, make, (answer) => {
        this.#events.released(answer !== null);
        if (answer === null || this.#session !== session) return reject(unavailable("letting go was not answered"));
        this.#drop(session);
        resolve();
      });
    });
  }

  abandon(): void {
    if (this.#session === undefined) return;
    this.#events.abandoned(this.#session.epoch);
    this.#drop(this.#session);
  }

  watch(tell: (leader: Leader | null) => void, _failed: (error: unknown) => void): () => void {
    const { clock } = this.#claim;
    let stopped = false;
    let last: number | null | undefined;
    let asked = 0;
    const poll = (): void => {
      if (stopped) return;
      const round = ++asked;
      this.#post.request(
        (id) => ({ kind: "leader", id }),
        (answer) => {
          // Answers overtake each other: only the one to the last question is told.
          if (stopped || round !== asked || answer.kind !== "leader") return;
          const epoch = answer.leader?.epoch ?? null;
          if (epoch !== last) tell(answer.leader);
          last = epoch;
        },
      );
      clock.setTimer(clock.monotonicMs() + this.#timing.watchEveryMs, poll);
    };
    poll();
    return () => {
      stopped = true;
    };
  }

  leader(): Promise<Leader | null> {
    return this.#outside((id) => ({ kind: "leader", id })).then((answer) => {
      if (answer?.kind !== "leader") throw unavailable("the leader could not be read");
      return answer.leader;
    });
  }

  extras(term: Hold): TermExtras {
    return {
      write: async () => {
        const answer = await this.#outside((id) => ({ kind: "write", id, epoch: term.epoch }));
        if (answer === null) return null;
        if (answer.kind === "stale") term.lost("superseded");
        return answer.kind === "written";
      },
    };
  }

  close(): Promise<void> {
    this.abandon();
    return Promise.resolve();
  }

  #ask(session: Session): void {
    if (this.#session !== session || session.epoch !== null) return;
    const { clock, identity } = this.#claim;
    const id = this.#post.nextId();
    session.asks.set(id, this.#now());
    session.channel.send({ kind: "ask", id, session: session.name, identity });
    session.again?.cancel();
    session.again = clock.setTimer(clock.monotonicMs() + this.#timing.askEveryMs, () => this.#ask(session));
  }

  #request(
    session: Session,
    make: (id: number) => Request,
    answered: (answer: Answer | null, sentAt: Instant) => void,
  ): void {
    const { clock } = this.#claim;
    const id = this.#post.nextId();
    const sentAt = this.#now();
    const settle = (answer: Answer | null): void => {
      if (!this.#pending.delete(id)) return;
      timer?.cancel();
      answered(answer, sentAt);
    };
    // A connection's requests wait for as long as the connection lives; the elector's patience ends earlier.
    const timer =
      this.#flavour === "session"
        ? undefined
        : clock.setTimer(clock.monotonicMs() + this.#timing.requestTimeoutMs, () => settle(null));
    this.#pending.set(id, settle);
    session.channel.send(make(id));
  }

  #outside(make: (id: number) => Request): Promise<Answer | null> {
    const { clock } = this.#claim;
    return new Promise((resolve) => {
      const timer = clock.setTimer(clock.monotonicMs() + this.#timing.requestTimeoutMs, () => {
        forget();
        resolve(null);
      });
      const forget = this.#post.request(make, (answer) => {
        timer.cancel();
        forget();
        resolve(answer);
      });
    });
  }

  #hear(session: Session, body: Answer | Push): void {
    if (body.kind === "woken") return this.#ask(session);
    if (body.kind === "lost") {
      if (this.#session !== session) return;
      return session.epoch === null ? this.#broken(session) : this.#lose(body.epoch, "lease-gone");
    }
    const pending = this.#pending.get(body.id);
    if (pending !== undefined) return pending(body);
    if (body.kind === "granted") return this.#granted(session, body.id, body.epoch);
    if (body.kind === "not-held" && session.epoch === null) this.#broken(session);
  }

  #granted(session: Session, id: number, epoch: number): void {
    const sentAt = session.asks.get(id);
    if (this.#session !== session || session.epoch !== null || sentAt === undefined) return;
    session.epoch = epoch;
    session.again?.cancel();
    this.#events.proved(epoch, sentAt);
    session.granted({ epoch, sentAt });
  }

  /** The connection ended, or the server does not know the session: nothing of it can be used again. */
  #broken(session: Session): void {
    if (this.#session !== session) return;
    if (session.epoch !== null) return this.#lose(session.epoch, "session-ended");
    this.#drop(session);
  }

  #lose(epoch: number, reason: LossReason): void {
    if (this.#session?.epoch !== epoch) return;
    this.#events.lost(epoch);
    this.#claim.lost(epoch, reason);
  }

  #drop(session: Session): void {
    this.#session = undefined;
    session.again?.cancel();
    session.channel.destroy();
    if (session.epoch === null) session.reject(unavailable("acquire"));
    if (this.#flavour === "session") for (const settle of this.#pending.values()) settle(null);
  }

  #now(): Instant {
    const { clock } = this.#claim;
    return { monotonicMs: clock.monotonicMs(), wallMs: clock.wallMs() };
  }
}

function unavailable(what: string): TenureError {
  return new TenureError("BACKEND_UNAVAILABLE", `${what}: the simulated server did not answer.`);
}
