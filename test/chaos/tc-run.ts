// A run of `chaos tc`:
//
//   start ──▶ (fault, changes of the registry ──▶ all agree ──▶ the registry is compared) … ──▶ judged
//
// A run in which a fault of the plan did not happen, or hardly anything was asked, has failed (trap 33).

import { join } from "node:path";
import { seededRandom } from "../../src/core/kit/random.ts";
import type { Edit } from "../../src/sim/mutants/patch.ts";
import { TestIslands } from "../archipelago/test-islands.ts";
import { writePlant } from "../servers/planted.ts";
import { figuresOf } from "./figures.ts";
import { MEASURED, NODE_FAULTS, TcFaults, WIRE_FAULTS } from "./tc-faults.ts";
import { TcJudge } from "./tc-judge.ts";
import { TcRegistry } from "./tc-registry.ts";

const MS_PER_MINUTE = 60_000;
const AGREE_MS_MAX = 120_000;
const SAMPLES_MIN = 100;

export interface TcRunOptions {
  readonly minutes: number;
  readonly seed: number;
  readonly edits?: readonly Edit[] | undefined;
  readonly signal: AbortSignal;
  readonly log: (line: string) => void;
}

export type TcRunResult = Awaited<ReturnType<typeof runTc>>;

export async function runTc(options: TcRunOptions) {
  const { edits = [], seed } = options;
  await using islands = await TestIslands.make({ isProxied: true });
  for (const { node } of islands.all) {
    node.nodeFlags = [...node.nodeFlags, ...writePlant(join(islands.directory, `plant-${node.id}.mjs`), edits)];
  }
  const random = seededRandom(seed);
  const judge = new TcJudge(islands);
  const faults = new TcFaults({ islands, judge, random: random.fork("faults") });
  const registry = new TcRegistry(islands, random.fork("registry"));
  const failed: string[] = [];
  const run: Run = { options, islands, judge, faults, registry, failed };
  try {
    for (const island of islands.all) island.start();
    await islands.settled();
    judge.start();
    await strike(run);
  } catch (error) {
    failed.push((error as Error).message);
  }
  await judge.stop();
  const { samples, ...judged } = judge.result;
  for (const [what, count] of Object.entries(judged))
    if (what !== "elections" && count > 0) failed.push(`${what}: ${count}`);
  if (samples < SAMPLES_MIN) failed.push(`only ${samples} answers of islands`);
  if (registry.changes.made === 0) failed.push("no change of the registry was made");
  for (const kind of [...MEASURED, ...NODE_FAULTS, ...WIRE_FAULTS])
    if (!faults.fired.has(kind)) failed.push(`the fault ${kind} never happened`);
  if (options.signal.aborted) failed.push("interrupted");
  const timesOf = (kind: (typeof MEASURED)[number]) => figuresOf(faults.measured.get(kind)!);
  return {
    faults: Object.fromEntries(faults.fired),
    samples,
    ...judged,
    registry_split: registry.split,
    registry_changes: registry.changes,
    leaves_refused: faults.refusedLeaves,
    leave: timesOf("leave-leader"),
    kill: timesOf("kill-leader"),
    stop: timesOf("stop-leader"),
    failed,
  };
}

interface Run {
  readonly options: TcRunOptions;
  readonly islands: TestIslands;
  readonly judge: TcJudge;
  readonly faults: TcFaults;
  readonly registry: TcRegistry;
  readonly failed: string[];
}

/** Rounds of all kinds, until the time is over: those that are measured alone, the others next to a wire that is cut or next to none. */
async function strike(run: Run): Promise<void> {
  const { options, faults } = run;
  const { minutes, seed, signal } = options;
  const random = seededRandom(seed).fork("rounds");
  const untilMs = performance.now() + minutes * MS_PER_MINUTE;
  for (let round = 0; (round === 0 || performance.now() < untilMs) && !signal.aborted; round++) {
    const isDue = (): boolean => !signal.aborted && (round === 0 || performance.now() < untilMs);
    for (const kind of MEASURED) {
      if (!isDue()) return;
      await fault(run, async () => `${kind} ${await faults.measure(kind)} ms`);
    }
    for (const kind of shuffled(NODE_FAULTS, random)) {
      if (!isDue()) return;
      await fault(run, () => faults.strikeNode(kind));
    }
    for (const wire of shuffled(WIRE_FAULTS, random)) {
      if (!isDue()) return;
      const beside = random.chance(0.5) ? null : random.pick(NODE_FAULTS);
      await fault(run, async () => {
        const both = [faults.strikeWire(wire), ...(beside === null ? [] : [faults.strikeNode(beside)])];
        return (await Promise.all(both)).join(", ");
      });
    }
  }
}

/** The registry is changed meanwhile; afterwards all agree. */
async function fault({ options, islands, registry }: Run, strikes: () => Promise<string>): Promise<void> {
  const striking = strikes();
  const [what, change] = await Promise.all([striking, registry.change()]);
  const fromMs = performance.now();
  await islands.settled(AGREE_MS_MAX);
  const wrong = await registry.check();
  const agreedMs = Math.round(performance.now() - fromMs);
  options.log(
    `${what}; ${change}; agreed after ${agreedMs} ms${wrong.length === 0 ? "" : `; FAILED: ${wrong.join("; ")}`}`,
  );
  if (wrong.length > 0) throw new Error(`the registry is split: ${wrong.join("; ")}`);
}

function shuffled<T>(all: readonly T[], random: ReturnType<typeof seededRandom>): readonly T[] {
  const left = [...all];
  return all.map(() => left.splice(random.below(left.length), 1)[0]!);
}
