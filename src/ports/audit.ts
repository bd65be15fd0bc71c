// The record of a call that steers, as its node keeps it and as it is shown.

import type { ApiRole } from "../core/kit/api-role.ts";

export interface AuditRecord {
  readonly atMs: number;
  readonly nodeId: string;
  readonly who: string;
  readonly how: "key" | "certificate" | "anonymous";
  readonly role: ApiRole | null;
  readonly address: string;
  readonly operation: string;
  readonly target: string | null;
  readonly forced: boolean;
  /** "OK", or the error's code. */
  readonly outcome: string;
  readonly status: number;
  readonly durationMs: number;
  readonly requestId: string;
}
