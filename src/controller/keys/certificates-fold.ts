// The client certificates that a site's log has revoked, by their hash. What has expired needs no revocation: it is dropped with
// the next one that is written, by the log's own time, so every node drops the same. A day later than it expired: a node whose
// clock is slow might still take it for valid.

import { CERTIFICATES_REVOKED_MAX } from "../../core/kit/limits.ts";
import { parseJson } from "../../core/kit/parse-json.ts";
import type { StoredEvent } from "../../core/events/index.ts";
import type { RevokedCertificate } from "../../ports/certificates.ts";
import type { Tenant } from "../journal/tenant.ts";
import { CERTIFICATES_KEPT_MS } from "../limits.ts";

/** Of `certificate:revoked`; the hash is the entity's. */
interface Revoked {
  readonly id: string;
  readonly notAfterMs: number;
  readonly by: string;
}

export class CertificatesFold implements Tenant {
  readonly name = "certificates";
  readonly eventTypes = ["certificate:revoked"] as const;
  readonly #byHash = new Map<string, RevokedCertificate>();
  readonly #listeners: (() => void)[] = [];

  /** So many are kept at this time. */
  sizeAt(nowMs: number): number {
    return [...this.#byHash.values()].filter((one) => isKept(one, nowMs)).length;
  }

  get(sha256: string): RevokedCertificate | undefined {
    return this.#byHash.get(sha256);
  }

  /** Called when there are more. */
  onAdded(listener: () => void): void {
    this.#listeners.push(listener);
  }

  /** By identity, and by hash where two have one. */
  all(): readonly RevokedCertificate[] {
    return [...this.#byHash.values()].toSorted((a, b) => (placeOf(a) < placeOf(b) ? -1 : 1));
  }

  apply({ eventType, entityId: sha256, payload, timestamp }: StoredEvent): void {
    if (eventType !== "certificate:revoked" || this.#byHash.has(sha256)) return;
    for (const one of this.#byHash.values()) if (!isKept(one, timestamp)) this.#byHash.delete(one.sha256);
    if (this.#byHash.size >= CERTIFICATES_REVOKED_MAX) return;
    const { id, notAfterMs, by } = payload as unknown as Revoked;
    this.#byHash.set(sha256, { sha256, id, notAfterMs, revokedAtMs: Math.floor(timestamp), revokedBy: by });
    this.#notify();
  }

  /** Null: there are none, and whoever reads this state need not know of them. */
  snapshot(): string | null {
    return this.#byHash.size === 0 ? null : JSON.stringify(this.all());
  }

  restore(text: string | null): void {
    this.#byHash.clear();
    if (text === null) return;
    for (const one of parseJson(text) as RevokedCertificate[]) this.#byHash.set(one.sha256, one);
    this.#notify();
  }

  #notify(): void {
    for (const listener of this.#listeners) listener();
  }
}

function placeOf({ id, sha256 }: RevokedCertificate): string {
  return `${id} ${sha256}`;
}

function isKept({ notAfterMs }: RevokedCertificate, nowMs: number): boolean {
  return nowMs < notAfterMs + CERTIFICATES_KEPT_MS;
}
