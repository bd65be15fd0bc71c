// A seat that a test plays by hand: every call is recorded, and nothing is answered before
// the test says so.

import { TenureError } from "../core/kit/errors.ts";
import { seededRandom } from "../core/kit/random.ts";
import { TIMING } from "../core/trust/test-bench.ts";
import type { Instant } from "../core/trust/window.ts";
import type { Backend, Beat, Claim, Grant, Hold, LossReason, Seat } from "../ports/backends/backend.ts";
import { HandClock, settled } from "../loops/test-clock.ts";
import type { Clock } from "../ports/clock.ts";
import type { Leader, Transition } from "../ports/elector.ts";
import { ScopeElector } from "./elector.ts";
import type { ElectorOptions } from "./elector-options.ts";

export { TIMING } from "../core/trust/test-bench.ts";
export { HandClock, settled } from "../loops/test-clock.ts";

interface Call<T> {
  readonly sentAt: Instant;
  readonly signal?: AbortSignal;
  readonly resolve: (value: T) => void;
  readonly reject: (error: unknown) => void;
}

export interface Fence {
  readonly fenced: (reason: "superseded") => void;
}

export class HandSeat implements Seat<Fence> {
  readonly scopeKey = "key";
  readonly acquires: Call<Grant>[] = [];
  readonly beats: (Call<Beat> & { readonly epoch: number })[] = [];
  readonly releases: (Call<void> & { readonly epoch: number })[] = [];
  readonly log: string[] = [];
  readonly told: ((leader: Leader | null) => void)[] = [];
  readonly #clock: HandClock;
  readonly claim: Claim;

  constructor(clock: HandClock, claim: Claim) {
    this.#clock = clock;
    this.claim = claim;
  }

  acquire(signal: AbortSignal): Promise<Grant> {
    this.log.push("acquire");
    return this.#call((call) => this.acquires.push({ ...call, signal }));
  }

  beat(epoch: number): Promise<Beat> {
    this.log.push("beat");
    return this.#call((call) => this.beats.push({ ...call, epoch }));
  }

  release(epoch: number): Promise<void> {
    this.log.push("release");
    return this.#call((call) => this.releases.push({ ...call, epoch }));
  }

  abandon(): void {
    this.log.push("abandon");
  }

  watch(tell: (leader: Leader | null) => void): () => void {
    this.told.push(tell);
    return () => void this.told.splice(this.told.indexOf(tell), 1);
  }

  leader(): Promise<Leader | null> {
    return Promise.resolve({ epoch: 3, identity: "other", metadata: {} });
  }

  extras(term: Hold): Fence {
    return { fenced: (reason) => term.lost(reason) };
  }

  close(): Promise<void> {
    this.log.push("close");
    return Promise.resolve();
  }

  /** Answers the last acquire. */
  async grant(epoch: number, sentAt: Instant = this.#clock.now): Promise<void> {
    this.acquires.at(-1)!.resolve({ epoch, sentAt });
    await settled();
  }

  async refuse(code: "BACKEND_UNAVAILABLE" | "PERMISSION_DENIED"): Promise<void> {
    this.acquires.at(-1)!.reject(new TenureError(code, "refused"));
    await settled();
  }

  async released(): Promise<void> {
    this.releases.at(-1)!.resolve();
    await settled();
  }

  #call<T>(record: (call: Call<T>) => void): Promise<T> {
    const { promise, resolve, reject } = Promise.withResolvers<T>();
    record({ sentAt: this.#clock.now, resolve, reject });
    return promise;
  }
}

/** A claim, and what was lost of it. */
export function claimOn(clock: Clock, scope = "s"): { claim: Claim; losses: [number, LossReason][] } {
  const losses: [number, LossReason][] = [];
  const claim: Claim = {
    scope,
    identity: "me",
    metadata: {},
    clock,
    random: seededRandom(1),
    logger: { info: () => undefined, warn: () => undefined, error: () => undefined },
    lost: (epoch, reason) => losses.push([epoch, reason]),
  };
  return { claim, losses };
}

export interface Rig {
  readonly clock: HandClock;
  readonly seat: HandSeat;
  readonly elector: ScopeElector<Fence>;
  readonly transitions: Transition[];
  readonly logged: string[];
  /** What the process was warned of, for want of a logger. */
  readonly warned: string[];
  /** The kinds of the transitions so far, with their reasons. */
  readonly story: () => string[];
}

export function rig(options: Partial<ElectorOptions<Fence>> = {}): Rig {
  const clock = new HandClock();
  const transitions: Transition[] = [];
  const logged: string[] = [];
  const warned: string[] = [];
  let seat: HandSeat | undefined;
  const backend: Backend<Fence> = {
    kind: "hand",
    host: "host-1",
    timing: TIMING,
    seat: (claim) => (seat = new HandSeat(clock, claim)),
  };
  const say = (level: string) => (_fields: unknown, message: string) => void logged.push(`${level} ${message}`);
  const elector = new ScopeElector<Fence>(
    {
      scope: "payer",
      backend,
      logger: { info: () => {}, warn: say("warn"), error: say("error") },
      onTransition: (transition) => transitions.push(transition),
      ...options,
    },
    { clock, random: seededRandom(1), uuid: () => "uuid", warn: (message) => void warned.push(message) },
  );
  const story = (): string[] => transitions.map((one) => (one.kind === "ended" ? `ended ${one.reason}` : one.kind));
  return { clock, seat: seat!, elector, transitions, logged, warned, story };
}
