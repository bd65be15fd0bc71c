// Changes of the registry. The leader alone writes, one change after the other; everybody else forwards, once. A change is shown when all that are
// listed have stored it, or is undone before anybody has shown it.

import type { PeerKey } from "../../core/kit/ids.ts";
import {
  comparePositions,
  normalisedEndpoint,
  positionOf,
  type QuorumLeader,
  type RegistryChange,
  type RegistryEntries,
  type RegistryEntry,
  withBackend,
  withoutBackend,
} from "../../core/lease/index.ts";
import { REGISTRY_ENTRIES_MAX } from "../../core/lease/limits.ts";
import type { CoordinatorRequest, RegistryAnswer } from "../../ports/coordinators.ts";
import type { CoordinatorContext } from "./context.ts";
import type { Leading } from "./leading.ts";
import { REGISTRY_FORWARDED_MS, REGISTRY_STORED_MS, REGISTRY_TURN_MS, REGISTRY_UNDONE_MS } from "./limits.ts";

export type RegistryRequest = Extract<CoordinatorRequest, { kind: "registry" }>;

export class RegistryWrites {
  readonly #context: CoordinatorContext;
  readonly #leading: () => Leading | null;
  #last: Promise<unknown> = Promise.resolve();

  constructor(context: CoordinatorContext, leading: () => Leading | null) {
    this.#context = context;
    this.#leading = leading;
  }

  async write(request: RegistryRequest): Promise<RegistryAnswer> {
    const leading = this.#leading();
    if (leading?.isOpen === true) {
      const untilMs = this.#context.now().monotonicMs + REGISTRY_TURN_MS;
      const turn = this.#last.then(() => this.#inTurn(untilMs, leading, request));
      this.#last = turn.catch(() => undefined);
      return turn;
    }
    const leaderEndpoint = this.#context.desk.leader?.endpoint ?? null;
    if (request.isForwarded || leaderEndpoint === null || leaderEndpoint === this.#context.options.endpoint)
      return { kind: "not-leader", leaderEndpoint };
    const forwarded = await this.#context.call(
      leaderEndpoint,
      { ...request, isForwarded: true },
      REGISTRY_FORWARDED_MS,
    );
    // It may have been written, and its answer lost.
    return forwarded ?? { kind: "unknown" };
  }

  /**
   * Each change asks all members first, and one of them may be silent: changes come faster than that, from nodes that register themselves again. None
   * is made long after whoever asked for it has given up.
   */
  async #inTurn(untilMs: number, leading: Leading, request: RegistryRequest): Promise<RegistryAnswer> {
    const isLate = this.#context.now().monotonicMs > untilMs;
    return isLate ? { kind: "not-leader", leaderEndpoint: null } : this.#change(leading, request);
  }

  async #change(leading: Leading, { change, entry }: RegistryRequest): Promise<RegistryAnswer> {
    const { leader } = leading;
    const { peers: listed, missing, backends } = await leading.preflight();
    if (missing.length > 0) return { kind: "not-replicated", missing };
    // A guard against a mistake, not against malice: an endpoint that is no listed member's is believed.
    const own = backends.get(normalisedEndpoint(entry.endpoint)) ?? entry.backendHash;
    if (change === "register" && own !== entry.backendHash) return { kind: "other-backend" };
    const begin = (): RegistryChange | "same" | "full" | null => {
      const next = changed(leader.roster.registry, change, entry);
      // Anybody's request: what is too much is refused, and no invariant of this node's.
      if (next.length > REGISTRY_ENTRIES_MAX) return "full";
      if (next === leader.roster.registry) return leader.committed === leader.roster ? "same" : null;
      return leader.changeRegistry(this.#context.now(), next, listed);
    };
    let begun: ReturnType<typeof begin> = null;
    await this.#context.until(() => (begun ??= begin()) !== null || leader.over !== null, REGISTRY_TURN_MS);
    const started = begun as ReturnType<typeof begin>;
    if (started === "full") return { kind: "full" };
    if (started !== null && started !== "same")
      this.#context.options.news({ kind: "registry", term: leader.term, change: started });
    if (started === null) return { kind: "not-leader", leaderEndpoint: null };
    const unstored = started === "same" ? [] : await this.#settle(leader, started);
    if (started !== "same" && started.state === "undone")
      return { kind: "not-replicated", missing: leading.endpointsOf(unstored) };
    if (started !== "same" && started.state !== "shown") return { kind: "unknown" };
    return this.#shown(leader);
  }

  /** Returns who had not stored it when it was given up. */
  async #settle(leader: QuorumLeader, change: RegistryChange): Promise<readonly PeerKey[]> {
    this.#context.changed();
    const isOver = (): boolean => leader.over !== null || change.state === "shown" || change.state === "undone";
    if (await this.#context.until(isOver, REGISTRY_STORED_MS)) return [];
    const unstored = leader.unstoredOf(change);
    leader.undoRegistry(change);
    this.#context.changed();
    await this.#context.until(isOver, REGISTRY_UNDONE_MS);
    return unstored;
  }

  /** Answered when this node shows it: followers do so with the next renewal. */
  async #shown(leader: QuorumLeader): Promise<RegistryAnswer> {
    const position = positionOf(leader.roster);
    const isShown = (): boolean => {
      const { shown } = this.#context.desk.ledger;
      return shown !== null && comparePositions(shown, position) >= 0;
    };
    const isInTime = await this.#context.until(() => isShown() || leader.over !== null, REGISTRY_TURN_MS);
    const registry = this.#context.desk.ledger.shown?.registry ?? [];
    return isInTime && isShown() ? { kind: "done", registry } : { kind: "unknown" };
  }
}

function changed(registry: RegistryEntries, change: "register" | "unregister", entry: RegistryEntry): RegistryEntries {
  return change === "register" ? withBackend(registry, entry) : withoutBackend(registry, entry);
}
