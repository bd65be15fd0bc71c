// The faults of `chaos tc`. Every kind happens once before any happens twice. What is done to a leader that nothing else disturbs is measured: until the
// next one acts, by the islands' own logs.

import { setTimeout as sleep } from "node:timers/promises";
import { assertNever } from "../../src/core/kit/assert.ts";
import type { Random } from "../../src/core/kit/random.ts";
import { MEMBERSHIP_TTL_MS } from "../../src/core/lease/limits.ts";
import { waitFor } from "../servers/index.ts";
import { type Leads, PATIENT_MS, type TestIsland, type TestIslands } from "../archipelago/test-islands.ts";
import { isStopped } from "./stopped.ts";
import type { TcJudge } from "./tc-judge.ts";

export const MEASURED = ["leave-leader", "kill-leader", "stop-leader"] as const;
export const NODE_FAULTS = ["kill", "kill-majority", "blackout", "stop", "term", "wipe", "leave", "rotate"] as const;
export const WIRE_FAULTS = ["cut", "cut-one-way", "cut-off", "cut-off-out", "cut-off-in"] as const;
export type TcFault = (typeof MEASURED)[number] | (typeof NODE_FAULTS)[number] | (typeof WIRE_FAULTS)[number];

const DOWN_MS_MAX = 6_000;
const LONELY_MS = 3_000;
const LONG_MS_MIN = 500;
const LONG_MS_MAX = 12_000;

export interface TcFaultsOptions {
  readonly islands: TestIslands;
  readonly judge: TcJudge;
  readonly random: Random;
}

export class TcFaults {
  readonly fired = new Map<TcFault, number>();
  readonly measured = new Map<(typeof MEASURED)[number], number[]>(MEASURED.map((kind) => [kind, []]));
  refusedLeaves = 0;
  readonly #islands: TestIslands;
  readonly #judge: TcJudge;
  readonly #random: Random;

  constructor({ islands, judge, random }: TcFaultsOptions) {
    this.#islands = islands;
    this.#judge = judge;
    this.#random = random;
  }

  /** With what it had cost the next leader; all is whole again, but for what the islands have to do themselves. */
  async measure(kind: (typeof MEASURED)[number]): Promise<number> {
    const islands = this.#islands;
    const led = await islands.leader();
    const { island } = led;
    // A moment of a term is as good as any other.
    await sleep(this.#random.below(LONG_MS_MIN));
    const fromMs = Date.now();
    let ms: number;
    switch (kind) {
      case "leave-leader": {
        const [answer, afterMs] = await Promise.all([island.leave(), this.#nextAfter(led, fromMs)]);
        if (answer.status !== 200) throw new Error(`a leave was refused: ${JSON.stringify(answer.body)}`);
        // What comes before the release is written into the registry and kept by everybody, while the leader still leads.
        ms = afterMs - (this.#overMs(led) - fromMs);
        await island.announce();
        break;
      }
      case "kill-leader":
        void island.node.kill9();
        ms = await this.#nextAfter(led, fromMs);
        await waitFor("a process to be gone", () => island.node.pid === undefined);
        island.start();
        break;
      case "stop-leader":
        island.node.stop();
        ms = await this.#nextAfter(led, fromMs).finally(() => island.node.cont());
        break;
      default:
        return assertNever(kind, "fault");
    }
    this.measured.get(kind)!.push(ms);
    this.#count(kind);
    return ms;
  }

  async strikeNode(kind: (typeof NODE_FAULTS)[number]): Promise<string> {
    const islands = this.#islands;
    const shuffled = islands.all.toSorted(() => this.#random.between(-1, 1));
    const island = shuffled[0]!;
    switch (kind) {
      case "kill":
        await this.#down([island]);
        break;
      case "kill-majority":
        // So long that the others are out of the list of the one that is left.
        await this.#down(await islands.followers(), () => undefined, MEMBERSHIP_TTL_MS + LONELY_MS);
        break;
      case "blackout":
        await this.#down(shuffled);
        break;
      case "wipe":
        await this.#down([island], () => island.node.wipe());
        break;
      case "term": {
        const code = await island.node.term();
        if (code !== 0) throw new Error(`${island.id} ended with ${code} after SIGTERM`);
        island.start();
        break;
      }
      case "stop":
        island.node.stop();
        try {
          await waitFor(`${island.id} to be stopped`, () => isStopped(island.node.pid));
          await sleep(this.#random.between(LONG_MS_MIN, LONG_MS_MAX));
        } finally {
          island.node.cont();
        }
        break;
      case "leave": {
        const answer = await island.leave();
        if (answer.status === 200) await island.announce();
        else this.refusedLeaves++;
        break;
      }
      case "rotate":
        await this.#rotate();
        break;
      default:
        return assertNever(kind, "fault");
    }
    this.#count(kind);
    return `${kind} ${kind === "rotate" || kind === "blackout" ? "all" : island.id}`;
  }

  async strikeWire(kind: (typeof WIRE_FAULTS)[number]): Promise<string> {
    const { all } = this.#islands;
    const island = this.#random.pick(all);
    const other = this.#random.pick(all.filter((one) => one !== island));
    const out = [...island.links.values()];
    const into = all.flatMap((one) => (one === island ? [] : [one.links.get(island.id)!]));
    const links = {
      cut: [island.links.get(other.id)!, other.links.get(island.id)!],
      "cut-one-way": [island.links.get(other.id)!],
      "cut-off": [...out, ...into],
      "cut-off-out": out,
      "cut-off-in": into,
    }[kind];
    if (links.some(({ accepted }) => accepted === 0)) throw new Error(`${kind}: there was no connection to cut`);
    for (const link of links) link.cut("both", this.#random.chance(0.5) ? "unanswered" : "refused");
    await sleep(this.#random.between(LONG_MS_MIN, LONG_MS_MAX));
    const silent = this.#random.chance(0.5) ? "resume" : "reset";
    await Promise.all(links.map((link) => link.heal(silent)));
    this.#count(kind);
    return `${kind} ${island.id}${kind === "cut" || kind === "cut-one-way" ? `, ${other.id}` : ""}`;
  }

  async #down(those: readonly TestIsland[], wipe: () => void = () => undefined, atLeastMs = 0): Promise<void> {
    const before = those.map(({ node }) => node.pid);
    await Promise.all(those.map(({ node }) => node.kill9()));
    const { all } = this.#islands;
    if (all.length - those.length <= all.length / 2) this.#judge.samples.noQuorumSinceMs = performance.now();
    wipe();
    await sleep(atLeastMs + this.#random.below(DOWN_MS_MAX));
    this.#judge.samples.noQuorumSinceMs = null;
    for (const island of those) island.start();
    if (before.includes(undefined)) throw new Error("a process that was to be killed was not there");
  }

  async #rotate(): Promise<void> {
    for (const island of this.#islands.all) {
      const reloads = (): number => island.logged.filter(({ event }) => event === "reloaded").length;
      const before = reloads();
      await island.certify();
      island.node.signal("SIGHUP");
      await waitFor(`${island.id} to read its certificate`, () => reloads() > before);
    }
  }

  /** Milliseconds until another one acts. */
  async #nextAfter({ island, term }: Leads, fromMs: number): Promise<number> {
    let atMs = 0;
    const others = this.#islands.all.filter((one) => one !== island);
    await this.#islands.until(`another leader than ${island.id}`, PATIENT_MS, () => {
      const found = others.flatMap(({ logged }) =>
        logged.filter(({ msg, epoch }) => msg === "leading" && (epoch ?? 0) > term),
      );
      atMs = Math.min(...found.map((line) => line.atMs));
      return found.length > 0;
    });
    return atMs - fromMs;
  }

  /** When its work of that term had ended. */
  #overMs({ island, term }: Leads): number {
    return island.logged.find(({ event, term: over }) => event === "tc_over" && over === term)!.atMs;
  }

  #count(kind: TcFault): void {
    this.fired.set(kind, (this.fired.get(kind) ?? 0) + 1);
  }
}
