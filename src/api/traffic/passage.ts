// One request on its way through the server: who calls, when it came, what it is about, and what came of it.

import type { FastifyReply, FastifyRequest } from "fastify";
import type { Role, Route } from "../../contract/index.ts";
import type { IdentityKind } from "../../core/kit/spiffe.ts";
import type { Caller } from "./callers.ts";
import type { Connection } from "./connections.ts";
import type { ForIdentities } from "./identities.ts";

/** A route as the server knows it: of the contract, or an extra one. */
export interface Registered {
  readonly name: string;
  readonly role: Role | "public";
  /** What an admin call is called in the audit; null for the rest, which is not written down. */
  readonly operation: string | null;
  readonly limited: Route["limited"];
  /** A failure of a write may have done something. */
  readonly isWrite: boolean;
  /** Route.isFenced. */
  readonly isFenced: boolean;
  /** Route.isOwnView. */
  readonly isOwnView: boolean;
  /** Route.isForSites. */
  readonly isForSites: boolean;
  /** Route.isAlsoFor. */
  readonly isAlsoFor: readonly IdentityKind[];
  /** Route.identities; null: the role counts. */
  readonly forIdentities: ForIdentities | null;
  /** Answered however many others are: who asks would end a process that is only busy. */
  readonly isProbe: boolean;
}

export interface Passage {
  readonly startedAtMs: number;
  /** As this node knows it on arrival, and when it is admitted as the cluster does. */
  caller: Caller;
  /** As it was on arrival: a socket that is closed has none. */
  readonly address: string;
  readonly connection: Connection | undefined;
  /** Whose share of this node it takes: who calls, or from where. */
  readonly payer: string;
  /** Aborts when the exchange is over: the client has gone, or has its answer. */
  readonly over: AbortController;
  /** Of a call that is written down for what it did; null: as its route is. */
  operation: string | null;
  target: string | null;
  forced: boolean;
  /** A handler has begun: what fails from here on may have done something. */
  isBegun: boolean;
  /** "OK", or the error's code. */
  outcome: string;
}

declare module "fastify" {
  interface FastifyRequest {
    /** Absent where a request is refused before any hook: a path that can't be decoded, or is too long. */
    passage?: Passage | null;
  }
  interface FastifyContextConfig {
    registered?: Registered;
  }
}

export function passageOf(request: FastifyRequest): Passage | null {
  return request.passage ?? null;
}

export function registeredOf(request: FastifyRequest): Registered | undefined {
  return request.routeOptions?.config?.registered;
}

/** Sends our own JSON: nothing is reflected on, and nothing is coerced. */
export function sendJson(
  reply: FastifyReply,
  status: number,
  body: unknown,
  headers: Readonly<Record<string, string>>,
): void {
  void reply.code(status).headers(headers).type("application/json; charset=utf-8").send(JSON.stringify(body));
}
