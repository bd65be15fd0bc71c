// What a term can do on Tenure's own servers: write values with its epoch, which the log takes in one record or not at all, and read them.
//
// Invariants
// - A write leaves only while the gate is open, and carries the scope and the epoch of its term: the servers refuse it when that epoch is
//   over, however late it comes. So a write that was asked for in time may go on after the term: its promise says what became of it.
// - What may have been written and was not confirmed is OUTCOME_UNKNOWN, and is not sent again. Every other rejection means: not written.

import { canonicalJson } from "../../core/events/canonical.ts";
import { StaleEpochError, TenureError } from "../../core/kit/errors.ts";
import type { Json } from "../../core/kit/json.ts";
import { INTEGER_MAX } from "../../core/kit/limits.ts";
import { refuseUnknownOptions } from "../../core/kit/options.ts";
import { checkValueDepth, checkValueName, checkValueTerms, valueData } from "../../core/values/limits.ts";
import type { Hold } from "../../ports/backends/backend.ts";
import type { StoredValue } from "../../ports/stored-values.ts";
import type { ValueDelete, ValueDeleted, ValuePut } from "../../ports/values.ts";

/** What Tenure's own servers add to a term. */
export interface ServersTerm {
  /**
   * Null: there is none. Everything that was confirmed before is in the answer, and nothing of an older epoch can be written any more: what a
   * new leader reads is where it goes on. Without a look at the gate.
   */
  get(name: string): Promise<StoredValue | null>;
  /**
   * Writes a value while this epoch is in force, else StaleEpochError; NotLeaderError where the gate is closed. OUTCOME_UNKNOWN where it
   * may have been written; every other error means that it was not.
   */
  put(name: string, value: Json, options?: ValueCondition): Promise<{ readonly version: number }>;
  /** As `put`. Of a value that is not there it is no error: `deleted` is false. */
  delete(name: string, options?: ValueCondition): Promise<ValueDeleted>;
}

export interface ValueCondition {
  /** Only where the value has this version; 0: only where there is none. Else VERSION_CONFLICT. */
  readonly ifVersion?: number | undefined;
}

/** Where values are: at the servers, or in the memory of a test. */
export interface ValueStore {
  get(name: string): Promise<StoredValue | null>;
  put(request: ValuePut): Promise<{ readonly version: number }>;
  delete(request: ValueDelete): Promise<ValueDeleted>;
}

const CONDITION = { ifVersion: true } as const satisfies Readonly<Record<keyof ValueCondition, true>>;

export function serversTerm(values: ValueStore, hold: Hold): ServersTerm {
  const { scope, epoch } = hold;
  const fenced = async <T>(write: () => Promise<T>): Promise<T> => {
    hold.check();
    try {
      return await write();
    } catch (error) {
      if (!TenureError.is(error) || error.code !== "STALE_EPOCH") throw error;
      hold.lost("lease-gone");
      throw new StaleEpochError(scope, epoch, { cause: error });
    }
  };
  const terms = (what: string, name: string, options: ValueCondition) => {
    // A condition with a misspelt name would be none.
    refuseUnknownOptions(`term.${what}`, options, CONDITION);
    const { ifVersion = null } = options;
    checkValueName(name);
    checkValueTerms(ifVersion, null);
    return { name, ifVersion, fence: { scope, epoch } };
  };
  return {
    get: async (name) => {
      checkValueName(name);
      return values.get(name);
    },
    put: async (name, value, options = {}) => {
      const request = { ...terms("put", name, options), value };
      checkValue(value);
      return fenced(() => values.put(request));
    },
    delete: async (name, options = {}) => {
      const request = terms("delete", name, options);
      return fenced(() => values.delete(request));
    },
  };
}

/** Here already: JSON.stringify would write another value for some that it can't say. */
function checkValue(value: Json): void {
  let text: string;
  try {
    text = canonicalJson(value, INTEGER_MAX);
  } catch (error) {
    if (!TenureError.is(error)) throw error;
    throw new TenureError("BAD_REQUEST", `The value is none that JSON can say: ${error.message}`, { field: "value" });
  }
  checkValueDepth(value);
  valueData(text);
}
