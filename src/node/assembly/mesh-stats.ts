// What one node counts of the mesh, gathered at one moment.

import type { MeshFeeder } from "../../controller/mesh/state/feeder.ts";
import { SITES_MEASURED_MAX } from "../../controller/mesh/limits.ts";
import { OTHERS, type Propagation } from "../../controller/mesh/state/propagation.ts";
import type { ReceiptsFold } from "../../controller/mesh/receipts/receipts-fold.ts";
import type { Registry } from "../../core/mesh/registry/index.ts";
import type { MeshLines } from "../../ports/mesh/lines.ts";
import type { MeshSeen } from "../../core/health/mesh.ts";
import type { LinkView, MeshLinks } from "../../ports/mesh/links.ts";
import type { MeshServerStats } from "../../ports/server-stats.ts";

/** What alerts are made of; null: this site has left its mesh. Only the leader has links. */
export function meshSeen(registry: Registry, links: MeshLinks, maxSkewMs: number): MeshSeen | null {
  if (registry.leftAt !== null) return null;
  const statuses = new Map(registry.sites().map((site) => [site.id, registry.status(site)]));
  const views = links.lacking() === null ? null : links.views();
  const isKept = (site: string | null): boolean => !GONE.has(statuses.get(site ?? "") ?? "registered");
  const parents = (views ?? []).flatMap(({ controller, url, downMs }) =>
    downMs !== null && isKept(controller) ? [{ site: controller ?? url ?? "", downMs }] : [],
  );
  const expired = views === null ? [] : registry.peers().filter((id) => statuses.get(id) === "expired");
  const named = new Set(parents.map(({ site }) => site));
  return {
    forked: [...statuses].flatMap(([id, status]) => (status === "forked" ? [id] : [])),
    down: [...parents, ...expired.filter((id) => !named.has(id)).map((site) => ({ site, downMs: null }))],
    late: (views ?? []).flatMap(({ controller: site, lagEvents, lagMs, missingEvents, missingMs }) =>
      site === null
        ? []
        : [
            {
              site,
              ...(lagMs >= missingMs ? { events: lagEvents, ms: lagMs } : { events: missingEvents, ms: missingMs }),
            },
          ],
    ),
    skews: (views ?? []).flatMap(({ controller: site, skewMs }) =>
      site === null || skewMs === null ? [] : [{ site, skewMs }],
    ),
    maxSkewMs,
  };
}

/** Nobody waits for these. */
const GONE: ReadonlySet<string> = new Set(["evicted", "left"]);

interface MeshCounted {
  readonly fold: Pick<ReceiptsFold, "counts" | "arrival">;
  readonly feeder: Pick<MeshFeeder, "lag">;
  readonly propagation: Propagation;
  readonly registry: Registry;
  readonly lines: MeshLines | undefined;
  readonly links: readonly LinkView[];
  readonly lacking: ReturnType<MeshLinks["lacking"]>;
}

export function meshStats({
  fold,
  feeder,
  propagation,
  registry,
  lines,
  links,
  lacking,
}: MeshCounted): MeshServerStats {
  const { pages, events } = fold.counts;
  const refused: Record<string, number> = {};
  for (const { blamed } of links) {
    for (const [reason, count] of Object.entries(blamed)) refused[reason] = (refused[reason] ?? 0) + count;
  }
  // A site may have dialled, and be dialled: the connected one says more. Sites that were never reached have no name.
  const bySite = new Map<string, LinkView>();
  for (const link of links) {
    const { controller } = link;
    if (controller === null || bySite.get(controller)?.connected === true) continue;
    if (bySite.has(controller) || bySite.size < SITES_MEASURED_MAX) bySite.set(controller, link);
  }
  return {
    arrival: fold.arrival,
    viewsLag: feeder.lag,
    receipts: { pages, events },
    refused,
    forks: registry.sites().flatMap((site) => site.lines.filter(({ line }) => registry.forkOf(line) !== undefined))
      .length,
    isSigning: lines?.status().kind === "signing",
    sources: sourcesOf(registry, lacking),
    propagation: propagation.snapshot(),
    links: Array.from(bySite, ([site, link]) => ({
      site,
      isConnected: link.connected,
      lagEvents: link.lagEvents,
      lagMs: link.lagMs,
      missingEvents: link.missingEvents,
      heardMsAgo: link.heardMsAgo,
      roundTripMs: link.roundTripMs,
      skewMs: link.skewMs,
    })),
  };
}

/** Each site that is registered, at most SITES_MEASURED_MAX by name: the others are counted together. On a node without links: none. */
function sourcesOf(registry: Registry, lacking: MeshCounted["lacking"]): MeshServerStats["sources"] {
  if (lacking === null) return [];
  const bySite = new Map<string, { missingEvents: number; missingMs: number }>();
  for (const { id, lines } of registry.sites()) {
    const name = bySite.size < SITES_MEASURED_MAX ? id : OTHERS;
    const sum = bySite.get(name) ?? { missingEvents: 0, missingMs: 0 };
    for (const { line } of lines) {
      const { events, ms } = lacking.get(line) ?? { events: 0, ms: 0 };
      sum.missingEvents += events;
      sum.missingMs = Math.max(sum.missingMs, Math.round(ms));
    }
    bySite.set(name, sum);
  }
  return Array.from(bySite, ([site, sum]) => ({ site, ...sum }));
}
