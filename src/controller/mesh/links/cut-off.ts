// Which sites had a link here and have none now. Those that know this site only through others never had one, and are not cut off.

import type { Registry } from "../../../core/mesh/registry/index.ts";
import type { Clock } from "../../../ports/clock.ts";
import type { CutOffView } from "../../../ports/mesh/links.ts";
import type { LinkViews } from "./link-views.ts";

export interface CutOffOptions {
  readonly clock: Pick<Clock, "monotonicMs">;
  readonly registry: Pick<Registry, "leftAt" | "peers" | "site" | "sites" | "status">;
  readonly links: Pick<LinkViews, "traceOf" | "beganMs">;
  /** By site, since this node leads: of before that the registry knows only when a site has registered. */
  readonly heardMsAgo: ReadonlyMap<string, number>;
}

/** By site: those that have registered here themselves, and configured parents. A site that has left, or was evicted, is not waited for. */
export function cutOffSites(options: CutOffOptions): ReadonlyMap<string, CutOffView> {
  const { clock, registry, links, heardMsAgo } = options;
  if (registry.leftAt !== null) return new Map();
  const nowMs = clock.monotonicMs();
  const ledMs = nowMs - links.beganMs;
  const peers = new Set(registry.peers());
  const cut = new Map<string, CutOffView>();
  for (const site of registry.sites()) {
    const status = registry.status(site);
    const trace = links.traceOf(site.id, [site.url, ...site.urls]);
    const isOver = site.isEvicted || status === "left";
    if (isOver || trace.isLinked || !(trace.isParent || peers.has(site.id))) continue;
    const beatMs = heardMsAgo.get(site.id);
    const isBeating = beatMs !== undefined;
    // A site may register, send heartbeats and never open a stream.
    if (trace.heardAtMs === null && !trace.isParent && isBeating && status !== "expired") continue;
    const heardMs = Math.min(trace.heardAtMs === null ? Infinity : nowMs - trace.heardAtMs, beatMs ?? Infinity);
    const isHeard = heardMs !== Infinity;
    cut.set(site.id, { ms: Math.round(isHeard ? heardMs : ledMs), heardMsAgo: isHeard ? Math.round(heardMs) : null });
  }
  return cut;
}
