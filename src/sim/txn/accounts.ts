// What the money lies in, and what is moved: values that are there before the first transaction. The sum of all balances never changes, whoever
// moves what; a cursor is at one island.

import type { Values } from "../../ports/values.ts";
import type { Owner } from "../kernel/index.ts";
import type { TxnStage } from "./stage.ts";
import { TXN_SIM_AGAIN_MS } from "./limits.ts";

export const BALANCE = 100;
export const MOVED = ["x", "y"] as const;

export function accountsOf(count: number): readonly string[] {
  return Array.from({ length: count }, (_, at) => `account/${at}`);
}

export function cursorOf(moved: string): string {
  return `cursor/${moved}`;
}

export function movedScopeOf(moved: string): string {
  return `move/${moved}`;
}

/** Creates what is missing, again and again until all of it is there. */
export class Founding {
  readonly #stage: TxnStage;
  readonly #owner: Owner;
  /** By island and name. */
  readonly #missing: { readonly island: string; readonly name: string; readonly balance: number }[] = [];
  #asked = 0;

  constructor(stage: TxnStage) {
    this.#stage = stage;
    this.#owner = stage.world.scheduler.owner("founding");
    const [first] = stage.islands;
    for (const { id } of stage.islands)
      for (const name of accountsOf(stage.knobs.accounts)) this.#missing.push({ island: id, name, balance: BALANCE });
    for (const moved of MOVED) this.#missing.push({ island: first!.id, name: cursorOf(moved), balance: 0 });
  }

  get isDone(): boolean {
    return this.#missing.length === 0;
  }

  start(): void {
    this.#next(300);
  }

  #next(afterMs: number): void {
    const { scheduler, nowMs } = this.#stage.world;
    scheduler.schedule(nowMs + afterMs, this.#owner, () => {
      const next = this.#missing[this.#asked++ % Math.max(1, this.#missing.length)];
      if (next === undefined) return;
      this.#create(next);
      this.#next(TXN_SIM_AGAIN_MS / this.#missing.length);
    });
  }

  #create(one: { readonly island: string; readonly name: string; readonly balance: number }): void {
    const remove = (): void => {
      const at = this.#missing.indexOf(one);
      if (at >= 0) this.#missing.splice(at, 1);
    };
    const island = this.#stage.island(one.island);
    this.#stage.post({
      to: island.leader() ?? island.names[0]!,
      ask: ({ values }: { readonly values: Values }) =>
        values.put({ name: one.name, value: { balance: one.balance }, ifVersion: 0, fence: null }),
      arrived: (answer) => {
        if (answer.ok || answer.error.code === "VERSION_CONFLICT") remove();
      },
    });
  }
}
