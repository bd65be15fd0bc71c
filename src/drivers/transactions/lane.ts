// Calls to one island: gathered, sent to the node that leads there, repeated within their time.
//
//   call ──▶ queue ──next turn──▶ an exchange (one call, or a batch) with one node ──▶ answered
//              ▲                        ├── "not the leader": the next node, at once   ┐ when all have been asked:
//              │                        ├── no answer: the next node                   ┘ after a pause
//              └──── those that are in time ── no answer to this call alone: after a pause
//
// What gets no answer in its time is sent again in smaller parts (load.ts). As long as these are smaller than they may be, those that carry nothing and free
// locks, or find out what may be freed, go apart from the others, so that they do not wait for large bodies: one exchange of each kind is under way.
//
// Calls that have less time left than the last answer took are passed over while others have enough: where more comes than can be answered the oldest are
// such, and if they went first each exchange would be in vain, for as long as that lasts.
//
// Invariants: at most ISLAND_EXCHANGES_MAX exchanges are under way; calls leave in the order in which they came, of each kind alone while the load is
// reduced, and but for those that are passed over; only registered addresses are called, whoever is said to lead; a call is answered within its time, once;
// one timer serves all calls.
//
// Nobody may rest on the order in which calls arrive: two exchanges are under way, and one that was given up may arrive later, or twice. Of one transaction
// whoever coordinates sends a commit or a hint only after its prepare was answered or given up, and what was given up leaves no more. What arrives late
// all the same (of another attempt, or from the network) changes no outcome: home's record decides, and a prepare that comes after it is answered with what
// is known, refused, or asks home when its time is over (core/txn/decide.ts). That costs locks for a while, and no more.

import { type ErrorCode, TenureError } from "../../core/kit/errors.ts";
import { TURN_SLICE_MS } from "../../core/kit/limits.ts";
import type { Random } from "../../core/kit/random.ts";
import type { BackendHash, TxnAnswer, TxnRequest } from "../../core/txn/model.ts";
import {
  answerOf,
  batchAnswersOf,
  elsewhereOf,
  TXN_REFUSALS,
  type TxnWireAnswer,
} from "../../core/txn/wire-answers.ts";
import { batchCall, type BatchedRequest, requestBytes, requestCall } from "../../core/txn/wire-calls.ts";
import type { Clock, Timer } from "../../ports/clock.ts";
import type { TcAnswer, TcExchange } from "../coordinators/index.ts";
import {
  ISLAND_EXCHANGES_MAX,
  ISLAND_QUEUE_MAX,
  ISLAND_RETRY_MS_MAX,
  ISLAND_RETRY_MS_MIN,
  ISLAND_SILENT_MS,
} from "./limits.ts";
import { type Carried, Load } from "./load.ts";

export interface LaneOptions {
  readonly target: BackendHash;
  /** Registered ones, as they are now; OWN among them, where this node is one of the island's. */
  readonly endpoints: () => readonly string[];
  /** OWN by its address. */
  readonly ownEndpoint: string;
  readonly exchange: (asked: TcExchange) => Promise<TcAnswer | null>;
  /** This node's part of its island. */
  readonly own: (request: TxnRequest) => Promise<TxnAnswer>;
  readonly clock: Pick<Clock, "monotonicMs" | "setTimer">;
  readonly random: Random;
  /** After everything else that is due now: what comes until then leaves together. */
  readonly nextTurn: (begin: () => void) => void;
}

/** Instead of an address: this node, without HTTP. */
export const OWN = "own";

interface Waiting {
  readonly request: TxnRequest;
  readonly untilMs: number;
  readonly resolve: (answer: TxnAnswer | null) => void;
  /** Not sent again before. */
  notBeforeMs: number;
  tries: number;
  /** As `requestBytes` has it; null: nobody has asked yet. */
  bytes: number | null;
  /** Registered addresses that have said that they are of another island. */
  strangers: readonly string[];
}

/** What goes together. */
type Room = Pick<Load, "countMax" | "bytesMax">;

/** What one exchange says of its node. */
type Node =
  | { readonly kind: "leads" }
  | { readonly kind: "silent" }
  | { readonly kind: "elsewhere"; readonly leaderUrl: string | null };

const REFUSALS: ReadonlySet<ErrorCode> = new Set(TXN_REFUSALS);
const ELSEWHERE: ReadonlySet<ErrorCode> = new Set([
  "NOT_LEADER",
  "ERR_NO_LEADER",
  "TRANSFER_IN_PROGRESS",
  "BACKEND_UNAVAILABLE",
]);

export class Lane {
  readonly #options: LaneOptions;
  /** Until each is answered. */
  readonly #waiting = new Set<Waiting>();
  #queue: Waiting[] = [];
  readonly #load = new Load();
  readonly #underWay = { light: 0, heavy: 0 };
  #isTurnDue = false;
  /** The node that answered last, or is to be asked next; null: any. */
  #at: string | null = null;
  /** In a row. */
  #failures = 0;
  #pausedUntilMs = -Infinity;
  readonly #silentUntilMs = new Map<string, number>();
  #timer: Timer | null = null;
  #timerAtMs = Infinity;
  #isClosed = false;

  constructor(options: LaneOptions) {
    this.#options = options;
  }

  get isIdle(): boolean {
    return this.#waiting.size === 0;
  }

  call(request: TxnRequest, withinMs: number): Promise<TxnAnswer | null> {
    if (this.#isClosed || this.#waiting.size >= ISLAND_QUEUE_MAX) return Promise.resolve(null);
    return new Promise((resolve) => {
      const asked = { request, untilMs: this.#nowMs + withinMs, resolve, notBeforeMs: -Infinity, tries: 0 };
      const waiting: Waiting = { ...asked, bytes: null, strangers: [] };
      this.#waiting.add(waiting);
      this.#queue.push(waiting);
      this.#wakeAt(waiting.untilMs);
      // Nothing is gathered for this node itself: whoever appends there gathers.
      if (this.#node() === OWN && !this.#isTurnDue) this.#go();
      else this.#goNextTurn();
    });
  }

  /** What is under way is answered with null. */
  close(): void {
    this.#isClosed = true;
    this.#timer?.cancel();
    this.#queue = [];
    for (const waiting of this.#waiting) this.#settle(waiting, null);
  }

  get #nowMs(): number {
    return this.#options.clock.monotonicMs();
  }

  #goNextTurn(): void {
    if (this.#isTurnDue) return;
    this.#isTurnDue = true;
    this.#options.nextTurn(() => {
      this.#isTurnDue = false;
      this.#go();
    });
  }

  /** For a slice of this turn: there may be thousands for this node itself, which decides each at once, and to write a batch of a mebibyte takes time. */
  #go(): void {
    const untilMs = this.#nowMs + TURN_SLICE_MS;
    while (!this.#isClosed && this.#queue.length > 0) {
      const nowMs = this.#nowMs;
      if (this.#pausedUntilMs > nowMs) return this.#wakeAt(this.#pausedUntilMs);
      const node = this.#node();
      if (node === null) return this.#pause();
      const { light, heavy } = this.#underWay;
      if (node !== OWN && light + heavy >= ISLAND_EXCHANGES_MAX) return;
      const batch = node === OWN ? this.#take(nowMs, ONE) : this.#next(nowMs);
      // Those that only wait for another exchange go on when that ends.
      if (batch.length === 0) return this.#wakeAt(this.#laterMs(nowMs));
      if (node === OWN) void this.#ask(batch[0]!);
      else void this.#exchange(node, batch);
      if (this.#queue.length > 0 && this.#nowMs >= untilMs) return this.#goNextTurn();
    }
  }

  #laterMs(nowMs: number): number {
    return this.#queue.reduce((ms, { notBeforeMs: atMs }) => (atMs > nowMs ? Math.min(ms, atMs) : ms), Infinity);
  }

  #next(nowMs: number): readonly Waiting[] {
    const load = this.#load;
    if (!load.isReduced) return this.#takeInTime(nowMs, () => true);
    const light = this.#underWay.light === 0 ? this.#takeInTime(nowMs, isLight) : [];
    if (light.length > 0 || this.#underWay.heavy > 0) return light;
    return this.#takeInTime(nowMs, (request) => !isLight(request));
  }

  /** Those that can be answered in time; where none can, the one with the most time: it finds out how long answers take by now. */
  #takeInTime(nowMs: number, isOfKind: (request: TxnRequest) => boolean): readonly Waiting[] {
    const load = this.#load;
    const inTimeMs = nowMs + load.answerMs;
    const taken = this.#take(nowMs, load, (one) => isOfKind(one.request) && one.untilMs >= inTimeMs);
    if (taken.length > 0) return taken;
    let last: Waiting | null = null;
    for (const one of this.#queue) {
      const isDue = one.notBeforeMs <= nowMs && this.#waiting.has(one) && isOfKind(one.request);
      if (isDue && one.untilMs > (last?.untilMs ?? nowMs)) last = one;
    }
    return last === null ? [] : this.#take(nowMs, ONE, (one) => one === last);
  }

  /**
   * Those that are next, as many as go together. No turn looks at the bytes of all that wait: a queue of large ones would be seconds of work at each
   * exchange.
   */
  #take(nowMs: number, { countMax, bytesMax }: Room, isWanted?: (waiting: Waiting) => boolean): readonly Waiting[] {
    const taken: Waiting[] = [];
    const passed: Waiting[] = [];
    let bytes = 0;
    let at = 0;
    while (at < this.#queue.length && taken.length < countMax) {
      const waiting = this.#queue[at]!;
      const { request } = waiting;
      const isBatched = isBatchable(request);
      const isAlone = taken.length > 0 && !(isBatched && isBatchable(taken[0]!.request));
      const isPassed = waiting.notBeforeMs > nowMs || isAlone || isWanted?.(waiting) === false;
      if (!isPassed && this.#waiting.has(waiting)) {
        if (isBatched && countMax > 1) bytes += bytesOf(waiting);
        if (taken.length > 0 && bytes > bytesMax) break;
        taken.push(waiting);
      } else if (isPassed && this.#waiting.has(waiting)) passed.push(waiting);
      at++;
      if (taken.length > 0 && !isBatchable(taken[0]!.request)) break;
    }
    const left = this.#queue.slice(at);
    this.#queue = passed.length === 0 ? left : passed.concat(left);
    return taken;
  }

  async #exchange(endpoint: string, batch: readonly Waiting[]): Promise<void> {
    const kind = batch.every(({ request }) => isLight(request)) ? "light" : "heavy";
    this.#underWay[kind]++;
    const { exchange, target } = this.#options;
    const nowMs = this.#nowMs;
    const leftMs = Math.max(...batch.map(({ untilMs }) => untilMs)) - nowMs;
    const bytes = batch.reduce((sum, waiting) => sum + bytesOf(waiting), 0);
    const carried = this.#load.carry(batch.length, bytes, leftMs);
    const call =
      batch.length === 1
        ? requestCall(target, batch[0]!.request)
        : batchCall(
            target,
            batch.map(({ request }) => request as BatchedRequest),
          );
    const exchanged = await exchange({ endpoint, ...call, withinMs: carried.withinMs, isUnnamed: true });
    this.#underWay[kind]--;
    const answers =
      exchanged === null ? null : batch.length === 1 ? [exchanged] : batchAnswersOf(batch.length, exchanged);
    this.#weigh(carried, this.#nowMs - nowMs, answers);
    this.#heard(endpoint, batch, exchanged, answers);
    this.#go();
  }

  #weigh(carried: Carried, tookMs: number, answers: readonly TxnWireAnswer[] | null): void {
    if (answers !== null) this.#load.answered(carried, tookMs);
    // A connection that was refused says nothing of what was to be sent on it.
    else if (tookMs * 2 >= carried.withinMs) this.#load.unanswered(carried);
  }

  #heard(
    endpoint: string,
    batch: readonly Waiting[],
    exchanged: TxnWireAnswer | null,
    answers: readonly TxnWireAnswer[] | null,
  ): void {
    // A batch may be refused as a whole, as its calls would be.
    const whole = exchanged !== null && answers === null ? elsewhereOf(exchanged) : null;
    let node: Node = { kind: "silent" };
    if (whole !== null) node = { kind: "elsewhere", ...whole };
    const again: Waiting[] = [];
    for (const [at, waiting] of batch.entries()) {
      const one = answers?.[at];
      let elsewhere = one === undefined ? whole : elsewhereOf(one);
      let answer = one === undefined || elsewhere !== null ? null : answerOf(waiting.request, one);
      if (answer?.kind === "refused" && answer.code === "txn_backend_mismatch" && !this.#isStrange(waiting, endpoint)) {
        answer = null;
        elsewhere = { leaderUrl: null };
      }
      if (answer !== null) {
        this.#settle(waiting, answer);
        node = { kind: "leads" };
        continue;
      }
      if (elsewhere !== null && node.kind !== "leads") node = { kind: "elsewhere", ...elsewhere };
      again.push(waiting);
    }
    // Whatever it says, it is a node that answers.
    if (answers !== null && node.kind === "silent") node = { kind: "elsewhere", leaderUrl: null };
    this.#learn(endpoint, node);
    this.#again(again, node.kind === "leads");
  }

  /**
   * A node that was restored or moved is registered as its former island until the registry can be changed: the others of the island are asked. True:
   * all of them have said so.
   */
  #isStrange(waiting: Waiting, endpoint: string): boolean {
    waiting.strangers = [...waiting.strangers.filter((one) => one !== endpoint), endpoint];
    return this.#options.endpoints().every((one) => waiting.strangers.includes(one));
  }

  async #ask(waiting: Waiting): Promise<void> {
    try {
      this.#settle(waiting, await this.#options.own(waiting.request));
      this.#learn(OWN, { kind: "leads" });
    } catch (error) {
      const code = TenureError.is(error) ? error.code : "INTERNAL";
      if (REFUSALS.has(code)) {
        this.#settle(waiting, { kind: "refused", code, message: (error as TenureError).message });
      } else {
        const isElsewhere = ELSEWHERE.has(code);
        if (isElsewhere) this.#learn(OWN, { kind: "elsewhere", leaderUrl: null });
        this.#again([waiting], !isElsewhere);
        this.#goNextTurn();
      }
    }
  }

  /** In front of the others, as before. `isLeft`: of an exchange in which others were answered, by the leader. */
  #again(those: readonly Waiting[], isLeft: boolean): void {
    const nowMs = this.#nowMs;
    const inTime = those.filter((waiting) => this.#waiting.has(waiting));
    for (const waiting of inTime) {
      if (isLeft) waiting.notBeforeMs = nowMs + this.#retryMs(waiting.tries);
      waiting.tries++;
    }
    this.#queue.unshift(...inTime);
  }

  /** Null: none is registered. */
  #node(): string | null {
    const endpoints = this.#options.endpoints();
    if (this.#at !== null && endpoints.includes(this.#at)) return this.#at;
    return endpoints[0] ?? null;
  }

  #learn(endpoint: string, node: Node): void {
    if (node.kind === "leads") {
      this.#at = endpoint;
      this.#failures = 0;
      this.#pausedUntilMs = -Infinity;
      this.#silentUntilMs.delete(endpoint);
      return;
    }
    const nowMs = this.#nowMs;
    if (node.kind === "silent") this.#silentUntilMs.set(endpoint, nowMs + ISLAND_SILENT_MS);
    // Another exchange has found out already.
    if (this.#node() !== endpoint) return;
    const endpoints = this.#options.endpoints();
    const isSilent = (one: string): boolean => (this.#silentUntilMs.get(one) ?? -Infinity) > nowMs;
    const from = endpoints.indexOf(endpoint) + 1;
    const others = [...endpoints.slice(from), ...endpoints.slice(0, from)].filter((one) => one !== endpoint);
    const named = node.kind === "elsewhere" ? this.#named(node.leaderUrl) : null;
    const isNamed = named !== null && others.includes(named) && !isSilent(named);
    this.#at = isNamed ? named : (others.find((one) => !isSilent(one)) ?? others[0] ?? endpoint);
    if (++this.#failures >= endpoints.length) this.#pause();
  }

  #named(url: string | null): string | null {
    const plain = url?.replace(/\/+$/, "") ?? null;
    return plain === this.#options.ownEndpoint ? OWN : plain;
  }

  #pause(): void {
    this.#pausedUntilMs = this.#nowMs + this.#retryMs(this.#failures);
    this.#wakeAt(this.#pausedUntilMs);
  }

  #retryMs(failures: number): number {
    const mostMs = Math.min(ISLAND_RETRY_MS_MIN * 2 ** failures, ISLAND_RETRY_MS_MAX);
    return this.#options.random.between(ISLAND_RETRY_MS_MIN, Math.max(mostMs, 2 * ISLAND_RETRY_MS_MIN));
  }

  #settle(waiting: Waiting, answer: TxnAnswer | null): void {
    if (this.#waiting.delete(waiting)) waiting.resolve(answer);
  }

  /** The one timer: it is moved forward only, and fires in vain where its call was answered. */
  #wakeAt(atMs: number): void {
    if (this.#isClosed || atMs >= this.#timerAtMs) return;
    this.#timer?.cancel();
    this.#timerAtMs = atMs;
    this.#timer = this.#options.clock.setTimer(Math.max(atMs, this.#nowMs), () => this.#woken());
  }

  #woken(): void {
    this.#timerAtMs = Infinity;
    const nowMs = this.#nowMs;
    let nextMs = Infinity;
    for (const waiting of this.#waiting) {
      if (waiting.untilMs <= nowMs) this.#settle(waiting, null);
      else nextMs = Math.min(nextMs, waiting.untilMs);
    }
    this.#queue = this.#queue.filter((waiting) => this.#waiting.has(waiting));
    if (nextMs !== Infinity) this.#wakeAt(nextMs);
    this.#go();
  }
}

const ONE: Room = { countMax: 1, bytesMax: Infinity };

function bytesOf(waiting: Waiting): number {
  return (waiting.bytes ??= requestBytes(waiting.request));
}

/** It carries no operations, and takes no locks. */
function isLight(request: TxnRequest): boolean {
  if (request.kind === "commit") return request.operations === null || request.operations.length === 0;
  return request.kind !== "prepare" && request.kind !== "stage";
}

function isBatchable(request: TxnRequest): request is BatchedRequest {
  return request.kind !== "stage" && request.kind !== "recover";
}
