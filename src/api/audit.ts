// Who called what of the admin routes, and what came of it: one line through the audit logger for each call when it ends,
// and for what changes something also one when it begins: a process that dies on the way, or a change that takes long, is
// written down all the same. The line is the record; the last of those that ended are in memory, for a look.
//
// Whatever began is written, each time; how often one caller can begin is bounded by its rate. What was refused at the door is
// written within bounds: the same refusal once in a window, so many of one caller, so many of all. The rest is counted, and the
// counts are written when the window ends. So nobody fills the log, or empties the memory, with what nobody allowed.

import type { AuditRecord } from "../ports/audit.ts";
import type { Clock, Timer } from "../ports/clock.ts";
import type { Logger } from "../ports/logger.ts";
import { AUDIT_RECORDS_MAX } from "./limits.ts";
import type { Caller } from "./traffic/callers.ts";
import type { ApiLimits } from "./options.ts";

/** As much as is known before anything is done. */
type Begun = Omit<AuditRecord, "who" | "how" | "role" | "outcome" | "status" | "durationMs">;
type Ended = Omit<AuditRecord, "who" | "how" | "role">;
type Bounds = Pick<ApiLimits, "auditWindowMs" | "auditRefusalsPerCaller" | "auditRefusalsMax">;

interface Refused {
  readonly written: Set<string>;
  suppressed: number;
}

export class Audit {
  readonly #logger: Logger;
  readonly #clock: Clock;
  readonly #bounds: Bounds;
  readonly #records: AuditRecord[] = [];
  /** In this window, by who pays for the call. */
  #refused = new Map<string, Refused>();
  #refusedTotal = 0;
  /** Of callers for whom there was no place. */
  #suppressedOfOthers = 0;
  #windowEndsAtMs = 0;
  #timer: Timer | null = null;

  constructor(logger: Logger, clock: Clock, bounds: Bounds) {
    this.#logger = logger;
    this.#clock = clock;
    this.#bounds = bounds;
  }

  begun(caller: Caller, call: Begun): void {
    const record = { ...call, ...whoIs(caller) };
    this.#logger.info({ audit: true, phase: "begun", ...record }, `admin: ${record.operation} by ${record.who}: begun`);
  }

  ended(caller: Caller, call: Ended): void {
    const record = { ...call, ...whoIs(caller) };
    this.#records.push(record);
    if (this.#records.length > AUDIT_RECORDS_MAX) this.#records.shift();
    const text = `admin: ${record.operation} by ${record.who}: ${record.outcome}`;
    this.#logger.info({ audit: true, phase: "ended", ...record }, text);
  }

  /** As `ended`, of a call that was let do nothing: within the bounds of whoever pays for it. */
  refused(payer: string, caller: Caller, call: Ended): void {
    if (this.#clock.monotonicMs() >= this.#windowEndsAtMs) this.#nextWindow();
    if (this.#mayWrite(payer, `${call.operation}\n${call.target}\n${call.outcome}`)) return this.ended(caller, call);
    const ofPayer = this.#refused.get(payer);
    if (ofPayer === undefined) this.#suppressedOfOthers++;
    else ofPayer.suppressed++;
    this.#timer ??= this.#clock.setTimer(this.#windowEndsAtMs, () => this.#writeSuppressed());
  }

  /** Newest first. */
  records(): readonly AuditRecord[] {
    return this.#records.toReversed();
  }

  /** What is counted is written. */
  stop(): void {
    this.#writeSuppressed();
  }

  #mayWrite(payer: string, what: string): boolean {
    const { auditRefusalsPerCaller, auditRefusalsMax } = this.#bounds;
    const ofPayer = this.#refused.get(payer) ?? { written: new Set(), suppressed: 0 };
    if (ofPayer.written.has(what) || ofPayer.written.size >= auditRefusalsPerCaller) return false;
    if (this.#refusedTotal >= auditRefusalsMax) return false;
    this.#refused.set(payer, ofPayer);
    this.#refusedTotal++;
    ofPayer.written.add(what);
    return true;
  }

  #nextWindow(): void {
    this.#writeSuppressed();
    this.#refused = new Map();
    this.#refusedTotal = 0;
    this.#windowEndsAtMs = this.#clock.monotonicMs() + this.#bounds.auditWindowMs;
  }

  #writeSuppressed(): void {
    this.#timer?.cancel();
    this.#timer = null;
    for (const [payer, one] of this.#refused) {
      if (one.suppressed > 0) this.#writeCount(payer, one.suppressed);
      one.suppressed = 0;
    }
    if (this.#suppressedOfOthers > 0) this.#writeCount("others", this.#suppressedOfOthers);
    this.#suppressedOfOthers = 0;
  }

  #writeCount(who: string, suppressed: number): void {
    const text = `admin: ${suppressed} more refused calls by ${who} were not written one by one`;
    this.#logger.info({ audit: true, phase: "suppressed", who, suppressed }, text);
  }
}

function whoIs({ name, how, role }: Caller): Pick<AuditRecord, "who" | "how" | "role"> {
  return { who: name, how: how === "refused" ? "anonymous" : how, role };
}
