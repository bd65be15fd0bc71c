// Who called what of the admin routes, and what came of it: one line through the audit logger for each call, allowed or
// refused, and the last of them in memory. The line is the record; the memory is for a look.

import type { Logger } from "../ports/logger.ts";
import type { Caller } from "./callers.ts";

const RECORDS_MAX = 256;

export interface AuditRecord {
  readonly atMs: number;
  readonly nodeId: string;
  readonly who: string;
  readonly how: "key" | "certificate" | "anonymous";
  readonly role: "viewer" | "client" | "operator" | null;
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

export class Audit {
  readonly #logger: Logger;
  readonly #records: AuditRecord[] = [];

  constructor(logger: Logger) {
    this.#logger = logger;
  }

  write(caller: Caller, call: Omit<AuditRecord, "who" | "how" | "role">): void {
    const how = caller.how === "refused" ? "anonymous" : caller.how;
    const record = { ...call, who: caller.name, how, role: caller.role };
    this.#records.push(record);
    if (this.#records.length > RECORDS_MAX) this.#records.shift();
    this.#logger.info({ audit: true, ...record }, `admin: ${record.operation} by ${record.who}: ${record.outcome}`);
  }

  /** Newest first. */
  records(): readonly AuditRecord[] {
    return this.#records.toReversed();
  }
}
