// A steady stream of jobs for a cluster under change: a client of the SDK that submits small batches by the clock, whatever
// becomes of the ones before, agents that finish them, and the ledger of what both were told.

import { setTimeout as sleep } from "node:timers/promises";
import { type Client, type ClientFetch, createClient } from "../../src/client/index.ts";
import { type Agent, createAgent } from "../../src/entry/agent.ts";
import type { JobEvent } from "../chaos/jobs-judge.ts";

const KIND = "steady";
/** Longer than anything may take: the client is one that retries. */
const PATIENT_MS = 30_000;
const AGENTS = 2;
const CAPACITY = 200;

export interface JobLoadOptions {
  readonly urls: readonly string[];
  readonly key?: string | undefined;
  /** With certificates, in place of a key. */
  readonly fetch?: ClientFetch | undefined;
  readonly perSecond: number;
  readonly batch: number;
}

export interface Worst {
  /** The longest time between two accepted submissions, one after the other. */
  readonly refusalMs: number;
  /** How long this process itself could not run, at worst: on a machine that is busy with something else, so can't the nodes. */
  readonly heldUpMs: number;
}

export class JobLoad {
  readonly client: Client;
  /** By tag: the id under which it was accepted. */
  readonly accepted = new Map<string, string>();
  /** What a client that gave up was answered. */
  readonly refusals: string[] = [];
  #worst: Worst = { refusalMs: 0, heldUpMs: 0 };
  readonly #options: JobLoadOptions;
  readonly #agents: Agent[];
  readonly #resting = new AbortController();
  readonly #runs = new Map<string, number>();
  #lastMs = 0;
  #next = 0;
  #loop: Promise<void> | null = null;

  constructor(options: JobLoadOptions) {
    const { urls, key, fetch } = options;
    this.#options = options;
    this.client = createClient({ urls, key, fetch, timeoutMs: PATIENT_MS });
    this.#agents = Array.from({ length: AGENTS }, (_, at) =>
      createAgent({
        urls,
        key,
        fetch,
        name: `steady-${at}`,
        capacity: CAPACITY,
        handlers: { [KIND]: (job) => this.#run(job.id) },
      }),
    );
  }

  /** How often a handler ran, over all jobs, beyond once for each. */
  get rerun(): number {
    return [...this.#runs.values()].reduce((sum, runs) => sum + runs - 1, 0);
  }

  /** Since the last call, or the start. */
  takeWorst(): Worst {
    const worst = this.#worst;
    this.#worst = { refusalMs: 0, heldUpMs: 0 };
    return worst;
  }

  async start(): Promise<void> {
    await Promise.all(this.#agents.map((agent) => agent.start()));
    this.#lastMs = performance.now();
    this.#loop = this.#submit();
  }

  /** Resolves when everything that was begun is answered. */
  async rest(): Promise<void> {
    this.#resting.abort();
    await this.#loop;
  }

  async end(): Promise<void> {
    await this.rest();
    await Promise.all(this.#agents.map((agent) => agent.stop({ drainMs: 0 })));
  }

  async #submit(): Promise<void> {
    const { perSecond, batch } = this.#options;
    const begunMs = performance.now();
    const open = new Set<Promise<void>>();
    for (let sent = 0; !this.#resting.signal.aborted; sent += batch) {
      const dueMs = begunMs + (sent / perSecond) * 1_000;
      const lateMs = await lateness(Math.max(0, dueMs - performance.now()));
      this.#worst = { ...this.#worst, heldUpMs: Math.max(this.#worst.heldUpMs, lateMs) };
      const one = this.#batch(batch).finally(() => open.delete(one));
      open.add(one);
    }
    await Promise.all(open);
  }

  async #batch(size: number): Promise<void> {
    const tags = Array.from({ length: size }, () => `t${++this.#next}`);
    const jobs = tags.map((tag) => ({ kind: KIND, payload: { tag } }));
    try {
      const ids = await this.client.submitMany(jobs, { idempotencyKey: `key-${tags[0]}` });
      const nowMs = performance.now();
      const refusalMs = Math.max(this.#worst.refusalMs, nowMs - this.#lastMs);
      this.#worst = { ...this.#worst, refusalMs };
      this.#lastMs = nowMs;
      for (const [at, id] of ids.entries()) this.accepted.set(tags[at]!, id);
    } catch (error) {
      this.refusals.push(`${tags[0]}: ${String(error)}`);
    }
  }

  async #run(id: string): Promise<null> {
    this.#runs.set(id, (this.#runs.get(id) ?? 0) + 1);
    return null;
  }
}

/** How much later than asked for a pause ends. */
async function lateness(ms: number): Promise<number> {
  const dueMs = performance.now() + ms;
  await sleep(ms);
  return performance.now() - dueMs;
}

export interface LoadJudgement {
  readonly jobs: number;
  /** Accepted, and not there, or never completed. */
  readonly lost: number;
  readonly submittedTwice: number;
  readonly committedTwice: number;
}

/** What the events say of what clients were told. */
export function judgeLoad(accepted: ReadonlyMap<string, string>, events: readonly JobEvent[]): LoadJudgement {
  const tags = new Map<string, number>();
  const completed = new Map<string, number>();
  for (const { eventType, entityId, payload } of events) {
    if (eventType === "build:completed") count(completed, entityId);
    if (eventType === "build:submitted") count(tags, tagOf(payload.spec?.payload));
  }
  const lost = [...accepted].filter(([tag, id]) => !tags.has(tag) || !completed.has(id));
  return {
    jobs: accepted.size,
    lost: lost.length,
    submittedTwice: twice(tags),
    committedTwice: twice(completed),
  };
}

function count(counts: Map<string, number>, key: string): void {
  counts.set(key, (counts.get(key) ?? 0) + 1);
}

function twice(counts: ReadonlyMap<string, number>): number {
  return [...counts.values()].filter((times) => times > 1).length;
}

function tagOf(payload: unknown): string {
  return (payload as { readonly tag: string }).tag;
}
