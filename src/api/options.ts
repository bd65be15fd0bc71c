// What the API is made with: the ports it serves, who is let in, and its bounds.

import type { ApiKey, CertificatePeer, Role } from "../contract/index.ts";
import { ENTRY_BYTES_MAX } from "../core/kit/limits.ts";
import {
  CONNECTION_IDLE_MS,
  HANDSHAKE_MS,
  HEADERS_MS,
  KEY_WAIT_MS,
  LINEARIZABLE_WAIT_MS,
  REQUEST_ARRIVES_MS,
  STREAM_HEARTBEAT_MS,
  STREAM_STALL_MS,
} from "../core/kit/timeouts.ts";
import type { Arrivals } from "../ports/mesh/arrivals.ts";
import type { Clock } from "../ports/clock.ts";
import type { Cluster } from "../ports/cluster.ts";
import type { Coordinators } from "../ports/coordinators.ts";
import type { Controllers } from "../ports/mesh/controllers.ts";
import type { Events } from "../ports/events.ts";
import type { Jobs } from "../ports/jobs.ts";
import type { Certificates } from "../ports/certificates.ts";
import type { Keys } from "../ports/keys.ts";
import type { Logger } from "../ports/logger.ts";
import type { MeshLines } from "../ports/mesh/lines.ts";
import type { MeshLinks } from "../ports/mesh/links.ts";
import type { Scopes } from "../ports/scopes.ts";
import type { MeshReplayed, MeshViews } from "../ports/mesh/views.ts";
import type { TxnDecider, TxnParticipant } from "../ports/transactions.ts";
import type { Values } from "../ports/values.ts";
import type { Views } from "../ports/views.ts";
import type { WebFile } from "./web.ts";

export interface ApiOptions {
  readonly cluster: Cluster;
  readonly scopes: Scopes;
  readonly values: Values;
  /** Absent: this node serves no jobs, and their routes are 404. */
  readonly jobs?: JobsParts | undefined;
  /** Absent: this site is standalone, and the routes of lines are 501. */
  readonly lines?: MeshLines | undefined;
  readonly links?: MeshLinks | undefined;
  /** Absent: this site is standalone, and the routes of the mesh's state are 501. */
  readonly meshState?: MeshState | undefined;
  /** What has arrived here of all sites; undefined: nothing but the own events ever has, and their sequences are the arrivals. */
  readonly arrivals?: (() => Arrivals | undefined) | undefined;
  /** Absent: this node takes no part in transactions over several islands. */
  readonly coordinators?: Coordinators | undefined;
  /** This island's part of them, and what decides them for clients. Absent: neither is here. */
  readonly transactions?: TxnParticipant | undefined;
  readonly txnDecider?: TxnDecider | undefined;
  readonly nodeId: string;
  /** On every answer: epochs of two clusters do not compare, and a client must notice that a URL has another one behind it. */
  readonly clusterId: string;
  readonly keys: readonly ApiKey[];
  /** Whose client certificates count, by their SPIFFE id. */
  readonly trustDomain: string;
  /** It will listen on a loopback address: only then is anybody let in unknown. */
  readonly isLoopback: boolean;
  /** Reads of routes for certificates (Route.identities) are open to everybody on loopback. */
  readonly tcAuthDisabled?: boolean | undefined;
  readonly metrics: () => Promise<{ readonly contentType: string; readonly text: string }>;
  readonly diagnostics: () => Diagnostics;
  readonly logger: Logger;
  /** One line for each admin call. Not subject to the log's level. */
  readonly audit: Logger;
  readonly clock: Clock;
  /** Calls back in the next turn of the loop, at once where nothing else waits; by default a timer of the clock's does it. */
  readonly nextTurn?: ((begin: () => void) => void) | undefined;
  /** Of the text's UTF-8, in lower-case hex. */
  readonly sha256: (text: string) => string;
  /** A certificate's time ("Nov 15 16:00:00 2027 GMT") on the wall clock; NaN for what is none. */
  readonly parseTime: (text: string) => number;
  readonly tls?: ApiTls | null | undefined;
  readonly limits?: Partial<ApiLimits> | undefined;
  readonly extraRoutes?: readonly ExtraRoute[] | undefined;
  /** The dashboard; absent: `/` is no route. */
  readonly web?: readonly WebFile[] | undefined;
  /** Notified of what no handler should have thrown, after the caller was answered: the process may want to end. */
  readonly onFault?: ((error: unknown) => void) | undefined;
}

/** What an operator sends along with a question: nothing secret. */
export interface Diagnostics {
  /** Of the program that runs this node. */
  readonly runtime: string;
  readonly uptimeMs: number;
  readonly rssBytes: number;
  /** In the fields of the configuration file, without secrets. */
  readonly config: Readonly<Record<string, unknown>>;
  /** The last of the log, oldest first; bounded, without secrets. */
  readonly logLines: readonly string[];
}

/** Everything about jobs that the API is in front of. */
export interface JobsParts {
  readonly jobs: Jobs;
  readonly views: Views;
  readonly events: Events;
  readonly keys: Keys;
  readonly certificates: Certificates;
  readonly controllers: Controllers;
}

/** What this site knows of the state of all sites. */
export interface MeshState {
  readonly views: Pick<MeshViews, "jobs" | "agents" | "hash" | "events" | "savedThrough">;
  readonly arrivals: Arrivals;
  readonly replay: {
    /** Null: none since this process began. */
    last(): MeshReplayed | null;
    /** OVERLOADED: one is under way. */
    run(): Promise<MeshReplayed>;
  };
  /** When a line was last heard of, an event of it or its head, by this node's wall clock; of the own line it is now. Null: not yet. */
  heardMs(line: string): number | null;
}

/** PEM texts. */
export interface ApiTls {
  readonly cert: string;
  readonly key: string;
  /** Who signs client certificates; null: none are asked for. */
  readonly clientCa: string | null;
  /** Other sites whose certificates count; the authorities of those that have their own are in `clientCa` too. */
  readonly peers?: readonly CertificatePeer[] | undefined;
  /** By default TLS 1.3 alone. */
  readonly minVersion?: "1.2" | "1.3" | undefined;
}

/** For benchmarks and tests: a route outside of the contract, with the same access, bounds and errors. */
export interface ExtraRoute {
  readonly method: "GET" | "POST" | "PUT" | "DELETE";
  readonly path: string;
  readonly role: Role;
  handle(call: {
    readonly params: Readonly<Record<string, string>>;
    readonly query: Readonly<Record<string, unknown>>;
    readonly body: unknown;
  }): Promise<{ readonly status?: number | undefined; readonly body: unknown }>;
}

export const API_LIMITS = {
  bodyBytesMax: 64 * 1024,
  /** Of the routes that take jobs and results. */
  largeBodyBytesMax: ENTRY_BYTES_MAX,
  /** Request line and headers together. */
  headerBytesMax: 16 * 1024,
  headersMax: 100,
  connectionsMax: 10_000,
  /** Of these: whose requests were not admitted yet, from one address and in all. The oldest goes for the next one. */
  unauthenticatedPerAddress: 1_000,
  unauthenticatedMax: 5_000,
  /** The share of one caller in connections, requests, streams and bytes of answers. */
  connectionsPerCaller: 9_000,
  requestsPerCaller: 18_000,
  streamsPerCaller: 500,
  answerBytesPerCaller: 64 * 1024 * 1024,
  /** How long a connection is used; its streams end with it, and can be resumed on another one. */
  connectionAgeMs: 3_600_000,
  /** TLS's own handshake must be over by then. */
  handshakeTimeoutMs: HANDSHAKE_MS,
  /** An answer must be taken within so long, and longer by its size at this rate. */
  answerStallMs: 10_000,
  answerBytesPerS: 64 * 1024,
  /** Being answered at one moment, long polls included. */
  requestsMax: 20_000,
  /** A request's headers, and all of it, must have arrived after so long (slow loris). */
  headersTimeoutMs: HEADERS_MS,
  requestTimeoutMs: REQUEST_ARRIVES_MS,
  /** A connection on which nothing moves, in neither direction; longer than the longest poll. */
  idleTimeoutMs: CONNECTION_IDLE_MS,
  /** How long a linearizable read waits for a leader's confirmation. */
  catchUpTimeoutMs: LINEARIZABLE_WAIT_MS,
  /** The same before a key that this node does not know is refused; such rounds, and those who wait for one. */
  keyCatchUpTimeoutMs: KEY_WAIT_MS,
  keyRoundEveryMs: 50,
  keyWaitersMax: 1_000,
  /** Calls of one caller in each window. */
  rateWindowMs: 10_000,
  adminPerWindow: 200,
  acquirePerWindow: 10_000,
  /** Refused calls that the audit writes one by one in a window: of one caller, and of all. The rest is counted there. */
  auditWindowMs: 60_000,
  auditRefusalsPerCaller: 32,
  auditRefusalsMax: 1_024,
  /** Streams of events that are open at one moment. */
  streamsMax: 1_000,
  /** A stream on which nothing happens says so after so long. */
  heartbeatMs: STREAM_HEARTBEAT_MS,
  /** A reader of a stream that takes nothing for so long is cut. */
  streamStallMs: STREAM_STALL_MS,
};

export type ApiLimits = { readonly [Name in keyof typeof API_LIMITS]: number };
