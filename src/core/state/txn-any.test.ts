// Transactions over three islands, whatever arrives in whatever order: the rules that no order may break. The coordinator is played as it must be
// (home commits when all others have prepared it, the others when home has), by what is applied; messages come late, twice, and of any term.

import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { VALUES_BYTES_MAX, VALUES_MAX } from "../kit/limits.ts";
import { decide as decideScope, type ScopeCommand } from "../scopes/index.ts";
import {
  decideDelivered,
  decideDropped,
  decideOutcome,
  decideSettledKnown,
  decideTxn,
  locksOf,
  type TxnChange,
  type TxnHeader,
  type TxnOperation,
  type TxnRequest,
  type TxnRequire,
} from "../txn/index.ts";
import { decideValue, type ValueCommand } from "../values/index.ts";
import { StateFold } from "./index.ts";
import { acquire, fence, hashOf, header, Island, job, put, REASON, release } from "./test-island.ts";

const LETTERS = ["a", "b", "c"] as const;
const SCOPES_MAX = 3;
const name = fc.constantFrom("x", "y", "__proto__", "constructor");
const scope = fc.constantFrom("s", "t", "u", "__proto__", "constructor");
const version = fc.oneof({ weight: 5, arbitrary: fc.constant(null) }, fc.integer({ min: 0, max: 3 }));
const text = fc.constantFrom("1", "22", "333", "null");

const operation: fc.Arbitrary<TxnOperation> = fc.oneof(
  { weight: 4, arbitrary: fc.tuple(name, text, version).map(([of, what, ifVersion]) => put(of, what, ifVersion)) },
  fc.record({ kind: fc.constant("value-delete" as const), name, ifVersion: version }),
  fc.record({ kind: fc.constant("value-check" as const), name, ifVersion: fc.integer({ min: 0, max: 3 }) }),
  scope.map((of) => acquire(of)),
  fc.tuple(scope, fc.integer({ min: 1, max: 20 })).map(([of, epoch]) => release(of, epoch)),
  fc.constant(job()),
);
const operations = fc.uniqueArray(operation, { minLength: 1, maxLength: 3, selector: keyOf });

interface Body {
  readonly header: TxnHeader;
  readonly operations: Readonly<Record<string, readonly TxnOperation[]>>;
  readonly require: readonly TxnRequire[];
}

const body: fc.Arbitrary<Body> = fc
  .record({
    home: fc.constantFrom(...LETTERS),
    of: fc.subarray([...LETTERS], { minLength: 1 }),
    each: fc.tuple(operations, operations, operations),
    require: fc.oneof(
      { weight: 4, arbitrary: fc.constant([]) },
      fc.tuple(fc.record({ scope, epoch: fc.integer({ min: 1, max: 9 }) })),
    ),
  })
  .map(({ home, of, each, require }) => ({
    header: header(home, of.join("")),
    operations: Object.fromEntries(of.map((letter) => [letter, each[LETTERS.indexOf(letter)]!])),
    require,
  }));

const KINDS = ["prepare", "prepare", "commit", "commit", "rollback", "inquire", "settled", "stage", "resolve"] as const;

const at = fc.constantFrom(...LETTERS);
const txn = fc.nat(5);
const term = fc.oneof({ weight: 6, arbitrary: fc.constant(2) }, fc.integer({ min: 1, max: 3 }));

const step = fc.oneof(
  { weight: 8, arbitrary: fc.record({ what: fc.constantFrom(...KINDS), txn, at, term }) },
  // What the coordinator would do next with it.
  { weight: 12, arbitrary: fc.record({ what: fc.constant("drive" as const), txn, at, term: fc.constant(2) }) },
  { weight: 1, arbitrary: fc.record({ what: fc.constant("other-body" as const), txn, at, term }) },
  { weight: 2, arbitrary: fc.record({ what: fc.constant("value" as const), at, name, text }) },
  {
    weight: 2,
    arbitrary: fc.record({
      what: fc.constant("scope" as const),
      at,
      scope,
      kind: fc.constantFrom("acquire" as const, "force" as const),
    }),
  },
  {
    weight: 4,
    arbitrary: fc.record({
      what: fc.constantFrom("apply", "apply", "apply-all", "give-up", "restart", "housekeeping"),
      at,
    }),
  },
);
type Step = typeof step extends fc.Arbitrary<infer T> ? T : never;

function keyOf(one: TxnOperation): string {
  if (one.kind === "job-submit") return "job";
  return "name" in one ? `value ${one.name}` : `scope ${one.scope}`;
}

function keyOfTxn(letter: string, { id, digest }: TxnHeader): string {
  return `${letter} ${id} ${digest}`;
}

class World {
  readonly islands: Record<string, Island> = Object.fromEntries(
    LETTERS.map((letter) => [letter, new Island(letter, new StateFold(SCOPES_MAX))]),
  );
  readonly #bodies: readonly Body[];
  /** What was applied somewhere as decided, by island and id. */
  readonly #decided = new Map<string, string>();

  constructor(bodies: readonly Body[]) {
    this.#bodies = bodies;
  }

  play(one: Step): void {
    const island = this.islands[one.at]!;
    if (one.what === "value") this.#value(island, one.name, one.text);
    else if (one.what === "scope") this.#scope(island, one.scope, one.kind);
    else if ("txn" in one) this.#call(one, island, this.#bodies[one.txn % this.#bodies.length]!);
    else this.#log(one.what, island, one.at);
    this.check([one.at]);
  }

  /** Everything arrives everywhere, often enough. */
  rest(): void {
    for (let round = 0; round < 4; round++)
      for (const island of Object.values(this.islands)) {
        for (const { header: txn } of this.#bodies) {
          this.#resolve(island, txn);
          island.applyAll();
        }
        this.#housekeep(island);
        island.applyAll();
      }
    this.check(LETTERS);
  }

  check(letters: readonly string[]): void {
    for (const letter of letters) this.#checkIsland(letter, this.islands[letter]!);
    for (const { header: of } of this.#bodies) {
      const outcomes = LETTERS.map((letter) => this.#decided.get(keyOfTxn(letter, of)));
      if (outcomes.includes("committed") && outcomes.includes("rolled-back")) expect.fail(`${of.id} is half applied`);
    }
  }

  #checkIsland(letter: string, { fold, head }: Island): void {
    expect(fold.counts).toEqual({ malformed: 0, unfit: 0 });
    for (const { values, bytes, scopes } of [fold.reserved, head.reserved])
      if (Math.min(values, bytes, scopes) < 0) expect.fail("less than nothing is reserved");
    if (fold.scopes.held + fold.reserved.scopes > SCOPES_MAX) expect.fail("more scopes are promised than there are");
    const prepared = [...fold.txns.live(null)].filter(({ phase }) => phase === "prepared");
    for (const what of ["values", "bytes", "scopes"] as const)
      if (fold.reserved[what] !== prepared.reduce((sum, { reserved }) => sum + reserved[what], 0))
        expect.fail(`the sum of reserved ${what} is wrong`);
    for (const { header: of, operations: locked } of prepared)
      for (const key of locksOf(locked)) if (fold.lockedBy(key) !== of.id) expect.fail(`${of.id} has lost a lock`);
    for (const { header: of, phase } of fold.txns.from(null)) {
      if (phase !== "committed" && phase !== "rolled-back") continue;
      const before = this.#decided.get(keyOfTxn(letter, of)) ?? phase;
      if (before !== phase) expect.fail(`${of.id} was ${before}, and is ${phase}`);
      this.#decided.set(keyOfTxn(letter, of), phase);
    }
  }

  // ---- calls -------------------------------------------------------------------------------------------

  #call(one: Extract<Step, { readonly txn: number }>, island: Island, { header: txn, require, ...rest }: Body): void {
    const letter = one.at;
    const mine = rest.operations[letter] ?? null;
    const by = fence(one.term);
    switch (one.what) {
      case "other-body":
        return this.#ask(island, {
          kind: "prepare",
          header: { ...txn, digest: "1d".repeat(32) },
          operations: mine ?? [put("x")],
          fence: by,
        });
      case "stage":
        return this.#ask(island, {
          kind: "stage",
          id: txn.id,
          home: txn.home,
          by: "client",
          operations: mine ?? [put("x")],
          expiresInMs: 1_000,
        });
      case "prepare":
        return this.#ask(island, { kind: "prepare", header: txn, operations: mine, fence: by });
      case "commit":
        if (!this.#mayCommit(letter, txn)) return;
        return this.#ask(island, {
          kind: "commit",
          header: txn,
          operations: island.self === txn.home ? mine : null,
          require,
          fence: by,
        });
      case "rollback":
        return this.#ask(island, { kind: "rollback", header: txn, reason: REASON, fence: by });
      case "inquire":
        return this.#ask(island, { kind: "inquire", header: txn });
      case "settled":
        return this.#report(island, txn);
      case "drive":
        return this.#drive(txn, one.txn);
      default:
        return this.#resolve(island, txn);
    }
  }

  #ask(island: Island, request: Exclude<TxnRequest, { readonly kind: "recover" }>): void {
    this.#compare(island, request);
    const decision = decideTxn(island.head, request, island.context);
    if (decision.kind === "record") island.append(decision.changes);
  }

  /** What the coordinator does next with it, everywhere; it is applied. */
  #drive(of: TxnHeader, number: number): void {
    const isKnown = (letter: string): boolean => this.islands[letter]!.fold.txns.get(of.id) !== undefined;
    const home = LETTERS.filter((letter) => hashOf(letter) === of.home);
    const others = LETTERS.filter((letter) => of.participants.includes(hashOf(letter)) && !home.includes(letter));
    const isPrepared = others.every(isKnown);
    for (const letter of isPrepared && !home.some(isKnown) ? home : others) {
      this.play({ what: isPrepared ? "commit" : "prepare", txn: number, at: letter, term: 2 });
      this.islands[letter]!.applyAll();
    }
  }

  #mayCommit(letter: string, txn: TxnHeader): boolean {
    const home = this.#home(txn);
    if (home.self !== hashOf(letter)) return home.fold.txns.get(txn.id)?.phase === "committed";
    const others = LETTERS.filter((one) => txn.participants.includes(hashOf(one)) && hashOf(one) !== txn.home);
    return others.every((one) => {
      const state = this.islands[one]!.fold.txns.get(txn.id);
      return state?.phase === "prepared" && state.header.digest === txn.digest;
    });
  }

  /** What is prepared there asks home, and does what home answers. */
  #resolve(island: Island, txn: TxnHeader): void {
    if (island.fold.txns.get(txn.id)?.phase !== "prepared") return;
    const home = this.#home(txn);
    const answer = home.call({ kind: "inquire", header: island.fold.txns.get(txn.id)!.header });
    if (answer.kind !== "txn" || (answer.phase !== "committed" && answer.phase !== "rolled-back")) return;
    island.append(decideOutcome(island.head, txn.id, { phase: answer.phase, reason: answer.reason }, island.context));
  }

  #report(island: Island, txn: TxnHeader): void {
    const state = island.fold.txns.get(txn.id);
    if (state?.phase !== "committed" || state.header.home === island.self || state.outbox.length > 0) return;
    this.#home(txn).call({ kind: "settled", from: island.self, ids: [txn.id] });
    island.append(decideSettledKnown(island.head, [txn.id], island.context));
  }

  #home(txn: TxnHeader): Island {
    return this.islands[LETTERS.find((letter) => hashOf(letter) === txn.home)!]!;
  }

  // ---- others --------------------------------------------------------------------------------------------

  #value(island: Island, of: string, what: string): void {
    const data = new TextEncoder().encode(what);
    const command: ValueCommand = { kind: "put", name: of, data, ifVersion: null, fence: null, atMs: 1 };
    const decision = decideValue(island.head, command);
    expect(decision).toEqual(decideValue(laterOf(island), command));
    if (decision.kind === "event") island.append([decision.event]);
  }

  #scope({ head, ...rest }: Island, of: string, kind: "acquire" | "force"): void {
    const island = Object.values(this.islands).find((one) => one.head === head)!;
    const grant = { session: "x", identity: "x", metadata: {}, ttlMs: 1_000 };
    const command = { ...(kind === "acquire" ? grant : {}), kind, scope: of, atMs: 1 } as ScopeCommand;
    const position = rest.log.length + 1;
    const decision = decideScope(head.scopes, command, { position, locks: head });
    const later = laterOf(island);
    expect(decision).toEqual(decideScope(later.scopes, command, { position, locks: later }));
    if (decision.kind === "event") island.append([decision.event]);
  }

  #log(what: string, island: Island, letter: string): void {
    if (what === "apply") island.applyNext();
    else if (what === "apply-all") island.applyAll();
    else if (what === "give-up") island.giveUp();
    else if (what === "housekeeping") this.#housekeep(island);
    else this.islands[letter] = this.#restarted(island, letter);
  }

  /** From its snapshot: the same bytes. */
  #restarted(island: Island, letter: string): Island {
    island.applyAll();
    const fold = new StateFold(SCOPES_MAX);
    fold.restore(island.snapshot);
    const again = new Island(letter, fold, island.log.length);
    expect(again.snapshot).toEqual(island.snapshot);
    return again;
  }

  #housekeep(island: Island): void {
    island.nowMs += 400;
    const write = (changes: readonly TxnChange[]): void => island.append(changes);
    const [first] = island.fold.txns.undelivered();
    if (first !== undefined) write(decideDelivered(island.head, first.header.id, island.context));
    const ids = [...island.fold.txns.live(null)].map(({ header: txn }) => txn.id);
    write(decideDropped(island.head, ids, island.context));
    for (const { header: txn } of this.#bodies) this.#report(island, txn);
  }

  /** The head decides as the state will when all of it is applied, and as that state does after a restore. */
  #compare(island: Island, request: Exclude<TxnRequest, { readonly kind: "recover" }>): void {
    const later = laterOf(island);
    const restored = new StateFold(SCOPES_MAX);
    restored.restore(new Island("a", later).snapshot);
    const context = { ...island.context, newJobId: () => "job" };
    const decision = decideTxn(island.head, request, context);
    expect(decideTxn(later, request, context)).toEqual(decision);
    expect(decideTxn(restored, request, context)).toEqual(decision);
  }
}

/** The applied state as it will be. */
function laterOf(island: Island): StateFold {
  const later = new StateFold(SCOPES_MAX);
  later.restore(island.snapshot);
  for (let at = island.log.length - island.underWay; at < island.log.length; at++)
    later.apply({ position: at + 1, epoch: 1, data: island.log[at]! });
  expect(later.counts.unfit).toBe(0);
  return later;
}

describe("whatever is called, applied, given up and restarted", () => {
  it("what is decided never changes, commits fit, and the head decides as the state will; at rest nothing is open", () => {
    const bodies = fc.array(body, { minLength: 2, maxLength: 6 });
    fc.assert(
      fc.property(bodies, fc.array(step, { minLength: 20, maxLength: 60 }), (some, steps) => {
        const world = new World(some);
        for (const one of steps) world.play(one);
        world.rest();
        for (const { fold, head } of Object.values(world.islands)) {
          expect([fold.txns.prepared, fold.reserved]).toEqual([0, { values: 0, bytes: 0, scopes: 0 }]);
          expect([head.txns.prepared, head.reserved]).toEqual([0, { values: 0, bytes: 0, scopes: 0 }]);
          for (const value of ["x", "y", "__proto__", "constructor"]) expect(head.lockedBy({ value })).toBeNull();
        }
      }),
      { numRuns: 40 },
    );
  });
});

describe("a store that is full", () => {
  const filled = new StateFold();
  for (let at = 0; at < VALUES_MAX - 3; at++) {
    // One value takes what is left of the bytes.
    const bytes = at > 0 ? 1 : 64 * 1024;
    filled.values.evolve({ kind: "value-put", name: `n${at}`, data: new Uint8Array(bytes), fence: null, atMs: 1 }, 1);
  }
  const bytes = new Island("b", filled).snapshot;
  const some = fc.uniqueArray(
    fc.oneof(
      fc.tuple(fc.integer({ min: 0, max: 9 }), text).map(([at, what]) => put(`n${at}`, what)),
      fc.tuple(fc.integer({ min: 0, max: 9 }), text).map(([at, what]) => put(`new ${at}`, what)),
      fc.integer({ min: 0, max: 9 }).map((at) => ({ kind: "value-delete", name: `n${at}`, ifVersion: null }) as const),
    ),
    { minLength: 1, maxLength: 4, selector: keyOf },
  );
  const call = fc.record({
    what: fc.constantFrom("prepare", "prepare", "plain", "home", "commit", "rollback"),
    operations: some,
    at: fc.nat(9),
  });

  it("stays within its bounds, and every commit of what was prepared fits, in whatever order", () => {
    fc.assert(
      fc.property(fc.array(call, { minLength: 5, maxLength: 30 }), (calls) => {
        const fold = new StateFold();
        fold.restore(bytes);
        const island = new Island("b", fold);
        const prepared: TxnHeader[] = [];
        for (const { what, operations: wanted, at } of calls) {
          const txn = header(what === "home" ? "b" : "a", "ab");
          const open = prepared[at % (prepared.length || 1)];
          if (what === "prepare" && isDone(island.prepare(txn, wanted), "prepared")) prepared.push(txn);
          else if (what === "home") island.commit(txn, wanted);
          else if (what === "commit" && open !== undefined) expect(isDone(island.commit(open), "committed")).toBe(true);
          else if (what === "plain") plain(island, wanted);
        }
        for (const txn of prepared.toReversed()) expect(isDone(island.commit(txn), "committed")).toBe(true);
        expect(fold.counts.unfit).toBe(0);
        expect(fold.values.size).toBeLessThanOrEqual(VALUES_MAX);
        expect(fold.values.bytes).toBeLessThanOrEqual(VALUES_BYTES_MAX);
        expect(fold.reserved).toEqual({ values: 0, bytes: 0, scopes: 0 });
      }),
      { numRuns: 25 },
    );
  });

  function isDone(answer: unknown, phase: string): boolean {
    return (answer as { readonly phase?: string }).phase === phase;
  }

  function plain(island: Island, wanted: readonly TxnOperation[]): void {
    for (const one of wanted) {
      if (one.kind !== "value-put" && one.kind !== "value-delete") continue;
      const rest = { name: one.name, ifVersion: null, fence: null, atMs: 1 };
      const command: ValueCommand =
        one.kind === "value-put" ? { ...rest, kind: "put", data: one.data } : { ...rest, kind: "delete" };
      const decision = decideValue(island.head, command);
      if (decision.kind === "event") island.write([decision.event]);
    }
  }
});
