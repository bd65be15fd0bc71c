// Values at Tenure's servers: small JSON documents next to the scopes. A write may name the scope and the epoch of the leader that makes it, and is then
// refused when that epoch is over.
//
// A write that may have been done and was not confirmed is never sent again by itself: OUTCOME_UNKNOWN is thrown, and a look (the version) says what
// became of it. What was certainly not done is sent again, for as long as the call may take.

import { refuseUnknownOptions, TenureError } from "../../contract/errors.ts";
import { jsonMistake } from "../../contract/json-value.ts";
import { VALUE_BYTES_MAX } from "../../contract/limits.ts";
import type { Json } from "../../core/kit/json.ts";
import type { StoredValue, ValueItem } from "../../ports/stored-values.ts";
import type { Caller, CallOptions } from "../caller.ts";
import { pagesOf, readPage, type ValueReadOptions } from "./pages.ts";
import { type ValuesWatch, watchValues } from "./watch.ts";

export interface ValueWriteOptions extends CallOptions {
  /** Only where the value has this version; 0: only where there is none. Else VERSION_CONFLICT, and nothing is written. */
  readonly ifVersion?: number | undefined;
  /** Only while `epoch` of this scope is in force. Else STALE_EPOCH, and nothing is written. Both, or neither. */
  readonly scope?: string | undefined;
  readonly epoch?: number | undefined;
}

export interface ClientValues {
  /** Null: there is none. */
  get(name: string, options?: ValueReadOptions): Promise<StoredValue | null>;
  put(name: string, value: Json, options?: ValueWriteOptions): Promise<{ readonly version: number }>;
  /** Of a value that is not there it is no error: `deleted` is false. */
  delete(name: string, options?: ValueWriteOptions): Promise<{ deleted: boolean; version: number | null }>;
  /** By name; asked for page by page, so they are not all of one moment. */
  list(options?: ValueReadOptions & { readonly prefix?: string | undefined }): AsyncGenerator<StoredValue, void, void>;
  /**
   * First all values, as `put`, then `current`, then each change in order, over whichever nodes there are. Where changes are not kept any more it lists again
   * by itself and gives what differs, deletions too: whoever applies each item has what the servers have, and misses no deletion.
   *
   * With `after` only what came after that version. It does not know which names there were before, so where those changes are not kept any more it ends
   * with LOG_COMPACTED, and never leaves any out: watch without `after`, and compare.
   */
  watch(options?: ValuesWatch): AsyncGenerator<ValueItem, never, void>;
}

const WRITE_OPTIONS = {
  ifVersion: true,
  scope: true,
  epoch: true,
  signal: true,
  timeoutMs: true,
  attemptMs: true,
} as const satisfies Readonly<Record<keyof ValueWriteOptions, true>>;

export function valuesOf(caller: Caller): ClientValues {
  const write = async <T>(name: string, value: { readonly value: Json } | null, options: ValueWriteOptions) => {
    // A condition with a misspelt name would be none.
    refuseUnknownOptions(value === null ? "values.delete" : "values.put", options, WRITE_OPTIONS);
    if (value !== null) checkValue(value.value);
    const { ifVersion, scope, epoch } = options;
    const conditions = { if_version: ifVersion, scope, epoch };
    const path = `/v1/values/${encodeURIComponent(name)}`;
    const request =
      value === null
        ? { method: "DELETE" as const, path: `${path}?${queryOf(conditions)}` }
        : { method: "PUT" as const, path, body: { ...value, ...conditions } };
    return await caller.bodyOf<T>(await caller.mutate({ ...request, isIdempotent: false, isPatient: true }, options));
  };
  return {
    get: async (name, options = {}) => {
      // The first name that begins with it is the name itself. A path of its own that is 404 may also be an older server's.
      const { values } = await readPage(caller, options, { prefix: name, limit: "1" });
      return values.find((one) => one.name === name) ?? null;
    },
    put: (name, value, options = {}) => write(name, { value }, options),
    delete: (name, options = {}) => write(name, null, options),
    list: async function* (options = {}) {
      for await (const { values } of pagesOf(caller, options, options.prefix)) yield* values;
    },
    watch: (options = {}) => watchValues(caller, options),
  };
}

/** Here already: JSON.stringify would write another value for some that it can't say, as null for NaN. */
function checkValue(value: Json): void {
  const mistake = jsonMistake(value, VALUE_BYTES_MAX);
  if (mistake !== null) throw new TenureError("BAD_REQUEST", `value ${mistake}. Nothing was sent.`, { field: "value" });
}

function queryOf(conditions: Readonly<Record<string, string | number | undefined>>): string {
  const given = Object.entries(conditions).flatMap(([name, one]) => (one === undefined ? [] : [[name, String(one)]]));
  return new URLSearchParams(given).toString();
}
