// Fastify as we want it: nothing coerced, nothing logged behind our back, everything bounded, and whatever it refuses by
// itself answered in our words.

import fastify, { type FastifyInstance, type FastifyReply, type FastifyRequest } from "fastify";
import { errorBody, statusOf } from "../contract/index.ts";
import type { ErrorCode } from "../core/kit/errors.ts";
import { KEEP_ALIVE_MS } from "../core/kit/timeouts.ts";
import type { HttpCounters } from "./http-stats.ts";
import { LATENESS_CHECK_MS, PARAM_LENGTH_MAX } from "./limits.ts";
import type { ApiLimits, ApiTls } from "./options.ts";
import { speakJson } from "./traffic/strict-body.ts";

type AnswerError = (error: unknown, request: FastifyRequest, reply: FastifyReply) => void;

export function makeFramework(
  limits: ApiLimits,
  tls: ApiTls | null,
  counters: HttpCounters,
  answerError: AnswerError,
): FastifyInstance {
  const server = {
    maxHeaderSize: limits.headerBytesMax,
    connectionsCheckingInterval: LATENESS_CHECK_MS,
    headersTimeout: limits.headersTimeoutMs,
    requestTimeout: limits.requestTimeoutMs,
  };
  const common = {
    logger: false,
    bodyLimit: limits.bodyBytesMax,
    requestTimeout: limits.requestTimeoutMs,
    connectionTimeout: limits.idleTimeoutMs,
    keepAliveTimeout: KEEP_ALIVE_MS,
    // We answer these ourselves, in our form.
    return503OnClosing: false,
    forceCloseConnections: "idle" as const,
    clientErrorHandler: (error: { code?: string }, socket: RawSocket): void => answerGarbage(error, socket, counters),
    frameworkErrors: (error: unknown, request: unknown, reply: unknown): void =>
      answerError(error, request as FastifyRequest, reply as FastifyReply),
    routerOptions: { maxParamLength: PARAM_LENGTH_MAX },
  };
  const app =
    tls === null
      ? fastify({ ...common, http: server })
      : (fastify({
          ...common,
          https: { ...server, handshakeTimeout: limits.handshakeTimeoutMs, ...tlsOptions(tls) },
        }) as unknown as FastifyInstance);
  // Node drops what is beyond without a word; one more than we take is seen, and refused (traffic/traffic.ts).
  app.server.maxHeadersCount = limits.headersMax + 1;
  app.server.maxConnections = limits.connectionsMax;
  app.server.on("drop", () => counters.droppedConnections++);
  if (tls !== null) refuseWithoutTls(app, limits, counters);
  speakJson(app);
  return app;
}

const PLAIN_HTTP = "ERR_SSL_HTTP_REQUEST";

/**
 * Without a handshake nothing can be said, and an answer would wait for ever to be encrypted. Plain HTTP is the exception: who
 * wrote http:// reads plain text, so the answer goes to the connection below TLS.
 */
function refuseWithoutTls(app: FastifyInstance, limits: ApiLimits, counters: HttpCounters): void {
  const connections = new Map<string, RawSocket>();
  app.server.on("connection", (socket: RawSocket) => {
    const address = addressOf(socket);
    connections.set(address, socket);
    socket.once("close", () => connections.delete(address));
  });
  app.server.on("tlsClientError", (error: { code?: string }, socket: RawSocket) => {
    const below = connections.get(addressOf(socket));
    socket.destroy();
    if (error.code !== PLAIN_HTTP || below === undefined) return;
    below.setTimeout(limits.handshakeTimeoutMs, () => below.destroy());
    answerGarbage(error, below, counters);
  });
}

function addressOf({ remoteAddress = "", remotePort = 0 }: RawSocket): string {
  return `${remoteAddress} ${remotePort}`;
}

const SUITES_OF_1_3 = ["TLS_AES_256_GCM_SHA384", "TLS_CHACHA20_POLY1305_SHA256", "TLS_AES_128_GCM_SHA256"];
/** Of TLS 1.2 only suites that encrypt and authenticate in one (AEAD), with keys that are made for each connection. */
const SUITES_OF_1_2 = ["ECDHE-ECDSA", "ECDHE-RSA"].flatMap((exchange) =>
  ["AES128-GCM-SHA256", "AES256-GCM-SHA384", "CHACHA20-POLY1305"].map((cipher) => `${exchange}-${cipher}`),
);

/** A client without a certificate is heard, and may have a key; one with a bad certificate is refused by name. */
export function tlsOptions({ cert, key, clientCa, minVersion = "1.3" }: ApiTls) {
  const version = { minVersion: `TLSv${minVersion}` as const, maxVersion: "TLSv1.3" as const };
  const ciphers = minVersion === "1.3" ? {} : { ciphers: `${SUITES_OF_1_3.join(":")}:${SUITES_OF_1_2.join(":")}` };
  const clients = clientCa === null ? {} : { ca: clientCa, requestCert: true, rejectUnauthorized: false };
  return { cert, key, ...version, ...ciphers, ...clients };
}

interface RawSocket {
  readonly remoteAddress?: string | undefined;
  readonly remotePort?: number | undefined;
  readonly writable: boolean;
  readonly bytesWritten: number;
  end(text: string): void;
  destroy(): void;
  once(event: "close", told: () => void): void;
  setTimeout(ms: number, told: () => void): void;
}

/** What Node's parser gives up on. There is no request, so the answer is written by hand. */
function answerGarbage(error: { code?: string }, socket: RawSocket, counters: HttpCounters): void {
  counters.badConnections++;
  // A reset has nobody to answer.
  if (error.code === "ECONNRESET" || !socket.writable) return socket.destroy();
  const [code, message] = garbage(error.code);
  const body = JSON.stringify(errorBody(code, message));
  const head = [
    `HTTP/1.1 ${statusOf(code)} ${code}`,
    "Content-Type: application/json; charset=utf-8",
    `Content-Length: ${new TextEncoder().encode(body).length}`,
    "Connection: close",
  ];
  socket.end(`${head.join("\r\n")}\r\n\r\n${body}`);
}

function garbage(code: string | undefined): [ErrorCode, string] {
  switch (code) {
    case "HPE_HEADER_OVERFLOW":
      return ["PAYLOAD_TOO_LARGE", "The request line and the headers are larger than this API takes."];
    case PLAIN_HTTP:
      return [
        "TLS_REQUIRED",
        "This port speaks TLS, and the request came without it. Use https:// instead of http://.",
      ];
    case "ERR_HTTP_REQUEST_TIMEOUT":
      return ["REQUEST_TIMEOUT", "The request did not arrive in time: it was sent too slowly, or not to its end."];
    default:
      return ["BAD_REQUEST", "This is not a well-formed HTTP/1.1 request."];
  }
}
