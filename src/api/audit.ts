// Who called what of the admin routes, and what came of it: one line through the audit logger for each call when it ends,
// allowed or refused, and for what changes something also one when it begins: a process that dies on the way, or a change
// that takes long, is written down all the same. The line is the record; the last of those that ended are in memory, for a
// look.

import type { Role } from "../contract/index.ts";
import type { Logger } from "../ports/logger.ts";
import type { Caller } from "./callers.ts";

const RECORDS_MAX = 256;

export interface AuditRecord {
  readonly atMs: number;
  readonly nodeId: string;
  readonly who: string;
  readonly how: "key" | "certificate" | "anonymous";
  readonly role: Role | null;
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

/** As much as is known before anything is done. */
type Begun = Omit<AuditRecord, "who" | "how" | "role" | "outcome" | "status" | "durationMs">;

export class Audit {
  readonly #logger: Logger;
  readonly #records: AuditRecord[] = [];

  constructor(logger: Logger) {
    this.#logger = logger;
  }

  begun(caller: Caller, call: Begun): void {
    const record = { ...call, ...whoIs(caller) };
    this.#logger.info({ audit: true, phase: "begun", ...record }, `admin: ${record.operation} by ${record.who}: begun`);
  }

  ended(caller: Caller, call: Omit<AuditRecord, "who" | "how" | "role">): void {
    const record = { ...call, ...whoIs(caller) };
    this.#records.push(record);
    if (this.#records.length > RECORDS_MAX) this.#records.shift();
    const text = `admin: ${record.operation} by ${record.who}: ${record.outcome}`;
    this.#logger.info({ audit: true, phase: "ended", ...record }, text);
  }

  /** Newest first. */
  records(): readonly AuditRecord[] {
    return this.#records.toReversed();
  }
}

function whoIs({ name, how, role }: Caller): Pick<AuditRecord, "who" | "how" | "role"> {
  return { who: name, how: how === "refused" ? "anonymous" : how, role };
}
