// The state machine of the simulated cluster: a hash over everything applied, and a map of keys, so that
// equal state at an equal index can be compared in one number and reads have something to return.

import type { StateMachine } from "../../ports/state-machine.ts";

/** A client's write, `key=id`; ids are unique in a run. */
export function writeCommand(key: string, id: number, paddingBytes: number): Uint8Array {
  return new TextEncoder().encode(`${key}=${id}${".".repeat(paddingBytes)}`);
}

export function hashBytes(bytes: Uint8Array, seed: number): number {
  let hash = seed ^ bytes.length;
  for (const byte of bytes) hash = Math.imul(hash ^ byte, 0x01000193);
  return hash >>> 0;
}

export class HashMachine implements StateMachine {
  #hash = 0;
  #index = 0;
  readonly #values = new Map<string, string>();
  readonly #onApply: (index: number, term: number, data: Uint8Array, hash: number) => void;

  constructor(onApply: (index: number, term: number, data: Uint8Array, hash: number) => void) {
    this.#onApply = onApply;
  }

  get hash(): number {
    return this.#hash;
  }

  /** The last entry that changed the state. */
  get index(): number {
    return this.#index;
  }

  get(key: string): string | undefined {
    return this.#values.get(key);
  }

  apply(entry: { readonly index: number; readonly term: number; readonly data: Uint8Array }): void {
    this.#hash = hashBytes(entry.data, Math.imul(this.#hash + entry.index, 0x9e3779b1));
    this.#index = entry.index;
    const [key, value] = new TextDecoder().decode(entry.data).split("=");
    this.#values.set(key!, value ?? "");
    this.#onApply(entry.index, entry.term, entry.data, this.#hash);
  }

  snapshot(): Uint8Array {
    const values = [...this.#values].sort(([a], [b]) => (a < b ? -1 : 1));
    return new TextEncoder().encode(JSON.stringify({ hash: this.#hash, index: this.#index, values }));
  }

  restore(data: Uint8Array): void {
    this.#values.clear();
    if (data.length === 0) {
      this.#hash = 0;
      this.#index = 0;
      return;
    }
    const state = JSON.parse(new TextDecoder().decode(data)) as {
      hash: number;
      index: number;
      values: [string, string][];
    };
    this.#hash = state.hash;
    this.#index = state.index;
    for (const [key, value] of state.values) this.#values.set(key, value);
  }
}
