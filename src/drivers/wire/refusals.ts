// Why a connection is refused, how often that happened, and the log's share of it: each peer and reason is reported once,
// and again after a while with the number of times in between, so that a wrong peer can't fill the log.

import type { Logger } from "../../ports/logger.ts";
import { COMPLAINT_INTERVAL_MS, COMPLAINTS_MAX } from "./limits.ts";

export const REFUSAL_REASONS = [
  /** It belongs to another cluster. */
  "other-cluster",
  /** It bears our own node id: we talk to ourselves, or two nodes have one id. */
  "own-node-id",
  /** Not the node that it was taken for: certificate and hello differ, or another node answers at that address. */
  "id-of-another",
  "protocol",
  "oversized-frame",
  "garbage",
  "handshake-timeout",
  "lease-mismatch",
  /** Not of our authority, expired, or not yet valid. */
  "certificate",
  /** Trusted, but it does not name exactly one node of our trust domain. */
  "certificate-identity",
  /** TLS itself failed: no TLS at all, an older version. */
  "tls",
  /** Without TLS only loopback is dialled. */
  "plain-beyond-loopback",
  /** Without certificates: it does not know the cluster's secret. */
  "secret",
  /** This very disk was removed from the cluster. */
  "removed",
  /** A later process has shaken hands in the name of the same disk: there are two holders of it. */
  "cloned-disk",
  "too-many",
  /** It listens, but its engine is not there yet; the only one that nobody need repair. */
  "starting",
  "other",
] as const;
export type RefusalReason = (typeof REFUSAL_REASONS)[number];
export type RefusalCounts = Readonly<Record<RefusalReason, number>>;

export function isRefusalReason(text: string): text is RefusalReason {
  return REFUSAL_REASONS.some((reason) => reason === text);
}

/** It answers, and does not prove, or is not proved, to be who it should be. */
export function isAboutIdentity(reason: RefusalReason): boolean {
  return reason === "certificate" || reason === "certificate-identity" || reason === "secret";
}

interface Complaint {
  readonly atMs: number;
  unsaid: number;
}

export class Refusals {
  readonly #logger: Logger;
  readonly #ours = noCounts();
  readonly #theirs = noCounts();
  readonly #complaints = new Map<string, Complaint>();

  constructor(logger: Logger) {
    this.#logger = logger;
  }

  /** What we refused. */
  get ours(): RefusalCounts {
    return { ...this.#ours };
  }

  /** What others refused us. */
  get theirs(): RefusalCounts {
    return { ...this.#theirs };
  }

  /** `peer`: its node id where it is known, else where it came from. */
  refuse(peer: string, reason: RefusalReason, message: string): void {
    this.#ours[reason]++;
    this.#say(peer, reason, `refused ${peer}: ${message}`);
  }

  refusedBy(peer: string, reason: RefusalReason, message: string): void {
    this.#theirs[reason]++;
    this.#say(peer, reason, `${peer} refused this node: ${message}`);
  }

  #say(peer: string, reason: RefusalReason, message: string): void {
    if (reason === "starting") return;
    const key = `${peer} ${reason}`;
    const last = this.#complaints.get(key);
    const nowMs = performance.now();
    if (last !== undefined && nowMs - last.atMs < COMPLAINT_INTERVAL_MS) {
      last.unsaid++;
      return;
    }
    this.#complaints.delete(key);
    this.#complaints.set(key, { atMs: nowMs, unsaid: 0 });
    if (this.#complaints.size > COMPLAINTS_MAX) this.#complaints.delete(this.#complaints.keys().next().value!);
    this.#logger.warn({ peer, reason, repeated: last?.unsaid ?? 0 }, message);
  }
}

function noCounts(): Record<RefusalReason, number> {
  return Object.fromEntries(REFUSAL_REASONS.map((reason) => [reason, 0])) as Record<RefusalReason, number>;
}
