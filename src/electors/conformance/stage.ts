// One case on its stage: its scope, its electors, its clock, what the resource has accepted. It is taken down
// whatever happened, so that a case that fails leaves nothing behind for the next.
// Invariant: every wait has a limit, and says what it waited for.

import { StaleEpochError, TenureError } from "../../core/kit/errors.ts";
import type { Timing } from "../../core/trust/window.ts";
import type { Elector, Leader, Term, Transition } from "../../ports/elector.ts";
import { ConformanceFailure, expect, type WrittenCase } from "../../loops/conformance.ts";
import type { ConformanceTools, ConformanceWorld, Fault } from "./world.ts";

export type Case = WrittenCase<Stage, Fault>;

/** Beyond what the backend's timing explains: for a slow machine, or a connection that has to be built. */
const PATIENCE_MS = 15_000;
const POLL_REAL_MS = 5;
const STEPS_PER_HEARTBEAT = 20;

export interface Outcome<T> {
  readonly promise: Promise<T>;
  state: "pending" | "resolved" | "rejected";
  value?: T;
  error?: unknown;
}

export interface ActorOptions {
  readonly metadata?: Readonly<Record<string, string>>;
  readonly enabled?: boolean;
  /** Another than the stage's. */
  readonly scope?: string;
}

export interface Actor {
  readonly name: string;
  readonly elector: Elector;
  readonly transitions: Transition[];
}

export class Stage {
  readonly scope: string;
  readonly #world: ConformanceWorld;
  readonly #tools: ConformanceTools;
  readonly #actors: Actor[] = [];
  readonly #gone = new Set<string>();
  readonly #impaired = new Map<string, "cut" | "freeze">();
  #timing: Timing | undefined;

  constructor(scope: string, world: ConformanceWorld, tools: ConformanceTools) {
    this.scope = scope;
    this.#world = world;
    this.#tools = tools;
  }

  get timing(): Timing {
    expect(this.#timing !== undefined, "the case asked for the timing before it created an elector");
    return this.#timing;
  }

  /** After so long at most somebody else leads, whatever happened to the leader. */
  get takeoverMs(): number {
    const { serverTimeoutMs, retryMaxMs, heartbeatMs } = this.timing;
    if (this.#world.takeoverMs !== undefined) return this.#world.takeoverMs;
    return serverTimeoutMs * 2 + retryMaxMs + heartbeatMs;
  }

  async actor(name: string, options: ActorOptions = {}): Promise<Actor> {
    const backend = await this.#world.create(name);
    this.#timing ??= backend.timing;
    const transitions: Transition[] = [];
    const elector = this.#tools.createElector({
      scope: this.scope,
      backend,
      identity: `${this.scope}-${name}`,
      ...options,
      onTransition: (transition) => transitions.push(transition),
    });
    const actor = { name, elector, transitions };
    this.#actors.push(actor);
    return actor;
  }

  /** Remembers how a promise ended, so that a case can look without waiting. */
  watch<T>(promise: Promise<T>): Outcome<T> {
    const outcome: Outcome<T> = { promise, state: "pending" };
    promise.then(
      (value) => Object.assign(outcome, { state: "resolved", value }),
      (error: unknown) => Object.assign(outcome, { state: "rejected", error }),
    );
    return outcome;
  }

  /** Waits until it has settled, and gives what it resolved to. */
  async result<T>(outcome: Outcome<T>, what: string, limitMs = this.takeoverMs): Promise<T> {
    await this.until(() => outcome.state !== "pending", what, limitMs);
    return outcome.promise;
  }

  /** Waits until it has been rejected, and gives the error. */
  async failure(outcome: Outcome<unknown>, what: string, limitMs = this.takeoverMs): Promise<unknown> {
    await this.until(() => outcome.state !== "pending", what, limitMs);
    expect(outcome.state === "rejected", `expected ${what}, but it resolved to ${String(outcome.value)}`);
    return outcome.error;
  }

  async acquire(actor: Actor, what = `${actor.name} to lead`, limitMs = this.takeoverMs): Promise<Term> {
    return this.result(this.watch(actor.elector.acquire()), what, limitMs);
  }

  async until(condition: () => boolean, what: string, limitMs = this.takeoverMs): Promise<void> {
    const virtual = this.#world.advance !== undefined;
    const stepMs = virtual ? this.timing.heartbeatMs / STEPS_PER_HEARTBEAT : POLL_REAL_MS;
    const endMs = this.#nowMs + limitMs + (virtual ? 0 : PATIENCE_MS);
    while (!condition()) {
      if (this.#nowMs >= endMs) throw new ConformanceFailure(`waited ${limitMs} ms in vain for ${what}`);
      await this.pass(stepMs);
    }
  }

  /** As `until`, for what must come long before a timeout of the server could bring it about. */
  async soon(condition: () => boolean, what: string): Promise<void> {
    const { serverTimeoutMs, holdBackMs, retryMaxMs } = this.timing;
    const startedMs = this.#nowMs;
    // A hold that is left behind ends with the server timeout, counted from its last heartbeat.
    const limitMs = Math.max(serverTimeoutMs * 0.75, holdBackMs + retryMaxMs);
    expect(
      limitMs < serverTimeoutMs,
      "the suite can't tell a release from a timeout: holdBackMs + retryMaxMs must be below serverTimeoutMs",
    );
    while (!condition()) {
      const waitedMs = this.#nowMs - startedMs;
      expect(
        waitedMs < limitMs,
        `waited ${limitMs} ms in vain for ${what}; the server timeout is ${serverTimeoutMs} ms`,
      );
      await this.pass(this.#world.advance === undefined ? POLL_REAL_MS : this.timing.heartbeatMs / STEPS_PER_HEARTBEAT);
    }
  }

  /** Lets time go by. */
  async pass(ms: number): Promise<void> {
    if (this.#world.advance === undefined) await this.#tools.realSleep(ms);
    else {
      await this.#world.advance(ms);
      this.#virtualMs += ms;
    }
  }

  #virtualMs = 0;

  get #nowMs(): number {
    return this.#world.advance === undefined ? this.#tools.realNowMs() : this.#virtualMs;
  }

  get killFreesAtOnce(): boolean {
    return this.#world.killFreesAtOnce === true;
  }

  async kill(actor: Actor): Promise<void> {
    this.#gone.add(actor.name);
    await this.#world.kill?.(actor.name);
  }

  async freeze(actor: Actor): Promise<void> {
    this.#impaired.set(actor.name, "freeze");
    await this.#world.freeze?.(actor.name);
  }

  async cut(actor: Actor): Promise<void> {
    this.#impaired.set(actor.name, "cut");
    await this.#world.cut?.(actor.name);
  }

  /** Thaws or heals. */
  async mend(actor: Actor): Promise<void> {
    await this.#mend(actor.name);
  }

  async write(epoch: number, value: string): Promise<void> {
    await this.#world.resource.write(this.scope, epoch, value);
  }

  /** The resource must refuse this epoch, and for this reason. */
  async refused(epoch: number, whose: string): Promise<void> {
    const outcome = this.watch(this.write(epoch, whose));
    await this.until(() => outcome.state !== "pending", `the resource to answer to a write of ${whose}`);
    expect(
      outcome.state === "rejected",
      `the resource accepted a write of ${whose} with epoch ${epoch}, which is over`,
    );
    expect(StaleEpochError.is(outcome.error), `expected StaleEpochError for ${whose}, got ${String(outcome.error)}`);
  }

  /** The gate and the resource are both closed for a term that is over. */
  async powerless(actor: Actor, term: Term): Promise<void> {
    expect(!actor.elector.gate.isLeader, `${actor.name} lost its term, and its gate is open`);
    expect(codeOf(() => term.check()) === "NOT_LEADER", `${actor.name} lost its term, and term.check() passes`);
    await this.refused(term.epoch, actor.name);
  }

  async takeDown(): Promise<void> {
    for (const name of this.#impaired.keys()) await this.#mend(name);
    // In virtual time a killed process has no timers left that could end its close.
    const lasting = this.#world.advance !== undefined;
    const closings = this.#actors.map(({ name, elector }) => ({ name, closed: elector.close() }));
    const awaited = closings.filter(({ name }) => !(lasting && this.#gone.has(name)));
    try {
      const closing = this.watch(Promise.all(awaited.map(({ closed }) => closed)));
      if (this.#timing !== undefined) await this.result(closing, "every elector to close");
      for (const { name, transitions } of this.#actors) checkTransitions(name, transitions);
    } finally {
      await this.#world.dispose();
    }
  }

  async #mend(name: string): Promise<void> {
    const fault: Fault | undefined = this.#impaired.get(name);
    this.#impaired.delete(name);
    if (fault === "cut") await this.#world.heal?.(name);
    if (fault === "freeze") await this.#world.thaw?.(name);
  }
}

/** A campaign may be given up; a term is begun once, ended once, and in between suspended and resumed in turn. */
const LEGAL = /^(campaigning |campaigning leading (suspended resumed )*(suspended )?(ended |$))*$/;

function checkTransitions(name: string, transitions: readonly Transition[]): void {
  const kinds = transitions.map(({ kind }) => `${kind} `).join("");
  expect(LEGAL.test(kinds), `the transitions of ${name} are out of order: ${kinds}`);
  let epoch = 0;
  for (const transition of transitions) {
    if (transition.kind === "campaigning") continue;
    const follows = transition.kind === "leading" ? transition.epoch > epoch : transition.epoch === epoch;
    expect(follows, `a transition "${transition.kind}" of ${name} has epoch ${transition.epoch} after ${epoch}`);
    epoch = transition.epoch;
  }
}

function codeOf(call: () => unknown): string | undefined {
  try {
    call();
    return undefined;
  } catch (error) {
    return errorCode(error);
  }
}

export function errorCode(error: unknown): string | undefined {
  return TenureError.is(error) ? error.code : undefined;
}

/** How often a signal has aborted; it must be once. */
export function countAborts(signal: AbortSignal): { readonly count: number } {
  const counted = { count: signal.aborted ? 1 : 0 };
  signal.addEventListener("abort", () => counted.count++);
  return counted;
}

/** What an observer has been told, in order. */
export function collect(iterable: AsyncIterable<Leader | null>): { seen: (Leader | null)[]; done: Promise<void> } {
  const seen: (Leader | null)[] = [];
  const read = async (): Promise<void> => {
    for await (const leader of iterable) seen.push(leader);
  };
  return { seen, done: read() };
}
