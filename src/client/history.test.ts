import { describe, expect, it } from "vitest";
import { historyWith } from "./history.ts";
import { Network, type Reply } from "./test-network.ts";

const N1 = "http://127.0.0.1:1";
const WHOLE = { valid: true, firstSequence: 1, throughSequence: 7, headHash: "aa", root: "bb" };

function historyOf(reply: Reply) {
  const network = new Network();
  network.nodes.set(N1, () => reply);
  return { network, history: historyWith({ urls: N1, fetch: network.fetch, timeoutMs: 2_000 }, "") };
}

describe("a node's history", () => {
  it("is verified by that node, whose verdict is told as it is, also behind the spaces of a long answer", async () => {
    expect(await historyOf([200, WHOLE]).history.verify(N1)).toEqual(WHOLE);
    expect(await historyOf([200, `   ${JSON.stringify(WHOLE)}`]).history.verify(N1)).toEqual(WHOLE);
    const broken = { valid: false, firstSequence: 1, firstBrokenSequence: 3, reason: "another byte" };
    expect(await historyOf([200, broken]).history.verify(N1)).toEqual(broken);
  });

  it("has no verdict where something goes wrong, at once or later", async () => {
    const late: Reply = [200, `  ${JSON.stringify({ error: "BACKEND_UNAVAILABLE", message: "the database is down" })}`];
    await expect(historyOf(late).history.verify(N1)).rejects.toMatchObject({
      code: "BACKEND_UNAVAILABLE",
      message: "the database is down",
    });
    const busy: Reply = [503, { error: "OVERLOADED", message: "it verifies already" }];
    await expect(historyOf(busy).history.verify(N1)).rejects.toMatchObject({ code: "OVERLOADED" });
    await expect(historyOf([200, "   "]).history.verify(N1)).rejects.toMatchObject({ code: "BACKEND_UNAVAILABLE" });
    await expect(historyOf([200, {}]).history.verify(N1)).rejects.toMatchObject({ code: "BACKEND_UNSUPPORTED" });
  });

  it("has a root at any size, asked of that node alone", async () => {
    const { network, history } = historyOf([200, { kind: "consistency", from_root: "cc", root: "dd" }]);
    expect(await history.root(N1, 5)).toBe("cc");
    expect(network.sent.map(({ path }) => path)).toEqual(["/v1/events/proof?from_size=5"]);
    await expect(history.root("http://127.0.0.9:9", 5)).rejects.toMatchObject({ code: "CONFIG_INVALID" });
  });
});
