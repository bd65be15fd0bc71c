// Calls to other coordinators: HTTPS to their nodes' APIs, with this node's server certificate.
//
// Who a server is, its certificate says: one URI name, spiffe://<own trust domain>/server/<node id>, signed by the authority of clients
// (api.tls.client_ca_file, and none of the system's), not expired, not revoked. Host names are not compared: addresses change.
//
// Invariants: nothing of a request leaves before its server has shown such a certificate, on a connection that was kept too; no redirect is
// followed; an answer is a bounded JSON object, or none; a call never rejects and ends in its time. A request may arrive twice: one that fails on
// a connection that had been kept, before an answer began, is sent once more on a new one.

import type { IncomingMessage } from "node:http";
import type { PeerCertificate, TLSSocket } from "node:tls";
import { TenureError } from "../../core/kit/errors.ts";
import { serverNamed, uriNames } from "../../core/kit/spiffe.ts";
import type { Clock } from "../../ports/clock.ts";
import type { Logger } from "../../ports/logger.ts";
import { certificateOf, HttpClient, parseObject, readText, urlBelow } from "../http/index.ts";
import { COORDINATOR, notCalled, notCoordinator, redirected, tooLong, untrusted, WORDS } from "./failures.ts";
import { TC_ANSWER_BYTES_MAX, TC_COMPLAINTS_MAX, TC_KEPT_IDLE_MS } from "./limits.ts";

/** PEM text: this node's server certificate and its key, and whom it trusts. */
export interface TcTls {
  readonly cert: string;
  readonly key: string;
  readonly ca: string;
}

export interface TcHttpOptions {
  /** Null: this node's API has no TLS. Then only loopback is called, and only where that API listens on loopback. */
  readonly tls: TcTls | null;
  readonly isLoopback: boolean;
  readonly trustDomain: string;
  /** A certificate, by its SHA-256 in lower-case hex. */
  readonly isRevoked: (sha256: string) => boolean;
  readonly clock: Pick<Clock, "monotonicMs" | "wallMs">;
  readonly logger: Pick<Logger, "warn">;
}

export interface TcExchange {
  /** The base URL of a node's API. */
  readonly endpoint: string;
  readonly method: "GET" | "POST";
  /** Begins with "/". */
  readonly path: string;
  readonly headers?: Readonly<Record<string, string>> | undefined;
  /** Sent as JSON; null: none. */
  readonly body: object | null;
  readonly withinMs: number;
  /** Whoever listens there may answer, where there is no TLS: it is an island's address on loopback, and its answer names nobody. */
  readonly isUnnamed?: boolean | undefined;
}

export interface TcAnswer {
  /** The node id in the certificate of the server that answered. Empty: it has shown none, and none was asked for. */
  readonly from: string;
  readonly status: number;
  readonly body: Fields;
  /** To a second sending of it: the first one may have arrived too, so that a refusal says nothing of that one. */
  readonly isRepeated?: boolean | undefined;
}

type Fields = Readonly<Record<string, unknown>>;

export class TcHttp {
  readonly #options: TcHttpOptions;
  readonly #closing = new AbortController();
  #client: HttpClient;
  /** What was last wrong with each endpoint, where a person must repair it. */
  readonly #complaints = new Map<string, string>();

  constructor(options: TcHttpOptions) {
    this.#options = options;
    this.#client = this.#clientOf(options.tls);
  }

  /** Null: no answer within the time, or none of a server that counts. Never rejects. */
  async exchange(asked: TcExchange): Promise<TcAnswer | null> {
    const answer = await this.tried(asked);
    return TenureError.is(answer) ? null : answer;
  }

  /** The same with the reason, for whoever reports it. */
  async tried(asked: TcExchange): Promise<TcAnswer | TenureError> {
    const url = this.#urlOf(asked);
    if (url === null) return Object.assign(notCalled(asked.endpoint), { unsent: true });
    const { clock } = this.#options;
    const endsAtMs = clock.monotonicMs() + asked.withinMs;
    try {
      let answer: TcAnswer;
      try {
        answer = await this.#send(url, asked, asked.withinMs);
      } catch (error) {
        const leftMs = endsAtMs - clock.monotonicMs();
        this.#client.dropIdle(url);
        if (!wasKept(error) || leftMs <= 0) throw error;
        answer = { ...(await this.#again(url, asked, leftMs)), isRepeated: true };
      }
      this.#complaints.delete(url.origin);
      return answer;
    } catch (error) {
      this.#complain(url.origin, error);
      return TenureError.is(error) ? error : notCoordinator(url.href, "the request failed", { cause: error });
    }
  }

  /**
   * New connections show the new certificate and trust the new authorities; calls that are under way end as they would, on theirs. Only where it
   * was made with TLS.
   */
  reload(tls: TcTls): void {
    const old = this.#client;
    this.#client = this.#clientOf(tls);
    old.retire();
    this.#complaints.clear();
  }

  /** What is under way is answered with null. */
  close(): void {
    this.#closing.abort();
    this.#client.close();
  }

  /** The first time it may have arrived, whatever comes of the second. */
  async #again(url: URL, asked: TcExchange, timeoutMs: number): Promise<TcAnswer> {
    try {
      return await this.#send(url, asked, timeoutMs);
    } catch (error) {
      if (TenureError.is(error)) Object.assign(error, { unsent: false });
      throw error;
    }
  }

  async #send(url: URL, asked: TcExchange, timeoutMs: number): Promise<TcAnswer> {
    const { method, headers = {}, body, isUnnamed = false } = asked;
    const content = body === null ? {} : { "content-type": "application/json" };
    const request = {
      method,
      url,
      headers: { accept: "application/json", ...content, ...headers },
      body: body === null ? null : JSON.stringify(body),
      timeoutMs,
      signal: this.#closing.signal,
    };
    return await this.#client.exchange(request, (response, at) => this.#read(response, at, isUnnamed));
  }

  async #read(response: IncomingMessage, at: string, isUnnamed: boolean): Promise<TcAnswer> {
    // At once: a connection that has ended shows none.
    const server = this.#options.tls === null ? null : this.#serverOf(certificateOf(response.socket as TLSSocket));
    const status = response.statusCode ?? 0;
    if (status >= 300 && status < 400) throw redirected(at, status);
    const text = await readText(response, TC_ANSWER_BYTES_MAX, () => tooLong(at));
    const body = parseObject(text, at, COORDINATOR);
    const from = server ?? (isUnnamed ? "" : identityIn(body));
    if (TenureError.is(from)) throw from;
    return { from, status, body };
  }

  #clientOf(tls: TcTls | null): HttpClient {
    const checkServer = (certificate: PeerCertificate): TenureError | undefined => {
      const server = this.#serverOf(certificate);
      return TenureError.is(server) ? server : undefined;
    };
    return new HttpClient(tls ?? {}, WORDS, { checkServer, idleMs: TC_KEPT_IDLE_MS });
  }

  /** The node id, or why this server is none that counts. */
  #serverOf(certificate: Partial<PeerCertificate> | null): string | TenureError {
    const { trustDomain, isRevoked, clock } = this.#options;
    const { subjectaltname, fingerprint256, valid_to: end } = certificate ?? {};
    const named = serverNamed(uriNames(subjectaltname), trustDomain);
    if (!named.ok) return untrusted(named.message);
    const hash = (fingerprint256 ?? "").replaceAll(":", "").toLowerCase();
    if (isRevoked(hash)) return untrusted(`the certificate of node ${named.nodeId} was revoked`);
    // Of a connection that was made when it was still valid. NaN is no time: not valid.
    if (!(clock.wallMs() <= Date.parse(end ?? "")))
      return untrusted(`the certificate of node ${named.nodeId} has expired`);
    return named.nodeId;
  }

  /** Null: not an address that may be called. One with a user name in it would send that along. */
  #urlOf({ endpoint, path }: TcExchange): URL | null {
    if (!URL.canParse(endpoint)) return null;
    const base = new URL(endpoint);
    if (base.username !== "" || base.password !== "") return null;
    const { tls, isLoopback } = this.#options;
    const isOurs = tls === null ? base.protocol === "http:" && isLoopback && isLocal(base) : base.protocol === "https:";
    return isOurs ? urlBelow(base, path) : null;
  }

  /** Once for each reason: it is asked every second. Who is only not there is seen in the list of members. */
  #complain(endpoint: string, error: unknown): void {
    if (!TenureError.is(error) || error.code === "BACKEND_UNAVAILABLE" || this.#closing.signal.aborted) return;
    if (this.#complaints.get(endpoint) === error.message) return;
    if (this.#complaints.size >= TC_COMPLAINTS_MAX) this.#complaints.delete(this.#complaints.keys().next().value!);
    this.#complaints.set(endpoint, error.message);
    const { logger } = this.#options;
    logger.warn(
      { event: "coordinator-refused", endpoint, code: error.code },
      `coordinator at ${endpoint}: ${error.message}`,
    );
  }
}

function isLocal({ hostname }: URL): boolean {
  return /^(localhost|127(\.\d{1,3}){3}|\[::1\])$/.test(hostname);
}

/** Without TLS nothing vouches for it; there is only loopback. */
function identityIn({ self, voter }: Fields): string | TenureError {
  const { identity } = ((self ?? voter) as { readonly identity?: unknown } | undefined | null) ?? {};
  return typeof identity === "string" ? identity : untrusted("without TLS it must say who it is");
}

function wasKept(error: unknown): boolean {
  return TenureError.is(error) && "wasKept" in error && error.wasKept === true;
}
