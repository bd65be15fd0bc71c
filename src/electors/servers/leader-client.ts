// Asks the leader of the cluster, wherever it is, and goes after it when it changes.
//
//   leader known ──ask──▶ answered
//        ▲           ├──moved, and named──▶ leader known
//        │           └──no usable answer──▶ nobody known ──pause, find──▶ leader known
//
// Invariants
// - What is sent again is safe to be sent again (trap 65). Acquire, renew and resign name a session that nobody else has: a
//   second grant to it is the first one, a second renewal extends what it holds, a second resignation finds nothing. Reads
//   change nothing. Whatever else is asked is marked `once`: it is sent again only where it certainly was not done, and
//   rejects with OUTCOME_UNKNOWN where it may have been (trap 66).
// - `sentAt` is when the request left that was answered, not the first of its kind (trap 44).
// - Between two tries that failed there is a pause that doubles, jittered; redirects are followed a few times without one.

import { TenureError } from "../../core/kit/errors.ts";
import type { Random } from "../../core/kit/random.ts";
import type { Instant } from "../../core/trust/window.ts";
import type { Clock } from "../../ports/clock.ts";
import type { ServersAnswer, ServersQuestion, ServersWire } from "../../ports/backends/servers.ts";
import { pause } from "../../loops/time.ts";
import * as limits from "../limits.ts";
import type { Fields } from "./answers.ts";
import { findLeader } from "./discovery.ts";
import type { Members } from "./members.ts";
import { refusalOf } from "./refusals.ts";

export interface Question<T> {
  readonly method: ServersQuestion["method"];
  readonly path: string;
  readonly body: object | null;
  readonly signal: AbortSignal;
  /** Throws a TenureError where the answer is none; then it counts as not answered. */
  readonly read: (fields: Fields, pieces: ServersAnswer["pieces"]) => T;
  /** How long the server may hold the answer back. Default: not at all. */
  readonly waitMs?: number;
  /** Given: it may be long, and one that is longer is refused, for another node would say as much. */
  readonly bytesMax?: number;
  /** Given: the answer is a stream, on which something is heard at least so often. It ends with the signal. */
  readonly silenceMs?: number;
  /** Must not be done twice. */
  readonly once?: boolean;
  /** It may have reached a server: called for each try of which that can't be excluded. */
  readonly sent?: () => void;
}

export interface Told<T> {
  readonly value: T;
  readonly sentAt: Instant;
}

export interface LeaderClientOptions {
  readonly wire: ServersWire;
  readonly members: Members;
  readonly clock: Clock;
  readonly random: Random;
  readonly requestTimeoutMs: number;
  readonly budgetMs: number;
}

type Outcome<T> =
  | { readonly kind: "told"; readonly told: Told<T> }
  | { readonly kind: "moved" | "failed" | "refused"; readonly error: TenureError };

export class LeaderClient {
  readonly #options: LeaderClientOptions;
  readonly #life = new AbortController();
  #search: Promise<string> | undefined;

  constructor(options: LeaderClientOptions) {
    this.#options = options;
  }

  /** Rejects with a TenureError: at once where it was refused for good, else when the budget is used up without an answer. */
  async ask<T>(question: Question<T>): Promise<Told<T>> {
    const { clock, budgetMs } = this.#options;
    let failedSinceMs: number | undefined;
    for (let failures = 0, hops = 0; ;) {
      if (question.signal.aborted) throw givenUp();
      const outcome = await this.#try(question);
      if (outcome.kind === "told") return outcome.told;
      if (outcome.kind === "refused" || question.signal.aborted) throw outcome.error;
      if (outcome.kind === "moved" && hops++ < limits.LEADER_HOPS_MAX) continue;
      const nowMs = clock.monotonicMs();
      failedSinceMs ??= nowMs;
      if (nowMs - failedSinceMs >= budgetMs) throw outcome.error;
      hops = 0;
      await this.#pause(failures++, question.signal);
    }
  }

  close(): void {
    this.#life.abort();
    this.#options.wire.close();
  }

  /** `refused`: what no other try would repair. */
  async #try<T>(question: Question<T>): Promise<Outcome<T>> {
    const { members } = this.#options;
    let url: string;
    try {
      url = members.leaderUrl ?? (await this.#find(question.signal));
    } catch (error) {
      if (!TenureError.is(error)) throw error;
      return { kind: error.retryable ? "failed" : "refused", error };
    }
    const sentAt = this.#now();
    const isOnce = question.once === true;
    try {
      const answer = await this.#send(url, question);
      members.checkCluster(url, answer);
      if (answer.status !== 200) return this.#refused(answer, url, isOnce);
      const value = question.read(answer.body, answer.pieces);
      members.use();
      return { kind: "told", told: { value, sentAt } };
    } catch (error) {
      if (!TenureError.is(error)) throw error;
      if (question.bytesMax !== undefined && isMarkedTooLong(error)) return { kind: "refused", error };
      // What we gave up ourselves says nothing about the node, which others of this process ask too.
      if (!question.signal.aborted && !this.#life.signal.aborted) members.forget(url);
      if (isOnce && !isMarkedUnsent(error)) return { kind: "refused", error: outcomeUnknown(error) };
      // Also of what no retry repairs at this node (a certificate, garbage): the search that follows asks the others, and knows.
      return { kind: "failed", error };
    }
  }

  #refused(answer: ServersAnswer, url: string, isOnce: boolean): Outcome<never> {
    const { members } = this.#options;
    const refusal = refusalOf(answer, url);
    switch (refusal.kind) {
      case "moved": {
        members.doubt(url);
        const next = refusal.nodeId === null ? null : members.urlOf(refusal.nodeId, refusal.url);
        // One that was never introduced is found by asking everybody, which introduces it.
        const isKnown = next !== null && next !== url && members.isIntroduced(next);
        if (isKnown) members.leaderUrl = next;
        return { kind: isKnown ? "moved" : "failed", error: refusal.error };
      }
      case "locked":
        return { kind: "failed", error: refusal.error };
      case "elsewhere":
        members.doubt(url);
        return { kind: "failed", error: refusal.error };
      case "unknown":
        members.doubt(url);
        if (isOnce) return { kind: "refused", error: outcomeUnknown(refusal.error) };
        return { kind: "failed", error: refusal.error };
      case "refused":
        return { kind: "refused", error: refusal.error };
      default:
        return refusal satisfies never;
    }
  }

  async #send(url: string, question: Question<unknown>): Promise<ServersAnswer> {
    const { method, path, body, signal, waitMs = 0, bytesMax = limits.LEADER_ANSWER_BYTES_MAX, silenceMs } = question;
    const timeoutMs = this.#options.requestTimeoutMs + waitMs;
    const both = AbortSignal.any([signal, this.#life.signal]);
    let isUnsent = false;
    try {
      return await this.#options.wire.ask(url, { method, path, body, timeoutMs, bytesMax, silenceMs, signal: both });
    } catch (error) {
      isUnsent = isMarkedUnsent(error);
      throw error;
    } finally {
      if (!isUnsent) question.sent?.();
    }
  }

  /** One search at a time, for whoever asks meanwhile; who gives up, gives up alone. */
  #find(signal: AbortSignal): Promise<string> {
    const { wire, members, clock, requestTimeoutMs } = this.#options;
    if (this.#search === undefined) {
      const search = findLeader({ wire, members, clock, timeoutMs: requestTimeoutMs, signal: this.#life.signal });
      this.#search = search;
      search
        .then((url) => {
          members.leaderUrl = url;
        })
        .catch(() => undefined)
        .finally(() => {
          this.#search = undefined;
        });
    }
    return unlessAborted(this.#search, signal);
  }

  #pause(failures: number, signal: AbortSignal): Promise<boolean> {
    const { clock, random } = this.#options;
    const ceilingMs = Math.min(
      limits.LEADER_PAUSE_MS_MAX,
      limits.LEADER_PAUSE_MS_MIN * 2 ** Math.min(failures, limits.LEADER_DOUBLINGS_MAX),
    );
    return pause(clock, random.between(ceilingMs / 2, ceilingMs), signal);
  }

  #now(): Instant {
    const { clock } = this.#options;
    return { monotonicMs: clock.monotonicMs(), wallMs: clock.wallMs() };
  }
}

function unlessAborted<T>(work: Promise<T>, signal: AbortSignal): Promise<T> {
  return new Promise((resolve, reject) => {
    const giveUp = (): void => reject(givenUp());
    if (signal.aborted) giveUp();
    signal.addEventListener("abort", giveUp, { once: true });
    work.then(resolve, reject).finally(() => signal.removeEventListener("abort", giveUp));
  });
}

export function givenUp(): TenureError {
  return new TenureError("BACKEND_UNAVAILABLE", "the request to the servers was given up by us.");
}

function isMarkedUnsent(error: unknown): boolean {
  return error instanceof Error && "unsent" in error && error.unsent === true;
}

function isMarkedTooLong(error: unknown): boolean {
  return error instanceof Error && "tooLong" in error && error.tooLong === true;
}

function outcomeUnknown(cause: unknown): TenureError {
  const why = cause instanceof Error ? cause.message : String(cause);
  return new TenureError(
    "OUTCOME_UNKNOWN",
    `the request was sent to the cluster and no usable answer came (${why}): it may or may not have been done. Look before you repeat it.`,
    { cause },
  );
}
