// Electors that lead until they are closed, with everything that happened to them written down.

import { createElector, type Elector, type EndReason, type Term, type Transition } from "../../src/entry/index.ts";
import { type PooledClient, postgres, type PostgresOptions } from "../../src/entry/postgres.ts";
import { waitFor } from "../servers/index.ts";
import { FAST } from "./test-seat.ts";

export class Candidate {
  readonly elector: Elector;
  readonly transitions: Transition[] = [];
  readonly warnings: string[] = [];
  /** How `lead` ended, before the candidate was closed. */
  refusal: unknown;
  #closing = false;

  constructor(scope: string, options: PostgresOptions<PooledClient>) {
    const warn = (_fields: unknown, message: string): void => void this.warnings.push(message);
    this.elector = createElector({
      scope,
      backend: postgres({ ...FAST, ...options }),
      logger: { info: () => undefined, warn, error: warn },
      onTransition: (transition) => void this.transitions.push(transition),
    });
    this.elector.lead(untilOver).catch((error: unknown) => {
      if (!this.#closing) this.refusal = error;
    });
  }

  get epochs(): number[] {
    return this.transitions.filter((one) => one.kind === "leading").map((one) => one.epoch);
  }

  get ends(): EndReason[] {
    return this.transitions.filter((one) => one.kind === "ended").map((one) => one.reason);
  }

  async close(): Promise<void> {
    this.#closing = true;
    await this.elector.close();
  }
}

export function leaderOf(candidates: readonly Candidate[]): Candidate | undefined {
  return candidates.find((one) => one.elector.gate.isLeader);
}

/** Resolves to the leader, when one of them leads in an epoch above this one. */
export async function led(candidates: readonly Candidate[], above = 0): Promise<{ leader: Candidate; epoch: number }> {
  const isAbove = (one: Candidate): boolean => one.elector.gate.isLeader && (one.epochs.at(-1) ?? 0) > above;
  await waitFor(`a leader above epoch ${above}`, () => candidates.some(isAbove));
  const leader = candidates.find(isAbove);
  if (leader === undefined) throw new Error("the leader is gone again");
  return { leader, epoch: leader.epochs.at(-1) ?? 0 };
}

function untilOver({ signal }: Term): Promise<void> {
  return new Promise((resolve) => signal.addEventListener("abort", () => resolve()));
}
