// What an operator does to simulated coordinators: lets nodes leave, stops them in order, moves them, recovers one where no quorum can come back.

import { nodeIdOf } from "../../core/kit/ids.ts";
import { comparePositions, encodeLedger, majorityOf, recovered, type Roster } from "../../core/lease/index.ts";
import { LEDGER_NAME } from "../../controller/coordinators/index.ts";
import { reached } from "../kernel/index.ts";
import { TC_RESCUE_EVERY_MS, TC_STOPPED_WITHIN_MS } from "./limits.ts";
import type { TcNode } from "./node.ts";
import type { Stage } from "./stage.ts";

export class Operator {
  /** Who left, and is not to be found in any list. */
  readonly left = new Set<string>();
  readonly #stage: Stage;
  readonly #leaving = new Set<string>();
  #resigned = 0;

  constructor(stage: Stage) {
    this.#stage = stage;
  }

  /** Whoever is about to leave. */
  get leaving(): readonly string[] {
    return [...this.#leaving];
  }

  booted({ name }: TcNode): void {
    this.left.delete(name);
    this.#leaving.delete(name);
  }

  calmDown(): void {
    const { world } = this.#stage;
    for (const name of this.left) world.call(name, () => void this.#stage.node(name)?.service.rejoin());
    this.left.clear();
    for (const node of this.#stage.nodes) this.want(node.name, true);
    this.#rescueAfter(100);
  }

  leave(name: string): boolean {
    const { world } = this.#stage;
    const node = this.#stage.node(name);
    if (node === undefined || this.left.has(name) || this.#leaving.has(name)) return false;
    if (node.coordinator.ledger.clusterId === null) return false;
    this.left.add(name);
    this.#leaving.add(name);
    return world.call(name, () => {
      const life = node.boot.life;
      void node.service.leave().then((outcome) => {
        this.#stage.tell(node, `leave: ${outcome.kind}`);
        this.#leaving.delete(name);
        if (outcome.kind === "left") this.#stage.hasLeft(node);
        if (outcome.kind !== "left") this.left.delete(name);
        else if (this.#stage.isCalm && this.#stage.node(name)?.boot.life === life) void node.service.rejoin();
        if (outcome.kind === "left" && this.#stage.isCalm) this.left.delete(name);
      });
    });
  }

  /** Whoever has left is asked to leave once more, as by somebody whose answer was lost. */
  leaveAgain(name: string): void {
    const node = this.#stage.node(name);
    if (node === undefined || !this.left.has(name) || this.#leaving.has(name)) return;
    const { world, oracle } = this.#stage;
    world.call(name, () => {
      void node.service.leave().then(({ kind }) => {
        reached(oracle.probes, "left-twice");
        if (kind !== "left") world.report(name, `it had left, and says "${kind}" where it is asked to leave again`);
      });
    });
  }

  rejoin(name: string): void {
    const node = this.#stage.node(name);
    if (node === undefined || !this.left.delete(name)) return;
    reached(this.#stage.oracle.probes, "left-and-came-back");
    this.#stage.world.call(name, () => void node.service.rejoin());
  }

  /** In order, and started again. False: it does not run, or is about to leave. */
  stop(name: string, restartAfterMs: number): boolean {
    const { world } = this.#stage;
    const node = this.#stage.node(name);
    if (node === undefined || this.#leaving.has(name)) return false;
    this.#leaving.add(name);
    const { scheduler } = world;
    const isThere = (): boolean => this.#stage.node(name) === node;
    scheduler.schedule(world.nowMs + TC_STOPPED_WITHIN_MS, scheduler.owner("operator"), () => {
      if (isThere()) world.report(name, "it was stopped, and still runs");
    });
    return world.call(name, () => {
      void node.service.stop().then(() => {
        if (!isThere()) return;
        reached(this.#stage.oracle.probes, node.isVoter ? "stopped-as-a-voter" : "stopped-and-left");
        world.crash(name);
        world.startAfter(name, this.#stage.isCalm ? 100 : restartAfterMs);
      });
    });
  }

  resign(): boolean {
    const { leader, world } = this.#stage;
    if (leader === undefined) return false;
    // In turn: the coordinator resigns, and its work has to end; or the work ends, and the elector resigns.
    const isByWork = this.#resigned++ % 2 === 1;
    return world.call(leader.name, () => (isByWork ? leader.finish() : void leader.coordinator.resign()));
  }

  /** Nobody there wants to lead any more, or somebody does again. */
  want(name: string, isWanted: boolean): boolean {
    const node = this.#stage.node(name);
    if (node === undefined) return false;
    this.#stage.oracle.wanted(node, isWanted);
    return this.#stage.world.call(name, () => node.want(isWanted));
  }

  /** Started again at another address; with `other`, the two change places. */
  move(name: string, other: string | undefined, restartAfterMs: number): void {
    const { world, places } = this.#stage;
    for (const one of [name, ...(other === undefined ? [] : [other])]) {
      world.crash(one);
      world.startAfter(one, restartAfterMs);
    }
    places.move(name, other);
  }

  /** An older copy of its disk is put back. What was its log is set aside, so that the log begins anew. */
  putBack(name: string, image: ReadonlyMap<string, Uint8Array>): void {
    const { world, places, oracle } = this.#stage;
    world.crash(name);
    world.node(name).disk.restore(image);
    places.newLog(name);
    oracle.present.delete(name);
    world.startAfter(name, 1);
  }

  /** `recover --force`, on this node's disk, while it does not run. False: it is in no cluster. */
  recover(name: string): boolean {
    const { world, places, oracle, digest } = this.#stage;
    const ledger = this.#stage.durable(name);
    const self = oracle.present.get(name);
    if (ledger === null || ledger.clusterId === null || ledger.roster === null || self === undefined) return false;
    world.crash(name);
    const kept = this.#stage.durable(name);
    if (kept === null) return false;
    const { disk } = world.node(name);
    const next = recovered(kept, { peer: self, endpoint: places.endpointOf(name) });
    const bytes = encodeLedger({ voter: self, log: places.logOf(name), ledger: next }, digest);
    disk.restore(new Map([...disk.image(), [LEDGER_NAME, bytes]]));
    oracle.recovered(self, next);
    // What others had acknowledged and this node had not stored is lost: that is the operator's risk.
    this.#stage.writers.forget();
    reached(oracle.probes, "recovered-into-a-generation");
    world.startAfter(name, 1);
    return true;
  }

  /** Again and again: what is left of a first cluster may meet the second one only later. */
  #rescueAfter(ms: number): void {
    const { scheduler, nowMs } = this.#stage.world;
    scheduler.schedule(nowMs + ms, scheduler.owner("operator"), () => {
      this.#rescue();
      this.#rescueAfter(TC_RESCUE_EVERY_MS);
    });
  }

  /** Where no quorum can ever come back, one node is recovered: the one that knows the newest roster. */
  #rescue(): void {
    const { world, names } = this.#stage;
    const known = names.flatMap((name) => {
      const roster = this.#stage.durable(name)?.roster ?? null;
      return roster === null ? [] : [{ name, roster }];
    });
    known.sort((a, b) => comparePositions(b.roster, a.roster));
    const [newest] = known;
    if (newest === undefined) return;
    // Of each cluster the newest roster decides: whoever has it refuses older ones.
    const clusterOf = (name: string): string | null => this.#stage.durable(name)?.clusterId ?? null;
    const clusters = Map.groupBy(known, ({ name }) => clusterOf(name));
    const living = [...clusters.values()]
      .flatMap(([first]) => first!)
      .filter(({ roster }) => this.hasQuorum(roster, new Set()));
    if (living.length === 0) {
      world.scheduler.narrate("operator", () => `recovers ${newest.name}`);
      this.recover(newest.name);
    }
    // A founder that lost its disk has founded again: what is left of its first cluster is given up (`tenure tc discard`).
    const clusterId = clusterOf((living[0] ?? newest).name);
    for (const { name } of known.filter((one) => clusterOf(one.name) !== clusterId)) this.#discard(name);
  }

  #discard(name: string): void {
    const { world, places, oracle } = this.#stage;
    world.crash(name);
    world.node(name).disk.wipe();
    places.newLog(name);
    oracle.present.delete(name);
    world.startAfter(name, 1);
  }

  /** Whether a majority of its voters still has its disk, without those of `gone`. */
  hasQuorum(roster: Roster, gone: ReadonlySet<string>): boolean {
    const { present } = this.#stage.oracle;
    const there = roster.voters.filter(({ peer }) => !gone.has(nodeIdOf(peer)) && present.get(nodeIdOf(peer)) === peer);
    return there.length >= majorityOf(roster.voters.length);
  }

  /** A disk may go as long as every roster that somebody has keeps its quorum. */
  mayWipe(name: string): boolean {
    const gone = new Set([name]);
    const ofDisks = this.#stage.names.map((one) => this.#stage.durable(one)?.roster ?? null);
    const ofLeaders = this.#stage.nodes.map(({ coordinator }) => coordinator.leadership?.roster ?? null);
    return [...ofDisks, ...ofLeaders].every((roster) => roster === null || this.hasQuorum(roster, gone));
  }
}
