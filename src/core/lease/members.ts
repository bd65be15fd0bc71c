// Membership leases: who announced itself, and where it can be reached. For discovery only: neither a quorum nor a lease of a leader rests on it.
//
// Invariants: a lease is changed by its own identity alone, or by time; a list is normalised, sorted and has each endpoint once.

import { MEMBERSHIP_TTL_MS, MEMBERSHIPS_KEPT } from "./limits.ts";

export interface MembershipLease {
  /** The node id of the certificate that it was announced with. */
  readonly identity: string;
  readonly endpoint: string;
  /** Wall time: other nodes' lists show it, and it survives a restart. */
  readonly updatedAtMs: number;
  readonly expiresAtMs: number;
}

export function normalisedEndpoint(endpoint: string): string {
  return endpoint.trim().replace(/\/+$/, "");
}

export class MembershipList {
  readonly #leases = new Map<string, MembershipLease>();
  /** Identities that left: their announcements start again by an explicit one, or a restart. */
  #isPaused = false;

  /** False: the node left, and announces itself no more. */
  get isAnnouncing(): boolean {
    return !this.#isPaused;
  }

  pause(): void {
    this.#isPaused = true;
  }

  resume(): void {
    this.#isPaused = false;
  }

  /** Of the caller itself: a stable identity keeps one lease, wherever it moves. */
  announce(wallMs: number, caller: string, endpoint: string): void {
    this.#leases.delete(caller);
    const lease = {
      identity: caller,
      endpoint: normalisedEndpoint(endpoint),
      updatedAtMs: wallMs,
      expiresAtMs: wallMs + MEMBERSHIP_TTL_MS,
    };
    this.#leases.set(caller, lease);
    if (this.#leases.size > MEMBERSHIPS_KEPT) this.#leases.delete(this.#leases.keys().next().value!);
  }

  /** As this node's file had them before a restart. Those that have ended meanwhile are dropped, as `active` drops them. */
  restore(wallMs: number, leases: readonly MembershipLease[]): void {
    for (const lease of leases) if (isInForce(lease, wallMs)) this.#leases.set(lease.identity, lease);
  }

  /** Removes the caller's own lease, and nothing else. False: there was none. */
  leave(caller: string): boolean {
    return this.#leases.delete(caller);
  }

  /** Those in force, by identity. */
  active(wallMs: number): readonly MembershipLease[] {
    const active = [...this.#leases.values()].filter((lease) => isInForce(lease, wallMs));
    return active.sort((a, b) => (a.identity < b.identity ? -1 : 1));
  }

  /** What the list shows: identities that announce one endpoint are one entry. */
  endpoints(wallMs: number): readonly string[] {
    return [...new Set(this.active(wallMs).map(({ endpoint }) => endpoint))].sort();
  }
}

/** A clock that was set back by more than a lease would keep leases for ever: such a lease has ended too. */
function isInForce({ updatedAtMs, expiresAtMs }: MembershipLease, wallMs: number): boolean {
  return wallMs < expiresAtMs && updatedAtMs <= wallMs + MEMBERSHIP_TTL_MS;
}
