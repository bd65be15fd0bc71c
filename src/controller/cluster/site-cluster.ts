// A site on a database, as one of its nodes sees it and as an operator steers it (ports/cluster.ts). Its nodes are all alike:
// there are no votes and no members to change, one of them leads, and the log is the database's.
//
//   idle ──start──▶ watching who leads ──stop──▶ stopped
//
// - Whatever is shown comes from memory at the moment of the call.
// - Who leads is known from the database, so nobody is known where that has been silent for longer than a leader may lead.
// - Readiness never depends on leading (trap 47), nor on the database once everything was read: reads go on without it, and
//   say how old they are.

import type { CertificateEnd } from "../../core/health/index.ts";
import { TenureError } from "../../core/kit/errors.ts";
import { sleep } from "../../loops/time.ts";
import type { Clock } from "../../ports/clock.ts";
import type {
  AlertView,
  Cluster,
  ClusterView,
  LineView,
  DiskView,
  MemberChangeView,
  MemberView,
  SnapshotView,
  TransferView,
} from "../../ports/cluster.ts";
import type { Elector, Leader } from "../../ports/elector.ts";
import type { Leadership } from "../../ports/leadership.ts";
import type { LogHead } from "../../ports/log.ts";
import type { ElectorLeadership } from "../leadership/elector-leadership.ts";
import { NODE_SILENT_MS_MAX, TRANSFER_MS_MAX, TRANSFER_POLL_MS } from "./limits.ts";
import { type DrainRequest, Drains } from "./node-drain.ts";
import { SiteCertificates } from "./site-certificates.ts";
import { SiteClock } from "./site-clock.ts";
import { invalid, noMembers, noSnapshots } from "./site-refusals.ts";

export interface SiteNodeView {
  readonly nodeId: string;
  readonly instance: string;
  readonly url: string;
  readonly applied: number;
  readonly silentMs: number;
}

export interface SiteClusterOptions {
  readonly siteId: string;
  readonly nodeId: string;
  readonly instance: string;
  readonly version: string;
  readonly url: string;
  readonly clock: Clock;
  readonly elector: Pick<Elector, "observe" | "stats">;
  readonly leadership: Pick<Leadership, "epoch" | "isTurningOver">;
  readonly campaign: Pick<ElectorLeadership, "handOver" | "heardOfLeader" | "setWilling">;
  /** How long a leader may lead without a word from the database. */
  readonly trustMs: number;
  readonly log: {
    head(): LogHead;
    readonly freshAsOfMs: number | null;
    readonly stored: { readonly position: number; readonly first: number } | null;
    catchUp(timeoutMs: number): Promise<boolean>;
  };
  readonly nodes: {
    readonly all: readonly SiteNodeView[];
    readonly heardMs: number | null;
    readonly clockSkewMs?: number | null;
  };
  readonly disk: { state(): DiskView["state"]; freeBytes(): number | null };
  /** That this node shows now. */
  readonly certificates?: (() => readonly CertificateEnd[]) | undefined;
  /** An operator wants this node out, or in again. */
  readonly onDrain?: ((isWanted: boolean) => void) | undefined;
}

/** Its database is what it comes from, and is restored with. */
const NO_LINE = { ancestors: [], isPaused: false } as const;

export class SiteCluster implements Cluster {
  readonly #options: SiteClusterOptions;
  readonly #stopping = new AbortController();
  /** Whether an operator has taken it out. */
  readonly #drains: Drains;
  readonly #clock = new SiteClock();
  readonly #certificates = new SiteCertificates();
  /** In which it led when it was taken out last; null: it did not. */
  #leftEpoch: number | null = null;
  #leader: Leader | null = null;
  /** Since when nobody is known to lead; null: somebody is. */
  #leaderless: { readonly sinceMs: number; readonly sinceWallMs: number } | null = null;
  #sharedSinceWallMs: number | null = null;
  #isDraining = false;
  #failure: string | null = null;

  constructor(options: SiteClusterOptions) {
    this.#options = options;
    this.#drains = new Drains((isDrained) => options.campaign.setWilling(!isDrained), options.onDrain);
    this.#look();
  }

  start(): void {
    void this.#watch();
  }

  stop(): void {
    this.#stopping.abort(new TenureError("ELECTOR_CLOSED", "the node is stopping"));
  }

  /** From now on this node, while it leads, says that it is on its way out. */
  setDraining(isDraining: boolean): void {
    this.#isDraining = isDraining;
  }

  /** The log can't be followed any more: this node is of no use until it is started again. */
  setFailed(reason: string): void {
    this.#failure = reason;
  }

  // ---- what it shows -------------------------------------------------------------------------------

  view(): ClusterView {
    const { siteId, nodeId, instance, version, log, disk } = this.#options;
    const { position: applied, epoch } = log.head();
    const { stored } = log;
    const commit = Math.max(applied, stored?.position ?? 0);
    const leader = this.#known();
    const notReadyReason = this.#notReadyReason();
    return {
      clusterId: siteId,
      nodeId,
      incarnation: instance,
      version,
      backend: "postgres",
      role: this.#role(),
      term: leader?.epoch ?? epoch,
      leader: leader === null ? null : { nodeId: leader.nodeId, address: null, url: leader.url },
      commit,
      applied,
      firstIndex: stored?.first ?? 1,
      lastIndex: commit,
      stalenessMs: this.#stalenessMs(),
      isJoint: false,
      members: this.#members(leader?.nodeId ?? null, applied),
      elections: [],
      alerts: this.#alerts(leader !== null),
      // Where the state is kept, and how much of it, is the database's to tell.
      snapshot: null,
      disk: { state: disk.state(), freeBytes: disk.freeBytes() },
      ...NO_LINE,
      isDraining: this.#drains.isDrained,
      isReady: notReadyReason === null,
      notReadyReason,
    };
  }

  readonly line = (): LineView => NO_LINE;
  currentRole(): ClusterView["role"] {
    return this.#role();
  }

  #role(): ClusterView["role"] {
    const { leadership, log } = this.#options;
    if (leadership.isTurningOver()) return "DRAINING";
    const epoch = leadership.epoch();
    if (epoch === null) return "STANDBY";
    if (this.#isDraining) return "DRAINING";
    // Design D9: it leads when it has read everything that was written before.
    return log.head().epoch === epoch ? "LEADER" : "STANDBY";
  }

  #known(): { readonly nodeId: string; readonly url: string | null; readonly epoch: number } | null {
    const { nodeId, url, leadership, clock, nodes, trustMs } = this.#options;
    const epoch = leadership.epoch();
    if (epoch !== null) return { nodeId, url, epoch };
    const leader = this.#leader;
    if (leader === null || leader.identity === nodeId) return null;
    if (nodes.heardMs === null || clock.monotonicMs() - nodes.heardMs > trustMs) return null;
    return { nodeId: leader.identity, url: leader.metadata["url"] ?? null, epoch: leader.epoch };
  }

  #stalenessMs(): number | null {
    const { clock, log, elector, leadership } = this.#options;
    const nowMs = clock.monotonicMs();
    const readMs = log.freshAsOfMs === null ? null : Math.max(0, nowMs - log.freshAsOfMs);
    const epoch = leadership.epoch();
    if (epoch === null || log.head().epoch !== epoch) return readMs;
    // Nobody else can have written before this node's hold was proved for the last time.
    return Math.min(readMs ?? Infinity, elector.stats().heartbeatAgeMs ?? Infinity);
  }

  #members(leaderId: string | null, applied: number): MemberView[] {
    const { nodeId, nodes, clock, leadership } = this.#options;
    const sinceMs = nodes.heardMs === null ? 0 : clock.monotonicMs() - nodes.heardMs;
    const leads = leadership.epoch() !== null;
    return nodes.all
      .toSorted((a, b) => (a.nodeId < b.nodeId ? -1 : 1))
      .map((node) => {
        const silentMs = node.silentMs + sinceMs;
        const isConnected = node.nodeId === nodeId || silentMs <= NODE_SILENT_MS_MAX;
        const lag = Math.max(0, applied - node.applied);
        return {
          nodeId: node.nodeId,
          incarnation: node.instance,
          kind: "node",
          isLeader: node.nodeId === leaderId,
          address: null,
          url: node.url,
          isConnected,
          refusal: null,
          progress:
            leads && node.nodeId !== nodeId
              ? {
                  match: node.applied,
                  next: node.applied + 1,
                  lag,
                  state: "replicate",
                  lastContactMs: silentMs,
                  healthy: isConnected,
                }
              : null,
        };
      });
  }

  #alerts(isLed: boolean): AlertView[] {
    const { clock, nodes, nodeId, certificates } = this.#options;
    this.#look(isLed);
    const alerts: AlertView[] = [];
    const nowMs = clock.monotonicMs();
    if (this.#leaderless !== null && nowMs - this.#leaderless.sinceMs > NODE_SILENT_MS_MAX) {
      const isCut = nodes.heardMs === null || nowMs - nodes.heardMs > NODE_SILENT_MS_MAX;
      alerts.push({
        name: "leader_unavailable",
        severity: "critical",
        message: isCut
          ? "the database does not answer, so nobody is known to lead; look at the database and at the way to it"
          : "nobody leads: look at the other nodes' logs, and with `tenure doctor` at the database",
        sinceWallMs: this.#leaderless.sinceWallMs,
        nodeId: null,
      });
    }
    const wallMs = clock.wallMs();
    alerts.push(...this.#sharedUrl(), ...this.#clock.alerts(nodeId, nodes.clockSkewMs ?? null, wallMs));
    alerts.push(...this.#certificates.alerts(nodeId, certificates?.() ?? [], wallMs));
    for (const node of nodes.all) {
      if (node.nodeId === nodeId || node.silentMs <= NODE_SILENT_MS_MAX) continue;
      alerts.push({
        name: "follower_unresponsive",
        severity: "warning",
        message: `node ${node.nodeId} was not heard of for ${Math.round(node.silentMs / 1_000)} s; a day after its end it is forgotten`,
        sinceWallMs: clock.wallMs() - node.silentMs,
        nodeId: node.nodeId,
      });
    }
    return alerts;
  }

  /** Whoever is sent to one of them may come to the other. */
  #sharedUrl(): AlertView[] {
    const { clock, nodes, nodeId, url } = this.#options;
    const others = nodes.all.filter((node) => node.url === url && node.nodeId !== nodeId);
    const live = others.filter((node) => node.silentMs <= NODE_SILENT_MS_MAX).map((node) => node.nodeId);
    if (live.length === 0) {
      this.#sharedSinceWallMs = null;
      return [];
    }
    this.#sharedSinceWallMs ??= clock.wallMs();
    return [
      {
        name: "url_shared",
        severity: "warning",
        message: `${[nodeId, ...live].toSorted().join(" and ")} have one API URL, ${url}: clients that are sent to one may come to the other. Give each its own (api.advertise, or TENURE_API_ADVERTISE)`,
        sinceWallMs: this.#sharedSinceWallMs,
        nodeId: null,
      },
    ];
  }

  #notReadyReason(): string | null {
    if (this.#failure !== null) return this.#failure;
    return this.#options.log.freshAsOfMs === null ? "has not read the log in the database yet" : null;
  }

  // ---- how it is steered ---------------------------------------------------------------------------

  catchUp(timeoutMs: number): Promise<boolean> {
    return this.#options.log.catchUp(timeoutMs);
  }

  async transfer(target: string | null, _force: boolean): Promise<TransferView> {
    const { nodeId, leadership, campaign } = this.#options;
    const epoch = leadership.epoch();
    if (epoch === null) throw new TenureError("NOT_LEADER", `Node ${nodeId} does not lead.`);
    this.#checkTarget(target, this.#others());
    campaign.handOver();
    const leader = await this.#successor(epoch);
    if (leader !== null) {
      const message = `leadership was handed over to ${leader.identity}`;
      return { success: true, message, oldLeaderId: nodeId, newLeaderId: leader.identity };
    }
    throw new TenureError(
      "ERR_LEADER_TRANSFER_FAILED",
      `nobody else took over within ${TRANSFER_MS_MAX} ms; ${nodeId} campaigns again. Look at the other nodes' logs.`,
    );
  }

  /** One that is drained does not campaign: unlike a voter it does not lead where nobody else can. */
  async drain(isDraining: boolean, force: boolean): Promise<void> {
    if (!isDraining) return this.#drains.undo();
    await this.#drains.drain((request) => this.#letGo(request, force));
  }

  async #letGo(request: DrainRequest, force: boolean): Promise<void> {
    const { nodeId, leadership } = this.#options;
    // Where another request has let go already, both wait for whoever leads behind that.
    const epoch = leadership.epoch() ?? (this.#drains.isTentative && !force ? this.#leftEpoch : null);
    if (!this.#drains.isDrained && !force && this.#others().length === 0) {
      throw invalid(
        `${nodeId} is the only node that is heard of; start another first, or use force: then nobody leads`,
      );
    }
    this.#leftEpoch = epoch;
    request.takeOut();
    if (epoch === null || (await this.#successor(epoch)) !== null || force || request.isUndone()) return;
    const then = this.#drains.isTentative ? `${nodeId} campaigns again` : `${nodeId} stays drained by another request`;
    throw new TenureError(
      "ERR_LEADER_TRANSFER_FAILED",
      `nobody else took over within ${TRANSFER_MS_MAX} ms; ${then}. Look at the other nodes: they may be drained too.`,
    );
  }

  #others(): string[] {
    const { nodeId, nodes } = this.#options;
    const heard = nodes.all.filter((node) => node.nodeId !== nodeId && node.silentMs <= NODE_SILENT_MS_MAX);
    return heard.map((node) => node.nodeId);
  }

  /** Who leads after this epoch of ours; null: nobody in time. */
  async #successor(epoch: number): Promise<Leader | null> {
    const { nodeId, clock } = this.#options;
    const untilMs = clock.monotonicMs() + TRANSFER_MS_MAX;
    while (clock.monotonicMs() < untilMs) {
      const leader = this.#leader;
      if (leader !== null && leader.epoch > epoch && leader.identity !== nodeId) return leader;
      await sleep(clock, TRANSFER_POLL_MS);
    }
    return null;
  }

  #checkTarget(target: string | null, others: readonly string[]): void {
    const { nodeId } = this.#options;
    if (others.length === 0) throw invalid(`${nodeId} is the only node that is heard of; start another first`);
    if (target === null) return;
    if (target === nodeId) throw invalid(`${nodeId} leads already; name another node`);
    if (!others.includes(target)) throw invalid(`${target} is not heard of; those that are: ${others.join(", ")}`);
    if (others.length === 1) return;
    const why = "on Postgres the node that has waited longest takes over, and no other can be chosen";
    throw new TenureError("NOT_SUPPORTED", `${why}. Leave the target out.`);
  }

  async changeMember(): Promise<MemberChangeView> {
    throw noMembers();
  }

  async resume(): Promise<void> {}

  async saveSnapshot(): Promise<SnapshotView> {
    throw noSnapshots();
  }

  async readSnapshot(): Promise<null> {
    throw noSnapshots();
  }

  // ---- who leads -----------------------------------------------------------------------------------

  async #watch(): Promise<void> {
    const { elector, campaign, nodeId } = this.#options;
    try {
      for await (const leader of elector.observe({ signal: this.#stopping.signal })) {
        this.#leader = leader;
        this.#look();
        if (leader !== null && leader.identity !== nodeId) campaign.heardOfLeader();
      }
    } catch (error) {
      if (!this.#stopping.signal.aborted) throw error;
    }
  }

  #look(isLed: boolean = this.#known() !== null): void {
    const { clock } = this.#options;
    if (isLed) this.#leaderless = null;
    else this.#leaderless ??= { sinceMs: clock.monotonicMs(), sinceWallMs: clock.wallMs() };
  }
}
