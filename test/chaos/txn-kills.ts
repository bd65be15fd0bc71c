// Processes that kill themselves at a named point (txn-points.ts), on an order that they are given while they run. They say so in their log before they do:
// only that counts.

import { renameSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Edit } from "../../src/sim/mutants/patch.ts";
import type { TestIsland, TestIslands } from "../archipelago/test-islands.ts";
import { waitFor } from "../servers/index.ts";
import { writePlant } from "../servers/planted.ts";
import type { Armed } from "./txn-kill-hook.ts";
import { POINT_EDITS, type TxnPoint } from "./txn-points.ts";

const HOOK = new URL("./txn-kill-hook.ts", import.meta.url).href;

let orders = 0;
/** By process: what it is told now. */
const standing = new Map<number, Map<TxnPoint, number>>();

/** For every server, before its first start; with other changes of the sources. */
export function plantPoints(islands: TestIslands, edits: readonly Edit[] = []): void {
  for (const island of islands.all) {
    const plant = writePlant(join(islands.directory, `plant-${island.id}.mjs`), [...POINT_EDITS, ...edits]);
    const hook = ["--import", `${HOOK}?armed=${encodeURIComponent(armedFile(island))}`];
    island.node.nodeFlags = [...island.node.nodeFlags, ...hook, ...plant];
  }
}

/** One process, with one order; it may have others at other points. */
export class ArmedServer {
  readonly island: TestIsland;
  readonly #pid: number;
  readonly #point: TxnPoint;
  /** Since which line of its log. */
  readonly #from: number;

  private constructor(island: TestIsland, pid: number, point: TxnPoint) {
    this.island = island;
    this.#pid = pid;
    this.#point = point;
    this.#from = island.logged.length;
  }

  /** At the n-th passage from now on. */
  static async arm(island: TestIsland, point: TxnPoint, passages = 1): Promise<ArmedServer> {
    // One that answers listens to signals too: before that they would end it.
    let pid: number | undefined;
    await waitFor(`${island.id} to answer`, async () => {
      pid = island.node.pid;
      return pid !== undefined && (await island.view()) !== null && island.node.pid === pid;
    });
    const armed = new ArmedServer(island, pid!, point);
    await armed.#order(point, passages);
    return armed;
  }

  /** Whatever has ended it; a process that was started since does not count. */
  get isGone(): boolean {
    return this.island.node.pid !== this.#pid;
  }

  /** It has killed itself there. */
  get isKilled(): boolean {
    if (!this.isGone) return false;
    const { logged } = this.island;
    return logged.slice(this.#from).some((line) => line.event === "txn-killed-at" && line.point === this.#point);
  }

  async disarm(): Promise<void> {
    await this.#order(this.#point, null);
  }

  /** Nothing to one that is gone: it starts with no order. Null: taken back. */
  async #order(point: TxnPoint, passages: number | null): Promise<void> {
    if (this.isGone) return void standing.delete(this.#pid);
    const points = standing.get(this.#pid) ?? new Map<TxnPoint, number>();
    standing.set(this.#pid, points);
    if (passages === null) points.delete(point);
    else points.set(point, passages);
    const order = ++orders;
    const armed: Armed = { points: Object.fromEntries(points), order };
    // In one step: it may be reading the one before.
    const file = armedFile(this.island);
    writeFileSync(`${file}.new`, JSON.stringify(armed));
    renameSync(`${file}.new`, file);
    this.island.node.signal("SIGUSR2");
    // The next order may come before this one is read: it has both.
    const isRead = (): boolean => this.island.logged.some((line) => (line.order ?? 0) >= order);
    await waitFor(`${this.island.id} to be armed`, () => isRead() || this.isGone);
  }
}

function armedFile({ node }: TestIsland): string {
  return join(node.home, "armed.json");
}
