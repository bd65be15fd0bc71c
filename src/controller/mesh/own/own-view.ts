// This site in its own list of sites, and the registry of a site that is standalone: it lists itself, and registers nobody.

import { TenureError } from "../../../core/kit/errors.ts";
import type { Json } from "../../../core/kit/json.ts";
import type { OwnSite } from "../../../core/mesh/registry/index.ts";
import type { Clock } from "../../../ports/clock.ts";
import type { Controllers, ControllerView } from "../../../ports/mesh/controllers.ts";

/** What a node knows of its own site before anything is written of it. */
export interface OwnController {
  readonly controllerId: string;
  readonly name: string;
  /** Of the leader, as far as it is known; else of this node. */
  readonly url: () => string;
  readonly version: string;
}

export interface OwnTimes {
  readonly wallMs: number;
  readonly startedMs: number;
  readonly ttlMs: number;
}

export function ownView(own: OwnController, written: OwnSite | null, times: OwnTimes): ControllerView {
  const nowMs = Math.floor(times.wallMs);
  const { controllerId: id, version } = own;
  const line =
    written === null
      ? {}
      : { line: written.line, ring: written.lines.at(-1)!.ring as unknown as Json, urls: [...written.urls] };
  return {
    id,
    url: own.url(),
    name: written?.name ?? own.name,
    registeredAtMs: written?.registeredAtMs ?? Math.floor(times.startedMs),
    lastHeartbeatAtMs: nowMs,
    expiresAtMs: nowMs + times.ttlMs,
    isActive: true,
    status: "own",
    metadata: { version, ...line },
  };
}

export function standalone(own: OwnController, ttlMs: number, clock: Pick<Clock, "wallMs">): Controllers {
  const startedMs = clock.wallMs();
  return {
    register: disabled,
    heartbeat: disabled,
    approve: disabled,
    evict: disabled,
    leave: disabled,
    join: disabled,
    heardMsAgo: () => new Map(),
    list: () => [ownView(own, null, { wallMs: clock.wallMs(), startedMs, ttlMs })],
  };
}

async function disabled(): Promise<never> {
  throw new TenureError(
    "MESH_DISABLED",
    'This site is standalone. Set mode = "distributed" in [mesh] to join sites; see docs/mesh.md.',
  );
}
