// A site that has sent too much is refused before its next body is read.

import { expect, test } from "vitest";
import type { MeshLinks } from "../../src/ports/mesh/links.ts";
import { startApi } from "./test-api.ts";

const PATH = "/api/events/broadcast";
const NO_JSON = "{";

function owing(owedMs: number, asked: string[]): MeshLinks {
  return {
    isEvicted: () => false,
    owedMs: (controller: string) => {
      asked.push(controller);
      return owedMs;
    },
  } as unknown as MeshLinks;
}

test("what a site sends that owes is not even parsed; what an operator sends is", async () => {
  const asked: string[] = [];
  await using t = await startApi({ links: owing(1_200, asked) });
  const refused = await t.call("POST", PATH, NO_JSON, "controller-key");
  expect(refused).toMatchObject({ status: 429, json: { error: "RATE_LIMITED" } });
  expect(refused.headers.get("retry-after")).toBe("2");
  expect(asked).toHaveLength(1);
  expect(await t.call("POST", PATH, NO_JSON, "operator-key")).toMatchObject({ status: 400 });
  expect(await t.call("POST", "/v1/mesh/stream", NO_JSON, "controller-key")).toMatchObject({ status: 400 });
});

test("a site that owes nothing is heard", async () => {
  await using t = await startApi({ links: owing(0, []) });
  expect(await t.call("POST", PATH, NO_JSON, "controller-key")).toMatchObject({ status: 400 });
});
