// A run of `chaos mesh`:
//
//   start ──▶ traffic and faults, forks in the middle ──▶ traffic ends ──▶ heal ──▶ agree, forks found ──▶ judged
//
// A run in which a fault of the plan did not happen, or hardly any traffic ran, has failed (trap 33).

import { setTimeout as sleep } from "node:timers/promises";
import { seededRandom } from "../../src/core/kit/random.ts";
import type { Edit } from "../../src/sim/mutants/patch.ts";
import { Phases } from "./jobs-phases.ts";
import { MeshFaults, SITE_FAULTS, WIRE_FAULTS } from "./mesh-faults.ts";
import { ATTACKS, Hostile, STRANGERS } from "./mesh-hostile.ts";
import { converge, forksFound, judge, type MeshVerdict, type MeshWorld } from "./mesh-judge.ts";
import { MeshStage } from "./mesh-stage.ts";
import { SiteTraffic } from "./mesh-traffic.ts";
import { Twin, twinId } from "./mesh-twin.ts";

const START_MS_MAX = 300_000;
const FORK_MS_MAX = 400_000;
const HEAL_MS_MAX = 300_000;
const JUDGE_MS_MAX = 400_000;
/** What the faults may take past their time, until each kind has happened. */
const MORE_MS_MAX = 300_000;
const MS_PER_MINUTE = 60_000;
/** Of each site. */
const ACKED_MIN = 10;

export interface MeshRunOptions {
  readonly minutes: number;
  readonly forks: number;
  readonly seed: number;
  readonly edits?: readonly Edit[] | undefined;
  readonly signal: AbortSignal;
  readonly log: (line: string) => void;
}

export interface MeshRunResult {
  readonly faults: Readonly<Record<string, number>>;
  readonly acked: number;
  readonly events: number;
  readonly completed: number;
  readonly lost: number;
  readonly diverged: number;
  readonly bad_pages: { readonly sent: number; readonly refused: number };
  readonly future_pages: number;
  readonly forks: { readonly planted: number; readonly found: number; readonly false: number };
  readonly heal_ms: number | null;
  readonly failed: readonly string[];
}

export async function runMesh(options: MeshRunOptions): Promise<MeshRunResult> {
  return await new Run(options).play();
}

const NOTHING: MeshVerdict = { lost: 0, diverged: 0, events: 0, completed: 0, found: 0, falseForks: 0, failed: [] };

class Run {
  readonly #options: MeshRunOptions;
  readonly #failed: string[] = [];
  readonly #phases: Phases;
  #healMs: number | null = null;
  #verdict = NOTHING;

  constructor(options: MeshRunOptions) {
    this.#options = options;
    this.#phases = new Phases({ log: options.log, hasFailed: () => this.#failed.length > 0 });
  }

  async play(): Promise<MeshRunResult> {
    const { seed, forks, edits } = this.#options;
    const random = seededRandom(seed);
    const twinIds = Array.from({ length: forks }, (_, at) => twinId(at + 1));
    const stage = await MeshStage.start({ guests: [...STRANGERS, ...twinIds], edits });
    const twins: Twin[] = [];
    const hostile = new Hostile(stage, random.fork("hostile"));
    try {
      const traffic = stage.sites.map((site) => new SiteTraffic(site, random.fork(site.id)));
      const faults = new MeshFaults({ stage, random: random.fork("faults"), log: (line) => this.#log(line) });
      const world: MeshWorld = { stage, traffic, hostile, twins };
      await this.#try("start", START_MS_MAX, async () => {
        await hostile.register();
        for (const id of twinIds) twins.push(await Twin.start(id, stage));
        await Promise.all(twins.map((twin) => twin.settle()));
        for (const one of traffic) one.start();
      });
      await this.#strike(world, faults);
      await this.#settle(world);
      this.#proveSomething(world, faults);
      return this.#result(world, faults);
    } finally {
      await hostile.end();
      await Promise.all(twins.map((twin) => twin.end()));
      await stage.end();
    }
  }

  async #strike({ hostile, twins }: MeshWorld, faults: MeshFaults): Promise<void> {
    const { minutes, signal } = this.#options;
    const lastMs = minutes * MS_PER_MINUTE;
    const fromMs = performance.now();
    const isOver = (): boolean => performance.now() - fromMs >= lastMs;
    await this.#try("faults", lastMs + MORE_MS_MAX + FORK_MS_MAX, async () => {
      let areForked = false;
      const forking = async (): Promise<void> => {
        await sleep(lastMs / 2, undefined, { signal }).catch(() => undefined);
        for (const twin of twins) {
          await twin.fork();
          this.#log(`fork ${twin.site.id}`);
        }
        areForked = true;
      };
      const isDone = (): boolean => this.#failed.length > 0 || (isOver() && areForked);
      await Promise.all([
        forking().catch((error: unknown) => this.#fail(error)),
        faults.run(signal, () => isDone() && (faults.hasTriedAll || this.#failed.length > 0)),
        hostile.run(signal, () => isDone() && (hostile.hasTriedAll || this.#failed.length > 0)),
      ]);
    });
  }

  async #settle(world: MeshWorld): Promise<void> {
    const { stage, traffic, hostile } = world;
    await this.#try("heal", HEAL_MS_MAX, () => stage.heal());
    const fromMs = performance.now();
    await this.#try("the end of the traffic", HEAL_MS_MAX, async () => {
      await Promise.all(traffic.map((one) => one.stop()));
      await hostile.deliverAll();
    });
    await this.#try("agree", HEAL_MS_MAX, async () => {
      await converge(world);
      this.#healMs = Math.round(performance.now() - fromMs);
    });
    await this.#try("forks", HEAL_MS_MAX, () => forksFound(world));
    await this.#try("judge", JUDGE_MS_MAX, async () => {
      // A fork that was found is one more event, which travels too.
      this.#verdict = await judge(world, await converge(world));
      this.#failed.push(...this.#verdict.failed);
    });
  }

  #proveSomething({ stage, traffic, hostile, twins }: MeshWorld, faults: MeshFaults): void {
    const wanted = [...SITE_FAULTS, ...WIRE_FAULTS];
    for (const kind of wanted) if (!faults.fired.has(kind)) this.#failed.push(`the fault ${kind} never happened`);
    for (const kind of ATTACKS) if (hostile.sent[kind] === 0) this.#failed.push(`no page was sent: ${kind}`);
    for (const kind of ATTACKS) {
      const taken = hostile.sent[kind] - hostile.refused[kind];
      if (taken > 0) this.#failed.push(`${taken} bad pages were taken: ${kind}`);
    }
    if (hostile.future === 0) this.#failed.push("no event of the future was taken");
    for (const twin of twins) if (!twin.isForked) this.#failed.push(`${twin.site.id} did not fork`);
    for (const { site, acked } of traffic) {
      if (acked.size < ACKED_MIN) this.#failed.push(`only ${acked.size} jobs were acknowledged at ${site.id}`);
    }
    if (this.#verdict.completed === 0) this.#failed.push("no job was completed");
    this.#failed.push(...stage.crashes);
    if (this.#options.signal.aborted) this.#failed.push("interrupted");
  }

  #result({ traffic, hostile, twins }: MeshWorld, faults: MeshFaults): MeshRunResult {
    const { lost, diverged, events, completed, found, falseForks } = this.#verdict;
    const planted = twins.filter(({ isForked }) => isForked).length;
    return {
      faults: { ...Object.fromEntries(faults.fired), ...hostile.sent, fork: planted },
      acked: traffic.reduce((total, { acked }) => total + acked.size, 0),
      events,
      completed,
      lost,
      diverged,
      bad_pages: { sent: sum(hostile.sent), refused: sum(hostile.refused) },
      future_pages: hostile.future,
      forks: { planted, found, false: falseForks },
      heal_ms: this.#healMs,
      failed: this.#failed,
    };
  }

  async #try(name: string, limitMs: number, work: () => Promise<void>): Promise<void> {
    if (this.#failed.length > 0 && name === "faults") return;
    try {
      await this.#phases.run(name, limitMs, work);
    } catch (error) {
      this.#fail(error);
    }
  }

  #fail(error: unknown): void {
    const text = error instanceof Error ? error.message : String(error);
    this.#log(`FAILED: ${text}`);
    this.#failed.push(text);
  }

  #log(line: string): void {
    this.#options.log(`${this.#phases.seconds} s  ${line}`);
  }
}

function sum(counts: Readonly<Record<string, number>>): number {
  return Object.values(counts).reduce((total, count) => total + count, 0);
}
