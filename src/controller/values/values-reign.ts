// Values under one leadership: decides, appends, and answers when that is committed.

import { assertNever } from "../../core/kit/assert.ts";
import { StaleEpochError, TenureError, VersionConflictError } from "../../core/kit/errors.ts";
import { VALUES_BYTES_MAX, VALUES_MAX } from "../../core/kit/limits.ts";
import type { StateKey } from "../../core/state/index.ts";
import { decideValue, type ValueCommand, type ValueDecision } from "../../core/values/index.ts";
import { DECIDE_AGAIN_MAX } from "../state/limits.ts";
import { overloaded, type StateDesk } from "../state/state-desk.ts";

export class ValuesReign {
  readonly #desk: StateDesk;

  constructor(desk: StateDesk) {
    this.#desk = desk;
  }

  /**
   * The version of the change, when it is committed; null: there is nothing to delete. Rejects where it is refused. `admit`: throws where such a
   * record must not be appended now.
   */
  async change(command: ValueCommand, admit: () => void): Promise<number | null> {
    const desk = this.#desk;
    desk.admit();
    for (let attempt = 0; attempt < DECIDE_AGAIN_MAX; attempt++) {
      const appended = this.#append(command, admit);
      if (appended !== null) return appended;
      // A refusal says something of the present: it is a confirmed leader's, and rests on nothing that may still be given up.
      await desk.confirmed();
      const decision = decideValue(desk.head, command);
      if (decision.kind !== "event" && (await this.#isSettled(command, decision))) return refused(command, decision);
    }
    throw overloaded("what this rests on is written and given up, again and again");
  }

  /** Null: nothing is to be written. */
  #append(command: ValueCommand, admit: () => void): Promise<number> | null {
    const { head, appends } = this.#desk;
    const decision = decideValue(head, command);
    if (decision.kind !== "event") return null;
    admit();
    const batch = appends.begin();
    const version = head.placeOf(appends.positionIn(batch));
    appends.add(batch, [decision.event]);
    appends.send(batch);
    return batch.done.then(() => version);
  }

  /** False: something that the decision rests on was given up. */
  async #isSettled({ name, fence }: ValueCommand, decision: ValueDecision): Promise<boolean> {
    const keys: StateKey[] = [{ value: name }];
    if (fence !== null) keys.push({ scope: fence.scope });
    if (decision.kind === "locked") keys.push({ txn: decision.by });
    try {
      await this.#desk.settled(...keys);
      // There may be no room for it because of any other value.
      if (decision.kind === "full") await this.#desk.allSettled();
      return true;
    } catch (error) {
      // Where the leadership is over nothing can be said; what the log had no room for never was.
      if (this.#desk.isOver || !this.#desk.leads) throw error;
      return false;
    }
  }
}

/** Null: there is nothing to delete. */
function refused({ name }: ValueCommand, decision: Exclude<ValueDecision, { readonly kind: "event" }>): null {
  switch (decision.kind) {
    case "stale":
      throw new StaleEpochError(decision.fence.scope, decision.fence.epoch);
    case "conflict":
      throw new VersionConflictError(name, decision.current?.version ?? null);
    case "locked":
      throw new TenureError(
        "txn_locked",
        `Value "${name}" is locked by transaction ${decision.by}, which is not decided yet. Nothing was written. Retry in a moment; if it stays locked, \`tenure txn show ${decision.by}\` says what it waits for.`,
      );
    case "full":
      throw new TenureError("QUOTA_EXCEEDED", full(decision.what));
    case "nothing":
      return null;
    default:
      return assertNever(decision, "value decision");
  }
}

function full(what: "values" | "bytes"): string {
  const limit = what === "values" ? `${VALUES_MAX} values` : `${VALUES_BYTES_MAX} bytes of values`;
  return `There are ${limit}, as many as a cluster has room for. Nothing was written; delete what is not needed, or keep large things elsewhere.`;
}
