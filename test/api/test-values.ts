// Values in memory, as ports/values.ts promises them: versions, conditions, pages, changes of which only the last are kept.

import { TenureError, StaleEpochError, VersionConflictError } from "../../src/core/kit/errors.ts";
import type { Json } from "../../src/core/kit/json.ts";
import { VALUES_PAGE_BYTES_MAX } from "../../src/core/kit/limits.ts";
import type {
  ValueChange,
  ValueChanges,
  ValueDelete,
  ValueDeleted,
  ValuePut,
  Values,
  ValuesList,
  ValuesPage,
  ValueView,
} from "../../src/ports/values.ts";
import type { TestCluster } from "./test-cluster.ts";
import type { TestScopes } from "./test-scopes.ts";

export class TestValues implements Values {
  readonly #cluster: TestCluster;
  readonly #scopes: TestScopes;
  readonly #values = new Map<string, ValueView>();
  readonly #listeners = new Set<() => void>();
  /** Names of values, and the transactions that have locked them. */
  readonly lockedBy = new Map<string, string>();
  #changes: ValueChange[] = [];
  /** Changes up to here are not kept. */
  #forgotten = 0;
  #version = 100;

  constructor(cluster: TestCluster, scopes: TestScopes) {
    this.#cluster = cluster;
    this.#scopes = scopes;
  }

  fingerprint(): string {
    return JSON.stringify([...this.#values]);
  }

  get watching(): number {
    return this.#listeners.size;
  }

  get version(): number {
    return this.#version;
  }

  /** As a transaction will: all in one record. */
  putTogether(values: Readonly<Record<string, Json>>): void {
    const version = ++this.#version;
    for (const [name, value] of Object.entries(values)) {
      const view = { name, value, version, updatedAtMs: 1_000 + version, fence: null, pendingTxn: null };
      this.#values.set(name, view);
      this.#changes.push({ ...view, kind: "put" });
    }
    this.#tell();
  }

  /** As a node that was restarted from a snapshot. */
  forgetChanges(): void {
    this.#changes = [];
    this.#forgotten = this.#version;
    this.#tell();
  }

  async put({ name, value, ifVersion, fence }: ValuePut): Promise<{ readonly version: number }> {
    this.#check(name, ifVersion, fence);
    const view = { name, value, version: ++this.#version, updatedAtMs: 1_000 + this.#version, fence, pendingTxn: null };
    this.#values.set(name, view);
    this.#changed({ ...view, kind: "put" });
    return { version: view.version };
  }

  async delete({ name, ifVersion, fence }: ValueDelete): Promise<ValueDeleted> {
    this.#check(name, ifVersion, fence);
    if (!this.#values.delete(name)) return { deleted: false, version: null };
    const version = ++this.#version;
    this.#changed({ kind: "deleted", name, version, updatedAtMs: 1_000 + version });
    return { deleted: true, version };
  }

  get(name: string): ValueView | null {
    const view = this.#values.get(name);
    return view === undefined ? null : this.#shown(view);
  }

  list({ prefix, after, limit }: ValuesList): ValuesPage {
    const all = [...this.#values.values()]
      .filter(({ name }) => name.startsWith(prefix) && (after === null || name > after))
      .sort((a, b) => (a.name < b.name ? -1 : 1));
    const page: ValueView[] = [];
    let bytes = 0;
    for (const one of all.slice(0, limit)) {
      bytes += JSON.stringify(one.value).length;
      if (page.length > 0 && bytes > VALUES_PAGE_BYTES_MAX) break;
      page.push(this.#shown(one));
    }
    return { values: page, next: page.length < all.length ? page.at(-1)!.name : null, asOf: this.#version };
  }

  changes(prefix: string, after: number, limit: number): ValueChanges | null {
    if (after < this.#forgotten) return null;
    const all = this.#changes.filter(({ name, version }) => version > after && name.startsWith(prefix));
    // And the others of the last one's version.
    const changes = all.filter((one, at) => at < limit || one.version === all[limit - 1]!.version);
    return { changes, through: changes.length < all.length ? changes.at(-1)!.version : this.#version };
  }

  changed(prefix: string, after: number, signal: AbortSignal): Promise<number> {
    return new Promise((resolve) => {
      const look = (): void => {
        const found = this.changes(prefix, after, 1);
        if (!signal.aborted && found !== null && found.changes.length === 0) return;
        this.#listeners.delete(look);
        signal.removeEventListener("abort", look);
        resolve(found === null || found.changes.length > 0 ? after : found.through);
      };
      this.#listeners.add(look);
      signal.addEventListener("abort", look);
      look();
    });
  }

  #shown(view: ValueView): ValueView {
    const pendingTxn = this.lockedBy.get(view.name);
    return pendingTxn === undefined ? view : { ...view, pendingTxn };
  }

  #check(name: string, ifVersion: number | null, fence: ValuePut["fence"]): void {
    if (this.#cluster.role !== "LEADER") throw new TenureError("NOT_LEADER", "this node does not lead");
    if (this.lockedBy.has(name)) throw new TenureError("txn_locked", `the value "${name}" is locked`);
    if (fence !== null) {
      const held = this.#scopes.get(fence.scope)?.holder?.epoch;
      if (held !== fence.epoch) throw new StaleEpochError(fence.scope, fence.epoch);
    }
    const version = this.#values.get(name)?.version ?? null;
    if (ifVersion === null || ifVersion === (version ?? 0)) return;
    throw new VersionConflictError(name, version);
  }

  #changed(change: ValueChange): void {
    this.#changes.push(change);
    this.#tell();
  }

  #tell(): void {
    for (const look of this.#listeners) look();
  }
}
