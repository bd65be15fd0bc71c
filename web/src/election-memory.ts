// The elections that this tab has heard of. A node remembers those that it stood in, and only until it is started again; the
// page keeps them all, also over a reload.

import { signal } from "@preact/signals";
import type { ElectionView } from "../../src/client/index.ts";
import { recall, remember } from "./storage.ts";
import { mergedElections } from "./timeline.ts";

const ELECTIONS_MAX = 500;
const KEPT_NAME = "tenure-elections";
let keptClusterId: string | null = kept()?.clusterId ?? null;

/** All that any node has told since the page was opened: one that is started again has forgotten them. Newest first. */
export const elections = signal<readonly ElectionView[]>(kept()?.elections ?? []);

interface Kept {
  readonly clusterId: string;
  readonly elections: readonly ElectionView[];
}

/** A reload forgets nothing; another cluster at the same address begins anew. */
export function keep(clusterId: string, told: readonly ElectionView[]): void {
  const before = keptClusterId === null || keptClusterId === clusterId ? elections.peek() : [];
  const merged = mergedElections([before, told]).slice(0, ELECTIONS_MAX);
  const isNew = merged.length !== before.length || clusterId !== keptClusterId;
  keptClusterId = clusterId;
  elections.value = merged;
  if (isNew) remember(KEPT_NAME, JSON.stringify({ clusterId, elections: merged } satisfies Kept));
}

export function forgetElections(): void {
  keptClusterId = null;
  elections.value = [];
  remember(KEPT_NAME, "");
}

function kept(): Kept | null {
  try {
    const found = JSON.parse(recall(KEPT_NAME) ?? "null") as Kept | null;
    return found !== null && Array.isArray(found.elections) ? found : null;
  } catch {
    return null;
  }
}
