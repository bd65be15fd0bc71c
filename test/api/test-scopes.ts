// Scopes in memory, as ports/scopes.ts promises them; leases do not run out by themselves, for no test here waits for one.

import { StaleEpochError, TenureError } from "../../src/core/kit/errors.ts";
import { systemClock } from "../../src/drivers/system/clock.ts";
import type {
  AcquireAnswer,
  AcquireRequest,
  RenewAnswer,
  Scopes,
  ScopeTransition,
  ScopeView,
} from "../../src/ports/scopes.ts";
import type { TestCluster } from "./test-cluster.ts";

interface Held {
  session: string;
  view: NonNullable<ScopeView["holder"]>;
}

interface Scope {
  epoch: number;
  held: Held | null;
  history: ScopeTransition[];
}

export class TestScopes implements Scopes {
  readonly #cluster: TestCluster;
  readonly #scopes = new Map<string, Scope>();
  readonly #listeners = new Set<() => void>();
  #index = 100;

  constructor(cluster: TestCluster) {
    this.#cluster = cluster;
  }

  fingerprint(): string {
    return JSON.stringify([...this.#scopes]);
  }

  get waiting(): number {
    return this.#listeners.size;
  }

  async acquire(request: AcquireRequest, signal: AbortSignal): Promise<AcquireAnswer> {
    this.#requireLeader();
    const { scope, session, waitMs } = request;
    const isFree = (): boolean => {
      const held = this.#scopes.get(scope)?.held ?? null;
      return held === null || held.session === session;
    };
    if (!isFree() && waitMs > 0) await this.#until(isFree, signal, waitMs);
    const found = this.#scopes.get(scope);
    if (signal.aborted || !isFree()) {
      const holder = found?.held?.view ?? null;
      return {
        granted: false,
        holder: holder === null ? null : { epoch: holder.epoch, identity: holder.identity, metadata: holder.metadata },
      };
    }
    if (found !== undefined && found.held !== null)
      return { granted: true, epoch: found.epoch, ttlMs: found.held.view.ttlMs };
    return this.#grant(request);
  }

  async renew(scope: string, session: string, epoch: number): Promise<RenewAnswer> {
    this.#requireLeader();
    const held = this.#heldBy(scope, session, epoch);
    if (held === null) throw new StaleEpochError(scope, epoch);
    return { epoch, ttlMs: held.view.ttlMs, resignRequested: held.view.resignRequested };
  }

  async resign(scope: string, session: string, epoch: number): Promise<void> {
    this.#requireLeader();
    if (this.#heldBy(scope, session, epoch) !== null) this.#free(scope, "resigned");
  }

  async askResign(scope: string, force: boolean): Promise<{ epoch: number } | null> {
    this.#requireLeader();
    const found = this.#scopes.get(scope);
    if (found === undefined || found.held === null) return null;
    const { epoch } = found;
    if (force) this.#free(scope, "forced");
    else found.held.view = { ...found.held.view, resignRequested: true };
    return { epoch };
  }

  list(after: string | null, limit: number): readonly ScopeView[] {
    const names = [...this.#scopes.keys()].sort().filter((scope) => after === null || scope > after);
    return names.slice(0, limit).map((scope) => this.get(scope)!);
  }

  get(scope: string): ScopeView | null {
    const found = this.#scopes.get(scope);
    return found === undefined ? null : { scope, epoch: found.epoch, holder: found.held?.view ?? null };
  }

  history(scope: string): readonly ScopeTransition[] {
    return this.#scopes.get(scope)?.history ?? [];
  }

  async changed(
    scope: string,
    known: { epoch: number; held: boolean },
    signal: AbortSignal,
  ): Promise<ScopeView | null> {
    const differs = (): boolean => {
      const view = this.get(scope);
      return (view?.epoch ?? 0) !== known.epoch || ((view?.holder ?? null) !== null) !== known.held;
    };
    await this.#until(differs, signal);
    return this.get(scope);
  }

  #grant({ scope, session, identity, metadata, ttlMs }: AcquireRequest): AcquireAnswer {
    const epoch = ++this.#index;
    const found = this.#scopes.get(scope) ?? { epoch: 0, held: null, history: [] };
    found.epoch = epoch;
    found.held = { session, view: { epoch, identity, metadata, ttlMs, acquiredAtMs: 1_000, resignRequested: false } };
    found.history.unshift({ atMs: 1_000, epoch, identity, reason: "acquired", heldMs: null });
    this.#scopes.set(scope, found);
    this.#tell();
    return { granted: true, epoch, ttlMs };
  }

  #free(scope: string, reason: ScopeTransition["reason"]): void {
    const found = this.#scopes.get(scope)!;
    const { identity } = found.held!.view;
    found.held = null;
    found.history.unshift({ atMs: 2_000, epoch: found.epoch, identity, reason, heldMs: 1_000 });
    this.#tell();
  }

  #heldBy(scope: string, session: string, epoch: number): Held | null {
    const found = this.#scopes.get(scope);
    return found !== undefined && found.epoch === epoch && found.held?.session === session ? found.held : null;
  }

  #until(isSo: () => boolean, signal: AbortSignal, waitMs?: number): Promise<void> {
    return new Promise((resolve) => {
      const look = (): void => {
        if (isSo() || signal.aborted) done();
      };
      const done = (): void => {
        this.#listeners.delete(look);
        timer?.cancel();
        signal.removeEventListener("abort", look);
        resolve();
      };
      const timer = waitMs === undefined ? undefined : systemClock.setTimer(systemClock.monotonicMs() + waitMs, done);
      this.#listeners.add(look);
      signal.addEventListener("abort", look);
      look();
    });
  }

  #tell(): void {
    for (const look of this.#listeners) look();
  }

  #requireLeader(): void {
    if (this.#cluster.role !== "LEADER") throw new TenureError("NOT_LEADER", "this node does not lead");
  }
}
