// Values at Tenure's servers: small JSON documents beside the scopes. A write may name the scope and the epoch of the leader that makes it, and is then
// refused when that epoch is over.
//
// A write that may have been done and was not confirmed is never sent again by itself: OUTCOME_UNKNOWN is thrown, and a look (the version) says what
// became of it. What was certainly not done is sent again, for as long as the call may take.

import { refuseUnknownOptions, TenureError } from "../contract/errors.ts";
import { parseJson } from "../contract/parse-json.ts";
import { toCamel } from "../contract/snake-case.ts";
import type { Json } from "../core/kit/json.ts";
import type { StoredValue, ValueItem } from "../ports/stored-values.ts";
import { type Caller, type CallOptions, readQuery } from "./caller.ts";
import { STREAM_OUTAGE_MS, STREAM_STEADY_MS, VALUE_PAGES_MAX } from "./limits.ts";
import { Pauses } from "./pauses.ts";
import type { SseFrame } from "./sse.ts";
import { type StreamOptions, streamItems } from "./streams.ts";

export interface ValueReadOptions extends CallOptions {
  /**
   * "linearizable" (default): everything that was confirmed before this call is in the answer, so a new leader never starts from an old cursor.
   * "local": as whichever node answers first has it, also while nobody leads.
   */
  readonly consistency?: "linearizable" | "local" | undefined;
}

export interface ValueWriteOptions extends CallOptions {
  /** Only where the value has this version; 0: only where there is none. Else VERSION_CONFLICT, and nothing is written. */
  readonly ifVersion?: number | undefined;
  /** Only while `epoch` of this scope is in force. Else STALE_EPOCH, and nothing is written. Both, or neither. */
  readonly scope?: string | undefined;
  readonly epoch?: number | undefined;
}

export interface ValuesWatch extends StreamOptions {
  /** Of names; all, where it is left out. */
  readonly prefix?: string | undefined;
  /** Only changes after this version. Left out: first what there is. */
  readonly after?: number | undefined;
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

function queryOf(conditions: Readonly<Record<string, string | number | undefined>>): string {
  const given = Object.entries(conditions).flatMap(([name, one]) => (one === undefined ? [] : [[name, String(one)]]));
  return new URLSearchParams(given).toString();
}

interface Page {
  readonly values: readonly StoredValue[];
  readonly next: string | null;
  readonly asOf: number;
}

async function* pagesOf(caller: Caller, options: ValueReadOptions, prefix = ""): AsyncGenerator<Page, void, void> {
  let after: string | null = null;
  for (let page = 0; page < VALUE_PAGES_MAX; page++) {
    const found: Page = await readPage(caller, options, after === null ? { prefix } : { prefix, after });
    yield found;
    if (found.next === null) return;
    if (found.next === after) break;
    after = found.next;
  }
  throw new TenureError("BACKEND_UNSUPPORTED", "the server lists values without an end; is it a Tenure server?");
}

async function readPage(
  caller: Caller,
  { consistency = "linearizable", ...options }: ValueReadOptions,
  query: Readonly<Record<string, string>>,
): Promise<Page> {
  const wanted = consistency === "local" ? undefined : consistency;
  return await caller.readJson<Page>(`/v1/values${readQuery({ consistency: wanted }, query)}`, options);
}

async function* watchValues(caller: Caller, options: ValuesWatch): AsyncGenerator<ValueItem, never, void> {
  const { prefix = "", after, signal, outageMs = STREAM_OUTAGE_MS } = options;
  const state = new Watched(after);
  for (let pauses = new Pauses(outageMs); ;) {
    let failure: unknown;
    let listedAtMs = Infinity;
    try {
      if (state.point === null) yield* listed(caller, state, prefix, signal);
      listedAtMs = performance.now();
    } catch (error) {
      signal?.throwIfAborted();
      if (!TenureError.is(error) || !error.retryable) throw error;
      failure = error;
    }
    if (failure === undefined) {
      const request = () => ({
        method: "GET" as const,
        path: `/v1/watch/values${readQuery({}, { prefix })}`,
        headers: { accept: "text/event-stream", "last-event-id": String(state.point) },
      });
      for await (const item of streamItems(caller, request, (frame) => state.read(frame), options)) {
        if (item === RESET) break;
        yield item;
      }
      failure = new TenureError(
        "LOG_COMPACTED",
        `the servers do not keep all changes of values after version ${state.point} any more. Watch without \`after\`, and compare.`,
      );
      if (after !== undefined) throw failure;
      state.point = null;
    }
    // A server that resets whatever it has listed costs no more than a poll.
    if (performance.now() - listedAtMs >= STREAM_STEADY_MS) pauses = new Pauses(outageMs);
    if (await pauses.take(signal)) continue;
    signal?.throwIfAborted();
    throw failure;
  }
}

/** Everything that there is and was not given yet, and what there is no more. */
async function* listed(
  caller: Caller,
  state: Watched,
  prefix: string,
  signal: AbortSignal | undefined,
): AsyncGenerator<ValueItem, void, void> {
  const gone = new Set(state.known.keys());
  let asOf: number | undefined;
  for await (const page of pagesOf(caller, { signal }, prefix)) {
    // Changes since the first page come once more, and are left out where a later page had them.
    asOf ??= page.asOf;
    for (const value of page.values) {
      gone.delete(value.name);
      if (state.isNew(value)) yield { kind: "put", ...value };
    }
  }
  for (const name of gone) {
    state.known.delete(name);
    yield { kind: "deleted", name, version: null, updatedAtMs: null };
  }
  state.point = asOf ?? 0;
  yield { kind: "current", version: state.point };
}

const RESET = Symbol("reset");

type Change = Exclude<ValueItem, { kind: "current" }> & { readonly version: number };

/** How far a watch is. */
class Watched {
  /** Null: all values are to be listed. */
  point: number | null;
  /** Versions by name, as they were given. */
  readonly known = new Map<string, number>();
  readonly #isWhole: boolean;

  constructor(after: number | undefined) {
    this.point = after ?? null;
    this.#isWhole = after === undefined;
  }

  isNew({ name, version }: Pick<StoredValue, "name" | "version">): boolean {
    if ((this.known.get(name) ?? 0) >= version) return false;
    this.known.set(name, version);
    return true;
  }

  read({ id, event, data }: SseFrame): ValueItem | typeof RESET | undefined {
    if (event === "reset") return RESET;
    const point = this.point ?? 0;
    // Of changes that were made together the last one has an id: only then all of them are here.
    if (/^\d{1,15}$/.test(id ?? "")) this.point = Math.max(point, Number(id));
    if (data === null) return undefined;
    const item = toCamel(parseJson(data) as object) as unknown as Change;
    const { version } = item;
    if (!(version > point)) return undefined;
    if (!this.#isWhole) return item;
    if (item.kind === "put") return this.isNew(item) ? item : undefined;
    // What a list did not have was not given, and is not taken back.
    if (!((this.known.get(item.name) ?? Infinity) < version)) return undefined;
    this.known.delete(item.name);
    return item;
  }
}
