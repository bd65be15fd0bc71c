// Waiting in the server's own queue: one session for each seat, the takeover is the grant of an advisory lock.
//
//   idle ──acquire──▶ campaigning: connect, check, wait, bump ──▶ holding ──release──▶ idle
//    ▲                     │ error, abandon                          │ abandon, session ended
//    └─────────────────────┴─────────────────────────────────────────┘
//
// Invariants: one session is used for one hold, and for nothing else; a session that failed, or was abandoned, is
// destroyed. A waiter asks again every second (lock_timeout) and has a short idle_session_timeout: one that is
// frozen at the head of the queue is granted the lock, and must lose it soon (trap 49a).

import { TenureError } from "../../../core/kit/errors.ts";
import type { Beat, Grant } from "../../../ports/backends/backend.ts";
import type { SqlDriver } from "../../../ports/backends/sql.ts";
import type { Admission } from "../../../postgres/admission.ts";
import { faultOf, softened } from "../../../postgres/faults.ts";
import { beat, bump, type Holder, refuseClash, resign, type Scoped } from "./holder.ts";
import { POSTGRES_ANSWER_MS_MAX } from "../../../postgres/limits.ts";
import { Line } from "../../../postgres/line.ts";

type State =
  | { readonly kind: "idle" }
  | { readonly kind: "campaigning"; readonly line: Line }
  | { readonly kind: "holding"; readonly line: Line; readonly epoch: number };

export class BlockHolder implements Holder {
  readonly #scoped: Scoped;
  readonly #driver: SqlDriver;
  readonly #admission: Admission;
  #state: State = { kind: "idle" };
  #served = false;

  constructor(scoped: Scoped, driver: SqlDriver, admission: Admission) {
    this.#scoped = scoped;
    this.#driver = driver;
    this.#admission = admission;
  }

  async acquire(): Promise<Grant> {
    this.abandon();
    const line: Line = new Line(this.#driver, this.#scoped.claim.clock, { ended: () => this.#ended(line) });
    this.#state = { kind: "campaigning", line };
    try {
      const { claim, settings } = this.#scoped;
      await this.#admission.admit(line, claim.clock, `tenure ${claim.scope}`, settings.session.waitingIdleMs);
      await refuseClash(line, this.#scoped);
      this.#served = true;
      await this.#wait(line);
      const grant = await bump(line, this.#scoped);
      if (line.hasEnded) throw new TenureError("BACKEND_UNAVAILABLE", "the session ended as it was granted the scope");
      if (!this.#owns(line)) throw new TenureError("BACKEND_UNAVAILABLE", "the campaign was abandoned");
      this.#state = { kind: "holding", line, epoch: grant.epoch };
      return grant;
    } catch (error) {
      line.destroy();
      if (this.#owns(line)) this.#state = { kind: "idle" };
      const fault = faultOf(error, { where: line.where, scope: this.#scoped.claim.scope });
      throw this.#served ? softened(fault) : fault;
    }
  }

  async #wait(line: Line): Promise<void> {
    const { key, settings, sql } = this.#scoped;
    const limitMs = settings.session.lockMs + POSTGRES_ANSWER_MS_MAX;
    for (;;) {
      // Its lock_timeout is caught in the server: an error would be in the server's log each second, of each waiter.
      const [row] = await line.ask<{ granted: boolean }>(sql.wait, [key], limitMs);
      if (row?.granted === true) return;
    }
  }

  async beat(epoch: number): Promise<Beat> {
    return beat(this.#held(epoch), this.#scoped, epoch);
  }

  async release(epoch: number): Promise<void> {
    const line = this.#held(epoch);
    // The server freed it with the session.
    if (line === undefined) return;
    await resign(line, this.#scoped, epoch);
    if (!this.#owns(line)) return;
    this.#state = { kind: "idle" };
    // The scope is free already: nobody waits for the goodbye.
    void line.end();
  }

  abandon(): void {
    const state = this.#state;
    this.#state = { kind: "idle" };
    if (state.kind !== "idle") state.line.destroy();
  }

  async close(): Promise<void> {
    this.abandon();
  }

  #held(epoch: number): Line | undefined {
    return this.#state.kind === "holding" && this.#state.epoch === epoch ? this.#state.line : undefined;
  }

  #owns(line: Line): boolean {
    return this.#state.kind !== "idle" && this.#state.line === line;
  }

  #ended(line: Line): void {
    const state = this.#state;
    if (state.kind !== "holding" || state.line !== line) return;
    this.#state = { kind: "idle" };
    this.#scoped.claim.lost(state.epoch, "session-ended");
  }
}
