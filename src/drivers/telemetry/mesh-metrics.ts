// The metrics of a site among other sites. A standalone site shows none of them.

import type { MeshServerStats } from "../../ports/server-stats.ts";
import { buckets, by, labelled, type Sample, type ServerMetric } from "./metric-kit.ts";

export const MESH_METRICS: readonly ServerMetric[] = [
  ofMesh(
    "tenure_mesh_propagation_ms",
    "histogram",
    "From an event's own time to this site's leader having it, by source site.",
    ({ propagation }) =>
      propagation.flatMap(({ site, histogram }) => buckets("tenure_mesh_propagation_ms", histogram, { site })),
  ),
  ofMesh("tenure_mesh_pages_total", "counter", "Pages of other sites that were applied here.", ({ receipts }) => [
    { labels: {}, value: receipts.pages },
  ]),
  ofMesh("tenure_mesh_events_total", "counter", "Events of other sites that were applied here.", ({ receipts }) => [
    { labels: {}, value: receipts.events },
  ]),
  ofMesh("tenure_mesh_refused_total", "counter", "What other sites delivered out of order, by reason.", ({ refused }) =>
    by("reason", refused),
  ),
  ofMesh("tenure_mesh_forks", "gauge", "Lines of other sites that are proven to have forked.", ({ forks }) => [
    { labels: {}, value: forks },
  ]),
  ofMesh("tenure_mesh_signing", "gauge", "1 while this node signs for its site, else 0.", ({ isSigning }) => [
    { labels: {}, value: isSigning ? 1 : 0 },
  ]),
  ofMesh("tenure_mesh_link_up", "gauge", "1 while the link to a site is connected, else 0.", ({ links }) =>
    links.map(({ site, isConnected }) => ({ labels: { site }, value: isConnected ? 1 : 0 })),
  ),
  ofLinks("tenure_mesh_lag_events", "Events that are here and not yet at a linked site.", "lagEvents"),
  ofLinks("tenure_mesh_lag_ms", "The age of the oldest of these that the linked site has asked for.", "lagMs"),
  ofLinks("tenure_mesh_missing_events", "Events that a linked site has and that are not here yet.", "missingEvents"),
  ofSources(
    "tenure_mesh_source_missing_events",
    "Events of a site's line that a linked site has and that are not here yet, by source site.",
    "missingEvents",
  ),
  ofSources(
    "tenure_mesh_source_missing_ms",
    "Since when the oldest of these is known of, by source site.",
    "missingMs",
  ),
  ofLinks("tenure_mesh_heard_ms", "How long ago a linked site was heard.", "heardMsAgo"),
  ofLinks("tenure_mesh_round_trip_ms", "How long a request to a linked site took last.", "roundTripMs"),
  ofLinks("tenure_mesh_clock_skew_ms", "A linked site's wall clock minus this one's.", "skewMs"),
  ofMesh("tenure_mesh_arrival", "gauge", "Events that have arrived at this site, own and foreign.", ({ arrival }) => [
    { labels: {}, value: arrival },
  ]),
  ofMesh("tenure_mesh_views_lag_events", "gauge", "Of those: not yet in the merged state.", ({ viewsLag }) => [
    { labels: {}, value: viewsLag },
  ]),
];

function ofMesh(
  name: string,
  type: ServerMetric["type"],
  help: string,
  read: (mesh: MeshServerStats) => readonly Sample[],
): ServerMetric {
  return labelled(name, type, help, ({ mesh }) => (mesh === null ? [] : read(mesh)));
}

type Measured = "lagEvents" | "lagMs" | "missingEvents" | "heardMsAgo" | "roundTripMs" | "skewMs";

function ofLinks(name: string, help: string, of: Measured): ServerMetric {
  return ofMesh(name, "gauge", help, ({ links }) =>
    links.flatMap((link) => (link[of] === null ? [] : [{ labels: { site: link.site }, value: link[of] }])),
  );
}

function ofSources(name: string, help: string, of: "missingEvents" | "missingMs"): ServerMetric {
  return ofMesh(name, "gauge", help, ({ sources }) =>
    sources.map((source) => ({ labels: { site: source.site }, value: source[of] })),
  );
}
