// The state of all sites, over ports: what feeds mesh.sqlite, and how old what it shows may be.

import type { MeshState } from "../../api/index.ts";
import { MeshFeeder } from "../../controller/mesh/views-feeder.ts";
import { controllerOf } from "../../core/mesh/proof/index.ts";
import type { MeshLines } from "../../ports/mesh-lines.ts";
import type { MeshLinks } from "../../ports/mesh-links.ts";
import type { NodeLog, ServicesWorld } from "./assemble.ts";

export interface AssembledMeshState {
  readonly state: MeshState;
  close(): Promise<void>;
}

export interface MeshStateParts {
  readonly lines: MeshLines | undefined;
  readonly links: MeshLinks | undefined;
}

/** Undefined: the site is standalone. */
export function assembleMeshState(
  { clock, logger, meshViews: views }: ServicesWorld,
  { receipts, journal: { fold } }: NodeLog,
  { lines, links }: MeshStateParts,
): AssembledMeshState | undefined {
  if (views === undefined || lines === undefined || receipts === null) return undefined;
  const { state } = receipts.fold;
  const { controllers } = fold;
  const feeder = new MeshFeeder({
    views,
    sources: { own: receipts.own, receipts: receipts.archive },
    own: () => lines.own(),
    generationOf: (line) => state.line(line)?.ring.generation ?? null,
    registry: () => controllers.registry,
    clock,
    logger,
  });
  const ring = (): void => feeder.ring();
  const stops = [fold.follow(ring), receipts.fold.follow(ring), receipts.fold.onRestored(ring)];
  fold.onRestored(ring);
  controllers.onChanged(ring);
  return {
    state: {
      views,
      heardMs: (line) => heardMs(line, lines, links, clock.wallMs()),
    },
    close: async () => {
      for (const stop of stops) stop();
      feeder.close();
      await views.close();
    },
  };
}

/** Of a line whose site is linked to this one: when that was heard. Of others only the arrival of their events is known. */
function heardMs(line: string, lines: MeshLines, links: MeshLinks | undefined, nowMs: number): number | null {
  const site = controllerOf(line);
  if (lines.own()?.controller === site) return nowMs;
  const heard = (links?.views() ?? [])
    .filter(({ controller, connected }) => connected && controller === site)
    .flatMap(({ heardMsAgo }) => (heardMsAgo === null ? [] : [heardMsAgo]));
  return heard.length === 0 ? null : nowMs - Math.min(...heard);
}
