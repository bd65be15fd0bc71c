// Those who submit jobs, and the ledger of what they were told. Every try has tags of its own, so the log of events says
// afterwards what became of it, whoever was told what.
//
//   patient: with a key, repeated by the SDK until it is answered
//   hasty:   with a key and little time; what it does not know is asked again at the end, under the same key
//   keyless: never repeated; what it does not know stays unknown, and may be there once or not at all

import { setTimeout as sleep } from "node:timers/promises";
import { TenureError, type Client, type JobRequest } from "../../src/entry/client.ts";
import type { Random } from "../../src/core/kit/random.ts";
import { type ChaosPayload, JOB_KIND } from "./jobs-journal.ts";

export type Manner = "patient" | "hasty" | "keyless";

/** `refused`: told that nothing was done, which must be true (trap 66). */
export type Fate =
  | { readonly kind: "acknowledged"; readonly ids: readonly string[] }
  | { readonly kind: "refused"; readonly why: string }
  | { readonly kind: "unknown"; readonly why: string };

export interface Submission {
  readonly manner: Manner;
  readonly tags: readonly string[];
  fate: Fate;
  /** It was unknown until it was asked again. */
  wasUnknown: boolean;
}

interface Asked extends Submission {
  readonly key: string | null;
  readonly jobs: readonly JobRequest[];
}

export interface SubmittersOptions {
  readonly client: (timeoutMs?: number) => Client;
  readonly random: Random;
  /** Jobs that shall be there in the end; more where `isEnough` wants it. */
  readonly jobs: number;
  readonly isEnough: () => boolean;
  readonly perSecond: number;
  readonly leaseMs: number;
  /** The share of jobs that take a third of a lease. */
  readonly slowShare: number;
  readonly signal: AbortSignal;
}

const LOOPS = 8;
const BATCH_MAX = 10;
const PATIENT_MS = 30_000;
const HASTY_MS = 120;
const KEYLESS_MS = 3_000;
const REFUSED_PAUSE_MS = 50;
const RESOLVE_MS = 60_000;
/** Losses are what this is about: no job may give up because of them. */
const LOSSES_MAX = 1_000;

export class Submitters {
  readonly submissions: Submission[] = [];
  /** Calls with a valid key that were refused for it. */
  readonly denials: string[] = [];
  readonly #options: SubmittersOptions;
  readonly #asked: Asked[] = [];
  readonly #patient: Client;
  readonly #startedMs = performance.now();
  #begun = 0;
  #next = 0;

  constructor(options: SubmittersOptions) {
    this.#options = options;
    this.#patient = options.client(PATIENT_MS);
  }

  get acknowledged(): number {
    return sumOf(this.submissions, ({ fate }) => (fate.kind === "acknowledged" ? fate.ids.length : 0));
  }

  /** Until there are as many jobs as wanted, or it is asked to stop. */
  async run(): Promise<void> {
    await Promise.all(Array.from({ length: LOOPS }, () => this.#loop()));
  }

  /** For after the faults: what became of those that have a key. */
  async resolve(): Promise<void> {
    for (const one of this.#asked) {
      if (one.fate.kind === "unknown" && one.key !== null) await this.#ask(one, this.#options.client(RESOLVE_MS));
    }
  }

  /** One job, sent by somebody else, whose fate is told later. */
  note(tag: string): Submission {
    const one: Submission = {
      manner: "keyless",
      tags: [tag],
      fate: { kind: "unknown", why: "on its way" },
      wasUnknown: false,
    };
    this.submissions.push(one);
    return one;
  }

  newJob(): { readonly tag: string; readonly job: JobRequest } {
    const { random, leaseMs, slowShare } = this.#options;
    const tag = `t${++this.#next}`;
    // Most are short; some outlast their lease several times, and need its renewals.
    const workMs = random.chance(0.02) ? leaseMs * 1.5 : random.chance(slowShare) ? leaseMs / 3 : random.between(0, 20);
    const payload: ChaosPayload = {
      tag,
      workMs: Math.floor(workMs),
      isDeaf: random.chance(0.5),
      isTalkative: random.chance(0.1),
    };
    return { tag, job: { kind: JOB_KIND, payload, lossesMax: LOSSES_MAX } };
  }

  async #loop(): Promise<void> {
    const { random, jobs, isEnough, perSecond, signal } = this.#options;
    while (!signal.aborted) {
      const left = isEnough() ? jobs - this.#begun : BATCH_MAX;
      if (left <= 0) return;
      const size = Math.min(1 + random.below(BATCH_MAX), left);
      this.#begun += size;
      const dueMs = this.#startedMs + (this.#begun / perSecond) * 1_000;
      await sleep(Math.max(0, dueMs - performance.now()), undefined, { signal }).catch(() => undefined);
      if (signal.aborted) return;
      const asked = this.#newSubmission(size);
      await this.#ask(asked, this.#clientOf(asked.manner));
      if (asked.fate.kind === "acknowledged" || asked.key !== null) continue;
      // Others take its place: so many are to be there, and nobody knows of these.
      this.#begun -= size;
      await sleep(REFUSED_PAUSE_MS);
    }
  }

  #newSubmission(size: number): Asked {
    const { random } = this.#options;
    const manner = random.chance(0.7) ? "patient" : random.chance(0.67) ? "hasty" : "keyless";
    const made = Array.from({ length: size }, () => this.newJob());
    const one: Asked = {
      manner,
      key: manner === "keyless" ? null : `key-${made[0]!.tag}`,
      tags: made.map(({ tag }) => tag),
      jobs: made.map(({ job }) => job),
      fate: { kind: "unknown", why: "on its way" },
      wasUnknown: false,
    };
    this.submissions.push(one);
    this.#asked.push(one);
    return one;
  }

  #clientOf(manner: Manner): Client {
    if (manner === "patient") return this.#patient;
    return this.#options.client(manner === "hasty" ? HASTY_MS : KEYLESS_MS);
  }

  async #ask(one: Asked, client: Client): Promise<void> {
    try {
      one.fate = { kind: "acknowledged", ids: await client.submitMany(one.jobs, { idempotencyKey: one.key }) };
    } catch (error) {
      one.fate = fateOf(error);
      if (TenureError.is(error) && error.code === "UNAUTHENTICATED") this.denials.push(one.fate.why);
      if (one.fate.kind === "unknown") one.wasUnknown = true;
      // With a key it is asked again, so that nothing of it stays open.
      else if (one.key !== null) one.fate = { ...one.fate, kind: "unknown" };
    }
  }
}

/** What nobody understands may have been done. */
function fateOf(error: unknown): Extract<Fate, { why: string }> {
  if (!TenureError.is(error)) return { kind: "unknown", why: String(error) };
  return { kind: error.code === "OUTCOME_UNKNOWN" ? "unknown" : "refused", why: `${error.code}: ${error.message}` };
}

export function sumOf<T>(items: readonly T[], count: (item: T) => number): number {
  return items.reduce((sum, item) => sum + count(item), 0);
}
