// Values in the memory of a test, decided by the rules of the servers (core/values). They can be reached from every instance, also from one that is
// cut off: `cut` and `freeze` are about leadership.

import { canonicalJson } from "../../core/events/canonical.ts";
import { assert, assertNever } from "../../core/kit/assert.ts";
import { StaleEpochError, TenureError, VersionConflictError } from "../../core/kit/errors.ts";
import type { Json } from "../../core/kit/json.ts";
import { INTEGER_MAX } from "../../core/kit/limits.ts";
import { parseJson } from "../../core/kit/parse-json.ts";
import { decideValue, NO_LOCKS, type ValueCommand } from "../../core/values/decide.ts";
import { ValuesFold } from "../../core/values/fold.ts";
import { checkValueDepth, checkValueName, valueData } from "../../core/values/limits.ts";
import type { ValueState } from "../../core/values/value-state.ts";
import type { StoredValue, ValueItem } from "../../ports/stored-values.ts";
import type { ValueDelete, ValueDeleted, ValuePut } from "../../ports/values.ts";
import type { ServersValues, ValuesWatchOptions, ValueStore } from "../servers/index.ts";
import type { Store } from "./store.ts";

/** As `servers(url).values()`, and a way to write what others are meant to find. */
export interface TestValues extends ServersValues {
  /** As another program does: without an epoch. */
  put(name: string, value: Json): Promise<{ readonly version: number }>;
}

const decoder = new TextDecoder();

export class MemoryValues implements ValueStore {
  readonly #store: Store;
  readonly #nowMs: () => number;
  readonly #fold = new ValuesFold();
  readonly #changes: (ValueItem & { readonly kind: "put" | "deleted"; readonly version: number })[] = [];
  #version = 0;
  #changed = Promise.withResolvers<void>();

  constructor(store: Store, nowMs: () => number) {
    this.#store = store;
    this.#nowMs = nowMs;
  }

  async get(name: string): Promise<StoredValue | null> {
    return this.#view(name);
  }

  async put({ name, value, ifVersion, fence }: ValuePut): Promise<{ readonly version: number }> {
    const data = valueData(canonicalJson(value, INTEGER_MAX));
    checkValueDepth(value);
    const version = this.#decide({ kind: "put", name, data, ifVersion, fence, atMs: this.#nowMs() });
    assert(version !== null, "what is written has a version");
    return { version };
  }

  async delete({ name, ifVersion, fence }: ValueDelete): Promise<ValueDeleted> {
    const version = this.#decide({ kind: "delete", name, ifVersion, fence, atMs: this.#nowMs() });
    return { deleted: version !== null, version };
  }

  /** For those who do not lead. */
  reader(): TestValues {
    const life = new AbortController();
    const all = (prefix: string): StoredValue[] => this.#all(prefix);
    const close = async (): Promise<void> => life.abort();
    return {
      get: async (name) => {
        checkValueName(name);
        return this.#view(name);
      },
      put: async (name, value) => {
        checkValueName(name);
        return this.put({ name, value, ifVersion: null, fence: null });
      },
      list: async function* (this: void, { prefix = "" } = {}) {
        yield* all(prefix);
      },
      watch: (options = {}) => this.#watch(options, life.signal),
      close,
      [Symbol.asyncDispose]: close,
    };
  }

  /** The version of the change; null: there is nothing to delete. */
  #decide(command: ValueCommand): number | null {
    const heldEpoch = (scope: string): number | null => this.#store.leader(scope)?.epoch ?? null;
    const decision = decideValue({ values: this.#fold, heldEpoch, ...NO_LOCKS }, command);
    switch (decision.kind) {
      case "event": {
        const version = ++this.#version;
        const { name } = command;
        this.#fold.evolve(decision.event, version);
        const value = this.#view(name);
        const deleted = { kind: "deleted", name, version, updatedAtMs: command.atMs } as const;
        this.#changes.push(value === null ? deleted : { kind: "put", ...value });
        this.#changed.resolve();
        this.#changed = Promise.withResolvers();
        return version;
      }
      case "nothing":
        return null;
      case "stale":
        throw new StaleEpochError(decision.fence.scope, decision.fence.epoch);
      case "conflict":
        throw new VersionConflictError(command.name, decision.current?.version ?? null);
      case "locked":
        throw new TenureError("INTERNAL", `the value is locked by transaction ${decision.by}, and there are none here`);
      case "full":
        throw new TenureError("QUOTA_EXCEEDED", `There is no room for more ${decision.what}, as on real servers.`);
      default:
        return assertNever(decision, "value decision");
    }
  }

  #view(name: string): StoredValue | null {
    const state = this.#fold.get(name);
    return state === undefined ? null : viewOf(state);
  }

  #all(prefix: string): StoredValue[] {
    return [...this.#fold.from(prefix, null)].map((state) => viewOf(state));
  }

  async *#watch(options: ValuesWatchOptions, life: AbortSignal): AsyncGenerator<ValueItem, void, void> {
    const { prefix = "", after, signal } = options;
    const stop = signal === undefined ? life : AbortSignal.any([signal, life]);
    const stopped = Promise.withResolvers<void>();
    stop.addEventListener("abort", () => stopped.resolve(), { once: true });
    let point = after ?? this.#version;
    if (after === undefined) {
      for (const value of this.#all(prefix)) yield { kind: "put", ...value };
      yield { kind: "current", version: point };
    }
    for (let at = 0; !stop.aborted;) {
      const change = this.#changes[at++];
      if (change === undefined) {
        at--;
        await Promise.race([this.#changed.promise, stopped.promise]);
      } else if (change.version > point && change.name.startsWith(prefix)) {
        point = change.version;
        yield change;
      }
    }
  }
}

function viewOf({ name, data, version, atMs, fence }: ValueState): StoredValue {
  return { name, value: parseJson(decoder.decode(data)) as Json, version, updatedAtMs: atMs, ...fence };
}
