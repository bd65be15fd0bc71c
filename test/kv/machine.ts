// A replicated key-value store, for tests and benchmarks only: what the log is folded into by node.ts, and what the
// linearizability checker, the chaos runs and the benchmarks put under load.
//
// An entry is one command: a put, or a cas that compares first. Commands that can't be read change nothing, on every
// node alike. There is no suppression of duplicates: whoever retries an unknown write may write twice, and must know it.
//
// A cas answers whether it found what it expected. Only the node that proposed it needs that, and picks it up right after
// the entry is applied; results that nobody picks up are dropped, oldest first.

import { crc32 } from "node:zlib";
import { ByteReader, ByteWriter } from "../../src/core/kit/bytes.ts";
import type { StateMachine } from "../../src/ports/state-machine.ts";

export const KEY_BYTES_MAX = 1_024;
export const VALUE_BYTES_MAX = 64 * 1_024;
const CAS_RESULTS_MAX = 65_536;

const PUT = 1;
const CAS = 2;
const SNAPSHOT_VERSION = 1;

export type Command =
  | { readonly kind: "put"; readonly key: string; readonly value: Uint8Array }
  | { readonly kind: "cas"; readonly key: string; readonly expected: Uint8Array; readonly value: Uint8Array };

export type CasResult = "done" | "different" | "missing";

/** Many commands share a buffer. */
const writer = new ByteWriter(64 * 1_024);

export function encodeCommand(command: Command): Uint8Array {
  writer.begin(16 + command.key.length + command.value.length);
  writer.u8(command.kind === "put" ? PUT : CAS);
  writer.text(command.key);
  if (command.kind === "cas") writer.bytes(command.expected);
  writer.bytes(command.value);
  return writer.finish();
}

export class KvMachine implements StateMachine {
  readonly #values = new Map<string, Uint8Array>();
  readonly #casResults = new Map<number, CasResult>();
  #applied = 0;
  #hash = 0;

  get size(): number {
    return this.#values.size;
  }

  /** The last entry that was folded in. */
  get applied(): number {
    return this.#applied;
  }

  /** Over everything that was folded in, in order: nodes that have applied the same must show the same. */
  get hash(): number {
    return this.#hash;
  }

  get(key: string): Uint8Array | null {
    return this.#values.get(key) ?? null;
  }

  /** Once, right after the entry at `index` was applied here. */
  takeCasResult(index: number): CasResult {
    const result = this.#casResults.get(index) ?? "different";
    this.#casResults.delete(index);
    return result;
  }

  apply({ index, data }: { readonly index: number; readonly data: Uint8Array }): void {
    this.#applied = index;
    this.#hash = crc32(data, this.#hash);
    const reader = new ByteReader(data);
    try {
      const kind = reader.u8();
      const key = reader.text(KEY_BYTES_MAX);
      if (kind === PUT) this.#values.set(key, kept(reader));
      else if (kind === CAS) this.#applyCas(index, key, reader);
    } catch {
      // Bytes that are no command: the same on every node, so all of them ignore it.
    }
  }

  snapshot(): Uint8Array {
    const state = new ByteWriter(64 * 1_024);
    state.u8(SNAPSHOT_VERSION);
    state.uint53(this.#applied);
    state.u32(this.#hash);
    state.u32(this.#values.size);
    for (const [key, value] of this.#values) {
      state.text(key);
      state.bytes(value);
    }
    return state.finish();
  }

  restore(data: Uint8Array): void {
    this.#values.clear();
    this.#casResults.clear();
    this.#applied = 0;
    this.#hash = 0;
    // The snapshot of a log in which nothing has happened yet.
    if (data.length === 0) return;
    const reader = new ByteReader(data);
    const version = reader.u8();
    if (version !== SNAPSHOT_VERSION) throw new Error(`a snapshot of version ${version}; this one reads 1`);
    this.#applied = reader.uint53();
    this.#hash = reader.u32();
    for (let left = reader.u32(); left > 0; left--) {
      this.#values.set(reader.text(KEY_BYTES_MAX), kept(reader));
    }
  }

  #applyCas(index: number, key: string, reader: ByteReader): void {
    const expected = reader.bytes(VALUE_BYTES_MAX);
    const present = this.#values.get(key);
    const matches = present !== undefined && Buffer.compare(present, expected) === 0;
    if (matches) this.#values.set(key, kept(reader));
    this.#casResults.set(index, matches ? "done" : present === undefined ? "missing" : "different");
    if (this.#casResults.size > CAS_RESULTS_MAX) this.#casResults.delete(this.#casResults.keys().next().value!);
  }
}

/** A copy: a view would keep alive everything that came in the same message or segment. */
function kept(reader: ByteReader): Uint8Array {
  return reader.bytes(VALUE_BYTES_MAX).slice();
}
