// The sample jobs of `npm start`: small commands, some ten a second, which the workers of nodes that do not lead run. It says how
// long it took, after something was done to the leader, until the next leader had accepted a job. One that is dying may accept some
// before it is dead; so only a job counts that is sent when somebody leads in a later epoch.

import { setTimeout as sleep } from "node:timers/promises";
import { TenureError } from "../../core/kit/errors.ts";
import { type Client, createClient } from "../../client/index.ts";
import * as limits from "./limits.ts";

/** Theirs alone: what a user submits is not lost among them, nor stopped with them. */
const QUEUE = "samples";
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

interface Wound extends Cause {
  readonly epoch: number;
  readonly atMs: number;
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
  #wound: Wound | null = null;
  /** Ends the pause between two jobs: whoever counts milliseconds does not sleep. */
  #haste = new AbortController();

  constructor(urls: readonly string[], key: string, resumed: (text: string, afterMs: number) => void) {
    this.#client = createClient({ urls, key, timeoutMs: limits.LOAD_CALL_MS });
    this.#resumed = resumed;
  }

  /** Something was done to the leader of this epoch just now. What is known already is not counted from a later moment. */
  mark(cause: string, text: string, epoch: number): void {
    this.#wound ??= { cause, text, epoch, atMs: performance.now() };
    this.#haste.abort();
  }

  /** It came to nothing: the leader goes on. */
  forget(cause: string): void {
    if (this.#wound?.cause === cause) this.#healed();
  }

  async run(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      const wound = this.#wound;
      const isNext = wound !== null && (await this.#term(signal)) > wound.epoch;
      const isWaiting = wound !== null && !isNext && performance.now() - wound.atMs < limits.HASTE_MS;
      const id = isWaiting ? null : await this.#submit(signal);
      if (id !== null) this.#acceptedAs(id, isNext ? wound : null);
      const ended = id === null ? signal : AbortSignal.any([signal, this.#haste.signal]);
      await sleep(id === null ? limits.LOAD_RETRY_MS : limits.LOAD_EVERY_MS, undefined, { signal: ended }).catch(
        () => undefined,
      );
    }
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

  /** Null: a server that starts, stops or is frozen. That is what this demonstration is about. */
  async #submit(signal: AbortSignal): Promise<string | null> {
    const script = SAMPLES[this.accepted % SAMPLES.length]!;
    const payload = { command: ["sh", "-c", script] };
    const job = { kind: "exec", queue: QUEUE, payload, retentionMs: limits.LOAD_RETENTION_MS };
    try {
      return await this.#client.submit(job, { signal, attemptMs: limits.LOAD_ATTEMPT_MS });
    } catch (error) {
      if (signal.aborted || TenureError.is(error)) return null;
      throw error;
    }
  }

  /** Of whoever leads now; 0: nobody says so in time. */
  #term(signal: AbortSignal): Promise<number> {
    return this.#client.leader({ signal, timeoutMs: limits.LOAD_ATTEMPT_MS }).then(
      ({ term }) => term,
      () => 0,
    );
  }

  /** By the next leader, where there was a wound. */
  #acceptedAs(id: string, wound: Wound | null): void {
    this.accepted++;
    this.#ids.push(id);
    if (this.#ids.length > limits.IDS_KEPT_MAX) this.#ids.shift();
    if (wound === null || this.#wound !== wound) return;
    this.#healed();
    const ms = performance.now() - wound.atMs;
    this.failovers.push({ cause: wound.cause, ms: Math.round(ms) });
    this.#resumed(wound.text, ms);
  }

  #healed(): void {
    this.#wound = null;
    this.#haste = new AbortController();
  }
}
