// Who may be asked, and who leads, as far as this process has heard. One for a backend, shared by all of its seats.
//
// Invariants
// - Only the URLs that were given, and those of members that a given URL has named, are ever asked: what a node says in an
//   answer ("the leader is at …") chooses among them and adds none (trap 64). From https:// nobody is led to http://.
// - A node that a given URL stands for is asked over that URL: the way that the user chose goes before the advertised one.
// - Epochs of two clusters do not compare, unless one was recovered or restored from the other: then they are above all of that
//   one's. The first cluster that answers is ours, until one answers that names it as its ancestor: then that one is, for ever
//   after, and nodes of the ancestor that still run are not used. Any other is refused; where two answer before anything was
//   asked of one, nobody knows which is meant, and both are refused. A descendant that is paused is waited for; whoever met it
//   first goes back to the ancestor, as a copy that never acted has granted nothing.
// - Who may say so is a question of TLS and of the URLs that were given, as for everything else that a node says.
// - Nothing is asked of a node before it has been introduced (`GET /v1/cluster`), nor after its connection failed, until it
//   has been introduced again: another cluster may listen there by then.

import { TenureError } from "../../core/kit/errors.ts";
import { MEMBERS_MAX } from "../../core/kit/limits.ts";
import type { ClusterWord, Introduction } from "./answers.ts";
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
  /** Null: nobody has said yet. */
  #ancestors: readonly string[] | null = null;
  /** Ours, by every word that we have of it: one that was resumed is never taken for a copy again. */
  #isPaused = false;
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
  introduce(url: string, introduction: Introduction): void {
    const { nodeId, members } = introduction;
    this.checkCluster(url, introduction);
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
  checkCluster(url: string, { clusterId, ancestors = [], isPaused = false }: ClusterWord): void {
    if (clusterId === null) return;
    const ours = this.#clusterId;
    if (ours === null || ours === clusterId) return this.#belong(clusterId, ancestors, isPaused);
    // Others may have changed with it, and not say so in each answer.
    this.#introduced.clear();
    const isDescendant = ancestors?.includes(ours) === true;
    const isOriginal = this.#isPaused && this.#ancestors?.includes(clusterId) === true;
    if ((isDescendant && !isPaused) || isOriginal) {
      this.#leaderUrl = null;
      this.#ancestors = null;
      return this.#belong(clusterId, ancestors, isPaused);
    }
    this.doubt(url);
    if (isDescendant) throw paused(url, clusterId);
    if (this.#ancestors?.includes(clusterId) === true) throw left(url, clusterId, ours);
    if (ancestors === null || this.#ancestors === null) throw unsure(url, clusterId, ours);
    throw new TenureError(
      "CLUSTER_MISMATCH",
      `${url} belongs to cluster ${clusterId}, and this process has been using cluster ${ours}, from which that one does not come. Their epochs do not compare, so it is not used. Give the URLs of one cluster; after a cluster was founded anew, or restored from a snapshot of before it was recovered, restart this process.`,
    );
  }

  #belong(clusterId: string, ancestors: readonly string[] | null, isPaused: boolean): void {
    this.#isPaused = isPaused && (this.#isPaused || this.#clusterId !== clusterId);
    this.#clusterId = clusterId;
    // A node that has just joined knows less than others.
    if (ancestors !== null && ancestors.length >= (this.#ancestors?.length ?? 0)) this.#ancestors = ancestors;
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

/** Somebody inspects a copy of our cluster: it is ours when it is resumed. */
function paused(url: string, clusterId: string): TenureError {
  return new TenureError(
    "BACKEND_UNAVAILABLE",
    `${url} belongs to cluster ${clusterId}, which was restored from ours and is paused, so it is not used until an operator resumes it (tenure cluster resume). Asked again.`,
  );
}

/** Retried: it is to be stopped, and the cluster that we use is elsewhere. */
function left(url: string, clusterId: string, ours: string): TenureError {
  return new TenureError(
    "BACKEND_UNAVAILABLE",
    `${url} still belongs to cluster ${clusterId}, from which ${ours} was recovered or restored: it is not used any more. Stop that node, empty its data directory and let it join ${ours}.`,
  );
}

/** Trap 73: whoever knows less must not be the reason to give up for good. */
function unsure(url: string, clusterId: string, ours: string): TenureError {
  return new TenureError(
    "BACKEND_UNAVAILABLE",
    `${url} belongs to cluster ${clusterId}, this process has been using cluster ${ours}, and it is not known yet whether one comes from the other. Asked again.`,
  );
}
