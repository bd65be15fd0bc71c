// One run: two or three islands with their coordinators, clients, and a plan of faults, all from one seed. First safety, while the faults last; then
// they are over, and within a bound everything that was begun has ended, everywhere alike.

import { seededRandom } from "../../core/kit/random.ts";
import type { Digest } from "../../ports/digest.ts";
import { noEffect, playScene, type SeedOptions, type SeedResult } from "../kernel/index.ts";
import { converge } from "./end.ts";
import { drawTxnKnobs, type TxnKnobs, type TxnLimits } from "./knobs.ts";
import { TXN_STEPS_MAX } from "./limits.ts";
import { drawTxnPlan, type TxnFault } from "./plan.ts";
import type { TxnProbe } from "./probes.ts";
import { TxnStage } from "./stage.ts";
import { applyTxnFault } from "./strike.ts";

export interface TxnRunOptions extends SeedOptions<TxnLimits, TxnFault> {
  readonly digest: Digest;
}

export interface TxnRunResult extends SeedResult<TxnKnobs, TxnFault, TxnProbe> {
  /** Transactions that home has committed. */
  readonly committed: number;
  readonly asked: number;
  readonly elections: number;
}

export async function runTxnSeed(options: TxnRunOptions): Promise<TxnRunResult> {
  const seed = `txn/${options.seed}`;
  const random = seededRandom(seed);
  const knobs = drawTxnKnobs(random.fork("knobs"), options.limits);
  const { narrate, reversed, digest } = options;
  const stage = new TxnStage({ seed, knobs, narrate, reversed, digest });
  const { world, ledger, probes } = stage;
  const result = await playScene<TxnKnobs, TxnFault, TxnProbe>({
    seed: options.seed,
    world,
    knobs,
    plan: options.plan ?? drawTxnPlan(random.fork("plan"), stage.names, knobs),
    probes,
    strike: (fault, hit) => applyTxnFault(stage, fault, hit),
    begin: () => stage.begin(),
    play: async () => {
      await world.run(() => false, { untilMs: knobs.faultsUntilMs, stepsMax: TXN_STEPS_MAX });
      if (world.finding() !== null) return world.finding();
      stage.calm();
      return (await converge(stage)) ?? world.finding();
    },
    // An island whose clock is days off takes part in nothing.
    emptiness: (faults) =>
      ledger.committed === 0 && knobs.skews !== "days" ? "no traffic: nothing was committed" : noEffect(faults),
  });
  return { ...result, committed: ledger.committed, asked: ledger.nextBody, elections: stage.elections };
}
