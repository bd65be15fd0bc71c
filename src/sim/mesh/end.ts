// What must become true when the faults are over: every honest site has every event of the others, with the same bytes, on all of its nodes;
// who signed two histories is frozen wherever both were shown; sites that have the same show the same; and then there is silence.

import { MerkleFrontier, hexOf } from "../../core/events/index.ts";
import type { LineState } from "../../core/mesh/model.ts";
import { rootOf } from "../../core/mesh/proof/index.ts";
import { shownProblem } from "./shown.ts";
import type { SimSite, SiteServer } from "./site.ts";
import type { MeshStage } from "./stage.ts";
import { MESH_STEPS_MAX } from "./limits.ts";

/** For elections, redials (every 30 s at most), and what is left to be sent. */
const CONVERGE_WITHIN_MS = 90_000;
/** After so long without a new event nothing more may be sent. */
const SILENT_WITHIN_MS = 10_000;
const SILENCE_MS = 10_000;
const QUIET_WITHIN_MS = 60_000;

export interface Ended {
  readonly violation: string | null;
  readonly convergenceMs: number | null;
}

/** From the end of the faults on. */
export async function converge(stage: MeshStage): Promise<Ended> {
  const { world, ledger } = stage;
  const startMs = world.nowMs;
  let seen = -1;
  // Compared only where something was applied.
  const isConverged = (): boolean => {
    if (stage.applied === seen) return false;
    seen = stage.applied;
    return differenceOf(stage) === null;
  };
  const end = await world.run(isConverged, { untilMs: startMs + CONVERGE_WITHIN_MS, stepsMax: MESH_STEPS_MAX });
  const convergenceMs = end === "predicate" ? world.nowMs - startMs : null;
  const difference = end === "predicate" ? null : differenceOf(stage);
  if (world.finding() !== null || difference !== null) {
    const why =
      difference === null ? null : `no convergence within ${CONVERGE_WITHIN_MS} ms after the last fault: ${difference}`;
    return { violation: world.finding() ?? why, convergenceMs };
  }
  const violation = world.finding() ?? ledger.lost() ?? (await silence(stage)) ?? (await stillEqual(stage));
  return { violation, convergenceMs };
}

/** Also what was written last has come to all by now, and is shown. */
async function stillEqual(stage: MeshStage): Promise<string | null> {
  const { world } = stage;
  await world.run(() => differenceOf(stage) === null, {
    untilMs: world.nowMs + SILENT_WITHIN_MS,
    stepsMax: MESH_STEPS_MAX,
  });
  return (
    world.finding() ?? differenceOf(stage) ?? expiredProblem(stage) ?? (await shownProblem(stage)) ?? world.finding()
  );
}

/** Whoever is linked is registered again by now, where its registration had expired. */
function expiredProblem(stage: MeshStage): string | null {
  const { ledger } = stage;
  for (const site of stage.honest) {
    for (const id of stage.neighboursOf(site.id)) {
      if (ledger.hasEvicted(site.id, id) || ledger.hasEvicted(id, site.id)) continue;
      for (const name of site.names) {
        const registry = site.server(name)?.fold.controllers.registry;
        const known = registry?.site(id);
        if (known !== undefined && registry?.status(known) === "expired") return `${name} shows ${id} as expired`;
      }
    }
  }
  return null;
}

/** Null: all honest sites have all that they must have. */
function differenceOf(stage: MeshStage): string | null {
  if (stage.operator.isRestoring) return "a site is being restored";
  for (const site of stage.honest) {
    for (const name of site.names) {
      const server = site.server(name);
      if (server === undefined) return `${name} does not run`;
      const difference = lacks(stage, site, server);
      if (difference !== null) return `${name} ${difference}`;
    }
  }
  return null;
}

function lacks(stage: MeshStage, site: SimSite, server: SiteServer): string | null {
  const { ledger, liar } = stage;
  if (ledger.endOf(site.id) !== null && stage.linesOf(site.id).length < 2) return "has begun no new line";
  if (server.fold.chain.sequence !== ledger.of(site.id).length)
    return `has ${server.fold.chain.sequence} of ${ledger.of(site.id).length} own events`;
  for (const { id } of stage.sites) {
    if (id === site.id || ledger.hasEvicted(site.id, id)) continue;
    const lines = stage.linesOf(id);
    if (lines.length === 0) return `knows no line of ${id}`;
    const isForked = liar !== null && liar.site === id && liar.second !== null;
    if (isForked) {
      const isShown = stage.honest.some((one) => stage.wires.sawBoth(one.id));
      const line = lines.find((one) => isShown && !isFrozen(server, one));
      if (line !== undefined) return `has not frozen ${line}, which was forked`;
      continue;
    }
    for (const line of lines) {
      const difference = differs(stage, site.id, server, line);
      if (difference !== null) return difference;
    }
  }
  return null;
}

function differs(stage: MeshStage, site: string, server: SiteServer, line: string): string | null {
  const state = server.mesh.state.line(line);
  const [have, all] = [state?.size ?? 0, stage.sizeAt(site, line)];
  if (have !== all) return `has ${have} of ${all} events of ${line}`;
  return state === undefined || rootHexOf(state, stage) === stage.toldBy(line).root(all)
    ? null
    : `has another history of ${line}`;
}

export function isFrozen({ fold }: SiteServer, line: string): boolean {
  return fold.controllers.registry.forkOf(line) !== undefined;
}

function rootHexOf(state: LineState, { digest }: MeshStage): string {
  return state.size === 0 ? hexOf(new MerkleFrontier(digest).root()) : rootOf(state, digest);
}

/** Null: once no event is new, no page is sent. */
async function silence(stage: MeshStage): Promise<string | null> {
  const { world, ledger, wires } = stage;
  const untilMs = world.nowMs + QUIET_WITHIN_MS;
  let quietSinceMs = world.nowMs;
  for (let events = -1; world.nowMs < untilMs && world.nowMs - quietSinceMs < SILENT_WITHIN_MS + SILENCE_MS;) {
    if (ledger.events !== events) quietSinceMs = world.nowMs;
    events = ledger.events;
    await world.runFor(SILENT_WITHIN_MS / 4);
    if (world.finding() !== null) return null;
    if (ledger.events === events && wires.lastPageMs > quietSinceMs + SILENT_WITHIN_MS)
      return `pages are sent for ever: the last event is of ${quietSinceMs.toFixed(0)} ms, the last page of ${wires.lastPageMs.toFixed(0)} ms`;
  }
  return null;
}
