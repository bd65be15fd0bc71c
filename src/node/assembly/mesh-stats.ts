// What one node counts of the mesh, gathered at one moment.

import type { MeshFeeder } from "../../controller/mesh/state/feeder.ts";
import { SITES_MEASURED_MAX } from "../../controller/mesh/limits.ts";
import type { Propagation } from "../../controller/mesh/state/propagation.ts";
import type { ReceiptsFold } from "../../controller/mesh/receipts/receipts-fold.ts";
import type { Registry } from "../../core/mesh/registry/index.ts";
import type { MeshLines } from "../../ports/mesh/lines.ts";
import type { LinkView } from "../../ports/mesh/links.ts";
import type { MeshServerStats } from "../../ports/server-stats.ts";

interface MeshCounted {
  readonly fold: Pick<ReceiptsFold, "counts" | "arrival">;
  readonly feeder: Pick<MeshFeeder, "lag">;
  readonly propagation: Propagation;
  readonly registry: Registry;
  readonly lines: MeshLines | undefined;
  readonly links: readonly LinkView[];
}

export function meshStats({ fold, feeder, propagation, registry, lines, links }: MeshCounted): MeshServerStats {
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
    propagation: propagation.snapshot(),
    links: Array.from(bySite, ([site, link]) => ({
      site,
      isConnected: link.connected,
      lagEvents: link.lagEvents,
      missingEvents: link.missingEvents,
      heardMsAgo: link.heardMsAgo,
      roundTripMs: link.roundTripMs,
      skewMs: link.skewMs,
    })),
  };
}
