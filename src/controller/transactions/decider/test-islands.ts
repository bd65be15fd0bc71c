// Islands for tests of the coordinator: they keep what they are told as islands do, without logs, locks and values. Each call can be lost, be late, be
// refused, or lose its answer; the coordinator's term can end at any of these moments.

import { assertNever } from "../../../core/kit/assert.ts";
import type { ErrorCode } from "../../../core/kit/errors.ts";
import { seededRandom } from "../../../core/kit/random.ts";
import type {
  BackendHash,
  TcFence,
  TxnAnswer,
  TxnHeader,
  TxnOpen,
  TxnPhase,
  TxnReason,
  TxnRequest,
  TxnResult,
} from "../../../core/txn/model.ts";
import { HandClock } from "../../../loops/test-clock.ts";
import type {
  CoordinatorTerm,
  IslandCalls,
  TxnBody,
  TxnCaller,
  TxnDecide,
  TxnForward,
  TxnView,
} from "../../../ports/transactions.ts";
import { Decider } from "./decider.ts";

export const [A, B, C, D] = ["a", "b", "c", "d"].map((letter) => letter.repeat(64)) as [string, string, string, string];
export const FENCE: TcFence = { clusterId: "cluster-1", term: 7, recoveredBy: null };
export const ID = "019aa000-0000-7000-8000-000000000001";
/** Whatever is asked is answered by then. */
const TOLD_MS_MAX = 120_000;
export const CALLER: TxnCaller = { by: "payer", isForwarded: false };

export interface Sent {
  readonly target: BackendHash;
  readonly request: TxnRequest;
  /** 1, 2, …: of all calls. */
  readonly nth: number;
  readonly atMs: number;
}

/** What becomes of one call. */
export interface Fate {
  /** It never arrives. */
  readonly isLost?: boolean;
  /** It arrives, and nobody hears what came of it. */
  readonly isUnheard?: boolean;
  readonly refuse?: ErrorCode;
  /** Until it arrives, and from there until it is answered. */
  readonly thereMs?: number;
  readonly backMs?: number;
}

interface Kept {
  readonly header: TxnHeader;
  phase: TxnPhase;
  reason: TxnReason | null;
  results: readonly TxnResult[];
  prepared: number;
}

export class TestIsland {
  readonly hash: BackendHash;
  readonly kept = new Map<string, Kept>();
  fence: TcFence | null = null;
  /** What it refuses to prepare, or to commit as home. */
  refuses: ErrorCode | null = null;
  /** Why it writes nothing. */
  refusesNew: ErrorCode | null = null;
  /** All the same. */
  writesRollbacks = false;
  readonly #homes: (hash: BackendHash) => TestIsland;

  constructor(hash: BackendHash, homes: (hash: BackendHash) => TestIsland) {
    this.hash = hash;
    this.#homes = homes;
  }

  phase(id = ID): TxnPhase | null {
    return this.kept.get(id)?.phase ?? null;
  }

  answer(request: TxnRequest): TxnAnswer {
    if ("fence" in request) {
      if (this.fence !== null && request.fence.term < this.fence.term) return refusal("tc_term_stale");
      this.fence = request.fence;
    }
    switch (request.kind) {
      case "stage":
        this.kept.set(request.id, keptOf({ ...request, participants: [], digest: "", timeoutMs: 0 }, "staged"));
        return { kind: "txn", phase: "staged", results: [], reason: null };
      case "recover":
        return { ...this.#recover(request.after), ...this.#refusesNew() };
      case "settled":
        return { kind: "settled", ids: request.ids };
      default:
        return this.#about(request);
    }
  }

  /** Another body, under the same id. */
  take(body: TxnHeader): void {
    if (!this.kept.has(body.id)) this.#keep(body, "rolled-back", 0);
  }

  /** As an island does whose time is over, and that hears of home. */
  askHomes(only?: string): void {
    for (const [id, one] of this.kept) {
      if (one.phase !== "prepared" || (only !== undefined && only !== id)) continue;
      const said = this.#homes(one.header.home).answer({ kind: "inquire", header: one.header });
      if (said.kind === "txn" && said.phase === "committed") done(one, "committed");
      // Home has another body under this id: this one is never committed there.
      else if (said.kind === "refused" || (said.kind === "txn" && said.phase === "rolled-back"))
        done(one, "rolled-back");
    }
  }

  #about(request: Exclude<TxnRequest, { kind: "stage" | "recover" | "settled" }>): TxnAnswer {
    const { header, kind } = request;
    const isHome = header.home === this.hash;
    const found = this.kept.get(header.id);
    const one = found?.phase === "staged" ? undefined : found;
    if (one !== undefined && one.header.digest !== header.digest) return refusal("txn_conflict");
    if (one === undefined && this.refusesNew !== null && !(kind === "rollback" && this.writesRollbacks))
      return refusal(this.refusesNew);
    switch (kind) {
      case "prepare":
        if (isHome) throw new Error("home is never prepared");
        if (one === undefined && this.refuses !== null) return refusal(this.refuses);
        return this.#shown(one ?? this.#keep(header, "prepared", request.operations?.length ?? 1));
      case "commit": {
        if (!isHome) {
          if (one === undefined) return refusal("txn_not_found");
          if (one.phase === "prepared") done(one, "committed");
          return this.#shown(one);
        }
        if (one !== undefined) return this.#shown(one);
        const count = request.operations?.length ?? 1;
        if (this.refuses === null) return this.#shown(this.#keep(header, "committed", count));
        const reason = { code: this.refuses, message: "refused at home", backendHash: null };
        return this.#shown(this.#keep(header, "rolled-back", 0, reason));
      }
      case "rollback":
        if (isHome) return this.#shown(one ?? this.#keep(header, "rolled-back", 0, request.reason));
        this.askHomes(header.id);
        return one === undefined ? { kind: "txn", phase: null, results: [], reason: null } : this.#shown(one);
      case "inquire":
        return this.#shown(one ?? this.#keep(header, "rolled-back", 0));
      default:
        return assertNever(kind, "a call about a transaction");
    }
  }

  #keep(header: TxnHeader, phase: TxnPhase, count: number, reason: TxnReason | null = null): Kept {
    const one = { ...keptOf(header, phase), prepared: count, reason };
    if (phase === "committed") done(one, phase);
    this.kept.set(header.id, one);
    return one;
  }

  #shown({ phase, results, reason }: Kept): TxnAnswer {
    return { kind: "txn", phase, results, reason };
  }

  #refusesNew(): object {
    return this.refusesNew === null ? {} : { refusesNew: { code: this.refusesNew, message: "it can't write" } };
  }

  /** Two on a page. */
  #recover(after: string | null): TxnAnswer {
    const ids = [...this.kept.keys()].toSorted().filter((id) => after === null || id > after);
    const open = ids.flatMap((id): TxnOpen[] => {
      const { header, phase } = this.kept.get(id)!;
      if (phase === "prepared") return [{ header, phase, waitsFor: [] }];
      const isOpen = phase === "committed" && header.home === this.hash;
      return isOpen ? [{ header, phase, waitsFor: header.participants }] : [];
    });
    const page = open.slice(0, 2);
    return { kind: "recovered", open: page, next: open.length > 2 ? page[1]!.header.id : null };
  }
}

export class TestIslands implements IslandCalls {
  readonly clock = new HandClock();
  readonly sent: Sent[] = [];
  /** Calls behind a closed gate. There must be none. */
  readonly forbidden: Sent[] = [];
  readonly all: ReadonlyMap<BackendHash, TestIsland>;
  registered: BackendHash[];
  fence: TcFence | null = FENCE;
  leaderEndpoint: string | null = null;
  isLed = true;
  fate: (sent: Sent) => Fate = () => ({});
  /** Before it leaves, and when its answer is there. */
  onSend: (sent: Sent) => void = () => {};
  onAnswer: (sent: Sent) => void = () => {};
  readonly warnings: string[] = [];
  readonly #forward: TxnForward;

  constructor(forward: Partial<TxnForward> = {}) {
    const islands = [A, B, C, D].map((hash) => [hash, new TestIsland(hash, (home) => this.at(home))] as const);
    this.all = new Map(islands);
    this.registered = [A, B, C];
    this.#forward = { run: () => Promise.resolve(null), decide: () => Promise.resolve(null), ...forward };
  }

  at(hash: BackendHash): TestIsland {
    return this.all.get(hash)!;
  }

  islands(): readonly BackendHash[] {
    return this.registered;
  }

  isHeard(): Promise<boolean> {
    return Promise.resolve(true);
  }

  get term(): CoordinatorTerm {
    return {
      fence: () => this.fence,
      leaderEndpoint: () => this.leaderEndpoint,
      isLed: () => this.isLed,
    };
  }

  decider(): Decider {
    return new Decider({
      term: this.term,
      calls: this,
      forward: this.#forward,
      own: { backendHash: A, get: (id) => viewOf(this.at(A).kept.get(id)) },
      clock: this.clock,
      random: seededRandom(1),
      logger: { warn: (_fields, message) => void this.warnings.push(message) },
      digestOf: (body, home) => JSON.stringify([home, body.require, body.participants]),
    });
  }

  call(target: BackendHash, request: TxnRequest, withinMs: number): Promise<TxnAnswer | null> {
    const sent = { target, request, nth: this.sent.length + 1, atMs: this.clock.nowMs };
    if (this.fence === null && request.kind !== "stage") this.forbidden.push(sent);
    this.sent.push(sent);
    this.onSend(sent);
    const { isLost, isUnheard, refuse, thereMs = 1, backMs = 1 } = this.fate(sent);
    return new Promise((resolve) => {
      const late = this.clock.setTimer(this.clock.nowMs + withinMs, () => resolve(null));
      if (isLost === true) return;
      this.#after(thereMs, () => {
        const answer = refuse === undefined ? this.at(target).answer(request) : refusal(refuse);
        if (isUnheard === true) return;
        this.#after(backMs, () => {
          late.cancel();
          this.onAnswer(sent);
          resolve(answer);
        });
      });
    });
  }

  kinds(kind: TxnRequest["kind"]): readonly BackendHash[] {
    return this.sent.filter(({ request }) => request.kind === kind).map(({ target }) => target);
  }

  phases(id = ID): string {
    return [A, B, C].map((hash) => this.at(hash).phase(id) ?? "-").join(" ");
  }

  /** Whatever is prepared asks its home, until nothing changes any more. */
  settle(): void {
    for (const island of this.all.values()) island.askHomes();
  }

  /** What comes of it, as time passes. */
  async endOf<T>(work: Promise<T>): Promise<T | string> {
    const heard: (T | string)[] = [];
    work.then(
      (value) => heard.push(value),
      (error: unknown) => heard.push((error as { code?: string }).code ?? String(error)),
    );
    const untilMs = this.clock.nowMs + TOLD_MS_MAX;
    while (heard.length === 0 && this.clock.nowMs < untilMs) await this.clock.advance(1);
    return heard[0] ?? "nothing";
  }

  #after(ms: number, fire: () => void): void {
    this.clock.setTimer(this.clock.nowMs + ms, fire);
  }
}

/** One operation for each of these, at home too where it is among them. */
export function bodyOf(participants: readonly BackendHash[], more: Partial<TxnBody> = {}): TxnBody {
  return {
    id: ID,
    home: A,
    timeoutMs: null,
    require: [],
    participants: participants.map((backendHash) => ({
      backendHash,
      operations: [{ kind: "value-delete", name: "orders/cursor", ifVersion: null }],
    })),
    ...more,
  };
}

export function decideOf(state: TxnDecide["state"], more: Partial<TxnDecide> = {}): TxnDecide {
  return { id: ID, home: A, state, participants: [A, B], expiresAtMs: null, ...more };
}

function keptOf(header: TxnHeader, phase: TxnPhase): Kept {
  return { header, phase, reason: null, results: [], prepared: 1 };
}

function done(one: Kept, phase: "committed" | "rolled-back"): void {
  one.phase = phase;
  const result = { version: 1, epoch: null, jobId: null };
  if (phase === "committed") one.results = Array.from({ length: one.prepared }, () => result);
}

function refusal(code: ErrorCode): TxnAnswer {
  return { kind: "refused", code, message: `because of ${code}` };
}

function viewOf(kept: Kept | undefined): TxnView | null {
  return kept === undefined ? null : ({ phase: kept.phase } as TxnView);
}
