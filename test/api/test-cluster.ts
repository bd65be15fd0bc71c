// A cluster of three as one node sees it, in memory: the port's rules without a network. Tests set what this node is.

import { TenureError } from "../../src/core/kit/errors.ts";
import type {
  AlertView,
  Cluster,
  ClusterView,
  MemberChange,
  MemberChangeView,
  MemberView,
  SnapshotView,
  TransferView,
} from "../../src/ports/cluster.ts";
import { peerKey } from "../../src/core/kit/ids.ts";

const SELF = "n1";

export class TestCluster implements Cluster {
  role: ClusterView["role"] = "LEADER";
  leaderId: string | null = SELF;
  backend: ClusterView["backend"] = "raft";
  term = 7;
  stalenessMs: number | null = 0;
  isReady = true;
  isDraining = false;
  notReadyReason: string | null = null;
  disk: ClusterView["disk"] = { state: "ok", freeBytes: 1_000_000_000 };
  alerts: AlertView[] = [];
  /** Where members serve clients; those that are not here tell none. */
  memberUrls: Readonly<Record<string, string>> = {};
  /** No leader confirms anything in time. */
  isCutOff = false;
  readonly #members = new Map<string, MemberView["kind"]>([
    ["n1", "voter"],
    ["n2", "voter"],
    ["n3", "voter"],
    ["n4", "learner"],
  ]);
  #snapshot: SnapshotView | null = null;
  #applied = 40;

  lead(): void {
    Object.assign(this, { role: "LEADER", leaderId: SELF, stalenessMs: 0, isCutOff: false });
  }

  follow(leaderId: string | null): void {
    Object.assign(this, { role: "STANDBY", leaderId, stalenessMs: leaderId === null ? 5_000 : 12 });
  }

  /** Everything that a call may change. */
  fingerprint(): string {
    return JSON.stringify([
      this.role,
      this.leaderId,
      this.term,
      this.isDraining,
      [...this.#members],
      this.#snapshot,
      this.#applied,
    ]);
  }

  isPaused = false;
  ancestors: readonly string[] = [];

  line(): { readonly ancestors: readonly string[]; readonly isPaused: boolean } {
    return { ancestors: this.ancestors, isPaused: this.isPaused };
  }

  async resume(): Promise<void> {
    this.#requireLeader();
    this.isPaused = false;
  }

  currentRole(): ClusterView["role"] {
    return this.role;
  }

  view(): ClusterView {
    const { leaderId } = this;
    return {
      clusterId: "c-1",
      nodeId: SELF,
      incarnation: "3f9a",
      version: "0.1.0",
      backend: this.backend,
      role: this.role,
      term: this.term,
      leader:
        leaderId === null ? null : { nodeId: leaderId, address: `${leaderId}:7400`, url: `https://${leaderId}:7401` },
      commit: this.#applied,
      applied: this.#applied,
      firstIndex: 1,
      lastIndex: this.#applied,
      stalenessMs: this.stalenessMs,
      isJoint: false,
      members: this.#memberViews(),
      elections: [
        {
          term: this.term,
          stage: "vote",
          reason: "timeout",
          candidate: peerKey("n1", "3f9a"),
          candidates: [peerKey("n1", "3f9a")],
          votes: [{ voter: peerKey("n2", "1"), granted: true }],
          startedAtMs: 12.5,
          durationMs: 3.25,
          result: "won",
          repeated: 1,
        },
      ],
      alerts: this.alerts,
      snapshot: this.#snapshot,
      disk: this.disk,
      ancestors: this.ancestors,
      isPaused: this.isPaused,
      isDraining: this.isDraining,
      isReady: this.isReady,
      notReadyReason: this.notReadyReason,
    };
  }

  /** What this node learns when it catches up; and how often it did. */
  onCatchUp: () => Promise<void> | void = () => undefined;
  catchUps = 0;

  async catchUp(_timeoutMs: number): Promise<boolean> {
    this.catchUps++;
    if (this.isCutOff || this.leaderId === null) return false;
    await this.onCatchUp();
    return true;
  }

  async transfer(target: string | null, _force: boolean): Promise<TransferView> {
    this.#requireLeader();
    const chosen = target ?? "n2";
    if (chosen === SELF || this.#members.get(chosen) !== "voter") {
      throw new TenureError("TRANSFER_TARGET_INVALID", `${chosen} is not another healthy voter.`);
    }
    this.term++;
    this.follow(chosen);
    return { success: true, message: `${chosen} leads`, oldLeaderId: SELF, newLeaderId: chosen };
  }

  async drain(isDraining: boolean, force: boolean): Promise<void> {
    if (isDraining && this.role !== "STANDBY") await this.transfer("n2", force);
    this.isDraining = isDraining;
  }

  async changeMember(change: MemberChange): Promise<MemberChangeView> {
    this.#requireLeader();
    const { op, nodeId } = change;
    const kind = this.#members.get(nodeId);
    if (op === "add") {
      if (kind !== undefined) throw new TenureError("MEMBER_EXISTS", `${nodeId} is a member already.`);
      this.#members.set(nodeId, change.promote ? "voter" : "learner");
    } else {
      if (kind === undefined) throw new TenureError("MEMBER_UNKNOWN", `${nodeId} is no member.`);
      if (op === "promote" && kind !== "learner") throw new TenureError("CONF_CHANGE_INVALID", `${nodeId} is a voter.`);
      if (op === "promote") this.#members.set(nodeId, "voter");
      if (op === "remove") this.#members.delete(nodeId);
    }
    this.#applied++;
    return { op, nodeId, message: "done", members: this.#memberViews() };
  }

  async saveSnapshot(): Promise<SnapshotView> {
    this.#snapshot = { index: this.#applied, term: this.term, bytes: 3 };
    return this.#snapshot;
  }

  async readSnapshot(): ReturnType<Cluster["readSnapshot"]> {
    return this.#snapshot === null ? null : { view: this.#snapshot, bytes: new Uint8Array([1, 2, 3]) };
  }

  #requireLeader(): void {
    if (this.role !== "LEADER") throw new TenureError("NOT_LEADER", "this node does not lead");
  }

  #memberViews(): MemberView[] {
    return [...this.#members].map(([nodeId, kind]) => ({
      nodeId,
      incarnation: "1",
      kind,
      isLeader: nodeId === this.leaderId,
      address: `${nodeId}:7400`,
      url: this.memberUrls[nodeId] ?? null,
      isConnected: true,
      refusal: null,
      progress:
        this.role === "LEADER"
          ? { match: 40, next: 41, lag: 0, state: "replicate", lastContactMs: 3.5, healthy: true }
          : null,
    }));
  }
}
