// How far a watch of values is, and what of a list or of a stream is new to its reader. Pure; the SDK and the electors read streams with it.
//
//   listing: page…, end ──▶ following: take… ──▶ listing again, where the servers do not keep what came next
//
// Invariants: a change is given once, in the order of versions for each name; whoever applies each item has what the servers have, deletions too.

import type { StoredChange, StoredValue, ValueItem } from "../../ports/stored-values.ts";

export class WatchedValues {
  /** From which a stream goes on; null: all values are to be listed. */
  point: number | null;
  /** Versions by name, as they were given. */
  readonly #known = new Map<string, number>();
  /** From the first value on: what was deleted can be found out. */
  readonly #isWhole: boolean;
  /** Of the list that is being read: as of which version it began, and which known names it has not had. */
  #listing: { readonly asOf: number; readonly gone: Set<string> } | undefined;

  constructor(after: number | undefined) {
    this.point = after ?? null;
    this.#isWhole = after === undefined;
  }

  /** How many names it remembers. */
  get kept(): number {
    return this.#known.size;
  }

  /** A list begins anew. */
  beginList(): void {
    this.#listing = undefined;
  }

  /** What of a page is new. */
  page({ values, asOf }: { readonly values: readonly StoredValue[]; readonly asOf: number }): ValueItem[] {
    // Changes since the first page come once more, and are left out where a later page had them.
    const { gone } = (this.#listing ??= { asOf, gone: new Set(this.#known.keys()) });
    const items: ValueItem[] = [];
    for (const value of values) {
      const { name, version } = value;
      gone.delete(name);
      // A list is never older than what was given, but where the history was rewritten (a restored cluster): then its version counts, also a lower one.
      if (this.#known.get(name) === version) continue;
      this.#known.set(name, version);
      items.push({ kind: "put", ...value });
    }
    return items;
  }

  /** After the last page: what there is no more, and that this is all. */
  endList(): ValueItem[] {
    const { asOf, gone } = this.#listing ?? { asOf: 0, gone: new Set<string>() };
    const items: ValueItem[] = [];
    for (const name of gone) {
      this.#known.delete(name);
      items.push({ kind: "deleted", name, version: null, updatedAtMs: null });
    }
    this.point = asOf;
    return [...items, { kind: "current", version: asOf }];
  }

  /** The change of a frame, if its reader has not had it. `id`: the frame's own. */
  take(id: string | undefined, change: StoredChange | undefined): ValueItem | undefined {
    const item = change !== undefined && change.version > (this.point ?? 0) ? this.#changed(change) : undefined;
    // Of changes that were made together the last one has an id: only then all of them are here.
    if (/^\d{1,16}$/.test(id ?? "") && Number.isSafeInteger(Number(id))) this.#pass(Number(id));
    return item;
  }

  #pass(version: number): void {
    this.point = Math.max(this.point ?? 0, version);
    // What comes from now on has higher versions, and nothing will be listed.
    if (this.#isWhole) return;
    for (const [name, known] of this.#known) if (known <= version) this.#known.delete(name);
  }

  #changed(change: StoredChange): ValueItem | undefined {
    if (!this.#isWhole || change.kind === "put") return this.#isNew(change) ? change : undefined;
    // What a list did not have was not given, and is not taken back.
    if (!((this.#known.get(change.name) ?? Infinity) < change.version)) return undefined;
    this.#known.delete(change.name);
    return change;
  }

  #isNew({ name, version }: { readonly name: string; readonly version: number }): boolean {
    if ((this.#known.get(name) ?? 0) >= version) return false;
    this.#known.set(name, version);
    return true;
  }
}
