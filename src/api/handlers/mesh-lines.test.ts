// Heads of all lines, where one of them can't be signed: of an earlier generation whose keys are lost nobody signs a head any more, and that
// is documented (decision 61, 3). The other lines are shown all the same.

import { expect, test } from "vitest";
import { TenureError } from "../../core/kit/errors.ts";
import type { MeshLines } from "../../ports/mesh/lines.ts";
import { meshLinesHandlers } from "./mesh-lines.ts";

test("a line whose head nobody can sign hides no other line's", async () => {
  const lines = {
    lines: () => ["old.1", "new.2"],
    checkpoint: async (line: string) => {
      if (line === "new.2") return "the head of new.2";
      throw new TenureError("BACKEND_UNAVAILABLE", "signed by a key of n1, which this node does not have.");
    },
  } as unknown as MeshLines;
  const { meshHeads } = meshLinesHandlers(lines, undefined);
  const inTurn = <T>(work: () => Promise<T>): Promise<T> => work();
  const answer = await meshHeads({ inTurn } as unknown as Parameters<typeof meshHeads>[0]);
  expect(answer).toEqual({ body: { heads: ["the head of new.2"] } });
});

test("a proof from a size to a smaller one is a mistake of whoever asks", async () => {
  const asked: unknown[] = [];
  const consistency = async (...all: unknown[]) => {
    asked.push(all);
    return { fromRoot: "a", root: "b", path: [] };
  };
  const { meshConsistency } = meshLinesHandlers({ consistency } as unknown as MeshLines, undefined);
  const ask = async (from: number, to: number) =>
    meshConsistency({ query: { line: "a.0", from, to } } as unknown as Parameters<typeof meshConsistency>[0]);
  await expect(ask(5, 2)).rejects.toMatchObject({ code: "BAD_REQUEST", message: "from is above to." });
  expect(asked).toEqual([]);
  await ask(2, 2);
  expect(asked).toEqual([["a.0", 2, 2]]);
});
