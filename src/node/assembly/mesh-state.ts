// The merged state of all sites on one node, over ports: who feeds it, who reads arrivals, and who replays them.

import type { MeshState } from "../../api/index.ts";
import type { EventsService } from "../../controller/journal/events.ts";
import { ArrivalsService } from "../../controller/mesh/state/arrivals-service.ts";
import { HistoryGuard } from "../../controller/mesh/state/history-guard.ts";
import { MeshFeeder } from "../../controller/mesh/state/feeder.ts";
import { Propagation } from "../../controller/mesh/state/propagation.ts";
import { MeshReplayer } from "../../controller/mesh/state/replayer.ts";
import { controllerOf } from "../../core/mesh/proof/index.ts";
import type { Archive } from "../../logs/index.ts";
import type { Arrivals } from "../../ports/mesh/arrivals.ts";
import type { MeshLines } from "../../ports/mesh/lines.ts";
import type { MeshLinks } from "../../ports/mesh/links.ts";
import type { MeshViews } from "../../ports/mesh/views.ts";
import type { MeshServerStats } from "../../ports/server-stats.ts";
import type { NodeLog, ServicesWorld } from "./assemble.ts";
import { meshStats } from "./mesh-stats.ts";

/** What a site that is distributed keeps of all sites. */
export interface MeshStateWorld {
  readonly views: MeshViews;
  readonly replayMs: number;
  /** Old events are let go (`history.keep_days`). */
  readonly isCut: boolean;
}

export interface AssembledState extends MeshState {
  readonly feeder: MeshFeeder;
  /** Of what retention lets go. */
  readonly guard: HistoryGuard;
  stats(): MeshServerStats;
  stop(): Promise<void>;
}

interface StateParts {
  readonly events: EventsService;
  readonly links: (MeshLinks & { skewOf(site: string): number | null }) | undefined;
  readonly lines: MeshLines | undefined;
  /** The epoch in which this node leads; null: it does not. */
  readonly leads: () => number | null;
}

/** Undefined: the site is standalone, or has no archive of receipts. */
export function assembleMeshState(
  { clock, digest, logger, meshState: world }: ServicesWorld,
  log: NodeLog,
  { events, links, lines, leads }: StateParts,
): AssembledState | undefined {
  const {
    journal: { fold },
    receipts,
    eventArchive,
  } = log;
  if (world === undefined || receipts === null || eventArchive === undefined) return undefined;
  const { views, replayMs, isCut } = world;
  const archives: { readonly own: Archive; readonly receipts: Archive } = {
    own: eventArchive,
    receipts: receipts.archive,
  };
  const around = { ownLine: fold.ownLine, receipts: receipts.fold, archives, views, clock, logger };
  const feeder = new MeshFeeder({ ...around, journal: fold, controllers: fold.controllers });
  const last = (): number => receipts.fold.arrival;
  const arrivals = new ArrivalsService({ ...around, ...archives, events, last, digest });
  const propagation = new Propagation({
    epoch: leads,
    skewMs: (site) => links?.skewOf(site) ?? null,
  });
  const stopMeter = receipts.fold.follow(({ receipt }) => propagation.applied(receipt));
  const { registry } = fold.controllers;
  const replayer = new MeshReplayer({ ...around, arrivals, everyMs: replayMs, isCut });
  const guard = new HistoryGuard({ ...around, replay: () => replayer.join() });
  log.watchReplay?.(() => replayer.problem);
  return {
    views,
    arrivals,
    feeder,
    guard,
    replay: { last: () => replayer.last, run: () => replayer.run() },
    heardMs: (line) => {
      const site = controllerOf(line);
      if (site === fold.ownLine.lines?.controller) return clock.wallMs();
      const heard = (links?.views() ?? []).flatMap(({ controller, heardMsAgo }) =>
        controller === site && heardMsAgo !== null ? [clock.wallMs() - heardMsAgo] : [],
      );
      return heard.length === 0 ? null : Math.max(...heard);
    },
    stats: () =>
      meshStats({
        fold: receipts.fold,
        feeder,
        propagation,
        registry,
        lines,
        links: links?.views() ?? [],
        lacking: links?.lacking() ?? null,
      }),
    stop: async () => {
      stopMeter();
      guard.close();
      replayer.close();
      feeder.close();
      await views.close();
    },
  };
}

/** Of a site that is standalone and has been in a mesh: what had arrived keeps its numbers, and own events go on counting from there. */
export function keptArrivals(
  { clock, digest }: ServicesWorld,
  { journal: { fold }, receipts, eventArchive }: NodeLog,
  events: EventsService,
): () => Arrivals | undefined {
  if (receipts === null || eventArchive === undefined) return () => undefined;
  const kept = new ArrivalsService({
    own: eventArchive,
    receipts: receipts.archive,
    events,
    last: () => receipts.fold.arrival,
    ownLine: fold.ownLine,
    // The views that know it are not open here.
    views: { receiptPlace: () => Promise.resolve(null) },
    clock,
    digest,
  });
  return () => (receipts.fold.state.foreign === 0 ? undefined : kept);
}
