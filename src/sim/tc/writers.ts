// Those who change the registry: backends that are registered, moved to another hash and unregistered, at any node, one change at a time for each
// endpoint. What may be there in the end follows from the answers.

import { reached } from "../kernel/index.ts";
import type { RegistryAnswer } from "../../ports/coordinators.ts";
import type { Random } from "../../core/kit/random.ts";
import type { Stage } from "./stage.ts";

const ENDPOINTS = 6;

interface Backend {
  readonly endpoint: string;
  /** Hashes that it may be registered with; null: none. More than one: an answer was lost, and it is not touched again. */
  possible: readonly (string | null)[];
  isBusy: boolean;
}

export class Writers {
  writes = 0;
  readonly #stage: Stage;
  readonly #backends: Backend[] = Array.from({ length: ENDPOINTS }, (_, at) => ({
    endpoint: `backend-${at}`,
    possible: [null],
    isBusy: false,
  }));
  #hashes = 0;
  #epoch = 0;

  constructor(stage: Stage) {
    this.#stage = stage;
  }

  begin(random: Random): void {
    const { scheduler, nowMs } = this.#stage.world;
    const everyMs = this.#stage.knobs.writeEveryMs * random.between(0.5, 1.5);
    scheduler.schedule(nowMs + everyMs, scheduler.owner("writers"), () => {
      if (this.#stage.isCalm) return;
      this.write(random);
      this.begin(random);
    });
  }

  /** False: there was nobody to ask. */
  write(random: Random): boolean {
    const backend = random.pick(this.#backends);
    const { names } = this.#stage;
    const node = this.#stage.node(random.pick(names));
    if (node === undefined || backend.isBusy || backend.possible.length > 1) return false;
    const [known = null] = backend.possible;
    const isRemoval = known !== null && random.chance(0.3);
    const backendHash = isRemoval ? known : `hash-${++this.#hashes}`;
    const entry = { backendHash, endpoint: backend.endpoint };
    const change = isRemoval ? "unregister" : "register";
    backend.isBusy = true;
    const before = backend.possible;
    const after = isRemoval ? null : backendHash;
    // Until it is answered: a node that dies never answers.
    backend.possible = [known, after];
    const epoch = this.#epoch;
    this.#stage.world.call(node.name, () => {
      const request = { kind: "registry", change, entry, isForwarded: false } as const;
      void node.coordinator.answer(node.name, request).then((answer) => {
        if (!node.boot.isAlive() || epoch !== this.#epoch) return;
        this.#answered(backend, before, after, answer);
      });
    });
    return true;
  }

  #answered(backend: Backend, before: Backend["possible"], after: string | null, answer: RegistryAnswer): void {
    const { probes, refusedBackends } = this.#stage.oracle;
    this.#stage.world.scheduler.trace("registry", answer.kind);
    this.#stage.world.scheduler.narrate("writers", () => `${backend.endpoint} ${after}: ${answer.kind}`);
    switch (answer.kind) {
      case "done":
        this.writes++;
        reached(probes, "registry-written");
        backend.possible = [after];
        break;
      case "not-replicated":
      case "not-leader":
      case "full":
      case "other-backend":
        if (answer.kind === "not-replicated") reached(probes, "registry-refused");
        if (after !== null) refusedBackends.add(after);
        backend.possible = before;
        this.#checkUndone(backend);
        break;
      case "unknown":
        reached(probes, "registry-unknown");
        break;
    }
    backend.isBusy = false;
  }

  /** What was there before is there again, as whoever leads has it: one that was stopped for long may know an older roster. */
  #checkUndone({ endpoint, possible }: Backend): void {
    const { nodes, world } = this.#stage;
    const leader = nodes.find(({ coordinator }) => coordinator.leads !== null);
    const leadership = leader?.coordinator.leadership ?? null;
    if (leader === undefined || leadership === null || leadership.committed !== leadership.roster) return;
    const hash = leadership.roster.registry.find((entry) => entry.endpoint === endpoint)?.backendHash ?? null;
    const isRight = possible.length === 0 || possible.includes(hash);
    if (!isRight) world.report(leader.name, `${endpoint} is ${hash} after a change was undone, not ${possible.join()}`);
  }

  /** A recovery, or another founding: what was acknowledged before may be lost, what was refused may be there. */
  forget(): void {
    this.#stage.oracle.refusedBackends.clear();
    this.#epoch++;
    for (const backend of this.#backends) {
      backend.possible = [];
      backend.isBusy = true;
    }
  }

  /** What the registry of all has and should not have, or the other way around. */
  difference(): string | null {
    for (const { name, coordinator } of this.#stage.nodes) {
      const registry = coordinator.ledger.shown?.registry ?? [];
      for (const { endpoint, possible } of this.#backends) {
        const shown = registry.filter((entry) => entry.endpoint === endpoint).map(({ backendHash }) => backendHash);
        if (shown.length > 1) return `${name} shows ${endpoint} twice`;
        if (possible.length === 0) continue;
        if (!possible.includes(shown[0] ?? null))
          return `${name} shows ${endpoint} as ${shown[0] ?? "nothing"}, and it can only be ${possible.join(" or ")}`;
      }
    }
    return null;
  }
}
