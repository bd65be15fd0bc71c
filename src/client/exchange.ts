// One request to one node, and what became of it: "ok"; "refused", the node itself said no, and nothing is unclear; or
// "silent", no answer that could be understood. A silent exchange whose request never left the machine is distinguished:
// only then is it certain that nothing was done (trap 66).
//
// Redirects are never followed: credentials go to the URL that was asked and nowhere else (trap 64).

import { ERRORS, type ErrorCode, messageOf, TenureError } from "../contract/errors.ts";
import { chunksOf, endWith, unlessAborted } from "./chunks.ts";
import { parseJson } from "../contract/parse-json.ts";
import { EXCHANGE_CAUSES_MAX, JSON_ANSWER_BYTES_MAX } from "./limits.ts";

/**
 * What the platform's `fetch` is, as far as it is used: the CLI brings one that knows client certificates. Where it rejects
 * with a TenureError, nothing was sent, and the error says what is wrong.
 */
export type ClientFetch = (url: string, init: RequestInit) => Promise<Response>;

export interface ClientRequest {
  readonly method: "GET" | "POST" | "PUT" | "DELETE";
  readonly path: string;
  readonly body?: unknown;
  /** Next to the client's own. */
  readonly headers?: Readonly<Record<string, string>> | undefined;
}

export interface Line {
  readonly fetch: ClientFetch;
  readonly headers: Readonly<Record<string, string>>;
  /** Put after what a node says with 401: it can't know how this caller takes its key. */
  readonly keyAdvice: string;
  readonly signal: AbortSignal;
}

export type Answer =
  | { readonly kind: "ok"; readonly response: Response }
  | { readonly kind: "refused"; readonly code: ErrorCode; readonly message: string; readonly fields: Fields }
  | {
      readonly kind: "silent";
      readonly isSent: boolean;
      readonly why: string;
      readonly cause: unknown;
      /** What is in the way, where that is known and no server's fault; null for everything else. */
      readonly code: ErrorCode | null;
    };

export type Fields = Readonly<Record<string, unknown>>;

/** The connection never stood. */
const NEVER_SENT = new Set([
  "ECONNREFUSED",
  "ENOTFOUND",
  "EAI_AGAIN",
  "EHOSTUNREACH",
  "ENETUNREACH",
  "EADDRNOTAVAIL",
  "UND_ERR_CONNECT_TIMEOUT",
]);

/**
 * The server did not get the whole request, so it did nothing. A server says so also on a connection over which nothing came for
 * long; over a slow link that meets a request sent a moment later.
 */
const REQUEST_TIMEOUT = 408;
const LATE = Symbol("HTTP 408");

/** Whoever asks again is answered the same. */
export class AnswerTooLong extends RangeError {
  constructor() {
    super(`the answer is longer than ${JSON_ANSWER_BYTES_MAX} bytes, which is all that this client reads`);
  }
}

export async function exchange(line: Line, url: string, request: ClientRequest): Promise<Answer> {
  const first = await exchangeOnce(line, url, request);
  // That connection is closed, so this goes over another one.
  return first === LATE ? orSilent(await exchangeOnce(line, url, request)) : first;
}

function orSilent(answer: Answer | typeof LATE): Answer {
  if (answer !== LATE) return answer;
  const why = `the request did not arrive there in time (HTTP ${REQUEST_TIMEOUT})`;
  return { kind: "silent", isSent: false, why, cause: null, code: null };
}

async function exchangeOnce(line: Line, url: string, request: ClientRequest): Promise<Answer | typeof LATE> {
  const hasBody = request.body !== undefined;
  const body = hasBody ? { body: written(request.body) } : {};
  let response: Response;
  try {
    const asked = line.fetch(`${url}${request.path}`, {
      method: request.method,
      headers: {
        accept: "application/json",
        ...(hasBody ? { "content-type": "application/json" } : {}),
        ...request.headers,
        ...line.headers,
      },
      ...body,
      redirect: "error",
      signal: line.signal,
    });
    response = await unlessAborted(asked, line.signal);
    endWith(response, line.signal);
  } catch (error) {
    if (TenureError.is(error)) {
      return { kind: "silent", isSent: false, why: error.message, cause: error, code: error.code };
    }
    if (speaksNoTls(error)) {
      return { kind: "silent", isSent: false, why: NO_TLS, cause: error, code: "BACKEND_UNSUPPORTED" };
    }
    return { kind: "silent", isSent: !neverSent(error), why: reasonOf(error), cause: error, code: null };
  }
  if (response.ok) return { kind: "ok", response };
  if (response.status === REQUEST_TIMEOUT) {
    await response.body?.cancel().catch(() => undefined);
    return LATE;
  }
  return await refusalOf(response, line.keyAdvice);
}

function written(body: unknown): string {
  try {
    return JSON.stringify(body);
  } catch (error) {
    const why = messageOf(error);
    throw new TenureError("BAD_REQUEST", `What is to be sent can't be written as JSON: ${why}. Nothing was sent.`);
  }
}

/** The JSON of an answer; undefined where it is none. */
export async function jsonOf(response: Response): Promise<unknown> {
  const text = await boundedText(response);
  try {
    return parseJson(text);
  } catch {
    return undefined;
  }
}

async function boundedText(response: Response): Promise<string> {
  const decoder = new TextDecoder();
  let text = "";
  let bytes = 0;
  for await (const chunk of chunksOf(response)) {
    bytes += chunk.length;
    if (bytes > JSON_ANSWER_BYTES_MAX) throw new AnswerTooLong();
    text += decoder.decode(chunk, { stream: true });
  }
  return text + decoder.decode();
}

async function refusalOf(response: Response, keyAdvice: string): Promise<Answer> {
  let body: unknown;
  try {
    body = await jsonOf(response);
  } catch (error) {
    return { kind: "silent", isSent: true, why: reasonOf(error), cause: error, code: null };
  }
  const fields = typeof body === "object" && body !== null ? (body as Fields) : {};
  const { error, message } = fields;
  if (typeof error === "string" && Object.hasOwn(ERRORS, error)) {
    const said = typeof message === "string" ? message : error;
    return {
      kind: "refused",
      code: error as ErrorCode,
      message: error === "UNAUTHENTICATED" ? `${said} ${keyAdvice}` : said,
      fields,
    };
  }
  const said =
    typeof error === "string" ? `${error}${typeof message === "string" ? `: ${message}` : ""}` : "no error of Tenure's";
  const why = `it answered ${response.status} with ${said}; is it a Tenure server, and of this version?`;
  return { kind: "silent", isSent: true, why, cause: null, code: null };
}

/** Only what is known for certain: a browser's "Failed to fetch" says nothing, so it may have been sent. */
function neverSent(error: unknown): boolean {
  for (const one of causesOf(error)) {
    if (typeof one.code === "string" && NEVER_SENT.has(one.code)) return true;
  }
  return false;
}

const NO_TLS = "it answers without TLS. Use http:// instead of https://";

/** OpenSSL's word for an answer that is no TLS: the handshake failed, so nothing was sent. */
function speaksNoTls(error: unknown): boolean {
  return causesOf(error).some(
    ({ code, message }) =>
      code === "ERR_SSL_WRONG_VERSION_NUMBER" || (code === "EPROTO" && /wrong version number/.test(String(message))),
  );
}

export function reasonOf(error: unknown): string {
  const causes = causesOf(error);
  if (causes[0]?.name === "TimeoutError") return "no answer in time";
  const inner = causes.findLast(({ code, message }) => typeof code === "string" || (message ?? "") !== "");
  if (inner?.code === "ECONNREFUSED") return "connection refused";
  if (inner?.code === "ECONNRESET") return "connection reset";
  if (inner?.code === "ENOTFOUND") return "unknown host name";
  return messageOf(inner?.message ?? error);
}

type Cause = Partial<Record<"name" | "code" | "message" | "cause", unknown>>;

/** Copies: a `fetch` of the user's throws anything, and what can't be read is no cause. */
function causesOf(error: unknown): Cause[] {
  const causes: Cause[] = [];
  try {
    for (let one = error; causes.length < EXCHANGE_CAUSES_MAX && typeof one === "object" && one !== null;) {
      const { name, code, message, cause } = one as Cause;
      causes.push({ name, code, message });
      one = cause;
    }
  } catch {
    // A getter, or a proxy.
  }
  return causes;
}
