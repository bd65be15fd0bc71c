// Who is there next to transactions: plain writers of the same values, campaigns for scopes, operators who force them, and clients who submit jobs.

import type { Random } from "../../core/kit/random.ts";
import { PLAIN_SPEC } from "../../core/jobs/model.ts";
import type { AcquireAnswer } from "../../ports/scopes.ts";
import type { Owner } from "../kernel/index.ts";
import { accountsOf } from "./accounts.ts";
import { TRIES } from "./drawing.ts";
import type { SimIsland } from "./island.ts";
import { reached } from "./probes.ts";
import type { TxnStage } from "./stage.ts";
import { TXN_SIM_EVERY_MS, TXN_SIM_HELD_MAX } from "./limits.ts";

const SCOPES = ["led/1", "led/2"];
const FREE = ["free/1", "free/2"];
const TTL_MS = [2_000, 6_000, 20_000] as const;
const ignored = (): void => undefined;

export interface HeldScope {
  readonly island: SimIsland;
  readonly scope: string;
  readonly session: string;
  readonly epoch: number;
}

export class PlainWriters {
  /** What somebody was granted, the last ones; some of it is over. */
  #held: HeldScope[] = [];
  readonly #stage: TxnStage;
  readonly #owner: Owner;
  #isStopped = false;
  #sessions = 0;
  #requests = 0;

  constructor(stage: TxnStage) {
    this.#stage = stage;
    this.#owner = stage.world.scheduler.owner("writers");
  }

  start(): void {
    for (let at = 0; at <= this.#stage.knobs.writers; at++) this.#next(this.#stage.random.fork(`writer/${at}`));
  }

  stop(): void {
    this.#isStopped = true;
  }

  anyHeld(random: Random): HeldScope | null {
    return this.#held.length === 0 ? null : random.chance(0.7) ? this.#held.at(-1)! : random.pick(this.#held);
  }

  /** Of what nobody has for himself. */
  any(random: Random): { readonly scope: string; readonly free: string } {
    return { scope: random.pick(SCOPES), free: random.pick(FREE) };
  }

  #next(random: Random): void {
    const { scheduler, nowMs } = this.#stage.world;
    scheduler.schedule(nowMs + TXN_SIM_EVERY_MS * random.between(0.3, 1.7), this.#owner, () => {
      if (this.#isStopped) return;
      const island = random.pick(this.#stage.islands);
      this.#act(random, island, island.leader() ?? random.pick(island.names));
      this.#next(random);
    });
  }

  #act(random: Random, island: SimIsland, to: string): void {
    const choice = random.next();
    if (choice < 0.35) return this.#claim(random, island, to);
    if (choice < 0.55) return this.#touch(random, island, to);
    if (choice < 0.7) return this.#put(random, to);
    if (choice < 0.75) return this.#submit(to);
    const held = this.anyHeld(random);
    if (held === null) return;
    const { scope, session, epoch } = held;
    const leader = held.island.leader() ?? to;
    if (choice < 0.87)
      return this.#stage.post({
        to: leader,
        ask: ({ scopes }) => scopes.renew(scope, session, epoch),
        arrived: ignored,
      });
    if (choice < 0.94)
      return this.#stage.post({
        to: leader,
        ask: ({ scopes }) => scopes.resign(scope, session, epoch),
        arrived: ignored,
      });
    this.#stage.post({ to: leader, ask: ({ scopes }) => scopes.askResign(scope, true), arrived: ignored });
  }

  #claim(random: Random, island: SimIsland, to: string): void {
    const scope = random.pick(SCOPES);
    const session = `w/${++this.#sessions}`;
    const request = {
      scope,
      session,
      identity: "w",
      metadata: {},
      ttlMs: random.pick(TTL_MS),
      waitMs: random.pick([0, 4_000]),
    };
    const wasLocked = this.#stage.ledger.island(island.hash).locks.has(`scope ${scope}`);
    this.#stage.post<AcquireAnswer>({
      to,
      ask: ({ scopes }) => scopes.acquire(request, new AbortController().signal),
      arrived: (answer) => {
        if (!answer.ok || !answer.value.granted) return;
        if (wasLocked) reached(this.#stage.probes, "claim-waited-for-a-lock");
        const { epoch } = answer.value;
        this.#held.push({ island, scope, session, epoch });
        if (this.#held.length > TXN_SIM_HELD_MAX) this.#held = this.#held.slice(1);
      },
    });
  }

  /** An account is written as it was: another version, and the same balance. */
  #touch(random: Random, island: SimIsland, to: string): void {
    const name = random.pick(accountsOf(this.#stage.knobs.accounts));
    const view = island.lookAt()?.values.get(name) ?? null;
    if (view === null) return;
    const { balance } = view.value as { readonly balance: number };
    this.#stage.post({
      to,
      ask: ({ values }) => values.put({ name, value: { balance }, ifVersion: view.version, fence: null }),
      arrived: (answer) =>
        !answer.ok && answer.error.code === "txn_locked" && reached(this.#stage.probes, "plain-write-locked"),
    });
  }

  #put(random: Random, to: string): void {
    const name = random.pick(FREE);
    const { island, scope, epoch } = this.anyHeld(random) ?? { island: null, scope: "", epoch: 0 };
    const fence = island === null || random.chance(0.6) ? null : { scope, epoch };
    const ask = random.chance(0.3)
      ? { kind: "delete" as const, name, ifVersion: null, fence: null }
      : { kind: "put" as const, name, value: { free: ++this.#requests }, ifVersion: null, fence };
    this.#stage.post<unknown>({
      to,
      ask: ({ values }) => (ask.kind === "delete" ? values.delete(ask) : values.put(ask)),
      arrived: ignored,
    });
  }

  #submit(to: string): void {
    const request = { caller: "c", idempotencyKey: `k${++this.#requests}`, bodyHash: "" };
    const spec = { ...PLAIN_SPEC, ...TRIES, kind: "plain", payload: { n: this.#requests } };
    this.#stage.post({ to, ask: ({ parts }) => parts.jobs.submit(request, [spec]), arrived: ignored });
  }
}
