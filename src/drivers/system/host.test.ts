import { readFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { requireNode } from "./host.ts";

describe("requireNode", () => {
  test.each(["20.20.2", "22.17.1", "18.0.0"])("refuses Node %s, and says which one is needed", (node) => {
    expect(() => requireNode("22.18", { node })).toThrow(
      expect.objectContaining({
        code: "RUNTIME_UNSUPPORTED",
        message: `Tenure needs Node ≥ 22.18, and this is Node ${node}. Install a newer one; nothing was done.`,
      }),
    );
  });

  test.each([
    ["Node 22.18.0", { node: "22.18.0" }],
    ["Node 26.0.0", { node: "26.0.0" }],
    ["Bun, which names a Node that it imitates", { node: "20.0.0", bun: "1.0.0" }],
    ["Deno, which does so too", { node: "20.11.1", deno: "1.44.0" }],
    ["a browser's stand-in for process", {}],
    ["a browser", undefined],
  ])("takes %s", (_name, versions) => {
    expect(() => requireNode("22.18", versions)).not.toThrow();
  });

  test("asks for the version of package.json by default", () => {
    const { engines } = JSON.parse(readFileSync("package.json", "utf8")) as { engines: { node: string } };
    const least = engines.node.replace(">=", "");
    expect(() => requireNode(undefined, { node: "1.0.0" })).toThrow(`Node ≥ ${least}`);
  });
});
