// The connections of clients, from their first byte on.
//
//   newcomer ──a request of it was admitted──▶ known ──its age, or a new certificate──▶ retired ──its answer is given──▶ ended
//      └──too many newcomers, and it is the oldest──▶ cut
//
// - Newcomers are bounded for each address and in all, apart from those that are known, and retire after a minute.
// - A retired connection is answered once more, with `Connection: close`; its streams end where a reader can resume. What is still
//   open two minutes later is cut. So whom a certificate authority no longer vouches for is out, whatever it does.
// - One request at a time: a client that sends another before the answer to the last one was made is cut. So nobody has more
//   requests here than connections, and no answer waits unseen in the queue of another.
// - An answer must be taken by its reader within a time that grows with its size; a reader that is slower is cut.

import { Newcomers } from "../../core/kit/newcomers.ts";
import type { Clock, Timer } from "../../ports/clock.ts";
import type { HttpCounters } from "../http-stats.ts";
import { RETIRED_MS_MAX, STALL_FORGIVEN_MS, SWEEP_MS_MAX, UNKNOWN_AGE_MS } from "../limits.ts";
import type { ApiLimits } from "../options.ts";
import type { Shares } from "./shares.ts";

/** As much of a socket as is used; the same for the raw one and for that of TLS around it. */
export interface ClientSocket {
  readonly remoteAddress?: string | undefined;
  readonly remotePort?: number | undefined;
  readonly destroyed?: boolean | undefined;
  once(event: "close", listener: () => void): unknown;
  end(): unknown;
  destroy(): unknown;
}

/** As much of Node's answer as is used. */
export interface ClientAnswer {
  /** All of it was handed over; the last byte may still have to leave. */
  readonly writableEnded: boolean;
  once(event: "close", listener: () => void): unknown;
}

export interface Connection {
  readonly raw: ClientSocket;
  /** Whose first admitted request it was; null for a newcomer. */
  caller: string | null;
  retiresAtMs: number;
  /** Requests whose answers have not left: one, or for a moment two. */
  readonly unanswered: Set<ClientAnswer>;
}

export class Connections {
  readonly #limits: ApiLimits;
  readonly #clock: Clock;
  readonly #counters: HttpCounters;
  readonly #shares: Shares;
  readonly #newcomers: Newcomers<Connection>;
  readonly #sweepMs: number;
  /** By the other end: TLS has a socket of its own around the one that was accepted. */
  readonly #open = new Map<string, Connection>();
  /** Answers that are being read, and by when they must have been. */
  readonly #answers = new Map<object, { readonly socket: ClientSocket; untilMs: number }>();
  #timer: Timer | null = null;
  #sweptAtMs = 0;

  constructor(limits: ApiLimits, clock: Clock, counters: HttpCounters, shares: Shares) {
    this.#limits = limits;
    this.#clock = clock;
    this.#counters = counters;
    this.#shares = shares;
    this.#sweepMs = Math.min(SWEEP_MS_MAX, limits.answerStallMs / 2);
    this.#newcomers = new Newcomers(limits.unauthenticatedPerAddress, limits.unauthenticatedMax);
  }

  get open(): number {
    return this.#open.size;
  }

  accept(raw: ClientSocket): void {
    const key = keyOf(raw);
    const retiresAtMs = this.#clock.monotonicMs() + UNKNOWN_AGE_MS;
    const connection: Connection = { raw, caller: null, retiresAtMs, unanswered: new Set() };
    this.#open.set(key, connection);
    const evicted = this.#newcomers.add(connection, raw.remoteAddress ?? "unknown");
    if (evicted !== null) this.#cut(evicted.raw, "newcomer");
    raw.once("close", () => {
      if (this.#open.get(key) === connection) this.#open.delete(key);
      this.#newcomers.delete(connection);
      if (connection.caller !== null) this.#shares.add(connection.caller, "connections", -1);
    });
    this.#arm();
  }

  of(socket: ClientSocket): Connection | undefined {
    return this.#open.get(keyOf(socket));
  }

  /**
   * The head of a request has come. With TLS an answer is known to have left a turn later than its reader may have it, so one that
   * was handed over whole may still be among the unanswered; what is not, or are two, was sent without waiting.
   */
  asked(socket: ClientSocket, answer: ClientAnswer): void {
    const unanswered = this.of(socket)?.unanswered;
    if (unanswered === undefined || socket.destroyed === true) return;
    if (unanswered.size > 1 || [...unanswered].some((one) => !one.writableEnded)) {
      return this.#cut(socket, "pipelined");
    }
    unanswered.add(answer);
    answer.once("close", () => unanswered.delete(answer));
  }

  /** A request of this caller was admitted there. Throws OVERLOADED where the caller has its share of connections. */
  admitted(connection: Connection | undefined, caller: string): void {
    if (connection === undefined || connection.caller !== null) return;
    this.#shares.take(caller, "connections");
    connection.caller = caller;
    // What has retired stays so: who connected before a reload may speak for the first time after it.
    if (!this.isRetired(connection)) connection.retiresAtMs += this.#limits.connectionAgeMs - UNKNOWN_AGE_MS;
    this.#newcomers.delete(connection);
  }

  isRetired(connection: Connection | undefined): boolean {
    return connection !== undefined && this.#clock.monotonicMs() >= connection.retiresAtMs;
  }

  /** What identified the connections of now no longer does: each is to be made anew. */
  retireAll(): void {
    const nowMs = this.#clock.monotonicMs();
    for (const connection of this.#open.values()) connection.retiresAtMs = Math.min(connection.retiresAtMs, nowMs);
  }

  /** `answer` was handed over, with so many bytes: call `read` with it when it is over. */
  answered(answer: object, socket: ClientSocket, bytes: number): void {
    const { answerStallMs, answerBytesPerS } = this.#limits;
    const untilMs = this.#clock.monotonicMs() + answerStallMs + (bytes / answerBytesPerS) * 1_000;
    this.#answers.set(answer, { socket, untilMs });
  }

  read(answer: object): void {
    this.#answers.delete(answer);
  }

  stop(): void {
    this.#timer?.cancel();
    this.#timer = null;
  }

  #arm(): void {
    if (this.#timer !== null) return;
    this.#sweptAtMs = this.#clock.monotonicMs();
    this.#timer = this.#clock.setTimer(this.#sweptAtMs + this.#sweepMs, () => this.#sweep());
  }

  /** Goes on while there are connections. */
  #sweep(): void {
    this.#timer = null;
    const nowMs = this.#clock.monotonicMs();
    const lateMs = nowMs - this.#sweptAtMs - this.#sweepMs;
    for (const one of this.#answers.values()) {
      if (lateMs > STALL_FORGIVEN_MS) one.untilMs += lateMs;
      else if (nowMs > one.untilMs) this.#cut(one.socket, "slow-reader");
    }
    for (const { raw, retiresAtMs } of this.#open.values()) {
      if (nowMs > retiresAtMs + RETIRED_MS_MAX) this.#cut(raw, "age");
    }
    if (this.#open.size > 0) this.#arm();
  }

  #cut(socket: ClientSocket, why: keyof HttpCounters["cutConnections"]): void {
    this.#counters.cutConnections[why]++;
    socket.destroy();
  }
}

function keyOf({ remoteAddress, remotePort }: ClientSocket): string {
  return `${remoteAddress} ${remotePort}`;
}
