// The sites of a mesh, as the API sees them. A site is called a controller there, as the specification of the network does. The leader
// decides; every node shows what is applied, and what it knows of heartbeats, which are not replicated.

import type { Json } from "../../core/kit/json.ts";
import type { SiteStatus } from "../../core/mesh/registry/model.ts";
import type { Request } from "../jobs.ts";

export interface Controllers {
  /** MESH_DISABLED where this site is standalone; CONTROLLER_CONFLICT, PERMISSION_DENIED, BAD_REQUEST, OVERLOADED, NOT_SUPPORTED. */
  register(asked: ControllerToRegister): Promise<ControllerLease>;
  /** NOT_FOUND where it is not registered, or its registration has expired: it has to register again. */
  heartbeat(beat: ControllerBeat): Promise<ControllerLease>;
  /** This site first, then the others by id; those that are not active only with `all`. */
  list(all: boolean): readonly ControllerView[];
  /** How long ago this node has heard of each site, since it leads, whatever its wall clock did. */
  heardMsAgo(): ReadonlyMap<string, number>;
  /** `ring`: the hash of the ring that the site may register with in place of the one that is pinned; null: none. */
  approve(request: Request, id: string, ring: string | null): Promise<ControllerView>;
  evict(request: Request, id: string): Promise<ControllerView>;
  /** This site leaves its mesh: an own event, and nothing the second time. BAD_REQUEST where it has no line yet. */
  leave(request: Request): Promise<void>;
  /** And comes back. */
  join(request: Request): Promise<void>;
}

export interface ControllerToRegister {
  readonly id: string;
  readonly url: string;
  readonly name: string;
  readonly metadata: ControllerMetadata;
}

/** What a site says of itself; fields that are not listed here are kept as they are. */
export interface ControllerMetadata {
  readonly version?: string | undefined;
  readonly urls?: readonly string[] | undefined;
  /** With `ring`, the first ring of this line, and `proof`. */
  readonly line?: string | undefined;
  readonly ring?: unknown;
  readonly proof?: { readonly key: string; readonly signature: string } | undefined;
  readonly [other: string]: unknown;
}

export interface ControllerBeat {
  readonly id: string;
  readonly url?: string | undefined;
  readonly urls?: readonly string[] | undefined;
  readonly version?: string | undefined;
}

export interface ControllerLease {
  readonly expiresAtMs: number;
}

export interface ControllerView {
  readonly id: string;
  readonly url: string;
  readonly name: string;
  readonly registeredAtMs: number;
  readonly lastHeartbeatAtMs: number;
  readonly expiresAtMs: number;
  readonly isActive: boolean;
  /** Of this site itself: "own". */
  readonly status: SiteStatus | "own";
  readonly metadata: { readonly [key: string]: Json };
}
