// The registry: which island answers at which endpoint. It is part of the roster, so that it changes as the roster does.

import type { RegistryEntries, RegistryEntry } from "./model.ts";
import { normalisedEndpoint } from "./members.ts";

/** The same registry where that changes nothing: then there is nothing to store. An endpoint that answers for another backend by now has moved. */
export function withBackend(registry: RegistryEntries, { backendHash, endpoint }: RegistryEntry): RegistryEntries {
  const entry = { backendHash, endpoint: normalisedEndpoint(endpoint) };
  if (registry.some((known) => isSame(known, entry))) return registry;
  return [...registry.filter((known) => known.endpoint !== entry.endpoint), entry].sort(inOrder);
}

export function withoutBackend(registry: RegistryEntries, { backendHash, endpoint }: RegistryEntry): RegistryEntries {
  const entry = { backendHash, endpoint: normalisedEndpoint(endpoint) };
  const rest = registry.filter((known) => !isSame(known, entry));
  return rest.length === registry.length ? registry : rest;
}

function isSame(a: RegistryEntry, b: RegistryEntry): boolean {
  return a.backendHash === b.backendHash && a.endpoint === b.endpoint;
}

function inOrder(a: RegistryEntry, b: RegistryEntry): number {
  if (a.backendHash !== b.backendHash) return a.backendHash < b.backendHash ? -1 : 1;
  return a.endpoint < b.endpoint ? -1 : 1;
}
