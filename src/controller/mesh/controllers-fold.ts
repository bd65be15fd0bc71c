// The sites of the mesh as this site's log has them: a tenant of its journal, around the state of core/mesh/registry.

import { Registry, REGISTRY_EVENTS } from "../../core/mesh/registry/index.ts";
import type { ChainEvent } from "../../core/events/index.ts";
import type { Tenant } from "../journal/tenant.ts";

const OWN = new Set<string>(REGISTRY_EVENTS);

export class ControllersFold implements Tenant {
  readonly name = "controllers";
  readonly eventTypes = REGISTRY_EVENTS;
  readonly registry = new Registry();
  readonly #listeners: (() => void)[] = [];

  /** Called after each change of the registry, and after it was restored. */
  onChanged(listener: () => void): void {
    this.#listeners.push(listener);
  }

  apply(event: ChainEvent): void {
    if (!OWN.has(event.eventType)) return;
    this.registry.apply(event);
    this.#notify();
  }

  snapshot(): string | null {
    return this.registry.encode();
  }

  restore(state: string | null): void {
    this.registry.restore(state);
    this.#notify();
  }

  #notify(): void {
    for (const listener of this.#listeners) listener();
  }
}
