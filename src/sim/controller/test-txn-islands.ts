// Islands on logs in memory, for the tests of transactions' participants: two or three of them, some of two nodes, in one virtual time. What they say to
// each other may be lost, doubled and late; who leads, and what becomes of an append, a test decides.

import type { ScopesStage } from "../../controller/scopes/test-scopes.ts";
import type { StateServiceOptions } from "../../controller/state/state.ts";
import { PLAIN_SPEC } from "../../core/jobs/model.ts";
import { TenureError } from "../../core/kit/errors.ts";
import { type Random, seededRandom } from "../../core/kit/random.ts";
import {
  type BackendHash,
  type TcFence,
  type TxnAnswer,
  type TxnHeader,
  type TxnOperation,
  type TxnReason,
  type TxnRequest,
  type TxnRequire,
} from "../../core/txn/index.ts";
import { newTxnId } from "../../core/txn/test-ids.ts";
import { ManualClock } from "../../loops/test-clock.ts";
import { sleep, within } from "../../loops/time.ts";
import { MemoryStore } from "../../logs/index.ts";
import type { DeliveredJob, IslandCalls, JobsDelivery, TxnView } from "../../ports/transactions.ts";
import { stageOn } from "./test-scopes-stage.ts";

export interface Faults {
  /** Of a request, and of an answer. */
  readonly loss: number;
  /** That it arrives a second time, later. */
  readonly twice: number;
  readonly delayMs: number;
}

const NO_FAULTS: Faults = { loss: 0, twice: 0, delayMs: 0 };
/** What a server answers so is known to have changed nothing. */
const DEFINITE = new Set(["DISK_FULL", "CLUSTER_PAUSED", "NOT_SUPPORTED", "OVERLOADED"]);

export class TestIslands {
  readonly clock = new ManualClock();
  readonly random: Random;
  readonly all: TestIsland[];
  faults: Faults = NO_FAULTS;
  /** Islands that nobody reaches. */
  readonly away = new Set<BackendHash>();
  /** What was asked of whom, in order. */
  readonly asked: { readonly target: BackendHash; readonly kind: TxnRequest["kind"]; readonly atMs: number }[] = [];
  underWay = 0;
  underWayMax = 0;

  constructor(seed: string, nodes: readonly number[]) {
    this.random = seededRandom(seed);
    this.all = nodes.map((count, at) => new TestIsland(this, "abcdef"[at]!.repeat(64), count));
  }

  async start(): Promise<this> {
    for (const island of this.all) await island.elect(0);
    return this;
  }

  island(hash: BackendHash): TestIsland {
    const found = this.all.find((one) => one.hash === hash);
    if (found === undefined) throw new Error(`no island ${hash}`);
    return found;
  }

  newId(): string {
    return newTxnId(this.clock.wallMs(), this.random);
  }

  /** `from`: who asks, and hears nothing while it is away. */
  callsOf(from: BackendHash | null): IslandCalls {
    return {
      islands: () => this.all.map(({ hash }) => hash),
      isHeard: (target) => Promise.resolve(!this.#isCut(from, target)),
      call: async (target, request, withinMs) => {
        this.asked.push({ target, kind: request.kind, atMs: this.clock.nowMs });
        this.underWayMax = Math.max(this.underWayMax, ++this.underWay);
        const answer = await within(this.clock, withinMs, this.#carry(from, target, request), null);
        this.underWay--;
        return answer;
      },
    };
  }

  async #carry(from: BackendHash | null, target: BackendHash, request: TxnRequest): Promise<TxnAnswer | null> {
    const { random, faults } = this;
    if (this.#isCut(from, target) || random.chance(faults.loss)) return this.#nothing();
    if (random.chance(faults.twice)) void this.#late(target, request);
    await this.#delay();
    const answer = await this.island(target).answer(request);
    await this.#delay();
    if (this.#isCut(from, target) || random.chance(faults.loss)) return this.#nothing();
    return answer;
  }

  async #late(target: BackendHash, request: TxnRequest): Promise<void> {
    await sleep(this.clock, this.random.between(0, 20 * this.faults.delayMs));
    await this.island(target).answer(request);
  }

  async #delay(): Promise<void> {
    const { delayMs } = this.faults;
    if (delayMs > 0) await sleep(this.clock, this.random.between(0, delayMs));
  }

  #isCut(from: BackendHash | null, target: BackendHash): boolean {
    return this.away.has(target) || (from !== null && this.away.has(from));
  }

  #nothing(): Promise<never> {
    return new Promise(() => undefined);
  }
}

/** One jobs' log, of which a leader of the island appends. */
class TestJobs {
  readonly jobs: DeliveredJob[] = [];
  /** How often it was asked. */
  calls = 0;
  /** The next ones fail: `before` anything is there, or `after` it is. */
  readonly failing: ("before" | "after")[] = [];
  #last: readonly [place: number, operation: number] = [0, -1];

  deliveryOf(leads: () => boolean): JobsDelivery {
    return {
      deliver: async (jobs) => {
        this.calls++;
        const failure = this.failing.shift();
        await Promise.resolve();
        if (!leads()) throw new TenureError("NOT_LEADER", "deposed");
        if (failure === "before") throw new TenureError("OVERLOADED", "full");
        for (const job of jobs) this.#take(job);
        if (failure === "after") throw new TenureError("OUTCOME_UNKNOWN", "deposed since");
      },
    };
  }

  get marks(): readonly string[] {
    return this.jobs.map(({ mark }) => mark);
  }

  #take(job: DeliveredJob): void {
    const [place, operation] = this.#last;
    if (job.place < place || (job.place === place && job.operation <= operation)) return;
    this.#last = [job.place, job.operation];
    this.jobs.push(job);
  }
}

export class TestIsland {
  readonly hash: BackendHash;
  readonly jobs = new TestJobs();
  readonly nodes: ScopesStage[];
  term = 0;
  refusal: TenureError | null = null;
  unready: readonly string[] = [];
  observed: TcFence | null = null;
  readonly #islands: TestIslands;
  readonly #store = new MemoryStore();
  #leader = -1;
  #jobIds = 0;

  constructor(islands: TestIslands, hash: BackendHash, nodes: number) {
    this.#islands = islands;
    this.hash = hash;
    this.nodes = Array.from({ length: nodes }, (_, at) => this.#node(this.#store, at));
  }

  get leader(): ScopesStage {
    return this.nodes[this.#leader]!;
  }

  /** `isSilent`: the one that led before does not know it yet. */
  async elect(node: number, isSilent = false): Promise<void> {
    this.term++;
    if (this.#leader >= 0 && !isSilent) this.leader.consensus.depose(this.term);
    this.#leader = node;
    await this.leader.lead(this.term);
  }

  /** As a server does, whose refusals are answers. Null: it says nothing that counts. */
  async answer(request: TxnRequest): Promise<TxnAnswer | null> {
    try {
      return await this.leader.state.transactions.answer(request);
    } catch (error) {
      if (!TenureError.is(error)) throw error;
      const { code, message } = error;
      return DEFINITE.has(code) ? { kind: "refused", code, message } : null;
    }
  }

  get(id: string): TxnView | null {
    return this.leader.state.transactions.get(id);
  }

  phase(id: string): string | null {
    return this.get(id)?.phase ?? null;
  }

  value(name: string): unknown {
    return this.leader.state.values.get(name)?.value ?? null;
  }

  async put(name: string, value: string | number): Promise<number> {
    return (await this.leader.state.values.put({ name, value, ifVersion: null, fence: null })).version;
  }

  /** As a copy of it that was restored: the same log, and another island. */
  restoredAs(hash: BackendHash): ScopesStage {
    return this.#node(this.#store, this.nodes.length, hash);
  }

  #node(store: MemoryStore, at: number, hash = this.hash): ScopesStage {
    const more: Partial<StateServiceOptions> = {
      island: {
        backendHash: hash,
        newJobId: () => `job-${this.hash[0]}-${++this.#jobIds}`,
        problemOf: ({ kind }) => (kind === "" ? "it has no kind" : null),
      },
      refusesNew: () => this.refusal,
      unreadyForTransactions: () => this.unready,
      random: seededRandom(`${this.hash} ${at}`),
    };
    const stage = stageOn(store, this.#islands.clock, undefined, more);
    const leads = (): boolean => this.#leader === at;
    stage.state.transactions.attach({
      calls: this.#islands.callsOf(hash),
      jobs: this.jobs.deliveryOf(leads),
      observed: () => this.observed,
    });
    return stage;
  }
}

// ---- transactions ----------------------------------------------------------------------------------

export const FENCE: TcFence = { clusterId: "tc", term: 1, recoveredBy: null };

export function putting(name: string, text: string, ifVersion: number | null = null): TxnOperation {
  return { kind: "value-put", name, data: new TextEncoder().encode(JSON.stringify(text)), ifVersion };
}

export function releasing(scope: string, epoch: number): TxnOperation {
  return { kind: "scope-release", scope, epoch };
}

export function acquiring(scope: string, session: string): TxnOperation {
  return { kind: "scope-acquire", scope, session, identity: `id-${session}`, metadata: {}, ttlMs: 10_000 };
}

export function submitting(kind: string): TxnOperation {
  const budgets = { attemptsMax: 1, lossesMax: 1, backoff: { baseMs: 1, maxMs: 1 }, retentionMs: 1 };
  return { kind: "job-submit", spec: { ...PLAIN_SPEC, kind, ...budgets } };
}

/** One transaction, and what a coordinator says of it. Home is the first island, unless it is given. */
export class TestTxn {
  readonly id: string;
  readonly header: TxnHeader;
  readonly #parts: ReadonlyMap<BackendHash, readonly TxnOperation[]>;

  constructor(
    islands: TestIslands,
    parts: readonly (readonly [TestIsland, readonly TxnOperation[]])[],
    { home = parts[0]![0], id = islands.newId(), timeoutMs = 5_000, digest = "0".repeat(64) } = {},
  ) {
    this.id = id;
    this.#parts = new Map(parts.map(([{ hash }, operations]) => [hash, operations]));
    const participants = [...this.#parts.keys()].toSorted();
    this.header = { id, home: home.hash, participants, digest, timeoutMs, by: "client" };
  }

  prepare(island: TestIsland, fence: TcFence = FENCE): Extract<TxnRequest, { kind: "prepare" }> {
    return { kind: "prepare", header: this.header, operations: this.#parts.get(island.hash) ?? [], fence };
  }

  /** At home with its operations. */
  commit(island: TestIsland, require: readonly TxnRequire[] = [], fence: TcFence = FENCE): TxnRequest {
    const operations = island.hash === this.header.home ? (this.#parts.get(island.hash) ?? []) : null;
    return { kind: "commit", header: this.header, operations, require, fence };
  }

  rollback(
    reason: TxnReason = { code: "txn_locked", message: "a test says so", backendHash: null },
    fence = FENCE,
  ): TxnRequest {
    return { kind: "rollback", header: this.header, reason, fence };
  }

  inquire(): TxnRequest {
    return { kind: "inquire", header: this.header };
  }
}
