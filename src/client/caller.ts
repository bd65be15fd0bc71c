// Which node a request goes to, and when it goes out again.
//
// Reads go to any node: one after the other with a short head start each, and the first answer wins.
// Everything else goes to the leader. It goes out again only where that can do no harm (trap 65): the node refused it and
// did nothing (NOT_LEADER, ERR_NO_LEADER), it never left this machine, or the request is idempotent: by its nature, or by
// the key that it carries, under which the cluster answers the same request as the first time (design D16).
// A 401 is the cluster's word from its leader, or from all that answer; else others are asked, for as long as the call may take.
// What may have been done and was not confirmed is OUTCOME_UNKNOWN, never a failure (trap 66).

import { assertNever, type ErrorCode, TenureError } from "../contract/errors.ts";
import { toCamel } from "../contract/snake-case.ts";
import { ATTEMPT_MS } from "../contract/timeouts.ts";
import { Addresses } from "./addresses.ts";
import { discover, type Discovery, finalOf, voiceText } from "./discovery.ts";
import {
  type Answer,
  AnswerTooLong,
  type ClientFetch,
  type ClientRequest,
  exchange,
  jsonOf,
  type Line,
  reasonOf,
} from "./exchange.ts";
import { CALL_ATTEMPTS_MAX, CALL_HOPS_MAX, MEMBERS_TIMEOUT_MS } from "./limits.ts";
import { Pauses } from "./pauses.ts";
import { isFinal, isFinalAnswer, race, readError, silenceCode } from "./race.ts";
import type { LeaderView } from "./views.ts";

export interface CallerOptions {
  readonly urls: readonly string[];
  readonly headers: Readonly<Record<string, string>>;
  readonly fetch: ClientFetch;
  /** What a 401 is told with: how whoever calls gives a key. */
  readonly keyAdvice: string;
  /** For each call as a whole, with everything that is tried again. */
  readonly timeoutMs: number;
  /** How much of that may go by while nobody leads; after it the call fails, and nothing was done. */
  readonly leaderWaitMs: number;
}

export interface CallOptions {
  readonly signal?: AbortSignal | undefined;
  /** For this call as a whole; else the client's. */
  readonly timeoutMs?: number | undefined;
  /** Of calls that may be repeated: how long one node may say nothing before it is asked again, or another. */
  readonly attemptMs?: number | undefined;
}

export type ReadOptions = CallOptions & {
  /** "linearizable": everything that was confirmed before this call is in the answer. */
  readonly consistency?: "linearizable" | undefined;
  /** Refuse an answer that may be older than this. */
  readonly maxStaleMs?: number | undefined;
};

export type Mutation = ClientRequest & {
  /** Doing it twice is the same as doing it once. */
  readonly isIdempotent: boolean;
  /** It carries an Idempotency-Key, so also what the server itself calls unknown goes out again, as it was. */
  readonly isKeyed?: boolean | undefined;
  /** It can wait: what was refused for the moment, and so not done, goes out again. */
  readonly isPatient?: boolean | undefined;
};

export class Caller {
  readonly addresses: Addresses;
  readonly #options: CallerOptions;
  #leaderUrl: string | null = null;
  #knowsMembers = false;

  constructor(options: CallerOptions) {
    this.#options = options;
    this.addresses = new Addresses(options.urls);
  }

  line({ signal, timeoutMs = this.#options.timeoutMs }: CallOptions): Line {
    const limit = AbortSignal.timeout(timeoutMs);
    const { fetch, headers, keyAdvice } = this.#options;
    return { fetch, headers, keyAdvice, signal: signal === undefined ? limit : AbortSignal.any([signal, limit]) };
  }

  /** Without a time limit of its own. */
  lineOf(signal: AbortSignal): Line {
    const { fetch, headers, keyAdvice } = this.#options;
    return { fetch, headers, keyAdvice, signal };
  }

  /** From whichever known node answers first. */
  async read(request: ClientRequest, options: CallOptions): Promise<Response> {
    const line = this.line(options);
    for (let pauses: Pauses | undefined; ;) {
      const { response, refusals } = await race(line, this.addresses.all(), request);
      if (response !== null) return response;
      options.signal?.throwIfAborted();
      const error = readError(refusals);
      // Nodes that answer and do not know who we are: they will, or others come back who do.
      pauses ??= new Pauses(this.#options.leaderWaitMs);
      if (error.code !== "CALLER_UNCONFIRMED" || !(await pauses.take(line.signal))) throw error;
    }
  }

  async readJson<T>(path: string, options: CallOptions): Promise<T> {
    const response = await this.read({ method: "GET", path }, options);
    const { body, cause } = await bodyIn(response);
    if (body !== undefined) return toCamel(body) as T;
    // A read changes nothing, so nothing is unclear: it failed.
    const isAway = cause !== undefined && !(cause instanceof AnswerTooLong);
    throw new TenureError(
      isAway ? "BACKEND_UNAVAILABLE" : "BACKEND_UNSUPPORTED",
      `${response.url} answered ${response.status}, but the answer can't be read: ${whyUnread(cause)}.`,
      { cause },
    );
  }

  /** What is left of a call's time, for a call of several requests. */
  timeLeft({ timeoutMs = this.#options.timeoutMs }: CallOptions): () => number {
    const untilMs = performance.now() + timeoutMs;
    return () => Math.max(0, Math.ceil(untilMs - performance.now()));
  }

  /** At this address alone, which must be a known one. */
  async ask(url: string, request: ClientRequest, options: CallOptions): Promise<Response> {
    const known = this.addresses.known(url);
    if (known === undefined)
      throw new TenureError("CONFIG_INVALID", `${url} is not one of this client's addresses; add it to its URLs.`);
    const answer = await exchange(this.line(options), known, request);
    if (answer.kind === "ok") return answer.response;
    options.signal?.throwIfAborted();
    throw request.method === "GET" ? readError([{ url, answer }]) : callError(url, answer);
  }

  /** In the SDK's spelling. */
  async bodyOf<T>(response: Response): Promise<T> {
    const { body, cause } = await bodyIn(response);
    if (body !== undefined) return toCamel(body) as T;
    // The status said that it was done; only what it says about it is lost.
    throw new TenureError(
      "OUTCOME_UNKNOWN",
      `${response.url} answered ${response.status}, but the answer was cut short: ${whyUnread(cause)}`,
      { cause },
    );
  }

  async leader(options: CallOptions): Promise<LeaderView> {
    return await this.#leaderOn(this.line(options), options);
  }

  async #leaderOn(line: Line, options: CallOptions): Promise<LeaderView> {
    const pauses = new Pauses(this.#options.leaderWaitMs);
    for (;;) {
      const { found, voices } = await this.#discover(line);
      if (found !== null) return found;
      const final = finalOf(voices);
      if (final !== undefined) throw new TenureError(final.code, final.why);
      const silent = voices.filter((voice) => voice.kind === "silent");
      // What is in everybody's way does not go away while we wait.
      const isHopeless = silent.every(({ code }) => code !== null && isFinal(code)) && silent.length === voices.length;
      if (isHopeless || !(await pauses.take(line.signal))) {
        options.signal?.throwIfAborted();
        const allSilent = silent.length === voices.length;
        throw new TenureError(
          allSilent ? silenceCode(silent.map(({ code }) => code)) : "ERR_NO_LEADER",
          `${allSilent ? "no node answers" : "no node knows a leader"}: ${voices.map(voiceText).join("; ")}.`,
        );
      }
    }
  }

  /** To the leader, wherever it goes meanwhile. */
  async mutate(request: Mutation, options: CallOptions): Promise<Response> {
    const fate = { unconfirmed: null as TenureError | null };
    try {
      return await this.#mutate(request, options, fate);
    } catch (error) {
      // An earlier attempt may have been done: then whatever ended the last one is no failure of the whole (trap 66). Of a
      // hold or a session that is over the caller has to hear all the same; a request with a key names the epoch of a
      // leader, and that this is over says nothing about what was done while it was not.
      const isCertain = TenureError.is(error) && error.code === "STALE_EPOCH" && request.isKeyed !== true;
      if (fate.unconfirmed === null || !TenureError.is(error) || isCertain) throw error;
      throw new TenureError("OUTCOME_UNKNOWN", fate.unconfirmed.message, { cause: error });
    }
  }

  async #mutate(request: Mutation, options: CallOptions, fate: { unconfirmed: TenureError | null }): Promise<Response> {
    const line = this.line(options);
    const timeLeft = this.timeLeft(options);
    const pauses = new Pauses(this.#options.leaderWaitMs);
    let hops = 0;
    for (let attempt = 0; attempt < CALL_ATTEMPTS_MAX; attempt++) {
      const url = this.#leaderUrl ?? (await this.#leaderUrlOn(line, options));
      const leftMs = timeLeft();
      const answer = await exchange(limited(line, request, options), url, request);
      const tookMs = leftMs - timeLeft();
      if (answer.kind === "ok") {
        this.#leaderUrl = url;
        return answer.response;
      }
      if (isUnconfirmed(answer)) fate.unconfirmed = callError(url, answer);
      // The caller's own end says nothing about the leader.
      options.signal?.throwIfAborted();
      // What it says, or that it says nothing, is news: the next call must not begin where this one failed.
      this.#leaderUrl = null;
      if (verdictOf(answer, request) === "fail") throw callError(url, answer);
      const named = answer.kind === "refused" ? this.addresses.known(answer.fields["leader_url"]) : undefined;
      this.#leaderUrl = named === undefined || named === url ? null : named;
      if (this.#leaderUrl !== null && ++hops <= CALL_HOPS_MAX) continue;
      hops = 0;
      this.#leaderUrl = null;
      // The leader itself said so, and goes on to lead.
      if (answer.kind === "refused" && answer.code === LOCKED) this.#leaderUrl = url;
      // What was refused, without another node to go to, is not sent once more where the same answer would come too late: then it
      // would be unknown (trap 84).
      const isTooLate = answer.kind === "refused" && timeLeft() <= tookMs;
      if (isTooLate || !(await pauses.take(line.signal))) {
        options.signal?.throwIfAborted();
        throw callError(url, answer);
      }
    }
    throw new TenureError("ERR_NO_LEADER", `after ${CALL_ATTEMPTS_MAX} attempts no node took the request as leader.`);
  }

  async leaderUrl(options: CallOptions): Promise<string> {
    return await this.#leaderUrlOn(this.line(options), options);
  }

  async #leaderUrlOn(line: Line, options: CallOptions): Promise<string> {
    const found = await this.#leaderOn(line, options);
    if (found.url !== null) return found.url;
    const where = found.leaderUrl ?? found.leaderAddress ?? "an address that nobody knows";
    throw new TenureError(
      "ERR_NO_LEADER",
      `${found.leaderId} leads at ${where}, which is neither among the given URLs nor one of the cluster's members as they ` +
        `name them, so nothing was sent there. Add its URL, or set api.advertise in its configuration.`,
    );
  }

  async #discover(line: Line): Promise<Discovery> {
    const first = await discover(line, this.addresses);
    if (first.found === null || first.found.url !== null) return first;
    await this.learnMembers(line);
    return await discover(line, this.addresses);
  }

  /** So that what is read for long can go on elsewhere when its node dies. Never rejects; asks again where nobody answered. */
  async knowMembers(signal: AbortSignal | undefined): Promise<void> {
    if (this.#knowsMembers) return;
    await this.learnMembers(this.line({ signal, timeoutMs: MEMBERS_TIMEOUT_MS }));
  }

  /** Members as the configured URLs name them; what only a learned member says is not believed. */
  async learnMembers(line: Line): Promise<void> {
    for (const url of this.addresses.configured) {
      const answer = await exchange(line, url, { method: "GET", path: "/v1/cluster" });
      if (answer.kind !== "ok") continue;
      const body = (await jsonOf(answer.response).catch(() => undefined)) as
        | { members?: { url?: unknown }[] }
        | undefined;
      if (!Array.isArray(body?.members)) continue;
      this.#knowsMembers = true;
      this.addresses.learn(body.members.map(({ url: member }) => (typeof member === "string" ? member : null)));
      return;
    }
  }
}

async function bodyIn(response: Response): Promise<{ readonly body: object | undefined; readonly cause?: unknown }> {
  try {
    const body = await jsonOf(response);
    return { body: typeof body === "object" && body !== null ? body : undefined };
  } catch (cause) {
    return { body: undefined, cause };
  }
}

function whyUnread(cause: unknown): string {
  return cause === undefined ? "not JSON; is it a Tenure server?" : reasonOf(cause);
}

/** It may have been done. */
function isUnconfirmed(answer: Exclude<Answer, { kind: "ok" }>): boolean {
  return answer.kind === "silent" ? answer.isSent : answer.code === "OUTCOME_UNKNOWN";
}

/** The node did nothing, and will take it, or another will. */
const AGAIN: ReadonlySet<ErrorCode> = new Set<ErrorCode>(["NOT_LEADER", "ERR_NO_LEADER", "CALLER_UNCONFIRMED"]);
/** What a request with a key is sent again for, too; and one that can wait, but for what is unclear. */
const AGAIN_KEYED: ReadonlySet<ErrorCode> = new Set<ErrorCode>([
  "OUTCOME_UNKNOWN",
  "OVERLOADED",
  "TRANSFER_IN_PROGRESS",
  "UNCOMMITTED_LIMIT",
]);

/** Of one that can wait: a transaction over islands that is not decided yet locks what is to be written. */
const LOCKED = "txn_locked";

function verdictOf(
  answer: Exclude<Answer, { kind: "ok" }>,
  { isIdempotent, isKeyed = false, isPatient = false }: Mutation,
): "again" | "fail" {
  switch (answer.kind) {
    case "refused":
      // Whoever said so before it was asked for its leadership leads no more, or is of an older version: the search knows.
      return AGAIN.has(answer.code) ||
        ((isKeyed || (isPatient && answer.code !== "OUTCOME_UNKNOWN")) && AGAIN_KEYED.has(answer.code)) ||
        (isPatient && answer.code === LOCKED) ||
        (answer.code === "UNAUTHENTICATED" && !isFinalAnswer(answer))
        ? "again"
        : "fail";
    case "silent":
      return isIdempotent || !answer.isSent ? "again" : "fail";
    default:
      return assertNever(answer, "answer");
  }
}

function callError(url: string, answer: Exclude<Answer, { kind: "ok" }>): TenureError {
  if (answer.kind === "refused") return new TenureError(answer.code, answer.message);
  if (!answer.isSent)
    return new TenureError(answer.code ?? "BACKEND_UNAVAILABLE", `can't reach ${url}: ${answer.why}.`, {
      cause: answer.cause,
    });
  return new TenureError(
    "OUTCOME_UNKNOWN",
    `${url} was asked and did not confirm (${answer.why}): it may have been done. Look before you ask again.`,
    { cause: answer.cause },
  );
}

function limited(line: Line, { isIdempotent }: Mutation, { attemptMs = ATTEMPT_MS }: CallOptions): Line {
  return isIdempotent ? { ...line, signal: AbortSignal.any([line.signal, AbortSignal.timeout(attemptMs)]) } : line;
}

export function readQuery(
  { consistency, maxStaleMs }: ReadOptions,
  more: Readonly<Record<string, string>> = {},
): string {
  const query = new URLSearchParams(more);
  if (consistency !== undefined) query.set("consistency", consistency);
  if (maxStaleMs !== undefined) query.set("max_stale_ms", String(maxStaleMs));
  return query.size === 0 ? "" : `?${query.toString()}`;
}
