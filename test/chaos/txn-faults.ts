// The faults of `chaos txn`. Where nobody passes the point at which a process is to kill itself in time, the order is taken back, and given again later.

import { setTimeout as sleep } from "node:timers/promises";
import { assertNever } from "../../src/core/kit/assert.ts";
import type { Random } from "../../src/core/kit/random.ts";
import { PATIENT_MS, type TestIsland, type TestIslands } from "../archipelago/test-islands.ts";
import { waitFor } from "../servers/index.ts";
import { isStopped } from "./stopped.ts";
import { ArmedServer } from "./txn-kills.ts";
import type { OtherFault } from "./txn-plan.ts";
import type { TxnPoint } from "./txn-points.ts";

const PASSED_MS_MAX = 8_000;
const PASSAGES_MAX = 3;
const STOPPED_MS_MIN = 300;
const STOPPED_MS_MAX = 2_500;
const CUT_MS_MAX = 4_000;
const UP_MS_MAX = 60_000;

export class TxnFaults {
  /** How often each was said to have happened, by the one to whom it did. */
  readonly killsAt = new Map<TxnPoint, number>();
  readonly others = new Map<OtherFault, number>();
  readonly #islands: TestIslands;
  readonly #random: Random;
  /** These stay down. */
  readonly #down = new Set<TestIsland>();

  constructor(islands: TestIslands, random: Random) {
    this.#islands = islands;
    this.#random = random;
  }

  /** False: nobody passed that point in time. All that were killed run again. */
  async killCoordinator(point: TxnPoint, isSlow: boolean): Promise<boolean> {
    // Whoever coordinates when it is passed: that may change meanwhile.
    const killed = await this.#killAt(point, this.#islands.all);
    if (killed === null) return false;
    if (isSlow) await this.#another(killed);
    await this.up();
    return true;
  }

  /** Any island but the one that leads now, which another fault is for. It runs again. */
  async killIsland(point: TxnPoint): Promise<boolean> {
    const { island: leader } = await this.#islands.leader();
    const killed = await this.#killAt(
      point,
      this.#islands.all.filter((one) => one !== leader),
    );
    if (killed === null) return false;
    await this.up();
    return true;
  }

  async strike(fault: OtherFault): Promise<string> {
    const { all } = this.#islands;
    const island = this.#random.pick(all);
    const leads = async (): Promise<TestIsland> => (await this.#islands.leader()).island;
    let struck = island;
    switch (fault) {
      case "kill-island":
        await island.node.kill9();
        break;
      case "kill-all":
        await Promise.all(all.map(({ node }) => node.kill9()));
        break;
      case "stop-leader":
        struck = await leads();
        await this.#stop(struck, async () => void (await this.#islands.leader(struck)));
        break;
      case "stop-island":
        await this.#stop(island, () => sleep(this.#random.between(STOPPED_MS_MIN, STOPPED_MS_MAX)));
        break;
      case "cut":
      case "cut-one-way":
      case "cut-off-leader":
      case "cut-off-island":
        if (fault === "cut-off-leader") struck = await leads();
        await this.#cut(fault, struck);
        break;
      default:
        return assertNever(fault, "fault");
    }
    await this.up();
    this.others.set(fault, (this.others.get(fault) ?? 0) + 1);
    return `${fault} ${struck.id}`;
  }

  /** Leads meanwhile: unless whoever was killed next to it has had everything started. */
  async #another(killed: TestIsland): Promise<void> {
    this.#down.add(killed);
    try {
      await this.#islands.until(`another leader than ${killed.id}`, PATIENT_MS, async () => {
        const leads = (await this.#islands.views()).filter((view) => view.acts_in_term !== null);
        return killed.node.pid !== undefined || leads.some(({ self }) => self.identity !== killed.id);
      });
    } finally {
      this.#down.delete(killed);
    }
  }

  /** All run and answer, but those that are to stay down for a while, and one leads the coordinators. */
  async up(): Promise<void> {
    for (const island of this.#islands.all) {
      if (this.#down.has(island)) continue;
      island.start();
      await this.#islands.until(`${island.id} to answer`, UP_MS_MAX, async () => {
        if (this.#down.has(island)) return true;
        // Killed once more, by an order that was not taken back in time.
        if (island.node.pid === undefined) island.start();
        return (await island.view()) !== null;
      });
    }
    await this.#islands.leader();
  }

  /** The first one that passes it; null: none did. Those that are still armed are disarmed. */
  async #killAt(point: TxnPoint, those: readonly TestIsland[]): Promise<TestIsland | null> {
    const passages = 1 + this.#random.below(PASSAGES_MAX);
    const armed = await Promise.all(those.map((island) => ArmedServer.arm(island, point, passages)));
    const untilMs = performance.now() + PASSED_MS_MAX;
    // Gone for another reason: then it is armed no more.
    const isOver = (): boolean =>
      armed.some(({ isKilled }) => isKilled) || armed.every(({ isGone }) => isGone) || performance.now() > untilMs;
    await waitFor(`${point} to be passed`, isOver, 2 * PASSED_MS_MAX);
    await Promise.all(armed.map((one) => one.disarm()));
    const killed = armed.filter(({ isKilled }) => isKilled);
    if (killed.length > 0) this.killsAt.set(point, (this.killsAt.get(point) ?? 0) + killed.length);
    return killed[0]?.island ?? null;
  }

  async #stop(island: TestIsland, meanwhile: () => Promise<void>): Promise<void> {
    const { pid } = island.node;
    island.node.stop();
    try {
      await waitFor(`${island.id} to be stopped`, () => island.node.pid !== pid || isStopped(pid));
      await meanwhile();
    } finally {
      island.node.cont();
    }
  }

  async #cut(fault: "cut" | "cut-one-way" | "cut-off-leader" | "cut-off-island", island: TestIsland): Promise<void> {
    const { all } = this.#islands;
    const other = this.#random.pick(all.filter((one) => one !== island));
    const out = [...island.links.values()];
    const into = all.flatMap((one) => (one === island ? [] : [one.links.get(island.id)!]));
    const links = {
      cut: [island.links.get(other.id)!, other.links.get(island.id)!],
      "cut-one-way": [this.#random.chance(0.5) ? island.links.get(other.id)! : other.links.get(island.id)!],
      "cut-off-leader": [...out, ...into],
      "cut-off-island": [...out, ...into],
    }[fault];
    if (links.some(({ accepted }) => accepted === 0)) throw new Error(`${fault}: there was no connection to cut`);
    for (const link of links) link.cut("both", this.#random.chance(0.5) ? "unanswered" : "refused");
    if (fault === "cut-off-leader") await this.#nextLeader(island);
    else await sleep(this.#random.between(STOPPED_MS_MIN, CUT_MS_MAX));
    const silent = this.#random.chance(0.5) ? "resume" : "reset";
    await Promise.all(links.map((link) => link.heal(silent)));
  }

  /** The one that was cut off may say for a moment longer that it leads. */
  async #nextLeader(not: TestIsland): Promise<void> {
    await this.#islands.leader(not, PATIENT_MS);
  }
}
