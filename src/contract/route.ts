// What a route of the API is made of. The routes themselves: routes.ts, jobs/routes.ts.

import type { TSchema } from "typebox";
import type { ErrorCode } from "../core/kit/errors.ts";
import type { IdentityKind } from "../core/kit/spiffe.ts";
import type { Role } from "./roles.ts";
import type { Shape } from "./shape.ts";

export interface Route {
  readonly method: "GET" | "POST" | "PUT" | "DELETE";
  /** `:scope` is a parameter, percent-encoded. */
  readonly path: string;
  /** One line, for the OpenAPI document. */
  readonly summary: string;
  readonly role: Role | "public";
  readonly params: Shape | null;
  readonly query: Shape;
  /** Null: it takes none, and what comes is refused. */
  readonly body: Shape | null;
  /** Null: it answers no JSON. */
  readonly answer: TSchema | null;
  /** What it answers instead of JSON, or next to it. */
  readonly contentType?: string;
  /** Next to those that any route may answer (COMMON_ERRORS). */
  readonly errors: readonly ErrorCode[];
  /** `write`: only the leader does it; elsewhere 409 NOT_LEADER or 503 ERR_NO_LEADER. */
  readonly kind: "probe" | "read" | "write" | "local";
  /** Each call is written down: who, what, outcome. */
  readonly isAdmin: boolean;
  /** Counted for each caller, and refused past a rate. */
  readonly limited: "admin" | "acquire" | null;
  /** Headers that mean something here, next to those of every route. */
  readonly headers?: readonly HeaderName[];
  /** Its body may be as large as an entry of the log. */
  readonly isLarge?: boolean;
  /** Its body has a bound of its own. */
  readonly bodyBytesMax?: number;
  /**
   * A mutation of the node-controller specification: a standby refuses it before it looks at the body, and 409 NOT_LEADER it
   * is also where nobody is known to lead. Where the request names a `leader_epoch`, that must be the active one.
   */
  readonly isFenced?: boolean;
  /** What a node says of itself and of its cluster, and nothing of what is replicated: shown also before it has caught up. */
  readonly isOwnView?: boolean;
  /** Other sites of the mesh (role `controller`) may call it too. */
  readonly isForSites?: boolean;
  /** Client certificates of these kinds, of this cluster's own trust domain, may call it too, whatever their role. */
  readonly isAlsoFor?: readonly IdentityKind[];
  /**
   * A route of the transaction coordinators: only client certificates of these kinds, of this cluster's own trust domain, may call it; API keys
   * never suffice. `role` is then not looked at.
   */
  readonly identities?: readonly IdentityKind[];
  /** Fields of the body whose mistakes have codes of their own. */
  readonly fieldErrors?: FieldErrors;
}

export type HeaderName =
  | "Idempotency-Key"
  | "Last-Event-ID"
  | "X-Tenure-Event-Point"
  | "X-Tenure-On-Behalf-Of"
  | "X-Tenure-TC-Forwarded"
  | "X-Tenure-TC-Leave-Fanout"
  | "X-Tenure-TC-Replicate";

/** By the field's name: the code where it is missing, and where it is wrong, or something in it. */
export type FieldErrors = Readonly<Record<string, readonly [missing: ErrorCode, wrong: ErrorCode]>>;

/** Of all of them, each once. */
export function codesOf<const Fields extends FieldErrors>(fields: Fields): Fields[keyof Fields][number][] {
  return [...new Set<ErrorCode>(Object.values(fields).flat())];
}

/**
 * METHOD_NOT_ALLOWED and NOT_FOUND stand for paths that are no route. INTERNAL is a mistake of ours on a read; a write that
 * ends in one is OUTCOME_UNKNOWN. BACKEND_UNAVAILABLE: the node is stopping.
 */
export const COMMON_ERRORS = [
  "BAD_REQUEST",
  "UNAUTHENTICATED",
  "CALLER_UNCONFIRMED",
  "PERMISSION_DENIED",
  "NOT_FOUND",
  "METHOD_NOT_ALLOWED",
  "PAYLOAD_TOO_LARGE",
  "OVERLOADED",
  "BACKEND_UNAVAILABLE",
  "INTERNAL",
] as const satisfies readonly ErrorCode[];

export const READ_ERRORS = ["TOO_STALE", "ERR_NO_LEADER"] as const;
/** What most reads are; a route says what differs. */
export const READ = {
  method: "GET",
  role: "viewer",
  params: null,
  body: null,
  isAdmin: false,
  limited: null,
  kind: "read",
  errors: READ_ERRORS,
} as const;
export const WRITE_ERRORS = [
  "NOT_LEADER",
  "ERR_NO_LEADER",
  "OUTCOME_UNKNOWN",
  "TRANSFER_IN_PROGRESS",
  "UNCOMMITTED_LIMIT",
  "DISK_FULL",
] as const;
