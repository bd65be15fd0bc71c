// Whose terms an island believes, beyond the order of terms (txn-protocol.test.ts): of two recoveries, and of a generation that nobody has reached.

import { describe, expect, it } from "vitest";
import { GENERATION_TERMS } from "../kit/limits.ts";
import { decideRecover, type TcFence, type TxnAnswer } from "../txn/index.ts";
import { TXN_GENERATIONS_AHEAD_MAX } from "../txn/limits.ts";
import { fence, header, Island, put } from "./test-island.ts";

const phase = (of: string): unknown => expect.objectContaining({ kind: "txn", phase: of, reason: null });
const refused = (code: string): unknown => expect.objectContaining({ kind: "refused", code });

describe("a term of a generation in which two have recovered the coordinators", () => {
  const GENERATION = 3;
  const one = (term: number): TcFence => fence(GENERATION * GENERATION_TERMS + term, { recoveredBy: "n1@a" });
  const two = (term: number): TcFence => fence(GENERATION * GENERATION_TERMS + term, { recoveredBy: "n2@b" });
  const ask = (island: Island, by: TcFence): TxnAnswer => island.prepare(header("a", "ab"), [put(newName())], by);
  let names = 0;
  const newName = (): string => `name${++names}`;

  it("an island that follows none yet follows the one that its node observes, in lower and higher terms", () => {
    const island = new Island("b");
    island.observed = one(5);
    for (const term of [4, 5, 9]) {
      expect(ask(island, two(term))).toEqual(refused("tc_cluster_mismatch"));
      expect(decideRecover(island.head, two(term), island.context)).toMatchObject({ code: "tc_cluster_mismatch" });
    }
    expect([island.log, island.fold.txns.fence]).toEqual([[], null]);
    expect(ask(island, one(5))).toEqual(phase("prepared"));
    // Also where its log knows of the generation below.
    const older = new Island("b");
    ask(older, fence(7));
    older.observed = one(5);
    expect(ask(older, two(9))).toEqual(refused("tc_cluster_mismatch"));
    expect(ask(older, one(5))).toEqual(phase("prepared"));
  });

  it("what its log has counts, whatever its node observes: it never refuses both", () => {
    const island = new Island("b");
    ask(island, two(5));
    // This node is with the others, whose terms have gone on.
    island.observed = one(900);
    expect(ask(island, two(5))).toEqual(phase("prepared"));
    expect(ask(island, one(900))).toEqual(refused("tc_cluster_mismatch"));
    expect(ask(island, two(6))).toEqual(phase("prepared"));
    expect(ask(island, two(5))).toEqual(refused("tc_term_stale"));
  });

  it("nobody is refused for good: not by who leads no more, nor by a node that is a generation below, nor in the next one", () => {
    const island = new Island("b");
    island.observed = one(5);
    expect(ask(island, two(6))).toEqual(refused("tc_cluster_mismatch"));
    island.observed = null;
    expect(ask(island, two(6))).toEqual(phase("prepared"));
    const below = new Island("b");
    below.observed = fence(GENERATION_TERMS + 7, { recoveredBy: "n9@z" });
    expect(ask(below, two(1))).toEqual(phase("prepared"));
    expect(ask(below, below.observed)).toEqual(refused("tc_term_stale"));
    const next = new Island("b");
    next.observed = one(5);
    expect(ask(next, fence((GENERATION + 1) * GENERATION_TERMS, { recoveredBy: "n2@b" }))).toEqual(phase("prepared"));
    expect(ask(next, one(5))).toEqual(refused("tc_term_stale"));
  });
});

describe("a term of a generation far above", () => {
  const FAR = TXN_GENERATIONS_AHEAD_MAX;
  const of = (generation: number): TcFence => fence(generation * GENERATION_TERMS + 3, { recoveredBy: "n1@a" });

  it("is not believed, and nothing is written: one call can't raise the fence for ever", () => {
    const txn = header("a", "ab");
    for (const by of [fence(Number.MAX_SAFE_INTEGER), of(FAR + 1)]) {
      const [island, home] = [new Island("b"), new Island("a")];
      expect(island.prepare(txn, [put("y")], by)).toEqual(refused("invalid_term"));
      expect(home.commit(txn, [put("x")], [], by)).toEqual(refused("invalid_term"));
      expect(home.rollback(txn, by)).toEqual(refused("invalid_term"));
      expect(decideRecover(island.head, by, island.context)).toMatchObject({ code: "invalid_term" });
      expect([island.log, island.fold.txns.fence, home.log]).toEqual([[], null, []]);
      expect(island.prepare(txn, [put("y")], fence(1))).toEqual(phase("prepared"));
    }
  });

  it("is counted from the island's log, or from the leader that its node observes, whichever is higher", () => {
    const island = new Island("b");
    expect(island.prepare(header("a", "ab"), [put("y")], of(FAR))).toEqual(phase("prepared"));
    expect(island.prepare(header("a", "ab"), [put("z")], of(2 * FAR + 1))).toEqual(refused("invalid_term"));
    island.observed = fence(9);
    expect(island.prepare(header("a", "ab"), [put("z")], of(2 * FAR))).toEqual(phase("prepared"));
    // It has missed a hundred recoveries: as soon as its own coordinator observes the leader, the leader is heard.
    expect(decideRecover(island.head, of(100), island.context)).toMatchObject({ code: "invalid_term" });
    island.observed = of(100);
    expect(decideRecover(island.head, of(100), island.context)).toMatchObject({ kind: "record" });
    // And so on a fresh island.
    const fresh = new Island("b");
    fresh.observed = of(100);
    expect(fresh.prepare(header("a", "ab"), [put("y")], of(100))).toEqual(phase("prepared"));
  });

  it("counts nothing of another cluster of coordinators", () => {
    const island = new Island("b");
    island.prepare(header("a", "ab"), [put("y")], of(FAR));
    const by = { ...of(FAR + 1), clusterId: "others" };
    island.observed = { ...of(0), clusterId: "others" };
    expect(island.prepare(header("a", "ab"), [put("z")], by)).toEqual(refused("invalid_term"));
    island.observed = { ...of(1), clusterId: "others" };
    expect(island.prepare(header("a", "ab"), [put("z")], by)).toEqual(phase("prepared"));
  });
});
