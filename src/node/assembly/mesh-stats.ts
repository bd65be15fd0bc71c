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
  const views = links.lacking() === null ? null : links.views();
  const gone = goneOf(registry);
  const linked = new Set((views ?? []).flatMap(({ controller, connected }) => (connected ? [controller] : [])));
  // Of a site whose nodes are named one by one: one that never answered has not said whose it is, and the site has.
  const spares = new Set(registry.sites().flatMap(({ id, url, urls }) => (linked.has(id) ? [url, ...urls] : [])));
  const parents = (views ?? []).flatMap(({ controller, url, downMs }) =>
    downMs === null || gone.has(controller ?? "") || (controller === null && spares.has(url ?? ""))
      ? []
      : [{ site: controller ?? url ?? "", downMs }],
  );
  const named = new Set(parents.map(({ site }) => site));
  const expired = views === null ? [] : expiredOf(registry).filter((id) => !named.has(id));
  const isOwnForked = registry.own !== null && registry.forkOf(registry.own.line) !== undefined;
  const forked = registry.sites().filter((site) => !site.isEvicted && registry.status(site) === "forked");
  return {
    // This site's own line first: nobody takes anything of it, and only its operator can begin a new one.
    forked: [...(isOwnForked ? [registry.own.controllerId] : []), ...forked.map(({ id }) => id)],
    down: [...parents, ...expired.map((site) => ({ site, downMs: null }))],
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

/** Nobody waits for these: an operator has evicted them, whatever else is known of them, or they have left. */
function goneOf(registry: Registry): ReadonlySet<string> {
  const gone = registry.sites().filter((site) => site.isEvicted || registry.status(site) === "left");
  return new Set(gone.map(({ id }) => id));
}

/** Those that dial this site and are not heard of any more. */
function expiredOf(registry: Registry): readonly string[] {
  return registry.peers().filter((id) => registry.status(registry.site(id)!) === "expired");
}

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
    links: lacking === null ? [] : measuredLinks(registry, links),
  };
}

/** With those that an alert is about, and without those that it must not be about: `tenure_mesh_link_up` is 0 until somebody is back. */
function measuredLinks(registry: Registry, links: readonly LinkView[]): MeshServerStats["links"] {
  if (registry.leftAt !== null) return [];
  const gone = goneOf(registry);
  // A site may have dialled, and be dialled: the connected one says more. Sites that were never reached have no name.
  const bySite = new Map<string, LinkView | null>();
  for (const link of links) {
    const { controller, connected, url } = link;
    if (controller === null || bySite.get(controller)?.connected === true) continue;
    // Without an address it is no link: it only has something on its record.
    if (!connected && (url === null || gone.has(controller))) continue;
    if (bySite.has(controller) || bySite.size < SITES_MEASURED_MAX) bySite.set(controller, link);
  }
  for (const site of expiredOf(registry)) {
    if (!bySite.has(site) && bySite.size < SITES_MEASURED_MAX) bySite.set(site, null);
  }
  return Array.from(bySite, ([site, link]) => ({
    site,
    isConnected: link?.connected ?? false,
    lagEvents: link?.lagEvents ?? 0,
    lagMs: link?.lagMs ?? 0,
    missingEvents: link?.missingEvents ?? 0,
    heardMsAgo: link?.heardMsAgo ?? null,
    roundTripMs: link?.roundTripMs ?? null,
    skewMs: link?.skewMs ?? null,
  }));
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
