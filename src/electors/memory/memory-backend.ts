// The backend for tests: scopes held in memory, time moved by hand. It is `testBackend()` of `tenure/testing`.
//
//   const backend = testBackend();
//   const a = createElector({ scope: "payer", backend: backend.instance("a") });
//   const b = createElector({ scope: "payer", backend: backend.instance("b") });
//   await backend.freeze("a");
//   await backend.advance(10_000);
//
// An instance stands for a process: it has a clock and a line to the store of its own. The backend itself is the
// instance "default". Without `latencyMs` answers need no time at all, so a test that fears no failure never has to
// move it. What a test does to an instance:
//   kill      the process dies; its machine closes its connections, so its hold is free at once (not while it is cut
//             off). It never acts or hears again. `instance(name)` afterwards is a new process.
//   freeze    its timers, requests and answers stop. Its clocks go on, its hold is lost after the server timeout.
//   thaw      what was held is delivered late, in order.
//   cut       its requests and answers vanish; heal brings the line back, and who waits asks again.
// Code of a frozen or killed instance that the test itself calls still runs: no library can stop that.
// `advance` waits for promises, not for real I/O: what a test awaits next to (a socket, a file) it must await itself.

import { TenureError } from "../../core/kit/errors.ts";
import type { Timing } from "../../core/trust/window.ts";
import type { Backend, Claim, Hold, Seat } from "../../ports/backends/backend.ts";
import type { Clock } from "../../ports/clock.ts";
import { MEMORY_REQUEST_TIMEOUT_MS } from "../limits.ts";
import type { ValueStore } from "../servers/index.ts";
import { Life } from "./life.ts";
import { MemorySeat } from "./memory-seat.ts";
import { FencedResource, type TestResource } from "./resource.ts";
import { Store } from "./store.ts";
import { TestPool, type TestQuery } from "./test-pool.ts";
import { MemoryValues, type TestValues } from "./values.ts";
import { VirtualTime, type Settle } from "./virtual-time.ts";

/** As the Postgres backend's, so that a test's times are those of production. */
const TIMING: Timing = {
  serverTimeoutMs: 6_000,
  marginMs: 1_500,
  heartbeatMs: 1_000,
  retryMinMs: 200,
  retryMaxMs: 800,
  holdBackMs: 500,
  releaseTimeoutMs: 1_000,
};
const DEFAULT_INSTANCE = "default";
const ORIGIN_STEP_MS = 1_000_003;

export interface TestBackendOptions {
  /** How long a request, and an answer, is under way. Default 0: then no time has to be moved for it. */
  readonly latencyMs?: number | undefined;
  /** Instead of the times of the Postgres backend. */
  readonly timing?: Partial<Timing> | undefined;
  /** Answers the statements of `term.tx` and of `pool`, other than those of transactions. Default: no rows. */
  readonly query?: TestQuery | undefined;
}

/** `Extras` is what a term can do: `tx` and `fence`, over `pool`; `get`, `put` and `delete`, over `values()`. */
export interface TestBackend<Extras extends object = object> extends Backend<Extras> {
  /** The backend as the process of this name has it. */
  instance(name: string): Backend<Extras>;
  /** In place of a pool of `pg`: of `term.tx`, and for code under test that brings its own transactions to `term.fence`. */
  readonly pool: TestPool;
  /** As `servers(url).values()`: what terms have put. */
  values(): TestValues;
  /** Virtual time since the start. */
  readonly nowMs: number;
  /** Moves virtual time: timers fire in order, and everything that one of them wakes runs before the next. */
  advance(ms: number): Promise<void>;
  kill(name: string): Promise<void>;
  freeze(name: string): Promise<void>;
  thaw(name: string): Promise<void>;
  cut(name: string): Promise<void>;
  heal(name: string): Promise<void>;
  /** As an operator does with `tenure scope resign`: the leader hears it with its next heartbeat. False: no leader. */
  requestResign(scope: string): boolean;
  /** Something to write to that refuses every epoch but the one in force. */
  resource<Value = unknown>(scope: string): TestResource<Value>;
}

export function memoryBackend<Extras extends object>(
  options: TestBackendOptions,
  settle: Settle,
  extrasOver: (pool: TestPool, values: ValueStore) => (hold: Hold) => Extras,
): TestBackend<Extras> {
  return new MemoryBackend(options, settle, extrasOver);
}

class MemoryBackend<Extras extends object> implements TestBackend<Extras> {
  readonly kind = "memory";
  readonly host = DEFAULT_INSTANCE;
  readonly timing: Timing;
  readonly pool: TestPool;
  readonly #time: VirtualTime;
  readonly #store: Store;
  readonly #latencyMs: number;
  readonly #lives = new Map<string, Life>();
  readonly #values: MemoryValues;
  readonly #extras: (hold: Hold) => Extras;
  #born = 0;

  constructor(
    options: TestBackendOptions,
    settle: Settle,
    extrasOver: (pool: TestPool, values: ValueStore) => (hold: Hold) => Extras,
  ) {
    this.timing = { ...TIMING, ...options.timing };
    this.#latencyMs = options.latencyMs ?? 0;
    if (!(this.#latencyMs >= 0 && Number.isFinite(this.#latencyMs))) {
      throw new TenureError("CONFIG_INVALID", `latencyMs is ${this.#latencyMs}; give a number of milliseconds.`);
    }
    this.#time = new VirtualTime(settle);
    this.#store = new Store(this.#time, this.timing.serverTimeoutMs);
    this.pool = new TestPool(this.#store, options.query);
    this.#values = new MemoryValues(this.#store, () => this.clock.wallMs());
    this.#extras = extrasOver(this.pool, this.#values);
  }

  get clock(): Clock {
    return this.#living(DEFAULT_INSTANCE).clock;
  }

  get nowMs(): number {
    return this.#time.nowMs;
  }

  seat(claim: Claim): Seat<Extras> {
    return this.#seat(this.#living(DEFAULT_INSTANCE), claim);
  }

  values(): TestValues {
    return this.#values.reader();
  }

  instance(name: string): Backend<Extras> {
    const life = this.#living(name);
    const { kind, timing } = this;
    return { kind, host: name, timing, clock: life.clock, seat: (claim) => this.#seat(life, claim) };
  }

  advance(ms: number): Promise<void> {
    return this.#time.advance(ms);
  }

  async kill(name: string): Promise<void> {
    const life = this.#known(name);
    life.kill();
    if (!life.isCut) this.#store.endAllOf(life);
    await this.#time.settle();
  }

  freeze(name: string): Promise<void> {
    return this.#apply(name, (life) => life.freeze());
  }

  thaw(name: string): Promise<void> {
    return this.#apply(name, (life) => life.thaw());
  }

  cut(name: string): Promise<void> {
    return this.#apply(name, (life) => life.cut());
  }

  heal(name: string): Promise<void> {
    return this.#apply(name, (life) => life.heal());
  }

  requestResign(scope: string): boolean {
    return this.#store.requestResign(scope);
  }

  resource<Value = unknown>(scope: string): TestResource<Value> {
    return new FencedResource<Value>(this.#store, scope);
  }

  #seat(life: Life, claim: Claim): Seat<Extras> {
    return new MemorySeat(this.#store, life, claim, {
      requestTimeoutMs: MEMORY_REQUEST_TIMEOUT_MS,
      extras: this.#extras,
    });
  }

  /** The process of this name; a new one if it is dead or was never there. */
  #living(name: string): Life {
    const known = this.#lives.get(name);
    if (known !== undefined && known.state !== "dead") return known;
    const life = new Life(name, this.#time, this.#latencyMs, ++this.#born * ORIGIN_STEP_MS);
    this.#lives.set(name, life);
    return life;
  }

  #known(name: string): Life {
    const life = this.#lives.get(name);
    if (life !== undefined) return life;
    const names = [...this.#lives.keys()].join(", ");
    const message = `this test backend has no instance "${name}" (it has: ${names || "none"}). Create it with instance("${name}").`;
    throw new TenureError("CONFIG_INVALID", message);
  }

  async #apply(name: string, fault: (life: Life) => void): Promise<void> {
    fault(this.#known(name));
    await this.#time.settle();
  }
}
