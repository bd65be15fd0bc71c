// What we say to etcd, in etcd's words: leases, keys, transactions, watches. Authenticates where a user is given, and
// again when etcd has forgotten the token; turns refusals into errors that say what to do.
// Nothing is sent twice, except what was refused for its token, and therefore not done. The token is everybody's: who
// gives up while it is asked for gives up alone.
// Revisions only grow, and every read here is linearizable: an answer below a revision that was known when its question left
// comes from an etcd that was restored from an older state, or from another one. That is CLUSTER_MISMATCH, for good: epochs
// are revisions.

import { TenureError } from "../../core/kit/errors.ts";
import type { EtcdRefusal, EtcdWire } from "../../ports/backends/etcd.ts";
import {
  type Fields,
  fieldsOf,
  type Header,
  headerOf,
  integer,
  integerText,
  malformed,
  type RangeAnswer,
  rangeOf,
  type TxnAnswer,
  txnOf,
  type WatchMessage,
  watchOf,
} from "./answers.ts";
import { rangeEnd, toBase64 } from "./keys.ts";

export interface Credentials {
  readonly user: string;
  readonly password: string;
}

/** gRPC's numbers of what etcd says. */
const CODE = {
  invalid: 3,
  deadline: 4,
  notFound: 5,
  denied: 7,
  exhausted: 8,
  precondition: 9,
  outOfRange: 11,
  unauthenticated: 16,
};
/**
 * Said of what was not done. The others may be said of what is done, or will be: "request timed out" of what waits for
 * a quorum, "database space exceeded" of the transaction that filled it.
 */
const NOT_DONE: readonly number[] = [
  CODE.invalid,
  CODE.notFound,
  CODE.denied,
  CODE.precondition,
  CODE.outOfRange,
  CODE.unauthenticated,
];
const TTL_GONE = 0;

type Call = (token: string | undefined) => ReturnType<EtcdWire["call"]>;

export class EtcdSession {
  readonly #wire: EtcdWire;
  readonly #credentials: Credentials | undefined;
  readonly #timeoutMs: number;
  readonly #life = new AbortController();
  #token: Promise<string> | undefined;
  #revision = 0;

  constructor(wire: EtcdWire, credentials: Credentials | undefined, timeoutMs: number) {
    this.#wire = wire;
    this.#credentials = credentials;
    this.#timeoutMs = timeoutMs;
  }

  /** etcd raises a TTL that is too short for its election timeout; the answer has the one in force. */
  async grant(ttlSeconds: number, signal: AbortSignal): Promise<{ lease: string; ttlSeconds: number }> {
    const body = await this.#ask("/v3/lease/grant", { TTL: String(ttlSeconds) }, signal);
    const lease = integerText(body["ID"]);
    if (lease === "0") throw malformed("a lease has no ID");
    return { lease, ttlSeconds: integer(body["TTL"]) };
  }

  /** `alive` is false where the lease has ended. */
  async keepAlive(lease: string, signal: AbortSignal): Promise<{ alive: boolean; raftTerm: number }> {
    const body = await this.#ask("/v3/lease/keepalive", { ID: lease }, signal);
    const result = fieldsOf(body["result"]);
    return { alive: integer(result["TTL"]) > TTL_GONE, raftTerm: headerOf(result).raftTerm };
  }

  /** Its keys go with it, and what is still under way with this lease is refused from then on. */
  async revoke(lease: string, signal: AbortSignal): Promise<void> {
    await this.#askUnlessGone("/v3/lease/revoke", { ID: lease }, signal);
  }

  /** How long ago it was renewed, in whole seconds; null where it has ended. */
  async leaseAgeSeconds(lease: string, signal: AbortSignal): Promise<number | null> {
    const body = await this.#ask("/v3/lease/timetolive", { ID: lease }, signal);
    const left = integer(body["TTL"]);
    return left < 0 ? null : Math.max(0, integer(body["grantedTTL"]) - left);
  }

  /** Linearizable, as all reads here: a member that is cut off can't answer it. */
  async get(key: string, signal: AbortSignal): Promise<RangeAnswer> {
    return this.#onward(async () => rangeOf(await this.#ask("/v3/kv/range", { key: toBase64(key) }, signal)));
  }

  /** Keys that begin with `prefix`, from `from` on. */
  async scan(prefix: string, from: string, options: object, signal: AbortSignal): Promise<RangeAnswer> {
    const range = { key: toBase64(from), range_end: rangeEnd(prefix), ...options };
    return this.#onward(async () => rangeOf(await this.#ask("/v3/kv/range", range, signal)));
  }

  async txn(txn: object, signal: AbortSignal): Promise<TxnAnswer> {
    return this.#onward(async () => txnOf(await this.#ask("/v3/kv/txn", txn, signal)));
  }

  /** As `txn`, for writes of a user: OUTCOME_UNKNOWN where they may have been done, and nothing else then (trap 66). */
  async write(txn: object, signal: AbortSignal): Promise<TxnAnswer> {
    const send = this.#callOf("/v3/kv/txn", txn, signal);
    const answer = await this.#authorised(signal, async (token) => {
      try {
        return await send(token);
      } catch (error) {
        throw isUnsent(error) ? error : outcomeUnknown(error);
      }
    });
    if (answer.kind === "refused") {
      const refusal = refused(answer);
      throw NOT_DONE.includes(answer.code) ? refusal : outcomeUnknown(refusal);
    }
    try {
      return txnOf(fieldsOf(answer.body));
    } catch (error) {
      throw outcomeUnknown(error);
    }
  }

  /** As `txn`; null where a lease that it puts a key on has ended. */
  async txnOnLease(txn: object, signal: AbortSignal): Promise<TxnAnswer | null> {
    const body = await this.#askUnlessGone("/v3/kv/txn", txn, signal);
    return body === null ? null : txnOf(body);
  }

  /** Tells what happens to one key, from a revision on. Rejects when the stream ends, for whatever reason. */
  async watch(
    key: string,
    fromRevision: number,
    signal: AbortSignal,
    tell: (message: WatchMessage) => void,
  ): Promise<never> {
    const create = { key: toBase64(key), start_revision: String(fromRevision) };
    const token = await this.#authenticated(signal);
    const options = { token, timeoutMs: this.#timeoutMs, signal };
    const end = await this.#wire.stream("/v3/watch", { create_request: create }, options, (body) => {
      const message = watchOf(body);
      if (message.refusal !== undefined) throw this.#watchRefused(message.refusal);
      tell(message);
    });
    if (end.kind === "refused") {
      if (isForToken(end)) this.#token = undefined;
      throw refused(end);
    }
    throw new TenureError("BACKEND_UNAVAILABLE", "etcd ended the watch: the member is stopping, or a proxy timed out.");
  }

  /** A forgotten token is told as a missing right here; the reads next to the watch say which it was. */
  #watchRefused(reason: string): TenureError {
    this.#token = undefined;
    return new TenureError("BACKEND_UNAVAILABLE", `etcd refused the watch: ${reason === "" ? "no reason" : reason}.`);
  }

  close(): void {
    this.#life.abort();
    this.#wire.close();
  }

  /** Answers may overtake each other: what counts is what was known when the question left. */
  async #onward<Answer extends Header>(ask: () => Promise<Answer>): Promise<Answer> {
    const known = this.#revision;
    const answer = await ask();
    if (answer.revision < known) throw wentBack(answer.revision, known);
    this.#revision = Math.max(this.#revision, answer.revision);
    return answer;
  }

  async #ask(path: string, body: object, signal: AbortSignal): Promise<Fields> {
    const answer = await this.#send(path, body, signal);
    if (answer.kind === "refused") throw refused(answer);
    return fieldsOf(answer.body);
  }

  async #askUnlessGone(path: string, body: object, signal: AbortSignal): Promise<Fields | null> {
    const answer = await this.#send(path, body, signal);
    if (answer.kind === "refused" && answer.code === CODE.notFound) return null;
    if (answer.kind === "refused") throw refused(answer);
    return fieldsOf(answer.body);
  }

  async #send(path: string, body: object, signal: AbortSignal): ReturnType<EtcdWire["call"]> {
    return this.#authorised(signal, this.#callOf(path, body, signal));
  }

  #callOf(path: string, body: object, signal: AbortSignal): Call {
    return (token) => this.#wire.call(path, body, { token, timeoutMs: this.#timeoutMs, signal });
  }

  async #authorised(signal: AbortSignal, call: Call): ReturnType<Call> {
    const first = await this.#authenticated(signal);
    const answer = await call(first);
    if (first === undefined || answer.kind !== "refused" || !isForToken(answer)) return answer;
    this.#token = undefined;
    return await call(await this.#authenticated(signal));
  }

  async #authenticated(signal: AbortSignal): Promise<string | undefined> {
    if (this.#credentials === undefined) return undefined;
    if (this.#token === undefined) {
      const asked = this.#authenticate(this.#credentials);
      this.#token = asked;
      asked.catch(() => {
        if (this.#token === asked) this.#token = undefined;
      });
    }
    return unlessAborted(this.#token, signal);
  }

  async #authenticate(credentials: Credentials): Promise<string> {
    const body = { name: credentials.user, password: credentials.password };
    const options = { token: undefined, timeoutMs: this.#timeoutMs, signal: this.#life.signal };
    const answer = await this.#wire.call("/v3/auth/authenticate", body, options);
    if (answer.kind === "refused") throw refused(answer);
    const token = fieldsOf(answer.body)["token"];
    if (typeof token === "string" && token !== "") return token;
    throw refused({ kind: "refused", code: CODE.unauthenticated, message: "no token was given" });
  }
}

function unlessAborted<T>(work: Promise<T>, signal: AbortSignal): Promise<T> {
  return new Promise((resolve, reject) => {
    const giveUp = (): void =>
      reject(new TenureError("BACKEND_UNAVAILABLE", "the request to etcd was given up by us."));
    if (signal.aborted) giveUp();
    signal.addEventListener("abort", giveUp, { once: true });
    work.then(resolve, reject).finally(() => signal.removeEventListener("abort", giveUp));
  });
}

/**
 * It was refused for its token, and not done: etcd has forgotten it, or users and rights were changed since it was given. The
 * latter is said of JWTs, which hold the revision of those; with code 2 by etcd 3.4, and with 3 by later ones.
 */
function isForToken({ code, message }: EtcdRefusal): boolean {
  return code === CODE.unauthenticated || /revision (in header|of auth store) is old/.test(message);
}

function isUnsent(error: unknown): boolean {
  return error instanceof Error && "unsent" in error && error.unsent === true;
}

function outcomeUnknown(cause: unknown): TenureError {
  return new TenureError(
    "OUTCOME_UNKNOWN",
    `the transaction was sent to etcd and no usable answer came (${cause instanceof Error ? cause.message : String(cause)}): it may or may not have been done. Read what you wrote, or repeat it in a way that does no harm twice.`,
    { cause },
  );
}

function wentBack(revision: number, known: number): TenureError {
  return new TenureError(
    "CLUSTER_MISMATCH",
    `etcd is at revision ${revision}, and was at ${known} before: it was restored from an older state, or is another etcd. Epochs are revisions, so they would go back: nobody acts here. Make sure that whatever compares epochs is above ${known} or starts anew with the restored state (etcdutl snapshot restore --bump-revision avoids all this), then restart this process.`,
  );
}

function refused({ code, message }: EtcdRefusal): TenureError {
  const said = `etcd refused: ${message.replace(/^etcdserver: /, "")}`;
  if (code === CODE.denied || code === CODE.unauthenticated) {
    return new TenureError("PERMISSION_DENIED", `${said}. The user needs read and write on the whole key prefix.`);
  }
  if (code === CODE.precondition && message.includes("authentication is not enabled")) {
    return new TenureError(
      "PERMISSION_DENIED",
      `${said}. A user is configured, but this etcd knows none: enable authentication there, or leave the user out.`,
    );
  }
  if (code === CODE.invalid && /user name is empty|authentication failed|invalid user/.test(message)) {
    return new TenureError("PERMISSION_DENIED", `${said}. Check the options "user" and "password".`);
  }
  if (code === CODE.invalid) {
    return new TenureError(
      "BACKEND_UNSUPPORTED",
      `${said}. This etcd does not take such a request; it must be 3.4 or newer.`,
    );
  }
  if (code === CODE.exhausted) {
    return new TenureError(
      "BACKEND_UNAVAILABLE",
      `${said}. If its database is full: compact, defragment, then disarm the alarm (etcdctl alarm disarm).`,
    );
  }
  return new TenureError(
    "BACKEND_UNAVAILABLE",
    `${said}. If that lasts, look at the members (etcdctl endpoint status).`,
  );
}
