// The sample jobs of `npm start`: small commands, some ten a second, which the workers of nodes that do not lead run. It says how
// long it took, after something was done to the leader, until the next leader had accepted a job. One that is dying may accept some
// before it is dead; so each job is looked up, and only one of a later epoch counts.

import { setTimeout as sleep } from "node:timers/promises";
import { TenureError } from "../core/kit/errors.ts";
import { type Client, createClient } from "../client/index.ts";

const EVERY_MS = 100;
const RETRY_MS = 5;
/** On one machine a server that says nothing for so long is frozen. */
const ATTEMPT_MS = 100;
const CALL_LIMIT_MS = 5_000;
/** They are looked for at the end; of a demonstration that ran for hours, the last. */
const IDS_KEPT_MAX = 2_000;
const RETENTION_MS = 3_600_000;
const SAMPLES = [
  "echo sorting the mail; sleep 0.2; echo done",
  "echo counting the stars; sleep 0.3; echo 7 of them",
  "echo folding the maps; sleep 0.1; echo folded",
] as const;

/** What was done to the leader, in one word, and for people. */
export interface Cause {
  readonly cause: string;
  readonly text: string;
}

export interface Failover {
  readonly cause: string;
  readonly ms: number;
}

export class DevLoad {
  accepted = 0;
  readonly failovers: Failover[] = [];
  readonly #client: Client;
  readonly #resumed: (text: string, afterMs: number) => void;
  readonly #ids: string[] = [];
  #wound: { readonly cause: Cause; readonly epoch: number; readonly atMs: number } | null = null;
  /** Ends the pause between two jobs: whoever counts milliseconds does not sleep. */
  #haste = new AbortController();
  /** One after the other: the first job of the next leader is to be found first. */
  #looks: Promise<void> = Promise.resolve();

  constructor(urls: readonly string[], key: string, resumed: (text: string, afterMs: number) => void) {
    this.#client = createClient({ urls, key, timeoutMs: CALL_LIMIT_MS });
    this.#resumed = resumed;
  }

  /** Something was done to the leader of this epoch just now. What is known already is not counted from a later moment. */
  mark(cause: string, text: string, epoch: number): void {
    this.#wound ??= { cause: { cause, text }, epoch, atMs: performance.now() };
    this.#haste.abort();
  }

  /** It came to nothing: the leader goes on. */
  forget(cause: string): void {
    if (this.#wound?.cause.cause === cause) this.#healed();
  }

  async run(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      const sentMs = performance.now();
      const id = await this.#submit(signal).catch((error: unknown) => {
        // A server that starts, stops or is frozen: that is what this demonstration is about.
        if (signal.aborted || TenureError.is(error)) return null;
        throw error;
      });
      if (id !== null) this.#acceptedAs(id, sentMs);
      const isHasty = id === null || this.#wound !== null;
      const ended = isHasty ? signal : AbortSignal.any([signal, this.#haste.signal]);
      await sleep(isHasty ? RETRY_MS : EVERY_MS, undefined, { signal: ended }).catch(() => undefined);
    }
    await this.#looks;
  }

  /** How many of the jobs that were accepted nobody knows any more. */
  async lost(): Promise<number> {
    let lost = 0;
    for (const id of this.#ids) {
      const isKnown = await this.#client.job(id, { consistency: "linearizable" }).then(
        () => true,
        (error: unknown) => !(TenureError.is(error) && error.code === "NOT_FOUND"),
      );
      if (!isKnown) lost++;
    }
    return lost;
  }

  #submit(signal: AbortSignal): Promise<string> {
    const script = SAMPLES[this.accepted % SAMPLES.length]!;
    const job = { kind: "exec", payload: { command: ["sh", "-c", script] }, retentionMs: RETENTION_MS };
    return this.#client.submit(job, { signal, attemptMs: ATTEMPT_MS });
  }

  /** One that was sent before it says nothing about what came after. */
  #acceptedAs(id: string, sentMs: number): void {
    this.accepted++;
    this.#ids.push(id);
    if (this.#ids.length > IDS_KEPT_MAX) this.#ids.shift();
    const wound = this.#wound;
    if (wound === null || sentMs < wound.atMs) return;
    const ms = performance.now() - wound.atMs;
    this.#looks = this.#looks.then(async () => {
      if (this.#wound !== wound || (await this.#epochOf(id)) <= wound.epoch || this.#wound !== wound) return;
      this.#healed();
      this.failovers.push({ cause: wound.cause.cause, ms: Math.round(ms) });
      this.#resumed(wound.cause.text, ms);
    });
  }

  #healed(): void {
    this.#wound = null;
    this.#haste = new AbortController();
  }

  /** In which it was accepted; 0 where nobody can say so now: then the next one is asked for. */
  async #epochOf(id: string): Promise<number> {
    try {
      const { submittedSequence } = await this.#client.job(id, { consistency: "linearizable" });
      const signal = AbortSignal.timeout(CALL_LIMIT_MS);
      for await (const { leaderEpoch } of this.#client.events({ after: submittedSequence - 1, signal }))
        return leaderEpoch;
    } catch (error) {
      if (!TenureError.is(error) && (error as Error).name !== "TimeoutError") throw error;
    }
    return 0;
  }
}
