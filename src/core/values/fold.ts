// All values, folded from the log: what is applied on this node. Equal on every node at the same position.

import { ByteReader, ByteWriter, DecodeError } from "../kit/bytes.ts";
import { VALUES_MAX } from "../kit/limits.ts";
import type { Pieces } from "../kit/pieces.ts";
import { SortedNames } from "../kit/keyed/sorted-names.ts";
import { VALUES_PIECE_BYTES } from "./limits.ts";
import { readValue, writeValue } from "./value-codec.ts";
import { evolveValue, type ValueEvent, type ValueState, weighValue } from "./value-state.ts";

/** What decisions look at: the applied values, or the leader's head on top of them. */
export interface ValuesReader {
  get(name: string): ValueState | undefined;
  readonly size: number;
  /** Of names and contents. */
  readonly bytes: number;
}

export class ValuesFold implements ValuesReader {
  readonly #values = new Map<string, ValueState>();
  #names = new SortedNames();
  #bytes = 0;

  get size(): number {
    return this.#values.size;
  }

  get bytes(): number {
    return this.#bytes;
  }

  get(name: string): ValueState | undefined {
    return this.#values.get(name);
  }

  /** By name, those that begin with `prefix` and come after the name `after`. Nothing may change meanwhile. */
  *from(prefix: string, after: string | null): Generator<ValueState, void, void> {
    for (const name of this.#names.from(prefix, after)) yield this.#values.get(name)!;
  }

  /** Whether the event makes sense here: what is not there can't be deleted. */
  fits(event: ValueEvent): boolean {
    return event.kind === "value-put" || this.#values.has(event.name);
  }

  /** One that fits. */
  evolve(event: ValueEvent, version: number): void {
    const before = this.#values.get(event.name) ?? null;
    const after = evolveValue(event, version);
    this.#bytes += weighValue(after)[1] - weighValue(before)[1];
    if (after === null) {
      this.#values.delete(event.name);
      this.#names.remove(event.name);
      return;
    }
    this.#values.set(event.name, after);
    if (before === null) this.#names.add(event.name);
  }

  /** Fixed in this turn, made as it is asked for; by name. */
  snapshot(): Pieces {
    const values = this.#names.page(null, this.size).map((name) => this.#values.get(name)!);
    return pieces(values);
  }

  restore(bytes: Uint8Array): void {
    const values = readAll(new ByteReader(bytes));
    this.#values.clear();
    this.#bytes = 0;
    for (const value of values) {
      this.#values.set(value.name, value);
      this.#bytes += weighValue(value)[1];
    }
    this.#names = new SortedNames(values.map(({ name }) => name));
  }
}

function* pieces(values: readonly ValueState[]): Generator<Uint8Array, void, void> {
  const writer = new ByteWriter(2 * VALUES_PIECE_BYTES);
  writer.u32(values.length);
  for (const value of values) {
    writeValue(writer, value);
    if (writer.lengthBytes >= VALUES_PIECE_BYTES) yield writer.lend();
  }
  if (writer.lengthBytes > 0) yield writer.lend();
}

function readAll(reader: ByteReader): readonly ValueState[] {
  if (reader.remainingBytes === 0) return [];
  const count = reader.u32();
  if (count > VALUES_MAX) throw new DecodeError("malformed", `${count} values where ${VALUES_MAX} are allowed`);
  const values = Array.from({ length: count }, () => readValue(reader));
  if (values.some(({ name }, at) => at > 0 && name <= values[at - 1]!.name))
    throw new DecodeError("malformed", "values out of order");
  if (reader.remainingBytes > 0) throw new DecodeError("malformed", `${reader.remainingBytes} bytes after the values`);
  return values;
}
