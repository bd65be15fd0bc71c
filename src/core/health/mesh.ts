// Alerts about other sites of the mesh. They say what an operator of this site may have to do; the site's own jobs go on in any case. One alert of each
// kind names the sites that it is about.

import type { PeerKey } from "../kit/ids.ts";
import { nodeIdOf } from "../kit/ids.ts";
import type { AlertBoard } from "./alert-board.ts";
import {
  MESH_LAGGING_AFTER_MS,
  MESH_SITES_NAMED_MAX,
  MESH_SKEW_ALERT_MS_MIN,
  MESH_UNREACHABLE_AFTER_MS,
} from "./limits.ts";
import type { HealthOutput, Moment } from "./outputs.ts";

/** What this node sees of other sites: of links nothing, unless it leads. */
export interface MeshSeen {
  /** Sites whose last line is proven to have forked. */
  readonly forked: readonly string[];
  /** Parents that are not connected, by id or address, and for how long; sites that register here and are not heard of any more (null: for a whole TTL). */
  readonly down: readonly { readonly site: string; readonly downMs: number | null }[];
  /** Linked sites that lack something of here, or that have something which is lacking here: how many events, and the age of the oldest. */
  readonly late: readonly { readonly site: string; readonly events: number; readonly ms: number }[];
  /** How far the clocks of linked sites are ahead of this one's. */
  readonly skews: readonly { readonly site: string; readonly skewMs: number }[];
  /** As configured. */
  readonly maxSkewMs: number;
}

/** `seen`: null of a site that is standalone, or has left its mesh. */
export function judgeMesh(board: AlertBoard, at: Moment, self: PeerKey, seen: MeshSeen | null): HealthOutput[] {
  const { forked = [], down = [], late = [], skews = [], maxSkewMs = 0 } = seen ?? {};
  const node = nodeIdOf(self);
  const gone = down.filter(({ downMs }) => downMs === null || downMs > MESH_UNREACHABLE_AFTER_MS);
  const slow = late.filter(({ ms }) => ms > MESH_LAGGING_AFTER_MS);
  const isSkewed = board.alerts.some(({ name }) => name === "mesh_clock_skew");
  // Raised above the limit, and cleared below half of it: what is measured goes up and down with the network.
  const limitMs = Math.max(maxSkewMs, MESH_SKEW_ALERT_MS_MIN) / (isSkewed ? 2 : 1);
  const off = skews.filter(({ skewMs }) => Math.abs(skewMs) > limitMs);
  return [
    ...board.set(at, "mesh_peer_unreachable", node, gone.length > 0, () => {
      const sites = named(gone, ({ site, downMs }) => (downMs === null ? site : `${site} for ${seconds(downMs)}`));
      return `no link to ${sites}: what is shown of them is old, and they do not get what is written here. Jobs go on, and it is dialled for ever. \`tenure mesh status\` says why`;
    }),
    ...board.set(at, "mesh_peer_lagging", node, slow.length > 0, () => {
      const sites = named(slow, ({ site, events, ms }) => `${site}: ${events} events, the oldest ${seconds(ms)} old`);
      return `linked sites do not keep up with each other (${sites}). Compare the bandwidth between them with what they write; \`tenure mesh status\` shows each link`;
    }),
    ...board.set(at, "mesh_clock_skew", node, off.length > 0, () => {
      const sites = named(off, ({ site, skewMs }) => `${site} by ${Math.round(skewMs)} ms`);
      return `the clocks of other sites are off from this one's (${sites}; mesh.max_skew_ms is ${maxSkewMs}). Their times are shown as they are. Check the time synchronisation of both`;
    }),
    ...board.set(at, "mesh_fork", node, forked.length > 0, () => {
      return `${named(forked, (site) => site)} signed two histories under one name: nothing more of that line is taken. \`tenure mesh evidence\` shows the proof`;
    }),
  ];
}

function named<T>(all: readonly T[], text: (one: T) => string): string {
  const shown = all.slice(0, MESH_SITES_NAMED_MAX).map(text).join(", ");
  return all.length > MESH_SITES_NAMED_MAX ? `${shown} and ${all.length - MESH_SITES_NAMED_MAX} more` : shown;
}

function seconds(ms: number): string {
  return `${Math.round(ms / 1_000)} s`;
}
