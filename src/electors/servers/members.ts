// Who may be asked, and who leads, as far as this process has heard. One for a backend, shared by all of its seats.
//
// Invariants
// - Only the URLs that were given, and those of members that a given URL has named, are ever asked: what a node says in an
//   answer ("the leader is at …") chooses among them and adds none (trap 64). From https:// nobody is led to http://.
// - A node that a given URL stands for is asked over that URL: the way that the user chose goes before the advertised one.
// - Epochs of two clusters do not compare. The first cluster that answers is ours, and another is refused for ever after; where
//   two answer before anything was asked of one, nobody knows which is meant, and both are refused.
// - Nothing is asked of a node before it has been introduced (`GET /v1/cluster`), nor after its connection failed, until it
//   has been introduced again: another cluster may listen there by then.

import { TenureError } from "../../core/kit/errors.ts";
import { MEMBERS_MAX } from "../../core/kit/limits.ts";
import type { Introduction } from "./answers.ts";
import { isSecure, serverUrl } from "./options.ts";

export class Members {
  readonly #given: readonly string[];
  readonly #learns: boolean;
  readonly #introduced = new Set<string>();
  /** Which node answered at a URL, when it was introduced last. */
  readonly #nodeAt = new Map<string, string>();
  /** By node id. */
  #learned: ReadonlyMap<string, string> = new Map();
  #clusterId: string | null = null;
  #isInUse = false;
  #leaderUrl: string | null = null;

  constructor(given: readonly string[], learns: boolean) {
    this.#given = given;
    this.#learns = learns;
  }

  /** Everybody who may be asked; the given ones first. */
  get urls(): readonly string[] {
    const stood = new Set(this.#given.map((url) => this.#nodeAt.get(url)));
    const others = [...this.#learned].filter(([nodeId, url]) => !stood.has(nodeId) && !this.#given.includes(url));
    return [...this.#given, ...others.map(([, url]) => url)];
  }

  /** Null: somebody has to be asked who leads. */
  get leaderUrl(): string | null {
    return this.#leaderUrl;
  }

  set leaderUrl(url: string | null) {
    this.#leaderUrl = url;
  }

  /** A question was answered: this is our cluster from now on, whoever else answers at one of the URLs. */
  use(): void {
    this.#isInUse = true;
  }

  get isInUse(): boolean {
    return this.#isInUse;
  }

  isIntroduced(url: string): boolean {
    return this.#introduced.has(url);
  }

  /** Throws CLUSTER_MISMATCH, and then nothing has been learned. */
  introduce(url: string, { clusterId, nodeId, members }: Introduction): void {
    this.checkCluster(url, clusterId);
    this.#introduced.add(url);
    this.#nodeAt.set(url, nodeId);
    if (!this.#learns || !this.#given.includes(url)) return;
    const learned = new Map<string, string>();
    for (const member of members.slice(0, MEMBERS_MAX)) {
      const known = member.url === null ? undefined : serverUrl(member.url);
      if (known !== undefined && (isSecure(known) || !isSecure(url))) learned.set(member.nodeId, known);
    }
    this.#learned = learned;
  }

  /** An answer without a cluster id proves nothing, and contradicts nothing. */
  checkCluster(url: string, clusterId: string | null): void {
    if (clusterId === null) return;
    this.#clusterId ??= clusterId;
    if (this.#clusterId === clusterId) return;
    // Others may have changed with it, and not say so in each answer.
    this.#introduced.clear();
    this.doubt(url);
    throw new TenureError(
      "CLUSTER_MISMATCH",
      `${url} belongs to cluster ${clusterId}, and this process has been using cluster ${this.#clusterId}. Their epochs do not compare, so it is not used. Give the URLs of one cluster; after a cluster was founded anew, restart this process.`,
    );
  }

  /** It failed to answer, or said that it does not lead. */
  doubt(url: string): void {
    if (this.#leaderUrl === url) this.#leaderUrl = null;
  }

  /** Whoever listens there next must be introduced again. */
  forget(url: string): void {
    this.doubt(url);
    this.#introduced.delete(url);
  }

  /** The way to a node that somebody has named as the leader; null where it is no known member. */
  urlOf(nodeId: string, advertised: string | null): string | null {
    const given = this.#given.find((url) => this.#nodeAt.get(url) === nodeId);
    if (given !== undefined) return given;
    const known = this.#learned.get(nodeId);
    if (known !== undefined) return known;
    const url = advertised === null ? undefined : serverUrl(advertised);
    return url !== undefined && this.urls.includes(url) ? url : null;
  }
}
