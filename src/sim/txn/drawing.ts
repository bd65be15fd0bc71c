// Bodies of transactions, drawn by what a client has read a moment before at some node of each island.

import { assertNever } from "../../core/kit/assert.ts";
import type { Random } from "../../core/kit/random.ts";
import { PLAIN_SPEC } from "../../core/jobs/model.ts";
import type { BackendHash, TxnOperation } from "../../core/txn/model.ts";
import type { TxnBody } from "../../ports/transactions.ts";
import { accountsOf, cursorOf, MOVED, movedScopeOf } from "./accounts.ts";
import type { SimIsland } from "./island.ts";
import type { BodyKind } from "./oracle/bodies.ts";
import type { TxnStage } from "./stage.ts";

export type Drawn = Omit<TxnBody, "id">;

export const TRIES = {
  attemptsMax: 1,
  lossesMax: 5,
  retentionMs: 3_600_000,
  backoff: { baseMs: 50, maxMs: 100 },
} as const;
const MOVED_TTL_MS = [6_000, 60_000] as const;
const HOME_GIVEN_RATE = 0.3;

export class Drawing {
  readonly #stage: TxnStage;
  readonly #random: Random;
  #sessions = 0;

  constructor(stage: TxnStage, random: Random) {
    this.#stage = stage;
    this.#random = random;
  }

  /** Null: there is nothing to be done of this kind now. `body`: the number that its values name. */
  draw(kind: BodyKind, body: number): Drawn | null {
    switch (kind) {
      case "transfer":
      case "conflicting":
      case "probe":
      case "staged":
        return this.#transfer(body, kind === "probe" ? this.#stage.islands : this.#some(2));
      case "inside":
        return this.#transfer(body, this.#some(1));
      case "move":
        return this.#move(body);
      case "fenced":
        return this.#fenced(body);
      case "jobs":
        return this.#jobs(body);
      case "mixed":
        return this.#mixed(body);
      default:
        return assertNever(kind, "kind of body");
    }
  }

  #some(least: number): readonly SimIsland[] {
    const islands = [...this.#stage.islands];
    const count = least === 1 ? 1 : Math.max(least, 2 + this.#random.below(islands.length - 1));
    while (islands.length > count) islands.splice(this.#random.below(islands.length), 1);
    return islands;
  }

  /** From one account to others; of one island, between two of its accounts. */
  #transfer(body: number, islands: readonly SimIsland[]): Drawn | null {
    const random = this.#random;
    const names = accountsOf(this.#stage.knobs.accounts);
    const places = islands.map((island) => ({ island, name: random.pick(names) }));
    if (islands.length === 1) {
      const other = names.find((name) => name !== places[0]!.name);
      if (other === undefined) return null;
      places.push({ island: islands[0]!, name: other });
    }
    const read = places.map(({ island, name }) => ({ island, name, view: read1(island, name) }));
    if (read.some(({ view }) => view === null)) return null;
    const amount = 1 + random.below(10);
    const puts = read.map(({ island, name, view }, at) => {
      const sign = at === 0 ? 1 - read.length : 1;
      const balance = (view!.value as { balance: number }).balance + sign * amount;
      return { island, operation: put(name, { balance, body }, view!.version) };
    });
    return this.#body(puts, random.chance(HOME_GIVEN_RATE) ? this.#anyHome() : null);
  }

  /** Release and delete where it is; acquire, create and work elsewhere. Where nobody leads, somebody does after it. */
  #move(body: number): Drawn | null {
    const random = this.#random;
    const moved = random.pick(MOVED);
    const [cursor, scope] = [cursorOf(moved), movedScopeOf(moved)];
    const from = this.#stage.islands.find((island) => read1(island, cursor) !== null);
    if (from === undefined) return null;
    const { version } = read1(from, cursor)!;
    const epoch = from.any(random)?.scopes.get(scope)?.holder?.epoch ?? null;
    const acquire = this.#acquire(scope, random.pick(MOVED_TTL_MS));
    const job = jobOf(body, 1);
    if (epoch === null) {
      const here = [put(cursor, { balance: 0, body }, version), acquire, job];
      return this.#body(
        here.map((operation) => ({ island: from, operation })),
        null,
      );
    }
    const to = random.pick(this.#stage.islands.filter((island) => island !== from));
    const operations = [
      { island: from, operation: { kind: "scope-release", scope, epoch } as const },
      { island: from, operation: { kind: "value-delete", name: cursor, ifVersion: version } as const },
      { island: from, operation: put(`left/${moved}`, { body }, null) },
      { island: to, operation: acquire },
      { island: to, operation: put(cursor, { balance: 0, body }, 0) },
      { island: to, operation: job },
    ];
    return this.#body(operations, null, [{ backendHash: from.hash, scope, epoch }]);
  }

  /** While an epoch is held that somebody was granted, as far as he knows. */
  #fenced(body: number): Drawn | null {
    const random = this.#random;
    const held = this.#stage.writers.anyHeld(random);
    if (held === null) return null;
    const { island, scope, epoch } = held;
    const others = this.#some(1).filter((one) => one !== island);
    const operations: Placed[] = [{ island, operation: put(`led/${scope}`, { body }, null) }];
    for (const other of others) operations.push({ island: other, operation: put(`led/${scope}`, { body }, null) });
    if (random.chance(0.3)) operations.push({ island, operation: { kind: "scope-release", scope, epoch } });
    // Home is elsewhere, and the scope is locked until it has decided.
    if (random.chance(0.3) && others.length > 0) {
      operations.push({ island, operation: { kind: "scope-release", scope, epoch } });
      return this.#body(unique(operations), others[0]!.hash);
    }
    return this.#body(unique(operations), null, [{ backendHash: island.hash, scope, epoch }]);
  }

  #jobs(body: number): Drawn {
    const operations = this.#some(1 + this.#random.below(2)).flatMap((island): Placed[] => [
      { island, operation: jobOf(body, 1) },
      { island, operation: put(`worked/${body % 3}`, { body }, null) },
      { island, operation: jobOf(body, 2) },
    ]);
    return this.#body(operations, this.#random.chance(HOME_GIVEN_RATE) ? this.#anyHome() : null);
  }

  /** Creations, deletions and checks, of values that others write too. */
  #mixed(body: number): Drawn | null {
    const random = this.#random;
    const operations: Placed[] = [];
    for (const island of this.#some(2)) {
      operations.push({ island, operation: put(`mixed/${random.below(3)}`, { body }, random.pick([null, 0])) });
      const checked = read1(island, random.pick(accountsOf(this.#stage.knobs.accounts)));
      if (checked !== null && random.chance(0.5))
        operations.push({ island, operation: { kind: "value-check", name: checked.name, ifVersion: checked.version } });
      const { scope, free } = this.#stage.writers.any(random);
      if (random.chance(0.3)) operations.push({ island, operation: this.#acquire(scope, random.pick(MOVED_TTL_MS)) });
      if (random.chance(0.5))
        operations.push({ island, operation: { kind: "value-delete", name: free, ifVersion: null } });
      else operations.push({ island, operation: { kind: "value-check", name: free, ifVersion: 0 } });
      if (random.chance(0.3)) operations.push({ island, operation: jobOf(body, 1) });
    }
    return this.#body(unique(operations), random.chance(HOME_GIVEN_RATE) ? this.#anyHome() : null);
  }

  #acquire(scope: string, ttlMs: number): TxnOperation {
    const session = `mover/${++this.#sessions}`;
    return { kind: "scope-acquire", scope, session, identity: "mover", metadata: {}, ttlMs };
  }

  #anyHome(): BackendHash {
    return this.#random.pick(this.#stage.islands).hash;
  }

  #body(placed: readonly Placed[], home: BackendHash | null, require: Drawn["require"] = []): Drawn {
    const byIsland = Map.groupBy(placed, ({ island }) => island.hash);
    const participants = [...byIsland].map(([backendHash, all]) => ({
      backendHash,
      operations: all.map(({ operation }) => operation),
    }));
    return { home, timeoutMs: this.#stage.knobs.timeoutMs, require, participants };
  }
}

interface Placed {
  readonly island: SimIsland;
  readonly operation: TxnOperation;
}

/** As some node of the island shows it; null: it shows none. */
function read1(island: SimIsland, name: string) {
  return island.lookAt()?.values.get(name) ?? null;
}

function put(
  name: string,
  content: { readonly balance?: number; readonly body: number },
  ifVersion: number | null,
): TxnOperation {
  // As canonical JSON has it.
  const text = JSON.stringify(
    content.balance === undefined ? { body: content.body } : { balance: content.balance, body: content.body },
  );
  return { kind: "value-put", name, data: new TextEncoder().encode(text), ifVersion };
}

function jobOf(body: number, at: number): TxnOperation {
  return { kind: "job-submit", spec: { ...PLAIN_SPEC, ...TRIES, kind: "txn", payload: { at, body } } };
}

/** One operation of each value and of each scope. */
function unique(placed: readonly Placed[]): readonly Placed[] {
  const known = new Set<string>();
  return placed.filter(({ island, operation }) => {
    if (operation.kind === "job-submit") return true;
    const key = `${island.id} ${"scope" in operation ? operation.scope : `value ${operation.name}`}`;
    return known.has(key) ? false : known.add(key).has(key);
  });
}
