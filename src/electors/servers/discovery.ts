// Who leads the cluster: every known node is asked at once, and the word of the highest term counts. A leader that was
// deposed and does not know it yet, and followers that have not heard of the election, name others in lower terms.
//
// Invariants: the first word waits for better ones a moment, and for a node that may be slow or gone a bounded while; a leader
// that failed to answer itself is none that could be asked; nodes that were not introduced are introduced by this.

import { TenureError } from "../../core/kit/errors.ts";
import type { Clock, Timer } from "../../ports/clock.ts";
import type { ServersWire } from "../../ports/backends/servers.ts";
import { CLUSTER_BYTES_MAX, LEADER_GRACE_MS } from "../limits.ts";
import { introductionOf, type LeaderWord, leaderWordOf } from "./answers.ts";
import type { Members } from "./members.ts";
import { refusalOf } from "./refusals.ts";

/** How long it waits for the leader's own word, or for any leader to be named: this part of a request's timeout. */
const PATIENCE = 0.5;

export interface Search {
  readonly wire: ServersWire;
  readonly members: Members;
  readonly clock: Clock;
  readonly timeoutMs: number;
  readonly signal: AbortSignal;
}

/** The URL of the leader. Rejects where nobody leads, or nobody says so; only a retryable reason is worth another try. */
export async function findLeader(search: Search): Promise<string> {
  const round = new Round(search);
  const found = await round.run(search.members.urls);
  if (found.silentUrl === null) return found.url;
  // A member that was named just now, and has not been asked yet.
  await probe(search, found.silentUrl, search.signal);
  return found.silentUrl;
}

/** What one node says; rejects where it can't be used. */
async function probe({ wire, members, timeoutMs }: Search, url: string, signal: AbortSignal): Promise<LeaderWord> {
  const isKnown = members.isIntroduced(url);
  const path = isKnown ? "/leader" : "/v1/cluster";
  const question = { method: "GET", path, body: null, timeoutMs, bytesMax: CLUSTER_BYTES_MAX, signal } as const;
  try {
    const answer = await wire.ask(url, question);
    members.checkCluster(url, answer);
    if (answer.status === 200) {
      if (isKnown) return leaderWordOf(answer.body);
      const introduction = introductionOf(answer.body);
      members.introduce(url, introduction);
      return introduction;
    }
    if (answer.body["error"] === "ERR_NO_LEADER") return { nodeId: null, leader: null };
    const { kind, error } = refusalOf(answer, url);
    throw Object.assign(error, { isOwnWord: kind !== "refused" });
  } catch (error) {
    // What we gave up ourselves says nothing about the node: it was slower than another, no more.
    if (!signal.aborted) members.forget(url);
    throw error;
  }
}

type Found = { readonly url: string; readonly silentUrl: string | null };

class Round {
  readonly #search: Search;
  readonly #stop = new AbortController();
  readonly #outcome = Promise.withResolvers<Found>();
  readonly #answered = new Map<string, LeaderWord>();
  readonly #failures = new Map<string, unknown>();
  #asked: readonly string[] = [];
  #timers: Timer[] = [];

  constructor(search: Search) {
    this.#search = search;
  }

  async run(urls: readonly string[]): Promise<Found> {
    const signal = AbortSignal.any([this.#search.signal, this.#stop.signal]);
    this.#asked = urls;
    for (const url of urls) {
      probe(this.#search, url, signal).then(
        (word) => this.#heard(url, word),
        (error: unknown) => this.#failed(url, error),
      );
    }
    try {
      return await this.#outcome.promise;
    } finally {
      for (const timer of this.#timers) timer.cancel();
      this.#stop.abort();
    }
  }

  #heard(url: string, word: LeaderWord): void {
    this.#answered.set(url, word);
    if (this.#timers.length === 0) {
      const { timeoutMs } = this.#search;
      this.#timers = [
        this.#after(LEADER_GRACE_MS, false),
        this.#after(Math.max(LEADER_GRACE_MS, timeoutMs * PATIENCE), true),
      ];
    }
    this.#decideIfAll();
  }

  #after(ms: number, isLast: boolean): Timer {
    const { clock } = this.#search;
    return clock.setTimer(clock.monotonicMs() + ms, () => this.#decide(isLast));
  }

  #failed(url: string, error: unknown): void {
    this.#failures.set(url, error);
    this.#decideIfAll();
  }

  #decideIfAll(): void {
    if (this.#answered.size + this.#failures.size === this.#asked.length) this.#decide(true);
  }

  /** `isLast`: what has not come by now is not waited for. */
  #decide(isLast: boolean): void {
    const mismatch = [...this.#failures.values()].find((error) => isCode(error, "CLUSTER_MISMATCH"));
    if (mismatch !== undefined && !this.#search.members.isInUse) return this.#outcome.reject(mismatch);
    const named = [...this.#answered.values()].flatMap(({ leader }) => (leader === null ? [] : [leader]));
    const best = named.toSorted((a, b) => b.term - a.term)[0];
    if (best === undefined) {
      if (isLast) this.#outcome.reject(this.#reason());
      return;
    }
    const { members } = this.#search;
    const url = members.urlOf(best.nodeId, best.url);
    if (url === null) {
      if (isLast) this.#outcome.reject(stranger(best.nodeId));
    } else if (!this.#asked.includes(url)) {
      this.#outcome.resolve({ url, silentUrl: url });
    } else if (this.#answered.has(url) || (members.isIntroduced(url) && !this.#failures.has(url))) {
      // It answered, or it is only slow: whoever fails is forgotten, and no longer introduced.
      this.#outcome.resolve({ url, silentUrl: null });
    } else if (isLast || this.#failures.has(url)) {
      const why = this.#failures.get(url);
      this.#outcome.reject(isCode(why, "CLUSTER_MISMATCH") ? why : silent(best.nodeId, url));
    }
  }

  /** Whoever must repair something hears that first; a node that is merely away may come back. */
  #reason(): unknown {
    if (this.#answered.size > 0) return noLeader();
    const all = [...this.#failures.values()];
    // Nodes that do not know a key count only where every node that answers says so: one that can't say yet may know better.
    const isUnsure = all.some((error) => isOwnWord(error) && error.retryable);
    const failures = all.filter((error) => !isUnsure || !isOwnWord(error) || error.retryable);
    const grave = failures.find((error) => isCode(error, "PERMISSION_DENIED") || isCode(error, "CLUSTER_MISMATCH"));
    const lasting = failures.find((error) => TenureError.is(error) && !error.retryable);
    const passing = failures.find((error) => TenureError.is(error) && error.retryable);
    if (grave !== undefined) return grave;
    if (!TenureError.is(lasting) || passing === undefined) return lasting ?? passing ?? failures[0];
    return new TenureError("BACKEND_UNAVAILABLE", lasting.message, { cause: lasting });
  }
}

/** What another node need not say: it lags, is stopping, or does not know a key. */
function isOwnWord(error: unknown): error is TenureError {
  return TenureError.is(error) && "isOwnWord" in error && error.isOwnWord === true;
}

function isCode(error: unknown, code: TenureError["code"]): boolean {
  return TenureError.is(error) && error.code === code;
}

function noLeader(): TenureError {
  return new TenureError(
    "ERR_NO_LEADER",
    "the cluster has no leader at this moment: an election is under way, or a majority of its nodes is away. Asked again; if that lasts: tenure cluster status.",
  );
}

function silent(nodeId: string, url: string): TenureError {
  return new TenureError(
    "ERR_NO_LEADER",
    `the others name ${nodeId} as the leader of the cluster, and it does not answer at ${url}. Asked again; the others elect another if it is gone.`,
  );
}

function stranger(nodeId: string): TenureError {
  return new TenureError(
    "BACKEND_UNAVAILABLE",
    `the leader of the cluster is ${nodeId}, and none of the known URLs leads to it: none that was given, and it advertises none that may be used. Give its URL too.`,
  );
}
